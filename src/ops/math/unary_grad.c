// unary_grad.c — The ops that gradients of unary ones are made of: of an output and its gradient.
#include "ops/math/common.h"

// z = 0.5 b / conj(a): da = -conj(dz / a) z, db = 0.5 dz / a.
static weir_status_t* sqrt_grad_grad(weir_grad_ctx_t* g) {
  weir_edge_t ratio = node2(g, "RealDiv", weir_grad_dy(g, 0), weir_grad_input(g, 0));
  WEIR_TRY(weir_grad_set(
      g, 0, weir_grad_mul(g, weir_grad_neg(g, weir_grad_conj(g, ratio)), weir_grad_output(g, 0))));
  return weir_grad_set(g, 1, weir_grad_mul(g, weir_grad_scalar(g, ratio, 0.5), ratio));
}

// z = -0.5 b conj(a)^3: da = -1.5 conj(dz) b conj(a)^2, db = RsqrtGrad(conj(a), dz).
static weir_status_t* rsqrt_grad_grad(weir_grad_ctx_t* g) {
  weir_edge_t dz = weir_grad_dy(g, 0);
  weir_edge_t a = conj_input(g, 0);
  weir_edge_t scaled = weir_grad_mul(g, weir_grad_scalar(g, a, -1.5), weir_grad_conj(g, dz));
  scaled = weir_grad_mul(g, scaled, weir_grad_input(g, 1));
  WEIR_TRY(weir_grad_set(g, 0, weir_grad_mul(g, scaled, node1(g, "Square", a))));
  return weir_grad_set(g, 1, node2(g, "RsqrtGrad", a, dz));
}

// z = -b conj(a)^2: da = -2 conj(dz) b conj(a), db = ReciprocalGrad(conj(a), dz).
static weir_status_t* reciprocal_grad_grad(weir_grad_ctx_t* g) {
  weir_edge_t dz = weir_grad_dy(g, 0);
  weir_edge_t a = conj_input(g, 0);
  weir_edge_t scaled = weir_grad_mul(g, weir_grad_conj(g, dz), weir_grad_scalar(g, a, -2));
  scaled = weir_grad_mul(g, scaled, weir_grad_input(g, 1));
  WEIR_TRY(weir_grad_set(g, 0, weir_grad_mul(g, scaled, a)));
  return weir_grad_set(g, 1, node2(g, "ReciprocalGrad", a, dz));
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

WEIR_BINARY_INIT(tanh_grad_init, TANH_GRAD)
WEIR_BINARY_INIT(sigmoid_grad_init, SIGMOID_GRAD)
WEIR_BINARY_INIT(sqrt_grad_init, SQRT_GRAD)
WEIR_BINARY_INIT(rsqrt_grad_init, RSQRT_GRAD)
WEIR_BINARY_INIT(reciprocal_grad_init, RECIPROCAL_GRAD)

const weir_op_module_t weir_ops_math_unary_grad = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        GRADIENT_OP("TanhGrad", INFER, "The gradient of Tanh, from its output", tanh_grad_grad,
                    tanh_grad_init),
        GRADIENT_OP("SigmoidGrad", INFER, "The gradient of Sigmoid, from its output",
                    sigmoid_grad_grad, sigmoid_grad_init),
        GRADIENT_OP("SqrtGrad", NONE, "The gradient of Sqrt, from its output", sqrt_grad_grad,
                    sqrt_grad_init),
        GRADIENT_OP("RsqrtGrad", NONE, "The gradient of Rsqrt, from its output", rsqrt_grad_grad,
                    rsqrt_grad_init),
        GRADIENT_OP("ReciprocalGrad", NONE, "The gradient of Reciprocal, from its output",
                    reciprocal_grad_grad, reciprocal_grad_init),
        GRADIENT_OP("InvGrad", NONE, "The gradient of Inv, from its output", reciprocal_grad_grad,
                    reciprocal_grad_init),
        {0}}};
