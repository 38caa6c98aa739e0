// operation_change.c — Operations that exist, changed: inputs, control inputs, attributes, devices.
// Sessions that have run them may go on with what they were.
#include "graph/graph_internal.h"
#include "op/spec.h"
#include "tensorflow/internal.h"

// ---- edges ----

static weir_status_t* check_shapes(weir_edge_t from, const weir_node_t* node, int index) {
  weir_arena_t arena = {0};
  const weir_shape_t* merged = NULL;
  const weir_shape_t* before = weir_edge_shape(node->inputs[index]);
  const bool fits = weir_shape_merge(&arena, before, weir_edge_shape(from), &merged);
  weir_arena_free(&arena);
  return fits ? NULL
              : WEIR_STATUS(INVALID_ARGUMENT,
                            "Cannot update edge, incompatible shapes: input %d of '%s' and output "
                            "%d of '%s'",
                            index, node->def.name, from.index, from.node->def.name);
}

static weir_status_t* update_edge(weir_edge_t from, weir_node_t* node, int index) {
  if (from.index < 0 || from.index >= from.node->def.output_count)
    return WEIR_STATUS(OUT_OF_RANGE, "Cannot update edge. '%s' has %d outputs, not one of index %d",
                       from.node->def.name, from.node->def.output_count, from.index);
  if (index < 0 || index >= node->def.input_count)
    return WEIR_STATUS(OUT_OF_RANGE, "Cannot update edge. '%s' has %d inputs, not one of index %d",
                       node->def.name, node->def.input_count, index);
  WEIR_TRY(check_shapes(from, node, index));
  return weir_graph_set_input(node, index, from);
}

void TF_UpdateEdge(TF_Graph* graph, TF_Output new_src, TF_Input dst, TF_Status* status) {
  weir_mutex_lock(&graph->graph->mu);
  weir_status_t* failure = update_edge(tf_edge(new_src), tf_node(dst.oper), dst.index);
  weir_mutex_unlock(&graph->graph->mu);
  tf_status_take(status, failure);
}

// There is no status to say that it could not be done.
void TF_AddOperationControlInput(TF_Graph* graph, TF_Operation* op, TF_Operation* input) {
  weir_mutex_lock(&graph->graph->mu);
  weir_status_t* failure = weir_graph_add_control(tf_node(op), tf_node(input));
  weir_mutex_unlock(&graph->graph->mu);
  (void)weir_status_report(failure);
}

void TF_RemoveAllControlInputs(TF_Graph* graph, TF_Operation* op) {
  weir_mutex_lock(&graph->graph->mu);
  tf_node(op)->control_count = 0;
  ++graph->graph->version;
  weir_mutex_unlock(&graph->graph->mu);
}

void TF_SetRequestedDevice(TF_Graph* graph, TF_Operation* op, const char* device) {
  weir_mutex_lock(&graph->graph->mu);
  const char* copy = weir_arena_strndup(&graph->graph->arena, device, strlen(device));
  if (copy) tf_node(op)->def.device = copy;
  ++graph->graph->version;
  weir_mutex_unlock(&graph->graph->mu);
}

// ---- attributes ----

static bool names(const char* name, const char* attr) { return name && !strcmp(name, attr); }

// Whether types, or numbers, of inputs and outputs follow from |attr|: readers rely on those.
static bool shapes_arguments(const weir_op_t* op, const char* attr) {
  for (int i = 0; i < op->input_count + op->output_count; ++i) {
    const weir_arg_t* arg =
        i < op->input_count ? &op->inputs[i] : &op->outputs[i - op->input_count];
    if (names(arg->type_attr, attr) || names(arg->number_attr, attr) ||
        names(arg->type_list_attr, attr))
      return true;
  }
  return false;
}

static weir_status_t* check_change(const weir_node_t* node, const char* name) {
  if (!node->def.op || !shapes_arguments(node->def.op, name)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "'%s' says what '%s' takes and gives, and cannot be changed any more", name,
                     node->def.name);
}

// Gives |node| a copy of its attributes in which |name| is |value|; NULL: without it.
static weir_status_t* put_attr(weir_node_t* node, const char* name, const weir_attr_t* value) {
  weir_graph_t* graph = node->graph;
  const weir_attrs_t before = node->def.attrs;
  weir_named_attr_t* items = weir_arena_array(&graph->arena, before.count + 1, sizeof(*items));
  const char* copy = weir_arena_strndup(&graph->arena, name, strlen(name));
  size_t count = 0;
  bool is_put = false;
  if (!items || !copy) return weir_out_of_memory();
  for (size_t i = 0; i < before.count; ++i) {
    const bool is_it = !strcmp(before.items[i].name, name);
    if (is_it && !value) continue;
    items[count] = before.items[i];
    if (is_it) items[count].value = *value;
    is_put |= is_it;
    ++count;
  }
  if (value && !is_put) items[count++] = (weir_named_attr_t){.name = copy, .value = *value};
  node->def.attrs = (weir_attrs_t){.items = items, .count = count};
  ++graph->version;
  return NULL;
}

static weir_status_t* set_attr(weir_node_t* node, const char* name, weir_view_t proto) {
  weir_graph_t* graph = node->graph;
  weir_attr_t value = {.kind = WEIR_ATTR_NONE};
  WEIR_TRY(check_change(node, name));
  WEIR_TRY(weir_attr_parse_named(name, proto, &graph->arena, &graph->tensors, &value));
  const weir_attr_def_t* def = node->def.op ? weir_op_attr(node->def.op, name) : NULL;
  if (def) WEIR_TRY(weir_attr_check(def, &value));
  return put_attr(node, name, &value);
}

// What an op must have is as its definition says then.
static weir_status_t* clear_attr(weir_node_t* node, const char* name) {
  const weir_attr_def_t* def = node->def.op ? weir_op_attr(node->def.op, name) : NULL;
  WEIR_TRY(check_change(node, name));
  if (def && !def->has_default)
    return WEIR_STATUS(INVALID_ARGUMENT, "'%s' needs its attribute '%s'", node->def.name, name);
  return put_attr(node, name, def ? &def->default_value : NULL);
}

void TF_SetAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name,
                TF_Buffer* attr_value_proto, TF_Status* status) {
  weir_mutex_lock(&graph->graph->mu);
  weir_status_t* failure = set_attr(tf_node(op), attr_name, tf_buffer_view(attr_value_proto));
  weir_mutex_unlock(&graph->graph->mu);
  tf_status_take(status, failure);
}

void TF_ClearAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name, TF_Status* status) {
  weir_mutex_lock(&graph->graph->mu);
  weir_status_t* failure = clear_attr(tf_node(op), attr_name);
  weir_mutex_unlock(&graph->graph->mu);
  tf_status_take(status, failure);
}
