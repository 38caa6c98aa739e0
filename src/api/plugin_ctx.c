// plugin_ctx.c — What plug-ins see of nodes, kernels and gradients; nodes of any op.
#include "api/scope.h"
#include "base/interrupt.h"
#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/builtin_ops.h"
#include "weir/plugin.h"

// ---- attributes ----

static const weir_plugin_attrs_t* attrs_of(const weir_node_def_t* node) {
  return (const weir_plugin_attrs_t*)node;
}
const weir_plugin_attrs_t* weir_plugin_init_attrs(const weir_kernel_init_t* init) {
  WEIR_ASSERT_ARG(init);
  return attrs_of(init->node);
}
const weir_plugin_attrs_t* weir_plugin_kernel_attrs(const weir_kernel_ctx_t* ctx) {
  WEIR_ASSERT_ARG(ctx);
  return attrs_of(ctx->node);
}
const weir_plugin_attrs_t* weir_plugin_shape_attrs(const weir_shape_ctx_t* ctx) {
  WEIR_ASSERT_ARG(ctx);
  return attrs_of(ctx->node);
}
const weir_plugin_attrs_t* weir_plugin_grad_attrs(const weir_grad_ctx_t* ctx) {
  WEIR_ASSERT_ARG(ctx);
  return attrs_of(ctx->node);
}

static weir_status_t* find(const weir_plugin_attrs_t* attrs, const char* name,
                           weir_attr_kind_t kind, bool is_list, const weir_attr_t** out_value) {
  const weir_node_def_t* node = (const weir_node_def_t*)attrs;
  const weir_attr_t* value = weir_attrs_find(node->attrs, name);
  bool is_empty = value && value->is_list && value->count == 0;
  bool is_right = value && value->is_list == is_list && (value->kind == kind || is_empty);
  if (!is_right) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s '%s' has no attribute '%s' of the kind asked for",
                       node->op_name, node->name, name);
  }
  *out_value = value;
  return NULL;
}

#define REQUIRE_ALL(a, b, c) \
  do {                       \
    WEIR_REQUIRE_ARG(a);     \
    WEIR_REQUIRE_ARG(b);     \
    WEIR_REQUIRE_ARG(c);     \
  } while (0)

weir_status_t* weir_plugin_attr_int(const weir_plugin_attrs_t* attrs, const char* name,
                                    int64_t* out_value) {
  REQUIRE_ALL(attrs, name, out_value);
  const weir_attr_t* value = NULL;
  WEIR_TRY(find(attrs, name, WEIR_ATTR_INT, false, &value));
  *out_value = value->u.i;
  return NULL;
}

weir_status_t* weir_plugin_attr_float(const weir_plugin_attrs_t* attrs, const char* name,
                                      float* out_value) {
  REQUIRE_ALL(attrs, name, out_value);
  const weir_attr_t* value = NULL;
  WEIR_TRY(find(attrs, name, WEIR_ATTR_FLOAT, false, &value));
  *out_value = value->u.f;
  return NULL;
}

weir_status_t* weir_plugin_attr_bool(const weir_plugin_attrs_t* attrs, const char* name,
                                     bool* out_value) {
  REQUIRE_ALL(attrs, name, out_value);
  const weir_attr_t* value = NULL;
  WEIR_TRY(find(attrs, name, WEIR_ATTR_BOOL, false, &value));
  *out_value = value->u.b;
  return NULL;
}

weir_status_t* weir_plugin_attr_type(const weir_plugin_attrs_t* attrs, const char* name,
                                     weir_dtype_t* out_value) {
  REQUIRE_ALL(attrs, name, out_value);
  const weir_attr_t* value = NULL;
  WEIR_TRY(find(attrs, name, WEIR_ATTR_TYPE, false, &value));
  *out_value = value->u.type;
  return NULL;
}

weir_status_t* weir_plugin_attr_string(const weir_plugin_attrs_t* attrs, const char* name,
                                       const char** out_data, size_t* out_size) {
  REQUIRE_ALL(attrs, name, out_data);
  WEIR_REQUIRE_ARG(out_size);
  const weir_attr_t* value = NULL;
  WEIR_TRY(find(attrs, name, WEIR_ATTR_STRING, false, &value));
  *out_data = value->u.s.data;
  *out_size = value->u.s.size;
  return NULL;
}

weir_status_t* weir_plugin_attr_ints(const weir_plugin_attrs_t* attrs, const char* name,
                                     weir_ints_t* out_values) {
  REQUIRE_ALL(attrs, name, out_values);
  const weir_attr_t* value = NULL;
  WEIR_TRY(find(attrs, name, WEIR_ATTR_INT, true, &value));
  *out_values =
      (weir_ints_t){.items = value->count ? value->u.ints : NULL, .count = (int)value->count};
  return NULL;
}

weir_status_t* weir_plugin_attr_floats(const weir_plugin_attrs_t* attrs, const char* name,
                                       weir_floats_t* out_values) {
  REQUIRE_ALL(attrs, name, out_values);
  const weir_attr_t* value = NULL;
  WEIR_TRY(find(attrs, name, WEIR_ATTR_FLOAT, true, &value));
  *out_values =
      (weir_floats_t){.items = value->count ? value->u.floats : NULL, .count = (int)value->count};
  return NULL;
}

weir_status_t* weir_plugin_attr_types(const weir_plugin_attrs_t* attrs, const char* name,
                                      weir_types_t* out_values) {
  REQUIRE_ALL(attrs, name, out_values);
  const weir_attr_t* value = NULL;
  WEIR_TRY(find(attrs, name, WEIR_ATTR_TYPE, true, &value));
  *out_values =
      (weir_types_t){.items = value->count ? value->u.types : NULL, .count = (int)value->count};
  return NULL;
}

weir_status_t* weir_plugin_attr_shape(const weir_plugin_attrs_t* attrs, const char* name,
                                      weir_dims_t* out_shape) {
  REQUIRE_ALL(attrs, name, out_shape);
  const weir_attr_t* value = NULL;
  WEIR_TRY(find(attrs, name, WEIR_ATTR_SHAPE, false, &value));
  const weir_shape_t* shape = value->u.shape;
  *out_shape = (weir_dims_t){.dims = shape->dims, .rank = shape->rank, .is_set = true};
  return NULL;
}

// ---- arguments ----

static weir_status_t* find_range(const weir_node_def_t* node, bool outputs, const char* name,
                                 int* out_first, int* out_count) {
  const weir_op_t* op = node->op;
  const weir_arg_t* args = outputs ? op->outputs : op->inputs;
  for (int i = 0; i < (outputs ? op->output_count : op->input_count); ++i) {
    if (strcmp(args[i].name, name) != 0) continue;
    if (outputs) weir_node_output_range(node, i, out_first, out_count);
    else weir_node_input_range(node, i, out_first, out_count);
    return NULL;
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "%s '%s' has no %s '%s'", node->op_name, node->name,
                     outputs ? "output" : "input", name);
}

weir_status_t* weir_plugin_input_range(const weir_plugin_attrs_t* attrs, const char* name,
                                       int* out_first, int* out_count) {
  REQUIRE_ALL(attrs, name, out_first);
  WEIR_REQUIRE_ARG(out_count);
  return find_range((const weir_node_def_t*)attrs, false, name, out_first, out_count);
}

weir_status_t* weir_plugin_output_range(const weir_plugin_attrs_t* attrs, const char* name,
                                        int* out_first, int* out_count) {
  REQUIRE_ALL(attrs, name, out_first);
  WEIR_REQUIRE_ARG(out_count);
  return find_range((const weir_node_def_t*)attrs, true, name, out_first, out_count);
}

// ---- kernels ----

static weir_status_t* check_output(const weir_kernel_ctx_t* ctx, int index) {
  if (index >= 0 && index < ctx->output_count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s has %d outputs, not one of index %d", ctx->node->op_name,
                     ctx->output_count, index);
}
static weir_status_t* check_input(const weir_kernel_ctx_t* ctx, int index) {
  if (index >= 0 && index < ctx->input_count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s has %d inputs, not one of index %d", ctx->node->op_name,
                     ctx->input_count, index);
}

const char* weir_plugin_node_name(const weir_kernel_ctx_t* ctx) {
  WEIR_ASSERT_ARG(ctx);
  return ctx->node->name;
}
int weir_plugin_input_count(const weir_kernel_ctx_t* ctx) {
  WEIR_ASSERT_ARG(ctx);
  return ctx->input_count;
}
int weir_plugin_output_count(const weir_kernel_ctx_t* ctx) {
  WEIR_ASSERT_ARG(ctx);
  return ctx->output_count;
}
const weir_tensor_t* weir_plugin_input(const weir_kernel_ctx_t* ctx, int index) {
  WEIR_ASSERT_ARG(ctx);
  return weir_kernel_input(ctx, index);
}

weir_status_t* weir_plugin_output(weir_kernel_ctx_t* ctx, int index, int rank, const int64_t* dims,
                                  weir_tensor_t** out_tensor) {
  if (rank > 0) WEIR_REQUIRE_ARG(dims);
  WEIR_REQUIRE_ARG(ctx);
  WEIR_REQUIRE_ARG(out_tensor);
  WEIR_TRY(check_output(ctx, index));
  return weir_kernel_output(ctx, index, rank, dims, out_tensor);
}

weir_status_t* weir_plugin_forward(weir_kernel_ctx_t* ctx, int from, int index, int rank,
                                   const int64_t* dims, weir_tensor_t** out_tensor) {
  if (rank > 0) WEIR_REQUIRE_ARG(dims);
  WEIR_REQUIRE_ARG(ctx);
  WEIR_REQUIRE_ARG(out_tensor);
  WEIR_TRY(check_input(ctx, from));
  WEIR_TRY(check_output(ctx, index));
  return weir_kernel_forward(ctx, from, index, rank, dims, out_tensor);
}

weir_status_t* weir_plugin_set(weir_kernel_ctx_t* ctx, int index, weir_tensor_t* tensor) {
  WEIR_REQUIRE_ARG(ctx);
  WEIR_REQUIRE_ARG(tensor);
  WEIR_TRY(check_output(ctx, index));
  weir_dtype_t expected = weir_dtype_base(ctx->node->output_types[index]);
  if (weir_tensor_type(tensor) != expected) {
    return WEIR_STATUS(INVALID_ARGUMENT, "output %d of %s is %s, not %s", index, ctx->node->op_name,
                       weir_dtype_name(expected), weir_dtype_name(weir_tensor_type(tensor)));
  }
  weir_tensor_release(ctx->outputs[index].tensor);
  weir_kernel_set(ctx, index, weir_tensor_retain(tensor));
  return NULL;
}

weir_status_t* weir_plugin_pass(weir_kernel_ctx_t* ctx, int from, int index) {
  WEIR_REQUIRE_ARG(ctx);
  WEIR_TRY(check_input(ctx, from));
  return weir_plugin_set(ctx, index, ctx->inputs[from].tensor);
}

weir_status_t* weir_plugin_int(const weir_kernel_ctx_t* ctx, int index, int64_t* out_value) {
  WEIR_REQUIRE_ARG(ctx);
  WEIR_REQUIRE_ARG(out_value);
  WEIR_TRY(check_input(ctx, index));
  return weir_kernel_int(ctx, index, out_value);
}

weir_status_t* weir_plugin_ints(const weir_kernel_ctx_t* ctx, int index, int64_t* values,
                                int capacity, int* out_count) {
  if (capacity > 0) WEIR_REQUIRE_ARG(values);
  WEIR_REQUIRE_ARG(ctx);
  WEIR_REQUIRE_ARG(out_count);
  WEIR_TRY(check_input(ctx, index));
  return weir_kernel_ints(ctx, index, values, capacity, out_count);
}

void* weir_plugin_state(const weir_kernel_ctx_t* ctx) {
  WEIR_ASSERT_ARG(ctx);
  return ctx->state;
}

void weir_plugin_done(weir_done_t done, weir_status_t* take_status) {
  WEIR_ASSERT_ARG(done.fn);
  weir_done_call(done, take_status);
}

void weir_plugin_submit(weir_kernel_ctx_t* ctx, void (*fn)(void* arg), void* arg) {
  WEIR_ASSERT_ARG(ctx);
  WEIR_ASSERT_ARG(fn);
  if (ctx->step->inter_pool) weir_pool_submit(ctx->step->inter_pool, fn, arg);
  else fn(arg);
}

void weir_plugin_parallel_for(weir_kernel_ctx_t* ctx, int64_t total, double cost_ns,
                              void (*fn)(void* arg, int64_t begin, int64_t end), void* arg) {
  WEIR_ASSERT_ARG(ctx);
  WEIR_ASSERT_ARG(fn);
  // Never left undone: the caller was promised every range, and may build on all of them.
  weir_interrupt_t* before = weir_interrupt_set(NULL);
  weir_pool_for(weir_kernel_pool(ctx), total, cost_ns, fn, arg);
  weir_interrupt_set(before);
}

// ---- cancellation ----

bool weir_plugin_is_cancelled(const weir_kernel_ctx_t* ctx) {
  WEIR_ASSERT_ARG(ctx);
  // The thread that runs a synchronous kernel is told of deadlines by its interrupt alone.
  return weir_cancel_is_cancelled(ctx->step->cancel) || weir_is_interrupted();
}
uint64_t weir_plugin_on_cancel(weir_kernel_ctx_t* ctx, void (*fn)(void* arg), void* arg) {
  WEIR_ASSERT_ARG(ctx);
  WEIR_ASSERT_ARG(fn);
  return weir_cancel_register(ctx->step->cancel, fn, arg);
}
bool weir_plugin_off_cancel(weir_kernel_ctx_t* ctx, uint64_t token) {
  WEIR_ASSERT_ARG(ctx);
  return weir_cancel_deregister(ctx->step->cancel, token);
}

// ---- attributes of new nodes ----

enum { MAX_ATTRS = 24 };  // no op has more

static weir_named_attr_t named_attr(const weir_attr_arg_t* arg) {
  switch (arg->kind) {
    case WEIR_ARG_INT: return weir_attr_int(arg->name, arg->value.i);
    case WEIR_ARG_FLOAT: return weir_attr_float(arg->name, arg->value.f);
    case WEIR_ARG_BOOL: return weir_attr_bool(arg->name, arg->value.b);
    case WEIR_ARG_TYPE: return weir_attr_type(arg->name, arg->value.type);
    case WEIR_ARG_STRING: return weir_attr_string(arg->name, arg->value.s);
    case WEIR_ARG_FLOATS:
      return weir_attr_floats(arg->name, arg->value.floats.items, (size_t)arg->value.floats.count);
    case WEIR_ARG_TYPES:
      return weir_attr_types(arg->name, arg->value.types.items, (size_t)arg->value.types.count);
    case WEIR_ARG_INTS: break;
  }
  return weir_attr_ints(arg->name, arg->value.ints.items, (size_t)arg->value.ints.count);
}

static weir_attrs_t named_attrs(const weir_attr_arg_t* args, int count,
                                weir_named_attr_t buffer[MAX_ATTRS]) {
  const int used = WEIR_MIN(count, (int)MAX_ATTRS);
  for (int i = 0; i < used; ++i) buffer[i] = named_attr(&args[i]);
  return (weir_attrs_t){.items = buffer, .count = (size_t)used};
}

static weir_status_t* check_attr_args(const char* op, const weir_attr_arg_t* args, int count) {
  WEIR_REQUIRE_COUNT(count);
  if (count > MAX_ATTRS) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: %d attributes are given, more than any op has", op,
                       count);
  }
  for (int i = 0; i < count; ++i) {
    if (!args[i].name) return WEIR_STATUS(INVALID_ARGUMENT, "%s: attribute %d has no name", op, i);
    if (args[i].kind == WEIR_ARG_STRING && !args[i].value.s)
      return WEIR_STATUS(INVALID_ARGUMENT, "%s: attribute '%s' is NULL", op, args[i].name);
  }
  return NULL;
}

weir_node_t* weir_scope_node(weir_scope_t* scope, const char* op, const weir_edge_t* inputs,
                             int input_count, const weir_attr_arg_t* attrs, int attr_count) {
  WEIR_ASSERT_ARG(scope);
  weir_named_attr_t buffer[MAX_ATTRS];
  if (weir_scope_status(scope) || !WEIR_HAS_ARG(scope, op)) return NULL;
  if (!weir_scope_has_count(scope, input_count, __func__, "input_count")) return NULL;
  if (input_count > 0 && !WEIR_HAS_ARG(scope, inputs)) return NULL;
  if (attr_count > 0 && !WEIR_HAS_ARG(scope, attrs)) return NULL;
  weir_status_t* status = check_attr_args(op, attrs, attr_count);
  if (status) {
    weir_scope_fail(scope, weir_status_prefix(status, "%s: ", __func__));
    return NULL;
  }
  for (int i = 0; i < input_count; ++i) {
    if (inputs[i].node) continue;
    weir_scope_fail(scope, WEIR_STATUS(INVALID_ARGUMENT, "%s: input %d has no node", op, i));
  }
  return weir_scope_add(scope, op, NULL, (weir_edges_t){.items = inputs, .count = input_count},
                        named_attrs(attrs, attr_count, buffer));
}

// ---- gradients ----

weir_edge_t weir_plugin_grad_input(weir_grad_ctx_t* ctx, int index) {
  WEIR_ASSERT_ARG(ctx);
  return weir_grad_input(ctx, index);
}
weir_edge_t weir_plugin_grad_output(weir_grad_ctx_t* ctx, int index) {
  WEIR_ASSERT_ARG(ctx);
  return weir_grad_output(ctx, index);
}
weir_edge_t weir_plugin_grad_dy(weir_grad_ctx_t* ctx, int index) {
  WEIR_ASSERT_ARG(ctx);
  return weir_grad_dy(ctx, index);
}

static weir_status_t* check_attr_names(const char* op_name, weir_attrs_t attrs) {
  const weir_registry_t* registry = NULL;
  WEIR_TRY(weir_registry_builtin(&registry));
  const weir_op_t* op = weir_registry_find(registry, weir_view_of(op_name));
  return op ? weir_op_check_attr_names(op, op_name, attrs) : NULL;  // the graph knows functions
}

weir_edge_t weir_plugin_grad_node(weir_grad_ctx_t* ctx, const char* op, const weir_edge_t* inputs,
                                  int input_count, const weir_attr_arg_t* attrs, int attr_count) {
  if (input_count > 0) WEIR_ASSERT_ARG(inputs);
  if (attr_count > 0) WEIR_ASSERT_ARG(attrs);
  WEIR_ASSERT_ARG(ctx);
  WEIR_ASSERT_ARG(op);
  weir_named_attr_t buffer[MAX_ATTRS];
  if (!ctx->builder->status) ctx->builder->status = check_attr_args(op, attrs, attr_count);
  if (ctx->builder->status) return WEIR_NO_EDGE;
  weir_attrs_t named = named_attrs(attrs, attr_count, buffer);
  ctx->builder->status = check_attr_names(op, named);
  return weir_grad_node_with(ctx, op, (weir_edges_t){.items = inputs, .count = input_count}, named);
}

weir_status_t* weir_plugin_grad_set(weir_grad_ctx_t* ctx, int index, weir_edge_t dx) {
  WEIR_REQUIRE_ARG(ctx);
  return weir_grad_set(ctx, index, dx);
}
