// node.c — Nodes of any op by name: the arguments of a generated function (op_args.h), in public.
#include "weir/node.h"

#include "api/op_args.h"

struct weir_node_builder_t {
  weir_op_args_t args;
};

weir_node_builder_t* weir_node_begin(weir_scope_t* scope, const char* op) {
  WEIR_ASSERT_ARG(scope);
  if (scope->root->status || !WEIR_HAS_ARG(scope, op)) return NULL;
  weir_node_builder_t* builder = weir_scope_alloc(scope, 1, sizeof(*builder));
  if (builder) weir_op_args_begin(&builder->args, scope, op);
  return builder;
}

weir_node_t* weir_node_end(weir_node_builder_t* take_builder) {
  return take_builder ? weir_op_args_add_node(&take_builder->args) : NULL;
}

void weir_node_inputs(weir_node_builder_t* builder, const weir_edge_t* edges, int count) {
  if (builder) weir_op_args_inputs(&builder->args, edges, count);
}

// The arguments, if another attribute may be added to them.
static weir_op_args_t* attr_args(weir_node_builder_t* builder, const char* name) {
  if (!builder) return NULL;
  weir_op_args_t* args = &builder->args;
  if (!weir_scope_has_argument(args->scope, name, args->op, "name of an attribute")) return NULL;
  if ((size_t)args->attr_count < WEIR_COUNT_OF(args->attrs)) return args;
  weir_scope_fail(args->scope,
                  WEIR_STATUS(INVALID_ARGUMENT, "%s: attribute '%s' is one too many: no op has %d",
                              args->op, name, args->attr_count + 1));
  return NULL;
}

// The same for a list: |count| items, which are there unless it is empty.
static weir_op_args_t* list_args(weir_node_builder_t* builder, const char* name, const void* items,
                                 int count) {
  weir_op_args_t* args = attr_args(builder, name);
  if (!args || !weir_scope_has_count(args->scope, count, args->op, name)) return NULL;
  if (count && !weir_scope_has_argument(args->scope, items, args->op, name)) return NULL;
  return args;
}

static void add(weir_op_args_t* args, weir_named_attr_t attr) {
  args->attrs[args->attr_count++] = attr;
}

// ---- one value ----

void weir_node_set_int(weir_node_builder_t* builder, const char* name, int64_t value) {
  weir_op_args_t* args = attr_args(builder, name);
  if (args) weir_op_args_int(args, name, value);
}

void weir_node_set_float(weir_node_builder_t* builder, const char* name, float value) {
  weir_op_args_t* args = attr_args(builder, name);
  if (args) weir_op_args_float(args, name, value);
}

void weir_node_set_bool(weir_node_builder_t* builder, const char* name, bool value) {
  weir_op_args_t* args = attr_args(builder, name);
  if (args) weir_op_args_bool(args, name, value);
}

void weir_node_set_type(weir_node_builder_t* builder, const char* name, weir_dtype_t value) {
  weir_op_args_t* args = attr_args(builder, name);
  if (args) weir_op_args_type(args, name, value);
}

void weir_node_set_string(weir_node_builder_t* builder, const char* name, const void* data,
                          size_t size) {
  weir_op_args_t* args = attr_args(builder, name);
  if (!args || (size && !weir_scope_has_argument(args->scope, data, args->op, name))) return;
  add(args, weir_attr_view(name, (weir_view_t){data, size}));
}

void weir_node_set_shape(weir_node_builder_t* builder, const char* name, weir_dims_t value) {
  weir_op_args_t* args = list_args(builder, name, value.dims, WEIR_MAX(value.rank, 0));
  if (args) weir_op_args_shape(args, name, value);
}

void weir_node_set_tensor(weir_node_builder_t* builder, const char* name, weir_tensor_t* value) {
  weir_op_args_t* args = attr_args(builder, name);
  if (args && weir_scope_has_argument(args->scope, value, args->op, name))
    weir_op_args_tensor(args, name, value);
}

void weir_node_set_func(weir_node_builder_t* builder, const char* name, const char* value) {
  weir_op_args_t* args = attr_args(builder, name);
  if (args) weir_op_args_func(args, name, value);
}

// ---- lists ----

void weir_node_set_ints(weir_node_builder_t* builder, const char* name, weir_ints_t value) {
  weir_op_args_t* args = list_args(builder, name, value.items, value.count);
  if (args) weir_op_args_ints(args, name, value);
}

void weir_node_set_floats(weir_node_builder_t* builder, const char* name, weir_floats_t value) {
  weir_op_args_t* args = list_args(builder, name, value.items, value.count);
  if (args) weir_op_args_floats(args, name, value);
}

void weir_node_set_bools(weir_node_builder_t* builder, const char* name, const bool* values,
                         int count) {
  weir_op_args_t* args = list_args(builder, name, values, count);
  if (!args) return;
  weir_attr_t value = {.kind = WEIR_ATTR_BOOL, .is_list = true, .count = (size_t)count};
  value.u.bools = values;
  add(args, (weir_named_attr_t){name, value});
}

void weir_node_set_types(weir_node_builder_t* builder, const char* name, weir_types_t value) {
  weir_op_args_t* args = list_args(builder, name, value.items, value.count);
  if (args) weir_op_args_types(args, name, value);
}

void weir_node_set_strings(weir_node_builder_t* builder, const char* name, weir_strings_t value) {
  weir_op_args_t* args = list_args(builder, name, value.items, value.count);
  for (int i = 0; args && i < value.count; ++i) {
    if (!weir_scope_has_argument(args->scope, value.items[i], args->op, name)) return;
  }
  if (args) weir_op_args_strings(args, name, value);
}

void weir_node_set_shapes(weir_node_builder_t* builder, const char* name, weir_shapes_t value) {
  weir_op_args_t* args = list_args(builder, name, value.items, value.count);
  if (args) weir_op_args_shapes(args, name, value);
}

void weir_node_set_funcs(weir_node_builder_t* builder, const char* name, weir_strings_t value) {
  weir_op_args_t* args = list_args(builder, name, value.items, value.count);
  if (!args) return;
  weir_func_t* funcs = weir_scope_alloc(args->scope, (size_t)value.count, sizeof(*funcs));
  for (int i = 0; funcs && i < value.count; ++i) {
    if (!weir_scope_has_argument(args->scope, value.items[i], args->op, name)) return;
    funcs[i].name = weir_view_of(value.items[i]);
  }
  weir_attr_t list = {.kind = WEIR_ATTR_FUNC, .is_list = true, .count = (size_t)value.count};
  list.u.funcs = funcs;
  if (funcs) add(args, (weir_named_attr_t){name, list});
}
