// identity.c — Identity, IdentityN, Snapshot, DeepCopy, StopGradient, PreventGradient,
// GuaranteeConst.
#include "ops/array/common.h"

static weir_status_t* identity_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_fn_unchanged(ctx));
  return array_pass_value(ctx, 0, 0);
}

static weir_status_t* identity_n_shape(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->node->input_count; ++i) {
    WEIR_TRY(weir_shape_set(ctx, i, weir_shape_input(ctx, i)));
    ctx->output_handles[i] = ctx->input_handles[i];
    WEIR_TRY(array_pass_value(ctx, i, i));
  }
  return NULL;
}

// Shares memory.
static weir_status_t* identity_cpu(weir_kernel_ctx_t* ctx) {
  weir_kernel_pass(ctx, 0, 0);
  return NULL;
}

// What a handle stands for may change, whatever is promised.
static weir_status_t* guarantee_cpu(weir_kernel_ctx_t* ctx) {
  if (ctx->node->input_types[0] == WEIR_DTYPE_RESOURCE) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input tensor cannot be a resource variable handle.");
  }
  return identity_cpu(ctx);
}

static weir_status_t* identity_n_cpu(weir_kernel_ctx_t* ctx) {
  for (int i = 0; i < ctx->input_count; ++i) weir_kernel_pass(ctx, i, i);
  return NULL;
}

static weir_status_t* deep_copy_cpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* copy = NULL;
  WEIR_TRY(weir_tensor_copy(weir_kernel_input(ctx, 0), &copy));
  weir_kernel_set(ctx, 0, copy);
  return NULL;
}

// What others may write to is copied.
static weir_status_t* snapshot_cpu(weir_kernel_ctx_t* ctx) {
  if (weir_tensor_is_sole(ctx->inputs[0].tensor)) return identity_cpu(ctx);
  return deep_copy_cpu(ctx);
}

static weir_status_t* identity_grad(weir_grad_ctx_t* g) {
  return weir_grad_set_value(g, 0, weir_grad_dy_value(g, 0));
}

static weir_status_t* identity_n_grad(weir_grad_ctx_t* g) {
  for (int i = 0; i < g->node->input_count; ++i) {
    if (weir_grad_has_dy(g, i)) WEIR_TRY(weir_grad_set_value(g, i, weir_grad_dy_value(g, i)));
  }
  return NULL;
}

static weir_status_t* prevent_grad(weir_grad_ctx_t* g) {
  weir_view_t message = weir_attrs_string(weir_grad_attrs(g), "message");
  return WEIR_STATUS(INVALID_ARGUMENT, "Gradient explicitly disabled. Reason: %.*s",
                     WEIR_VIEW_ARG(message));
}

#define IDENTITY_KERNELS WEIR_PORTABLE_KERNEL(.compute = identity_cpu)

const weir_op_module_t weir_ops_array_identity = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Identity",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type",
         .inputs = "input: T",
         .outputs = "output: T",
         .flags = WEIR_OP_PASS_THROUGH | WEIR_OP_CHEAP,
         .summary = "Returns its input.",
         .infer_shape = identity_shape,
         .build_grad = identity_grad,
         .kernels = IDENTITY_KERNELS},
        {.name = "IdentityN",
         .attrs = "T: list(type) >= 1",
         .inputs = "input: T",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_CHEAP,
         .summary = "Returns its inputs.",
         .infer_shape = identity_n_shape,
         .build_grad = identity_n_grad,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = identity_n_cpu)},
        {.name = "Snapshot",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type",
         .inputs = "input: T",
         .outputs = "output: T",
         .summary = "Returns its input as it is now, copied where it could change.",
         .infer_shape = identity_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = snapshot_cpu)},
        {.name = "DeepCopy",
         .attrs = "T: type",
         .inputs = "x: T",
         .outputs = "y: T",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Copies its input into memory of its own.",
         .infer_shape = identity_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = deep_copy_cpu)},
        {.name = "StopGradient",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type",
         .inputs = "input: T",
         .outputs = "output: T",
         .flags = WEIR_OP_PASS_THROUGH | WEIR_OP_CHEAP | WEIR_OP_NO_GRADIENT,
         .summary = "Returns its input; nothing flows back through it.",
         .infer_shape = identity_shape,
         .kernels = IDENTITY_KERNELS},
        {.name = "PreventGradient",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; message: string = ''",
         .inputs = "input: T",
         .outputs = "output: T",
         .flags = WEIR_OP_PASS_THROUGH | WEIR_OP_CHEAP,
         .summary = "Returns its input; differentiating through it is an error.",
         .infer_shape = identity_shape,
         .build_grad = prevent_grad,
         .kernels = IDENTITY_KERNELS},
        {.name = "GuaranteeConst",
         .attrs = "T: type",
         .inputs = "input: T",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .summary = "Returns its input, which the caller promises never changes.",
         .infer_shape = identity_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = guarantee_cpu)},
        {0}}};
