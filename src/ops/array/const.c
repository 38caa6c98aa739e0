// const.c — Const, Placeholder, PlaceholderV2, PlaceholderWithDefault: where values enter a graph.
#include "ops/array/common.h"

// ---- Const ----

typedef struct const_state_t {
  weir_tensor_t* value;  // borrowed from the node's attributes
} const_state_t;

static weir_status_t* const_shape(weir_shape_ctx_t* ctx) {
  const weir_tensor_t* value = weir_attrs_tensor(weir_shape_attrs(ctx), "value");
  weir_dtype_t dtype = weir_attrs_type(weir_shape_attrs(ctx), "dtype");
  // Here, not in the kernel: plans bind constants to their readers without running a kernel.
  if (weir_tensor_type(value) != dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT, "DataType mismatch between attr (%s) and tensor (%s)",
                       weir_dtype_name(dtype), weir_dtype_name(weir_tensor_type(value)));
  }
  WEIR_TRY(weir_shape_set_dims(ctx, 0, value->rank, value->dims));
  if (value->rank > 1 || !array_is_index_type(weir_tensor_type(value))) return NULL;
  array_ints_t ints;
  array_ints_from_tensor(value, &ints);
  return ints.is_known ? array_set_value(ctx, 0, ints.count, ints.values) : NULL;
}

static weir_status_t* const_init(const weir_kernel_init_t* init, void* state) {
  const_state_t* self = state;
  weir_tensor_t* value = weir_attrs_tensor(init->node->attrs, "value");
  const weir_device_t* device = init->device;
  const weir_kernel_def_t* kernel =
      weir_device_is_host(device) ? NULL : weir_op_kernel(init->node, device->kernel_type);
  if (kernel && !weir_kernel_is_host_arg(init->node, kernel, true, 0))
    return weir_device_fetch(init->device, WEIR_MEMORY_DEVICE, value, &self->value);
  self->value = weir_tensor_retain(value);
  return NULL;
}

static void const_deinit(void* state) { weir_tensor_release(((const_state_t*)state)->value); }

static weir_status_t* const_cpu(weir_kernel_ctx_t* ctx) {
  const const_state_t* self = ctx->state;
  weir_kernel_set(ctx, 0, weir_tensor_retain(self->value));
  return NULL;
}

// ---- placeholders ----

static weir_status_t* declared_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set(ctx, 0, weir_attrs_shape(weir_shape_attrs(ctx), "shape"));
}

// Before version 22 of graphs, a shape without dimensions was said where none was known.
static weir_status_t* placeholder_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = weir_attrs_shape(weir_shape_attrs(ctx), "shape");
  bool is_old = ctx->producer > 0 && ctx->producer < 22;
  return weir_shape_set(ctx, 0, is_old && shape->rank == 0 ? &weir_shape_unknown : shape);
}

static weir_status_t* placeholder_cpu(weir_kernel_ctx_t* ctx) {
  const weir_shape_t* shape = weir_attrs_shape(weir_kernel_attrs(ctx), "shape");
  const char* type = weir_dtype_name(weir_attrs_type(weir_kernel_attrs(ctx), "dtype"));
  if (shape->rank <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "You must feed a value for placeholder tensor '%s' with dtype %s",
                       ctx->node->name, type);
  }
  weir_strbuf_t text = {0};
  weir_shape_append(shape, &text);
  weir_status_t* status =
      WEIR_STATUS(INVALID_ARGUMENT,
                  "You must feed a value for placeholder tensor '%s' with dtype %s and shape %.*s",
                  ctx->node->name, type, WEIR_VIEW_ARG(weir_strbuf_view(&text)));
  weir_strbuf_free(&text);
  return status;
}

// The declared shape may say less than the default's; a fed value only has to agree with the
// declared one.
static weir_status_t* default_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* declared = weir_attrs_shape(weir_shape_attrs(ctx), "shape");
  const weir_shape_t* merged = NULL;
  WEIR_TRY(weir_shape_join(ctx, weir_shape_input(ctx, 0), declared, &merged));
  return weir_shape_set(ctx, 0, declared);
}

static weir_status_t* default_cpu(weir_kernel_ctx_t* ctx) {
  weir_kernel_pass(ctx, 0, 0);
  return NULL;
}

static weir_status_t* default_grad(weir_grad_ctx_t* g) {
  return weir_grad_set_value(g, 0, weir_grad_dy_value(g, 0));
}

const weir_op_module_t weir_ops_array_const = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Const",
         .attrs = "value: tensor; dtype: type",
         .outputs = "output: dtype",
         .flags = WEIR_OP_CHEAP | WEIR_OP_NO_GRADIENT,
         .role = WEIR_ROLE_CONST,
         .summary = "Returns a constant tensor.",
         .infer_shape = const_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = const_cpu, .state_size = sizeof(const_state_t),
                                         .init = const_init, .deinit = const_deinit)},
        {.name = "Placeholder",
         .attrs = "dtype: type; shape: shape = { unknown_rank: true }",
         .outputs = "output: dtype",
         .flags = WEIR_OP_CHEAP | WEIR_OP_NO_FOLD | WEIR_OP_NO_GRADIENT,
         .role = WEIR_ROLE_PLACEHOLDER,
         .summary = "A value that every step must be given.",
         .infer_shape = placeholder_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = placeholder_cpu)},
        {.name = "PlaceholderV2",
         .attrs = "dtype: type; shape: shape",
         .outputs = "output: dtype",
         .flags = WEIR_OP_CHEAP | WEIR_OP_NO_FOLD | WEIR_OP_NO_GRADIENT,
         .role = WEIR_ROLE_PLACEHOLDER,
         .summary = "A value that every step must be given.",
         .infer_shape = declared_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = placeholder_cpu)},
        {.name = "PlaceholderWithDefault",
         .attrs = "dtype: type; shape: shape",
         .inputs = "input: dtype",
         .outputs = "output: dtype",
         .flags = WEIR_OP_VIEW | WEIR_OP_CHEAP | WEIR_OP_NO_FOLD,
         .summary = "Passes its input on unless a step is given another value.",
         .infer_shape = default_shape,
         .build_grad = default_grad,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = default_cpu)},
        {0}}};
