// op_call.c — Inputs and attributes of the generated op functions.
#include "api/op_call.h"

#include <string.h>

#include "api/control.h"

void weir_op_call_begin(weir_op_call_t* call, weir_scope_t* scope, const char* op) {
  if (!scope) weir_abort_null(op, "scope");
  call->scope = scope;
  call->op = op;
  call->inputs = NULL;
  call->input_count = call->input_capacity = 0;
  call->attr_count = 0;
}

weir_node_t* weir_op_call_end(weir_op_call_t* call) {
  return weir_scope_add(call->scope, call->op, NULL,
                        (weir_edges_t){call->inputs, call->input_count},
                        (weir_attrs_t){call->attrs, (size_t)call->attr_count});
}

weir_edge_t weir_op_call_output(weir_node_t* node, int index) {
  int first = 0, count = 0;
  if (node) weir_node_output_range(&node->def, index, &first, &count);
  return (weir_edge_t){node, first};
}

// ---- inputs ----

void weir_op_call_inputs(weir_op_call_t* call, const weir_edge_t* edges, int count) {
  if (!weir_scope_has_count(call->scope, count, call->op, "count")) return;
  if (count == 0 || !weir_scope_has_argument(call->scope, edges, call->op, "edges")) return;
  if (call->input_count + count > call->input_capacity) {
    int capacity = WEIR_MAX(2 * call->input_capacity, call->input_count + count);
    weir_edge_t* grown = weir_scope_alloc(call->scope, (size_t)capacity, sizeof(*grown));
    if (!grown) return;
    if (call->input_count) memcpy(grown, call->inputs, sizeof(*grown) * (size_t)call->input_count);
    call->inputs = grown;
    call->input_capacity = capacity;
  }
  memcpy(call->inputs + call->input_count, edges, sizeof(*edges) * (size_t)count);
  call->input_count += count;
}

void weir_op_call_input(weir_op_call_t* call, weir_edge_t edge) {
  weir_op_call_inputs(call, &edge, 1);
}

// ---- attributes ----

static void add(weir_op_call_t* call, weir_named_attr_t attr) {
  WEIR_CHECK((size_t)call->attr_count < WEIR_COUNT_OF(call->attrs));
  call->attrs[call->attr_count++] = attr;
}

void weir_op_call_int(weir_op_call_t* call, const char* name, int64_t value) {
  add(call, weir_attr_int(name, value));
}

void weir_op_call_float(weir_op_call_t* call, const char* name, float value) {
  add(call, weir_attr_float(name, value));
}

void weir_op_call_bool(weir_op_call_t* call, const char* name, bool value) {
  add(call, weir_attr_bool(name, value));
}

void weir_op_call_type(weir_op_call_t* call, const char* name, weir_dtype_t value) {
  add(call, weir_attr_type(name, value));
}

void weir_op_call_tensor(weir_op_call_t* call, const char* name, weir_tensor_t* value) {
  add(call, weir_attr_tensor(name, value));
}

void weir_op_call_string(weir_op_call_t* call, const char* name, const char* value) {
  if (value) add(call, weir_attr_string(name, value));
}

void weir_op_call_func(weir_op_call_t* call, const char* name, const char* value) {
  if (!weir_scope_has_argument(call->scope, value, "attribute", name)) return;
  weir_func_t* func = weir_scope_alloc(call->scope, 1, sizeof(*func));
  if (!func) return;
  func->name = weir_view_of(value);
  add(call, weir_attr_func(name, func));
}

static const weir_shape_t* make_shape(weir_op_call_t* call, weir_dims_t value) {
  const weir_shape_t* shape = &weir_shape_unknown;
  if (value.rank >= 0) shape = weir_shape_make(&call->scope->root->arena, value.rank, value.dims);
  if (!shape) weir_scope_fail(call->scope, weir_out_of_memory());
  return shape;
}

void weir_op_call_shape(weir_op_call_t* call, const char* name, weir_dims_t value) {
  const weir_shape_t* shape = make_shape(call, value);
  if (shape) add(call, weir_attr_shape(name, shape));
}

void weir_op_call_ints(weir_op_call_t* call, const char* name, weir_ints_t value) {
  add(call, weir_attr_ints(name, value.items, (size_t)value.count));
}

void weir_op_call_floats(weir_op_call_t* call, const char* name, weir_floats_t value) {
  add(call, weir_attr_floats(name, value.items, (size_t)value.count));
}

void weir_op_call_types(weir_op_call_t* call, const char* name, weir_types_t value) {
  add(call, weir_attr_types(name, value.items, (size_t)value.count));
}

void weir_op_call_strings(weir_op_call_t* call, const char* name, weir_strings_t value) {
  weir_view_t* views = weir_scope_alloc(call->scope, (size_t)value.count, sizeof(*views));
  if (!views) return;
  for (int i = 0; i < value.count; ++i) views[i] = weir_view_of(value.items[i]);
  add(call, weir_attr_strings(name, views, (size_t)value.count));
}

void weir_op_call_shapes(weir_op_call_t* call, const char* name, weir_shapes_t value) {
  const weir_shape_t** shapes = weir_scope_alloc(call->scope, (size_t)value.count, sizeof(*shapes));
  if (!shapes) return;
  for (int i = 0; i < value.count; ++i) {
    shapes[i] = make_shape(call, value.items[i]);
    if (!shapes[i]) return;
  }
  add(call, weir_attr_shapes(name, shapes, (size_t)value.count));
}

void weir_op_call_types_of(weir_op_call_t* call, const char* name, const weir_edge_t* edges,
                           int count) {
  if (call->scope->root->status || count < 0) return;
  weir_dtype_t* types = weir_scope_alloc(call->scope, (size_t)count, sizeof(*types));
  if (!types) return;
  for (int i = 0; i < count; ++i) {
    if (!weir_control_is_edge(edges[i])) return;
    types[i] = weir_dtype_base(weir_edge_dtype(edges[i]));
  }
  add(call, weir_attr_types(name, types, (size_t)count));
}
