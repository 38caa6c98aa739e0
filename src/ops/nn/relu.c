// relu.c — Relu, Relu6, LeakyRelu and their gradients.
#include "kernel/nn/activation_op.h"
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"

#define REAL_TYPES \
  "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"
#define LEAKY_ATTRS "alpha: float = 0.2; T: {half, bfloat16, float, double} = DT_FLOAT"

static weir_status_t* relu_init(const weir_kernel_init_t* init, void* state) {
  return weir_activation_op_init(init, WEIR_ACTIVATION_RELU, 0, state);
}

static weir_status_t* relu6_init(const weir_kernel_init_t* init, void* state) {
  return weir_activation_op_init(init, WEIR_ACTIVATION_RELU6, 0, state);
}

static weir_status_t* leaky_relu_init(const weir_kernel_init_t* init, void* state) {
  return weir_activation_op_init(init, WEIR_ACTIVATION_LEAKY_RELU,
                                 weir_attrs_float(init->node->attrs, "alpha"), state);
}

static weir_status_t* relu_grad(weir_grad_ctx_t* g) {  // the sign of the output is the input's
  return weir_grad_set(
      g, 0, weir_grad_node(g, "ReluGrad", WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_output(g, 0))));
}

static weir_status_t* relu6_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(
      g, 0, weir_grad_node(g, "Relu6Grad", WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_output(g, 0))));
}

static weir_edge_t leaky_relu_node(weir_grad_ctx_t* g, weir_edge_t x) {
  weir_attrs_t alpha =
      WEIR_ATTRS(weir_attr_float("alpha", weir_attrs_float(weir_grad_attrs(g), "alpha")));
  return weir_grad_node_with(g, "LeakyReluGrad", WEIR_EDGES(weir_grad_dy(g, 0), x), alpha);
}

static weir_status_t* leaky_relu_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, leaky_relu_node(g, weir_grad_input(g, 0)));
}

// The gradients are linear in dy and flat almost everywhere in x.
static weir_status_t* set_linear(weir_grad_ctx_t* g, weir_edge_t ddy) {
  WEIR_TRY(weir_grad_set(g, 0, ddy));
  return weir_grad_set(g, 1, weir_grad_node(g, "ZerosLike", WEIR_EDGES(weir_grad_input(g, 1))));
}

static weir_status_t* relu_grad_grad(weir_grad_ctx_t* g) {
  return set_linear(
      g, weir_grad_node(g, "ReluGrad", WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 1))));
}

static weir_status_t* relu6_grad_grad(weir_grad_ctx_t* g) {
  return set_linear(
      g, weir_grad_node(g, "Relu6Grad", WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 1))));
}

static weir_status_t* leaky_relu_grad_grad(weir_grad_ctx_t* g) {
  return set_linear(g, leaky_relu_node(g, weir_grad_input(g, 1)));
}

const weir_op_module_t weir_ops_nn_relu = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Relu",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "max(features, 0)",
         .attrs = "T: {" REAL_TYPES ", qint8}",
         .inputs = "features: T",
         .outputs = "activations: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_ACTIVATION, WEIR_ACTIVATION_RELU},
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = relu_grad,
         .kernels =
             WEIR_ACTIVATION_KERNEL(relu_init, weir_activation_op_forward, "T: " REAL_TYPES)},
        {.name = "ReluGrad",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "gradients where features are positive",
         .attrs = "T: {" REAL_TYPES "}",
         .inputs = "gradients: T; features: T",
         .outputs = "backprops: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_ACTIVATION_GRAD, WEIR_ACTIVATION_RELU},
         .infer_shape = weir_shape_fn_merge_all,
         .build_grad = relu_grad_grad,
         .kernels = WEIR_ACTIVATION_KERNEL(relu_init, weir_activation_op_backward, NULL)},
        {.name = "Relu6",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "min(max(features, 0), 6)",
         .attrs = "T: {" REAL_TYPES "}",
         .inputs = "features: T",
         .outputs = "activations: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_ACTIVATION, WEIR_ACTIVATION_RELU6},
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = relu6_grad,
         .kernels = WEIR_ACTIVATION_KERNEL(relu6_init, weir_activation_op_forward, NULL)},
        {.name = "Relu6Grad",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "gradients where features are between 0 and 6",
         .attrs = "T: {" REAL_TYPES "}",
         .inputs = "gradients: T; features: T",
         .outputs = "backprops: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_ACTIVATION_GRAD, WEIR_ACTIVATION_RELU6},
         .infer_shape = weir_shape_fn_merge_all,
         .build_grad = relu6_grad_grad,
         .kernels = WEIR_ACTIVATION_KERNEL(relu6_init, weir_activation_op_backward, NULL)},
        {.name = "LeakyRelu",
         .mixed = WEIR_MIXED_INFER,
         .summary = "features, times alpha where negative",
         .attrs = LEAKY_ATTRS,
         .inputs = "features: T",
         .outputs = "activations: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_ACTIVATION, WEIR_ACTIVATION_LEAKY_RELU},
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = leaky_relu_grad,
         .kernels = WEIR_ACTIVATION_KERNEL(leaky_relu_init, weir_activation_op_forward, NULL)},
        {.name = "LeakyReluGrad",
         .mixed = WEIR_MIXED_INFER,
         .summary = "gradients, times alpha where features are not positive",
         .attrs = LEAKY_ATTRS,
         .inputs = "gradients: T; features: T",
         .outputs = "backprops: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_ACTIVATION_GRAD, WEIR_ACTIVATION_LEAKY_RELU},
         .infer_shape = weir_shape_fn_merge_all,
         .build_grad = leaky_relu_grad_grad,
         .kernels = WEIR_ACTIVATION_KERNEL(leaky_relu_init, weir_activation_op_backward, NULL)},
        {0}}};
