// freeze.c — A signature as one graph without variables: inputs and outputs get the signature's
// names, calls are inlined, variables and tables folded, the rest left
// behind.
#include "graph/flatten.h"
#include "graph/function.h"
#include "model/fold.h"
#include "model/model.h"
#include "model/tables.h"
#include "model/values.h"
#include "weir/argument.h"
#include "wire/wire.h"

enum { GRAPH_LIBRARY = 2 };     // of GraphDef
enum { LIBRARY_FUNCTION = 1 };  // of FunctionDefLibrary

// A freeze under way.
typedef struct freezing_t {
  weir_model_t* model;
  const weir_signature_t* signature;
  bool quantize_int8;
  weir_arena_t arena;
  weir_graph_t* graph;    // a copy, which is rewritten
  weir_node_t** map;      // node of the model's graph → of the copy
  weir_node_t** outputs;  // of the copy, by output of the signature
  weir_node_t** variables;
  weir_tensor_t** values;
  int variable_count;
} freezing_t;

// ---- names ----

// Port names may hold what names of nodes may not.
static const char* node_name(freezing_t* freezing, const char* port) {
  char* name = weir_arena_strndup(&freezing->arena, port, strlen(port));
  for (char* c = name; c && *c; ++c) {
    bool is_word = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
    if (!is_word && (c == name ? *c != '.' : !strchr("_.-/", *c))) *c = c == name ? '.' : '_';
  }
  return name && !*name ? "unnamed" : name;
}

static weir_edge_t twin(const freezing_t* freezing, weir_edge_t edge) {
  return (weir_edge_t){.node = freezing->map[edge.node->id], .index = edge.index};
}

// ---- ends ----

static weir_status_t* replace_edge(weir_graph_t* graph, weir_edge_t from, weir_edge_t to) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    weir_node_t* node = graph->nodes[i];
    for (int k = 0; node != to.node && k < node->def.input_count; ++k) {
      if (node->inputs[k].node == from.node && node->inputs[k].index == from.index)
        WEIR_TRY(weir_graph_set_input(node, k, to));
    }
  }
  return NULL;
}

static weir_status_t* add_input(freezing_t* freezing, const weir_model_port_t* port) {
  weir_node_t* node = NULL;
  const char* name = node_name(freezing, port->name);
  const weir_shape_t* shape = port->rank < 0
                                  ? &weir_shape_unknown
                                  : weir_shape_make(&freezing->arena, port->rank, port->dims);
  if (!name || !shape) return weir_out_of_memory();
  weir_edge_t edge = twin(freezing, port->edge);
  if (!edge.node) return NULL;  // no output needs it
  bool is_named = strcmp(edge.node->def.name, name) == 0;
  if (is_named && weir_node_role(edge.node) == WEIR_ROLE_PLACEHOLDER) return NULL;
  weir_node_params_t params = {
      .op = "Placeholder",
      .name = name,
      .unique_name = true,
      .attrs = WEIR_ATTRS(weir_attr_type("dtype", port->dtype), weir_attr_shape("shape", shape))};
  WEIR_TRY(weir_graph_add(freezing->graph, &params, &node));
  return replace_edge(freezing->graph, edge, (weir_edge_t){.node = node, .index = 0});
}

static weir_status_t* add_output(freezing_t* freezing, const weir_model_port_t* port,
                                 weir_node_t** out_node) {
  const char* name = node_name(freezing, port->name);
  if (!name) return weir_out_of_memory();
  weir_edge_t edge = twin(freezing, port->edge);
  *out_node = edge.node;
  bool is_alone = edge.index == 0 && edge.node->def.output_count == 1;
  if (is_alone && strcmp(edge.node->def.name, name) == 0 &&
      strcmp(edge.node->def.op_name, "StatefulPartitionedCall") != 0 &&
      strcmp(edge.node->def.op_name, "PartitionedCall") != 0)
    return NULL;
  weir_node_params_t params = {.op = "Identity",
                               .name = name,
                               .unique_name = true,
                               .inputs = WEIR_EDGES(edge),
                               .attrs = WEIR_ATTRS(weir_attr_type("T", port->dtype))};
  return weir_graph_add(freezing->graph, &params, out_node);
}

// The part of the model's graph that the outputs need.
static weir_status_t* copy_needed(freezing_t* freezing) {
  const weir_signature_t* signature = freezing->signature;
  const weir_graph_t* graph = freezing->model->graph;
  size_t count = (size_t)signature->output_count;
  weir_node_t** roots = weir_arena_array(&freezing->arena, count, sizeof(*roots));
  freezing->outputs = weir_arena_array(&freezing->arena, count, sizeof(*roots));
  if (!roots || !freezing->outputs) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) roots[i] = signature->outputs[i].edge.node;
  bool* keep = weir_model_reach(graph, roots, count, &freezing->arena);
  if (!keep) return weir_out_of_memory();
  WEIR_TRY(weir_graph_copy(graph, keep, &freezing->arena, &freezing->graph, &freezing->map));
  freezing->graph->producer = graph->producer;
  freezing->graph->min_consumer = graph->min_consumer;
  return NULL;
}

static weir_status_t* set_ends(freezing_t* freezing) {
  const weir_signature_t* signature = freezing->signature;
  for (int i = 0; i < signature->output_count; ++i)
    WEIR_TRY(add_output(freezing, &signature->outputs[i], &freezing->outputs[i]));
  for (int i = 0; i < signature->input_count; ++i)
    WEIR_TRY(add_input(freezing, &signature->inputs[i]));
  return NULL;
}

static bool* needed(freezing_t* freezing) {
  return weir_model_reach(freezing->graph, freezing->outputs,
                          (size_t)freezing->signature->output_count, &freezing->arena);
}

// ---- variables ----

// The node of the model that has the variable of |node|, which may have come from a function.
static weir_status_t* find_variable(freezing_t* freezing, const weir_node_t* node,
                                    weir_node_t** out_node) {
  weir_graph_t* graph = freezing->model->graph;
  weir_node_t* same = weir_graph_find(graph, weir_view_of(node->def.name));
  if (same && weir_node_role(same) == WEIR_ROLE_VARIABLE) {
    *out_node = same;
    return NULL;
  }
  return WEIR_STATUS(UNIMPLEMENTED, "variable '%s' is made by a function", node->def.name);
}

static weir_status_t* list_variables(freezing_t* freezing, const bool* is_needed,
                                     weir_node_t** sources) {
  for (size_t i = 0; i < freezing->graph->node_count; ++i) {
    weir_node_t* node = freezing->graph->nodes[i];
    if (!is_needed[i] || weir_node_role(node) != WEIR_ROLE_VARIABLE) continue;
    WEIR_TRY(find_variable(freezing, node, &sources[freezing->variable_count]));
    freezing->variables[freezing->variable_count++] = node;
  }
  return NULL;
}

static weir_status_t* fold(freezing_t* freezing) {
  size_t count = freezing->graph->node_count;
  weir_arena_t* arena = &freezing->arena;
  weir_node_t** sources = weir_arena_array(arena, count, sizeof(*sources));
  freezing->variables = weir_arena_array(arena, count, sizeof(*freezing->variables));
  freezing->values = weir_arena_array(arena, count, sizeof(*freezing->values));
  bool* is_needed = needed(freezing);
  if (!sources || !freezing->variables || !freezing->values || !is_needed)
    return weir_out_of_memory();
  WEIR_TRY(list_variables(freezing, is_needed, sources));
  WEIR_TRY(weir_model_read_values(freezing->model->session, freezing->model->graph, sources,
                                  freezing->variable_count, freezing->values));
  weir_fold_t params = {.variables = freezing->variables,
                        .values = freezing->values,
                        .count = freezing->variable_count,
                        .is_needed = is_needed,
                        .quantize_int8 = freezing->quantize_int8};
  return weir_model_fold(freezing->graph, &params);
}

static weir_status_t* freeze_tables(freezing_t* freezing) {
  bool* is_needed = needed(freezing);
  if (!is_needed) return weir_out_of_memory();
  return weir_model_freeze_tables(freezing->graph, is_needed, freezing->model->graph,
                                  freezing->model->session);
}

// ---- what comes out ----

// Anything but values and tables that is still there would need a session that made it.
static weir_status_t* check_node(const weir_node_t* node) {
  if (weir_model_is_table(node) || weir_model_hands_on(node)) return NULL;
  for (int i = 0; i < node->def.output_count; ++i) {
    if (node->def.output_types[i] != WEIR_DTYPE_RESOURCE) continue;
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "'%s' (%s) is neither a value nor a variable: it cannot be frozen",
                       node->def.name, node->def.op_name);
  }
  return NULL;
}

// Notes of where nodes were to be beside variables that are gone.
static weir_status_t* drop_notes(weir_node_t* node) {
  size_t count = 0;
  weir_attrs_t attrs = node->def.attrs;
  weir_named_attr_t* items = weir_arena_array(&node->graph->arena, attrs.count, sizeof(*items));
  if (!items) return weir_out_of_memory();
  for (size_t i = 0; i < attrs.count; ++i) {
    if (strcmp(attrs.items[i].name, "_class") != 0) items[count++] = attrs.items[i];
  }
  node->def.attrs = (weir_attrs_t){.items = items, .count = count};
  return NULL;
}

typedef struct library_t {
  weir_map_t functions;
  weir_strbuf_t message;
} library_t;

static weir_status_t* add_function(void* arg, const weir_function_t* function) {
  library_t* library = arg;
  weir_view_t name = weir_view_of(function->name);
  if (weir_map_find(&library->functions, name)) return NULL;
  weir_wire_put_bytes(&library->message, LIBRARY_FUNCTION, function->def.data, function->def.size);
  return weir_map_put(&library->functions, name, (void*)(uintptr_t)function);
}

static weir_status_t* add_functions(const weir_node_t* node, library_t* library) {
  weir_function_library_t* from = node->graph->library;
  for (size_t i = 0; i < node->def.attrs.count; ++i) {
    const weir_attr_t* attr = &node->def.attrs.items[i].value;
    if (attr->kind != WEIR_ATTR_FUNC) continue;
    const weir_func_t* funcs = attr->is_list ? attr->u.funcs : attr->u.func;
    for (size_t k = 0; k < (attr->is_list ? attr->count : 1); ++k) {
      if (weir_function_find(from, funcs[k].name))
        WEIR_TRY(weir_function_visit_needed(from, funcs[k].name, add_function, library));
    }
  }
  weir_view_t op = weir_view_of(node->def.op_name);
  if (!weir_function_find(from, op)) return NULL;
  return weir_function_visit_needed(from, op, add_function, library);
}

// |graph| with those functions only that it still needs.
static weir_status_t* write_graph(const weir_graph_t* graph, library_t* library, weir_strbuf_t* all,
                                  weir_strbuf_t* out) {
  for (size_t i = 0; i < graph->node_count; ++i) WEIR_TRY(add_functions(graph->nodes[i], library));
  WEIR_TRY(weir_strbuf_finish(&library->message));
  WEIR_TRY(weir_graph_write_portable(graph, 0, all));
  weir_wire_reader_t r = weir_wire_reader(weir_strbuf_view(all));
  while (weir_wire_next(&r)) {
    if (r.field != GRAPH_LIBRARY) weir_strbuf_append(out, r.raw.data, r.raw.size);
  }
  WEIR_TRY(weir_wire_check(&r, "GraphDef"));
  if (library->message.size)
    weir_wire_put_bytes(out, GRAPH_LIBRARY, library->message.data, library->message.size);
  weir_strbuf_puts(out, "");
  return weir_strbuf_finish(out);
}

static weir_status_t* write_needed(freezing_t* freezing, weir_strbuf_t* out) {
  weir_graph_t* graph = NULL;
  library_t library = {0};
  weir_strbuf_t all = {0};
  bool* keep = needed(freezing);
  if (!keep) return weir_out_of_memory();
  weir_status_t* status = weir_graph_copy(freezing->graph, keep, &freezing->arena, &graph, NULL);
  if (status) return status;
  graph->producer = freezing->graph->producer;
  graph->min_consumer = freezing->graph->min_consumer;
  for (size_t i = 0; !status && i < graph->node_count; ++i) {
    status = check_node(graph->nodes[i]);
    if (!status) status = drop_notes(graph->nodes[i]);
  }
  if (!status) status = weir_graph_infer_all(graph);
  if (!status) status = write_graph(graph, &library, &all, out);
  weir_map_free(&library.functions);
  weir_strbuf_free(&library.message);
  weir_strbuf_free(&all);
  weir_graph_unref(graph);
  return status;
}

static weir_status_t* freeze(freezing_t* freezing, weir_strbuf_t* out) {
  weir_mutex_lock(&freezing->model->graph->mu);
  weir_status_t* status = copy_needed(freezing);
  weir_mutex_unlock(&freezing->model->graph->mu);
  if (!status) status = set_ends(freezing);
  if (!status) status = weir_flatten(freezing->graph, WEIR_FLATTEN_ALL);
  if (!status) status = fold(freezing);
  if (!status) status = freeze_tables(freezing);
  if (!status) status = write_needed(freezing, out);
  for (int i = 0; i < freezing->variable_count; ++i) weir_tensor_release(freezing->values[i]);
  weir_graph_unref(freezing->graph);
  weir_arena_free(&freezing->arena);
  return status;
}

weir_status_t* weir_model_freeze(weir_model_t* model, const weir_freeze_options_t* options,
                                 char** out_graph_def, size_t* out_size) {
  WEIR_REQUIRE_ARG(model);
  WEIR_REQUIRE_ARG(out_graph_def);
  WEIR_REQUIRE_ARG(out_size);
  const char* name = options ? options->signature : NULL;
  freezing_t freezing = {.model = model,
                         .signature = weir_model_find_signature(model, name),
                         .quantize_int8 = options && options->quantize_int8};
  if (!freezing.signature) return weir_model_no_signature(model, name);
  weir_strbuf_t out = {0};
  weir_status_t* status = freeze(&freezing, &out);
  if (status) {
    weir_strbuf_free(&out);
    return weir_status_prefix(status, "freezing '%s': ", freezing.signature->name);
  }
  *out_graph_def = out.data;
  *out_size = out.size;
  return NULL;
}
