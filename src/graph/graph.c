// graph.c — Creating graphs and adding nodes one at a time.
#include "graph/graph.h"

#include <stdio.h>

#include "base/details.h"
#include "base/suggest.h"
#include "graph/function.h"
#include "graph/graph_internal.h"
#include "op/misspelt.h"

weir_status_t* weir_graph_new(const weir_registry_t* registry, weir_graph_t** out_graph) {
  weir_graph_t* graph = weir_calloc(1, sizeof(*graph));
  if (!graph) return weir_out_of_memory();
  weir_ref_init(&graph->ref);
  weir_mutex_init(&graph->mu);
  graph->registry = registry;
  graph->name_counts.owns_keys = true;
  weir_status_t* status = weir_function_library_create(&graph->library);
  if (status) {
    weir_graph_unref(graph);
    return status;
  }
  *out_graph = graph;
  return NULL;
}

weir_graph_t* weir_graph_ref(weir_graph_t* graph) {
  if (graph) weir_ref_inc(&graph->ref, 1);
  return graph;
}

void weir_graph_unref(weir_graph_t* graph) {
  if (!graph || !weir_ref_dec(&graph->ref)) return;
  if (graph->adder) graph->adder->vtable->destroy(graph->adder);
  weir_map_free(&graph->names);
  weir_map_free(&graph->name_counts);
  weir_tensor_list_free(&graph->tensors);
  weir_function_library_release(graph->library);
  weir_strbuf_free(&graph->unknown_fields);
  for (size_t i = 0; i < graph->import_count; ++i) weir_strbuf_free(&graph->imports[i]);
  weir_free(graph->imports);
  weir_free(graph->nodes);
  weir_arena_free(&graph->arena);
  weir_graph_unref(graph->source);
  weir_mutex_destroy(&graph->mu);
  weir_free(graph);
}

static const char* input_name(const weir_node_def_t* def, int i) {
  const weir_node_t* node = (const weir_node_t*)def;  // its first member
  const bool is_known = node->inputs && node->inputs[i].node;
  return is_known ? node->inputs[i].node->def.name : def->name;
}

weir_node_t* weir_node_make(weir_graph_t* graph, weir_view_t name, weir_view_t device) {
  weir_node_t* node = weir_arena_alloc(&graph->arena, sizeof(*node));
  if (!node) return NULL;
  node->graph = graph;
  node->def.name = weir_arena_strndup(&graph->arena, name.data, name.size);
  node->def.device = weir_arena_strndup(&graph->arena, device.data, device.size);
  node->def.input_name = input_name;
  return node->def.name && node->def.device ? node : NULL;
}

weir_status_t* weir_graph_register(weir_graph_t* graph, weir_node_t* node) {
  weir_view_t name = weir_view_of(node->def.name);
  if (weir_map_find(&graph->names, name)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Node name '%s' already exists in the Graph",
                       node->def.name);
  }
  if (!WEIR_GROW(graph->nodes, graph->node_capacity, graph->node_count + 1))
    return weir_out_of_memory();
  WEIR_TRY(weir_map_put(&graph->names, name, node));
  node->id = (int)graph->node_count;
  graph->nodes[graph->node_count++] = node;
  ++graph->version;
  return NULL;
}

void weir_graph_unregister_from(weir_graph_t* graph, size_t first) {
  while (graph->node_count > first) {
    weir_node_t* node = graph->nodes[--graph->node_count];
    weir_map_remove(&graph->names, weir_view_of(node->def.name));
  }
}

weir_node_t* weir_graph_find(const weir_graph_t* graph, weir_view_t name) {
  return weir_map_find(&graph->names, name);
}

weir_node_t* weir_graph_find_reader(const weir_node_t* source, const char* op) {
  const weir_graph_t* graph = source->graph;
  for (size_t i = 0; i < graph->node_count; ++i) {
    weir_node_t* node = graph->nodes[i];
    if (strcmp(node->def.op_name, op) == 0 && node->control_count == 0 &&
        node->def.input_count > 0 && node->inputs[0].node == source)
      return node;
  }
  return NULL;
}

static weir_status_t* no_node(const weir_graph_t* graph, weir_view_t name) {
  weir_suggestion_t suggestion = weir_suggestion(name);
  for (size_t i = 0; i < graph->node_count; ++i)
    weir_suggestion_offer(&suggestion, weir_view_of(graph->nodes[i]->def.name));
  weir_status_t* status =
      WEIR_STATUS(NOT_FOUND, "Node '%.*s' is not in the graph", WEIR_VIEW_ARG(name));
  return weir_status_about_node(weir_suggestion_add(&suggestion, status), name);
}

weir_status_t* weir_graph_find_edge(const weir_graph_t* graph, weir_view_t name,
                                    weir_edge_t* out_edge) {
  size_t colon = name.size;
  while (colon > 0 && name.data[colon - 1] != ':') --colon;
  int64_t index = 0;
  weir_view_t node_name = name;
  if (colon > 0) {
    node_name.size = colon - 1;
    if (!weir_parse_int64(weir_view(name.data + colon, name.size - colon), &index) || index < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "'%.*s' is not the name of a tensor (expected \"node:index\")",
                         WEIR_VIEW_ARG(name));
    }
  }
  weir_node_t* node = weir_graph_find(graph, node_name);
  if (!node) return no_node(graph, node_name);
  if (!node->def.op)
    return weir_registry_suggest(graph->registry, node->def.op_name,
                                 WEIR_STATUS(NOT_FOUND, "Op type not registered '%s' (node '%s')",
                                             node->def.op_name, node->def.name));
  if (index >= node->def.output_count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "'%.*s': node '%s' (%s) has %d outputs",
                       WEIR_VIEW_ARG(name), node->def.name, node->def.op_name,
                       node->def.output_count);
  }
  *out_edge = (weir_edge_t){.node = node, .index = (int)index};
  return NULL;
}

weir_status_t* weir_graph_check_edge(const weir_graph_t* graph, weir_edge_t edge, const char* what,
                                     int index) {
  if (!edge.node) return WEIR_STATUS(INVALID_ARGUMENT, "%s %d is no edge", what, index);
  const char* name = edge.node->def.name;
  if (edge.node->graph != graph) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s %d is '%s:%d' of another graph", what, index, name,
                       edge.index);
  }
  if (edge.index >= 0 && edge.index < edge.node->def.output_count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s %d is '%s:%d', but the node has %d outputs", what, index,
                     name, edge.index, edge.node->def.output_count);
}

const weir_op_t* weir_graph_find_op(const weir_graph_t* graph, const char* name) {
  const weir_op_t* op = weir_registry_find(graph->registry, weir_view_of(name));
  if (op) return op;
  const weir_function_t* function = weir_function_find(graph->library, weir_view_of(name));
  return function ? function->signature : NULL;
}

weir_status_t* weir_op_check_attr_names(const weir_op_t* op, const char* node_name,
                                        weir_attrs_t attrs) {
  for (size_t i = 0; i < attrs.count; ++i) {
    const char* name = attrs.items[i].name;
    if (*name == '_' || weir_op_attr(op, name)) continue;
    weir_strbuf_t text = {0};
    weir_op_append_summary(op, &text);
    weir_status_t* status =
        WEIR_STATUS(INVALID_ARGUMENT, "NodeDef mentions attr '%s' not in %s; NodeDef: {{node %s}}",
                    name, text.data ? text.data : op->name, node_name);
    weir_strbuf_free(&text);
    weir_suggestion_t suggestion = weir_suggestion(weir_view_of(name));
    for (int k = 0; k < op->attr_count; ++k)
      weir_suggestion_offer(&suggestion, weir_view_of(op->attrs[k].name));
    return weir_suggestion_add(&suggestion, status);
  }
  return NULL;
}

weir_status_t* weir_graph_clone_attrs(weir_graph_t* graph, weir_attrs_t attrs,
                                      weir_attrs_t* out_attrs) {
  weir_named_attr_t* items = weir_arena_array(&graph->arena, attrs.count, sizeof(*items));
  if (!items) return weir_out_of_memory();
  for (size_t i = 0; i < attrs.count; ++i) {
    items[i].name =
        weir_arena_strndup(&graph->arena, attrs.items[i].name, strlen(attrs.items[i].name));
    if (!items[i].name) return weir_out_of_memory();
    WEIR_TRY(
        weir_attr_clone(&attrs.items[i].value, &graph->arena, &graph->tensors, &items[i].value));
  }
  *out_attrs = (weir_attrs_t){.items = items, .count = attrs.count};
  return NULL;
}

// Placeholders stand for attributes of a function; what instantiates it has replaced them.
static weir_status_t* check_no_placeholders(const weir_node_t* node) {
  for (size_t i = 0; i < node->def.attrs.count; ++i) {
    const weir_named_attr_t* attr = &node->def.attrs.items[i];
    if (attr->value.kind != WEIR_ATTR_PLACEHOLDER) continue;
    return WEIR_NODE_STATUS(INVALID_ARGUMENT, node->def.name,
                            "attr '%s' is the placeholder '%.*s' outside of a function", attr->name,
                            WEIR_VIEW_ARG(attr->value.u.s));
  }
  return NULL;
}

weir_status_t* weir_node_define(weir_node_t* node, const char* op_name, weir_attrs_t attrs,
                                const weir_dtype_t* input_types, int input_count) {
  weir_graph_t* graph = node->graph;
  const weir_op_t* op = weir_graph_find_op(graph, op_name);
  node->def.op = op;
  if (!op) {
    node->def.op_name = weir_arena_strndup(&graph->arena, op_name, strlen(op_name));
    node->def.attrs = attrs;
    return node->def.op_name ? NULL : weir_out_of_memory();
  }
  node->def.op_name = op->name;
  WEIR_TRY(weir_op_resolve(op, node->def.name, attrs, input_types, input_count, &graph->arena,
                           &node->def.attrs));
  WEIR_TRY(check_no_placeholders(node));
  WEIR_TRY(weir_op_arg_types(op, node->def.name, node->def.attrs, false, &graph->arena,
                             &node->def.input_types, &node->def.input_count));
  return weir_op_arg_types(op, node->def.name, node->def.attrs, true, &graph->arena,
                           &node->def.output_types, &node->def.output_count);
}

weir_status_t* weir_node_alloc_shapes(weir_node_t* node) {
  size_t count = (size_t)node->def.output_count;
  weir_arena_t* arena = &node->graph->arena;
  node->shapes = weir_arena_array(arena, count, sizeof(*node->shapes));
  node->values_as_shape = weir_arena_array(arena, count, sizeof(*node->values_as_shape));
  node->handles = weir_arena_array(arena, count, sizeof(*node->handles));
  if (!node->shapes || !node->values_as_shape || !node->handles) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) node->shapes[i] = &weir_shape_unknown;
  return NULL;
}

weir_status_t* weir_node_check_input(const weir_node_t* node, int index, weir_edge_t edge) {
  if (edge.node->graph != node->graph) {
    return WEIR_NODE_STATUS(INVALID_ARGUMENT, node->def.name,
                            "input %d is '%s:%d' of another graph", index, edge.node->def.name,
                            edge.index);
  }
  if (edge.index < 0 || edge.index >= edge.node->def.output_count) {
    return WEIR_NODE_STATUS(INVALID_ARGUMENT, node->def.name,
                            "input %d is output %d of node '%s', which has %d outputs", index,
                            edge.index, edge.node->def.name, edge.node->def.output_count);
  }
  if (!node->def.op || !edge.node->def.op) return NULL;  // types of unknown ops are not known
  weir_dtype_t have = weir_edge_dtype(edge);
  weir_dtype_t want = node->def.input_types[index];
  bool is_compatible = weir_dtype_is_ref(want) ? have == want : weir_dtype_base(have) == want;
  if (is_compatible) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Input %d of node %s was passed %s from %s:%d incompatible with expected %s.",
                     index, node->def.name, weir_dtype_name(have), edge.node->def.name, edge.index,
                     weir_dtype_name(want));
}

static weir_status_t* check_control(const weir_node_t* node, const weir_node_t* on) {
  if (!on) return WEIR_NODE_STATUS(INVALID_ARGUMENT, node->def.name, "a control input is NULL");
  if (on->graph == node->graph) return NULL;
  return WEIR_NODE_STATUS(INVALID_ARGUMENT, node->def.name,
                          "control input '%s' is of another graph", on->def.name);
}

static weir_status_t* link_inputs(weir_node_t* node, const weir_node_params_t* params) {
  weir_arena_t* arena = &node->graph->arena;
  if (params->inputs.count != node->def.input_count) {
    return WEIR_NODE_STATUS(INVALID_ARGUMENT, node->def.name, "op %s takes %d inputs, %d given",
                            node->def.op_name, node->def.input_count, params->inputs.count);
  }
  node->inputs = weir_arena_array(arena, (size_t)node->def.input_count, sizeof(*node->inputs));
  node->control_inputs =
      weir_arena_array(arena, (size_t)params->control_count, sizeof(*node->control_inputs));
  if (!node->inputs || !node->control_inputs) return weir_out_of_memory();
  for (int i = 0; i < params->inputs.count; ++i) {
    WEIR_TRY(weir_node_check_input(node, i, params->inputs.items[i]));
    node->inputs[i] = params->inputs.items[i];
  }
  for (int i = 0; i < params->control_count; ++i) {
    WEIR_TRY(check_control(node, params->control_inputs[i]));
    node->control_inputs[i] = params->control_inputs[i];
  }
  node->control_count = params->control_count;
  return NULL;
}

const char* weir_graph_unique_name(weir_graph_t* graph, const char* name) {
  if (!weir_graph_find(graph, weir_view_of(name))) return name;
  intptr_t next = (intptr_t)weir_map_find(&graph->name_counts, weir_view_of(name));
  for (;;) {
    ++next;
    char* candidate = weir_arena_printf(&graph->arena, "%s_%lld", name, (long long)next);
    if (!candidate) return NULL;
    if (weir_graph_find(graph, weir_view_of(candidate))) continue;
    weir_status_destroy(
        weir_map_put(&graph->name_counts, weir_view_of(name), (void*)next));  // only a hint
    return candidate;
  }
}

bool weir_node_name_is_valid(const char* name) {
  for (const char* c = name; *c; ++c) {
    bool is_word = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
    if (!is_word && (c == name ? !strchr("._", *c) : !strchr("_.\\-/>", *c))) return false;
  }
  return *name != 0;
}

const char* weir_node_params_name(weir_graph_t* graph, const weir_node_params_t* params) {
  const char* name = params->name;
  if (params->prefix && *params->prefix)
    name = weir_arena_printf(&graph->arena, "%s/%s", params->prefix, name);
  return name && params->unique_name ? weir_graph_unique_name(graph, name) : name;
}

static weir_status_t* types_of_inputs(weir_graph_t* graph, const weir_node_params_t* params,
                                      const char* name, weir_dtype_t** out_types) {
  weir_dtype_t* types =
      weir_arena_array(&graph->arena, (size_t)params->inputs.count, sizeof(*types));
  if (!types) return weir_out_of_memory();
  for (int i = 0; i < params->inputs.count; ++i) {
    weir_edge_t edge = params->inputs.items[i];
    weir_status_t* status = weir_graph_check_edge(graph, edge, "input", i);
    if (status) return weir_status_at_node(status, name, NULL);
    types[i] = weir_edge_dtype(edge);
  }
  *out_types = types;
  return NULL;
}

weir_status_t* weir_graph_add(weir_graph_t* graph, const weir_node_params_t* params,
                              weir_node_t** out_node) {
  if (graph->adder) return graph->adder->vtable->add(graph->adder, params, out_node);
  const char* name = weir_node_params_name(graph, params);
  if (!name) return weir_out_of_memory();
  if (!params->any_name && !weir_node_name_is_valid(name))
    return WEIR_STATUS(INVALID_ARGUMENT, "'%s' is not a valid node name", name);
  const weir_op_t* op = weir_graph_find_op(graph, params->op);
  if (!op)
    return weir_registry_suggest(
        graph->registry, params->op,
        WEIR_STATUS(NOT_FOUND, "Op type not registered '%s' (node '%s')", params->op, name));
  if (params->refuse_attrs) WEIR_TRY(weir_op_check_attr_names(op, name, params->attrs));
  weir_node_t* node = weir_node_make(graph, weir_view_of(name), weir_view_of(params->device));
  if (!node) return weir_out_of_memory();
  weir_dtype_t* types = NULL;
  weir_attrs_t attrs;
  WEIR_TRY(types_of_inputs(graph, params, name, &types));
  WEIR_TRY(weir_graph_clone_attrs(graph, params->attrs, &attrs));
  WEIR_TRY(weir_node_define(node, params->op, attrs, types, params->inputs.count));
  WEIR_TRY(link_inputs(node, params));
  WEIR_TRY(weir_node_alloc_shapes(node));
  WEIR_TRY(weir_graph_infer(node));
  WEIR_TRY(weir_graph_register(graph, node));
  *out_node = node;
  return NULL;
}

weir_status_t* weir_graph_add_control(weir_node_t* node, weir_node_t* on) {
  WEIR_TRY(check_control(node, on));
  for (int i = 0; i < node->control_count; ++i) {
    if (node->control_inputs[i] == on) return NULL;
  }
  weir_node_t** grown =
      weir_arena_array(&node->graph->arena, (size_t)node->control_count + 1, sizeof(*grown));
  if (!grown) return weir_out_of_memory();
  if (node->control_count)
    memcpy(grown, node->control_inputs, sizeof(*grown) * (size_t)node->control_count);
  grown[node->control_count] = on;
  node->control_inputs = grown;
  ++node->control_count;
  ++node->graph->version;
  return NULL;
}

weir_status_t* weir_graph_set_input(weir_node_t* node, int index, weir_edge_t edge) {
  if (index < 0 || index >= node->def.input_count) {
    return WEIR_STATUS(OUT_OF_RANGE, "Node '%s' has no input %d", node->def.name, index);
  }
  WEIR_TRY(weir_node_check_input(node, index, edge));
  node->inputs[index] = edge;
  ++node->graph->version;
  return NULL;
}

static bool has_variant(const weir_dtype_t* types, int count) {
  for (int i = 0; i < count; ++i) {
    if (types[i] == WEIR_DTYPE_VARIANT) return true;
  }
  return false;
}

bool weir_node_may_share(const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  if (!op || !op->def || op->role != WEIR_ROLE_NONE) return true;
  if (op->flags & (WEIR_OP_VIEW | WEIR_OP_PASS_THROUGH)) return true;
  for (size_t i = 0; i < node->def.attrs.count; ++i) {
    if (node->def.attrs.items[i].value.kind == WEIR_ATTR_FUNC) return true;
  }
  return has_variant(node->def.input_types, node->def.input_count) ||
         has_variant(node->def.output_types, node->def.output_count);
}
