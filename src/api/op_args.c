// op_args.c — Inputs and attributes of the generated op functions.
#include "api/op_args.h"

#include <string.h>

#include "api/control.h"

void weir_op_args_begin(weir_op_args_t* args, weir_scope_t* scope, const char* op) {
  if (!scope) weir_abort_null(op, "scope");
  args->scope = scope;
  args->op = op;
  args->inputs = NULL;
  args->input_count = args->input_capacity = 0;
  args->attr_count = 0;
}

weir_node_t* weir_op_args_add_node(weir_op_args_t* args) {
  return weir_scope_add(args->scope, args->op, NULL,
                        (weir_edges_t){args->inputs, args->input_count},
                        (weir_attrs_t){args->attrs, (size_t)args->attr_count});
}

weir_edge_t weir_op_args_output(weir_node_t* node, int index) {
  int first = 0, count = 0;
  if (node) weir_node_output_range(&node->def, index, &first, &count);
  return (weir_edge_t){node, first};
}

// ---- inputs ----

void weir_op_args_inputs(weir_op_args_t* args, const weir_edge_t* edges, int count) {
  if (!weir_scope_has_count(args->scope, count, args->op, "count")) return;
  if (count == 0 || !weir_scope_has_argument(args->scope, edges, args->op, "edges")) return;
  if (args->input_count + count > args->input_capacity) {
    int capacity = WEIR_MAX(2 * args->input_capacity, args->input_count + count);
    weir_edge_t* grown = weir_scope_alloc(args->scope, (size_t)capacity, sizeof(*grown));
    if (!grown) return;
    if (args->input_count) memcpy(grown, args->inputs, sizeof(*grown) * (size_t)args->input_count);
    args->inputs = grown;
    args->input_capacity = capacity;
  }
  memcpy(args->inputs + args->input_count, edges, sizeof(*edges) * (size_t)count);
  args->input_count += count;
}

void weir_op_args_input(weir_op_args_t* args, weir_edge_t edge) {
  weir_op_args_inputs(args, &edge, 1);
}

// ---- attributes ----

static void add(weir_op_args_t* args, weir_named_attr_t attr) {
  WEIR_CHECK((size_t)args->attr_count < WEIR_COUNT_OF(args->attrs));
  args->attrs[args->attr_count++] = attr;
}

void weir_op_args_int(weir_op_args_t* args, const char* name, int64_t value) {
  add(args, weir_attr_int(name, value));
}

void weir_op_args_float(weir_op_args_t* args, const char* name, float value) {
  add(args, weir_attr_float(name, value));
}

void weir_op_args_bool(weir_op_args_t* args, const char* name, bool value) {
  add(args, weir_attr_bool(name, value));
}

void weir_op_args_type(weir_op_args_t* args, const char* name, weir_dtype_t value) {
  add(args, weir_attr_type(name, value));
}

void weir_op_args_tensor(weir_op_args_t* args, const char* name, weir_tensor_t* value) {
  add(args, weir_attr_tensor(name, value));
}

void weir_op_args_string(weir_op_args_t* args, const char* name, const char* value) {
  if (value) add(args, weir_attr_string(name, value));
}

void weir_op_args_func(weir_op_args_t* args, const char* name, const char* value) {
  if (!weir_scope_has_argument(args->scope, value, "attribute", name)) return;
  weir_func_t* func = weir_scope_alloc(args->scope, 1, sizeof(*func));
  if (!func) return;
  func->name = weir_view_of(value);
  add(args, weir_attr_func(name, func));
}

static const weir_shape_t* make_shape(weir_op_args_t* args, weir_dims_t value) {
  const weir_shape_t* shape = &weir_shape_unknown;
  if (value.rank >= 0) shape = weir_shape_make(&args->scope->root->arena, value.rank, value.dims);
  if (!shape) weir_scope_fail(args->scope, weir_out_of_memory());
  return shape;
}

void weir_op_args_shape(weir_op_args_t* args, const char* name, weir_dims_t value) {
  const weir_shape_t* shape = make_shape(args, value);
  if (shape) add(args, weir_attr_shape(name, shape));
}

void weir_op_args_ints(weir_op_args_t* args, const char* name, weir_ints_t value) {
  add(args, weir_attr_ints(name, value.items, (size_t)value.count));
}

void weir_op_args_floats(weir_op_args_t* args, const char* name, weir_floats_t value) {
  add(args, weir_attr_floats(name, value.items, (size_t)value.count));
}

void weir_op_args_types(weir_op_args_t* args, const char* name, weir_types_t value) {
  add(args, weir_attr_types(name, value.items, (size_t)value.count));
}

void weir_op_args_strings(weir_op_args_t* args, const char* name, weir_strings_t value) {
  weir_view_t* views = weir_scope_alloc(args->scope, (size_t)value.count, sizeof(*views));
  if (!views) return;
  for (int i = 0; i < value.count; ++i) views[i] = weir_view_of(value.items[i]);
  add(args, weir_attr_strings(name, views, (size_t)value.count));
}

void weir_op_args_shapes(weir_op_args_t* args, const char* name, weir_shapes_t value) {
  const weir_shape_t** shapes = weir_scope_alloc(args->scope, (size_t)value.count, sizeof(*shapes));
  if (!shapes) return;
  for (int i = 0; i < value.count; ++i) {
    shapes[i] = make_shape(args, value.items[i]);
    if (!shapes[i]) return;
  }
  add(args, weir_attr_shapes(name, shapes, (size_t)value.count));
}

void weir_op_args_types_of(weir_op_args_t* args, const char* name, const weir_edge_t* edges,
                           int count) {
  if (args->scope->root->status || count < 0) return;
  weir_dtype_t* types = weir_scope_alloc(args->scope, (size_t)count, sizeof(*types));
  if (!types) return;
  for (int i = 0; i < count; ++i) {
    if (!weir_control_is_edge(edges[i])) return;
    types[i] = weir_dtype_base(weir_edge_dtype(edges[i]));
  }
  add(args, weir_attr_types(name, types, (size_t)count));
}
