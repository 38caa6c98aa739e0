// fold.c — Turns variables into constants, in place: handles that flow through conditionals and
// loops become values that flow there, and reads of handles become what reads values.
#include "model/fold.h"

#include "op/attr.h"

// What a node's outputs carry: the variable behind the handle, as its place in the list and 1.
typedef struct folding_t {
  weir_graph_t* graph;
  const weir_fold_t* fold;
  size_t node_count;  // of the graph, as it was; nodes that are added carry nothing
  int** carried;      // by node, by output; 0: no variable
  weir_arena_t arena;
} folding_t;

static int carried(const folding_t* folding, weir_edge_t edge) {
  if ((size_t)edge.node->id >= folding->node_count) return 0;
  return folding->carried[edge.node->id][edge.index];
}

// ---- where handles flow ----

bool weir_model_hands_on(const weir_node_t* node) {
  switch (weir_node_role(node)) {
    case WEIR_ROLE_SWITCH:
    case WEIR_ROLE_MERGE:
    case WEIR_ROLE_ENTER:
    case WEIR_ROLE_EXIT:
    case WEIR_ROLE_NEXT_ITERATION: return true;
    default: break;
  }
  return strcmp(node->def.op_name, "Identity") == 0 || strcmp(node->def.op_name, "IdentityN") == 0;
}

static bool is_handle(weir_dtype_t dtype) { return dtype == WEIR_DTYPE_RESOURCE; }

static weir_status_t* carry(folding_t* folding, const weir_node_t* node, int output, int variable,
                            bool* out_changed) {
  int* place = &folding->carried[node->id][output];
  if (*place == variable || !is_handle(node->def.output_types[output])) return NULL;
  if (*place) {
    return WEIR_STATUS(FAILED_PRECONDITION, "'%s' (%s) is now variable '%s', now '%s'",
                       node->def.name, node->def.op_name,
                       folding->fold->variables[*place - 1]->def.name,
                       folding->fold->variables[variable - 1]->def.name);
  }
  *place = variable;
  *out_changed = true;
  return NULL;
}

static weir_status_t* carry_on(folding_t* folding, const weir_node_t* node, bool* out_changed) {
  bool is_list = strcmp(node->def.op_name, "IdentityN") == 0;
  if (!weir_model_hands_on(node)) return NULL;
  for (int i = 0; i < node->def.input_count; ++i) {
    int variable = carried(folding, node->inputs[i]);
    if (!variable) continue;
    if (is_list) WEIR_TRY(carry(folding, node, i, variable, out_changed));
    for (int k = 0; !is_list && k < node->def.output_count; ++k)
      WEIR_TRY(carry(folding, node, k, variable, out_changed));
  }
  return NULL;
}

static weir_status_t* find_carriers(folding_t* folding) {
  const weir_graph_t* graph = folding->graph;
  folding->carried = weir_arena_array(&folding->arena, graph->node_count, sizeof(int*));
  if (!folding->carried) return weir_out_of_memory();
  for (size_t i = 0; i < graph->node_count; ++i) {
    folding->carried[i] = weir_arena_array(
        &folding->arena, (size_t)graph->nodes[i]->def.output_count + 1, sizeof(int));
    if (!folding->carried[i]) return weir_out_of_memory();
  }
  for (int i = 0; i < folding->fold->count; ++i)
    folding->carried[folding->fold->variables[i]->id][0] = i + 1;
  weir_node_t** order = NULL;
  WEIR_TRY(weir_graph_order(graph, &folding->arena, &order));
  for (bool has_changed = true; has_changed;) {  // once more for each loop that a loop is in
    has_changed = false;
    for (size_t i = 0; i < graph->node_count; ++i)
      WEIR_TRY(carry_on(folding, order[i], &has_changed));
  }
  return NULL;
}

// ---- what becomes of the nodes ----

static weir_dtype_t type_of(const folding_t* folding, int variable) {
  return weir_tensor_type(folding->fold->values[variable - 1]);
}

// The attributes of |node| with |type| as what it hands on.
static weir_status_t* retype(folding_t* folding, weir_node_t* node, weir_attr_t type) {
  size_t count = node->def.attrs.count;
  weir_named_attr_t* items = weir_arena_array(&folding->arena, count, sizeof(*items));
  if (!items) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    items[i] = node->def.attrs.items[i];
    if (strcmp(items[i].name, "T") == 0) items[i].value = type;
  }
  return weir_graph_redefine(node, node->def.op_name,
                             (weir_edges_t){.items = node->inputs, .count = node->def.input_count},
                             (weir_attrs_t){.items = items, .count = count});
}

static weir_status_t* retype_list(folding_t* folding, weir_node_t* node) {
  size_t count = (size_t)node->def.output_count;
  weir_dtype_t* types = weir_arena_array(&folding->arena, count, sizeof(*types));
  if (!types) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    int variable = carried(folding, (weir_edge_t){.node = node, .index = (int)i});
    types[i] = variable ? type_of(folding, variable) : node->def.output_types[i];
  }
  return retype(folding, node, weir_attr_types("T", types, count).value);
}

static weir_status_t* retype_carrier(folding_t* folding, weir_node_t* node, int variable) {
  if (strcmp(node->def.op_name, "IdentityN") == 0) return retype_list(folding, node);
  return retype(folding, node, weir_attr_type("T", type_of(folding, variable)).value);
}

static weir_status_t* add_axis(folding_t* folding, const weir_node_t* node, int64_t axis,
                               weir_edge_t* out_edge) {
  weir_tensor_t* value = NULL;
  weir_node_t* made = NULL;
  const char* name = weir_arena_printf(&folding->arena, "%s/axis", node->def.name);
  if (!name) return weir_out_of_memory();
  WEIR_TRY(weir_tensor_create_from(WEIR_DTYPE_INT32, 0, NULL, &(int32_t){(int32_t)axis}, &value));
  weir_node_params_t params = {.op = "Const",
                               .name = name,
                               .unique_name = true,
                               .device = node->def.device,
                               .attrs = WEIR_ATTRS(weir_attr_tensor("value", value),
                                                   weir_attr_type("dtype", WEIR_DTYPE_INT32))};
  weir_status_t* status = weir_graph_add(folding->graph, &params, &made);
  weir_tensor_release(value);
  *out_edge = (weir_edge_t){.node = made, .index = 0};
  return status;
}

static weir_status_t* gather(folding_t* folding, weir_node_t* node, weir_dtype_t dtype) {
  weir_edge_t axis;
  int64_t batch_dims = weir_attrs_int(node->def.attrs, "batch_dims");
  WEIR_TRY(add_axis(folding, node, batch_dims, &axis));
  return weir_graph_redefine(
      node, "GatherV2", WEIR_EDGES(node->inputs[0], node->inputs[1], axis),
      WEIR_ATTRS(weir_attr_type("Tparams", dtype), weir_attr_int("batch_dims", batch_dims),
                 weir_attr_type("Tindices", weir_attrs_type(node->def.attrs, "Tindices")),
                 weir_attr_type("Taxis", WEIR_DTYPE_INT32)));
}

// What reads the variable behind input 0 of |node|.
static weir_status_t* become_reader(folding_t* folding, weir_node_t* node, int variable) {
  weir_dtype_t dtype = type_of(folding, variable);
  const char* op = node->def.op_name;
  weir_attrs_t attrs = node->def.attrs;
  if (strcmp(op, "ReadVariableOp") == 0) {
    return weir_graph_redefine(node, "Identity", WEIR_EDGES(node->inputs[0]),
                               WEIR_ATTRS(weir_attr_type("T", dtype)));
  }
  if (strcmp(op, "ResourceGather") == 0) return gather(folding, node, dtype);
  if (strcmp(op, "ResourceGatherNd") == 0) {
    return weir_graph_redefine(
        node, "GatherNd", WEIR_EDGES(node->inputs[0], node->inputs[1]),
        WEIR_ATTRS(weir_attr_type("Tparams", dtype),
                   weir_attr_type("Tindices", weir_attrs_type(attrs, "Tindices"))));
  }
  if (strcmp(op, "VariableShape") == 0) {
    return weir_graph_redefine(
        node, "Shape", WEIR_EDGES(node->inputs[0]),
        WEIR_ATTRS(weir_attr_type("T", dtype),
                   weir_attr_type("out_type", weir_attrs_type(attrs, "out_type"))));
  }
  return WEIR_STATUS(FAILED_PRECONDITION, "'%s' (%s) does more with variable '%s' than read it",
                     node->def.name, op, folding->fold->variables[variable - 1]->def.name);
}

static weir_status_t* rewrite(folding_t* folding, weir_node_t* node) {
  for (int i = 0; i < node->def.output_count; ++i) {
    int variable = folding->carried[node->id][i];
    if (variable) return retype_carrier(folding, node, variable);
  }
  for (int i = 0; i < node->def.input_count; ++i) {
    int variable = carried(folding, node->inputs[i]);
    if (!variable || !is_handle(node->def.input_types[i])) continue;
    if (i == 0) return become_reader(folding, node, variable);
    return WEIR_STATUS(FAILED_PRECONDITION, "'%s' (%s) is given variable '%s' itself",
                       node->def.name, node->def.op_name,
                       folding->fold->variables[variable - 1]->def.name);
  }
  return NULL;
}

static weir_status_t* check_reference(const weir_node_t* node) {
  for (int i = 0; i < node->def.input_count; ++i) {
    if (weir_node_role(node->inputs[i].node) != WEIR_ROLE_VARIABLE) continue;
    if (!weir_dtype_is_ref(node->def.input_types[i])) continue;
    return WEIR_STATUS(FAILED_PRECONDITION, "'%s' (%s) changes variable '%s'", node->def.name,
                       node->def.op_name, node->inputs[i].node->def.name);
  }
  return NULL;
}

static weir_status_t* become_value(weir_node_t* node, weir_tensor_t* value, bool quantize_int8) {
  if (quantize_int8 && weir_model_is_large(value)) return weir_model_quantize(node, value);
  return weir_graph_redefine(node, "Const", (weir_edges_t){0},
                             WEIR_ATTRS(weir_attr_tensor("value", value),
                                        weir_attr_type("dtype", weir_tensor_type(value))));
}

static weir_status_t* fold_all(folding_t* folding) {
  const weir_fold_t* fold = folding->fold;
  WEIR_TRY(find_carriers(folding));
  for (size_t i = 0; i < folding->node_count; ++i) {
    weir_node_t* node = folding->graph->nodes[i];
    if (!fold->is_needed[i] || weir_node_role(node) == WEIR_ROLE_VARIABLE) continue;
    WEIR_TRY(check_reference(node));
    WEIR_TRY(rewrite(folding, node));
  }
  for (int i = 0; i < fold->count; ++i)
    WEIR_TRY(become_value(fold->variables[i], fold->values[i], fold->quantize_int8));
  return NULL;
}

weir_status_t* weir_model_fold(weir_graph_t* graph, const weir_fold_t* fold) {
  folding_t folding = {.graph = graph, .fold = fold, .node_count = graph->node_count};
  weir_status_t* status = fold_all(&folding);
  weir_arena_free(&folding.arena);
  return status;
}
