// softplus.c — Softplus, Softsign and their gradients.
#include "kernel/nn/activation_op.h"
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"

static weir_status_t* softplus_init(const weir_kernel_init_t* init, void* state) {
  return weir_activation_op_init(init, WEIR_ACTIVATION_SOFTPLUS, 0, state);
}

static weir_status_t* softsign_init(const weir_kernel_init_t* init, void* state) {
  return weir_activation_op_init(init, WEIR_ACTIVATION_SOFTSIGN, 0, state);
}

static weir_status_t* softplus_grad(weir_grad_ctx_t* g) {
  weir_edge_t slope = weir_grad_node(g, "Sigmoid", WEIR_EDGES(weir_grad_input(g, 0)));
  return weir_grad_set(g, 0, weir_grad_mul(g, weir_grad_dy(g, 0), slope));
}

// d/dx of dy / (exp(-x) + 1) is dy / (exp(-x) + 2 + exp(x)).
static weir_status_t* softplus_grad_grad(weir_grad_ctx_t* g) {
  weir_edge_t grad = weir_grad_dy(g, 0), dy = weir_grad_input(g, 0), x = weir_grad_input(g, 1);
  weir_edge_t up = weir_grad_node(g, "Exp", WEIR_EDGES(x));
  weir_edge_t down = weir_grad_node(g, "Exp", WEIR_EDGES(weir_grad_neg(g, x)));
  weir_edge_t sum = weir_grad_node(g, "AddV2", WEIR_EDGES(down, weir_grad_scalar(g, x, 2)));
  sum = weir_grad_node(g, "AddV2", WEIR_EDGES(sum, up));
  WEIR_TRY(weir_grad_set(g, 0, weir_grad_node(g, "SoftplusGrad", WEIR_EDGES(grad, x))));
  return weir_grad_set(g, 1,
                       weir_grad_node(g, "RealDiv", WEIR_EDGES(weir_grad_mul(g, grad, dy), sum)));
}

static weir_status_t* softsign_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(
      g, 0,
      weir_grad_node(g, "SoftsignGrad", WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 0))));
}

const weir_op_module_t weir_ops_nn_softplus = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Softplus",
         .mixed = WEIR_MIXED_INFER,
         .summary = "log(exp(features) + 1)",
         .attrs = "T: {half, bfloat16, float, double}",
         .inputs = "features: T",
         .outputs = "activations: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_ACTIVATION, WEIR_ACTIVATION_SOFTPLUS},
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = softplus_grad,
         .kernels = WEIR_ACTIVATION_KERNEL(softplus_init, weir_activation_op_forward, NULL)},
        {.name = "SoftplusGrad",
         .mixed = WEIR_MIXED_INFER,
         .summary = "Gradient of Softplus by its features",
         .attrs = "T: {half, bfloat16, float, double}",
         .inputs = "gradients: T; features: T",
         .outputs = "backprops: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_ACTIVATION_GRAD, WEIR_ACTIVATION_SOFTPLUS},
         .infer_shape = weir_shape_fn_merge_all,
         .build_grad = softplus_grad_grad,
         .kernels = WEIR_ACTIVATION_KERNEL(softplus_init, weir_activation_op_backward, NULL)},
        {.name = "Softsign",
         .mixed = WEIR_MIXED_INFER,
         .summary = "features / (abs(features) + 1)",
         .attrs = "T: {half, bfloat16, float, double}",
         .inputs = "features: T",
         .outputs = "activations: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_ACTIVATION, WEIR_ACTIVATION_SOFTSIGN},
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = softsign_grad,
         .kernels = WEIR_ACTIVATION_KERNEL(softsign_init, weir_activation_op_forward, NULL)},
        {.name = "SoftsignGrad",
         .mixed = WEIR_MIXED_INFER,
         .summary = "Gradient of Softsign by its features",
         .attrs = "T: {half, bfloat16, float, double}",
         .inputs = "gradients: T; features: T",
         .outputs = "backprops: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_ACTIVATION_GRAD, WEIR_ACTIVATION_SOFTSIGN},
         .infer_shape = weir_shape_fn_merge_all,
         .kernels = WEIR_ACTIVATION_KERNEL(softsign_init, weir_activation_op_backward, NULL)},
        {0}}};
