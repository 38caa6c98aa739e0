// sigmoid.c — Tanh, Sigmoid, and the ops their gradients are made of.
#include "ops/math/common.h"

static weir_status_t* tanh_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, node2(g, "TanhGrad", conj_output(g), weir_grad_dy(g, 0)));
}
static weir_status_t* sigmoid_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, node2(g, "SigmoidGrad", conj_output(g), weir_grad_dy(g, 0)));
}

// z = b (1 - a^2): da = -2 dz b a, db = TanhGrad(a, dz).
static weir_status_t* tanh_grad_grad(weir_grad_ctx_t* g) {
  weir_edge_t dz = weir_grad_dy(g, 0);
  weir_edge_t a = conj_input(g, 0);
  weir_edge_t scaled =
      weir_grad_mul(g, weir_grad_mul(g, dz, weir_grad_scalar(g, dz, -2)), conj_input(g, 1));
  WEIR_TRY(weir_grad_set(g, 0, weir_grad_mul(g, scaled, a)));
  return weir_grad_set(g, 1, node2(g, "TanhGrad", a, dz));
}

// z = b a (1 - a): da = dz b - 2 dz b a, db = SigmoidGrad(a, dz).
static weir_status_t* sigmoid_grad_grad(weir_grad_ctx_t* g) {
  weir_edge_t dz = weir_grad_dy(g, 0);
  weir_edge_t a = conj_input(g, 0);
  weir_edge_t product = weir_grad_mul(g, dz, conj_input(g, 1));
  weir_edge_t twice =
      weir_grad_mul(g, weir_grad_mul(g, weir_grad_scalar(g, product, 2), product), a);
  WEIR_TRY(weir_grad_set(g, 0, node2(g, "Sub", product, twice)));
  return weir_grad_set(g, 1, node2(g, "SigmoidGrad", a, dz));
}

WEIR_UNARY_INIT(tanh_init, TANH)
WEIR_UNARY_INIT(sigmoid_init, SIGMOID)
WEIR_BINARY_INIT(tanh_grad_init, TANH_GRAD)
WEIR_BINARY_INIT(sigmoid_grad_init, SIGMOID_GRAD)

const weir_op_module_t weir_ops_math_sigmoid = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        UNARY_OP("Tanh", FLOATING_COMPLEX_TYPES, "The hyperbolic tangent of x", tanh_grad,
                 tanh_init, NULL),
        UNARY_OP("Sigmoid", FLOATING_COMPLEX_TYPES, "1 / (1 + exp(-x))", sigmoid_grad, sigmoid_init,
                 NULL),
        GRADIENT_OP("TanhGrad", "The gradient of Tanh, from its output", tanh_grad_grad,
                    tanh_grad_init),
        GRADIENT_OP("SigmoidGrad", "The gradient of Sigmoid, from its output", sigmoid_grad_grad,
                    sigmoid_grad_init),
        {0}}};
