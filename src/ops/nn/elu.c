// elu.c — Elu, Selu and their gradients.
#include "kernel/nn/activation_op.h"
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"

static weir_status_t* elu_init(const weir_kernel_init_t* init, void* state) {
  return weir_activation_op_init(init, WEIR_ACTIVATION_ELU, 0, state);
}

static weir_status_t* elu_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(
      g, 0, weir_grad_node(g, "EluGrad", WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_output(g, 0))));
}

static weir_status_t* selu_init(const weir_kernel_init_t* init, void* state) {
  return weir_activation_op_init(init, WEIR_ACTIVATION_SELU, 0, state);
}

static weir_status_t* selu_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(
      g, 0, weir_grad_node(g, "SeluGrad", WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_output(g, 0))));
}

// By the output y: where(y < 0, grad * dy, 0), as the derivative is y plus a constant there.
static weir_status_t* grad_grad(weir_grad_ctx_t* g, const char* op) {
  weir_edge_t grad = weir_grad_dy(g, 0), dy = weir_grad_input(g, 0), y = weir_grad_input(g, 1);
  weir_edge_t is_negative = weir_grad_node(g, "Less", WEIR_EDGES(y, weir_grad_scalar(g, y, 0)));
  weir_edge_t zeros = weir_grad_node(g, "ZerosLike", WEIR_EDGES(y));
  weir_edge_t by_y =
      weir_grad_node(g, "SelectV2", WEIR_EDGES(is_negative, weir_grad_mul(g, grad, dy), zeros));
  WEIR_TRY(weir_grad_set(g, 0, weir_grad_node(g, op, WEIR_EDGES(grad, y))));
  return weir_grad_set(g, 1, by_y);
}

static weir_status_t* elu_grad_grad(weir_grad_ctx_t* g) { return grad_grad(g, "EluGrad"); }
static weir_status_t* selu_grad_grad(weir_grad_ctx_t* g) { return grad_grad(g, "SeluGrad"); }

const weir_op_module_t weir_ops_nn_elu = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Elu",
         .mixed = WEIR_MIXED_INFER,
         .summary = "features, exp(features) - 1 where negative",
         .attrs = "T: {half, bfloat16, float, double}",
         .inputs = "features: T",
         .outputs = "activations: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_ACTIVATION, WEIR_ACTIVATION_ELU},
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = elu_grad,
         .kernels = WEIR_ACTIVATION_KERNEL(elu_init, weir_activation_op_forward, NULL)},
        {.name = "EluGrad",
         .mixed = WEIR_MIXED_INFER,
         .summary = "Gradient of Elu by its outputs",
         .attrs = "T: {half, bfloat16, float, double}",
         .inputs = "gradients: T; outputs: T",
         .outputs = "backprops: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_ACTIVATION_GRAD, WEIR_ACTIVATION_ELU},
         .infer_shape = weir_shape_fn_merge_all,
         .build_grad = elu_grad_grad,
         .kernels = WEIR_ACTIVATION_KERNEL(elu_init, weir_activation_op_backward, NULL)},
        {.name = "Selu",
         .mixed = WEIR_MIXED_INFER,
         .summary = "scale * features, scale * alpha * (exp(features) - 1) where negative",
         .attrs = "T: {half, bfloat16, float, double}",
         .inputs = "features: T",
         .outputs = "activations: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_ACTIVATION, WEIR_ACTIVATION_SELU},
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = selu_grad,
         .kernels = WEIR_ACTIVATION_KERNEL(selu_init, weir_activation_op_forward, NULL)},
        {.name = "SeluGrad",
         .mixed = WEIR_MIXED_INFER,
         .summary = "Gradient of Selu by its outputs",
         .attrs = "T: {half, bfloat16, float, double}",
         .inputs = "gradients: T; outputs: T",
         .outputs = "backprops: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_ACTIVATION_GRAD, WEIR_ACTIVATION_SELU},
         .infer_shape = weir_shape_fn_merge_all,
         .build_grad = selu_grad_grad,
         .kernels = WEIR_ACTIVATION_KERNEL(selu_init, weir_activation_op_backward, NULL)},
        {0}}};
