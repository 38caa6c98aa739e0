// hyperbolic.c — Sinh, Cosh and the inverse hyperbolic functions.
#include "ops/math/common.h"

static weir_status_t* sinh_grad(weir_grad_ctx_t* g) {
  return set_scaled(g, node1(g, "Cosh", conj_input(g, 0)));
}
static weir_status_t* cosh_grad(weir_grad_ctx_t* g) {
  return set_scaled(g, node1(g, "Sinh", conj_input(g, 0)));
}
static weir_status_t* asinh_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0,
                       node2(g, "RealDiv", weir_grad_dy(g, 0), node1(g, "Cosh", conj_output(g))));
}
static weir_status_t* acosh_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0,
                       node2(g, "RealDiv", weir_grad_dy(g, 0), node1(g, "Sinh", conj_output(g))));
}
static weir_status_t* atanh_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = conj_input(g, 0);
  weir_edge_t rest = node2(g, "Sub", weir_grad_scalar(g, x, 1), node1(g, "Square", x));
  return set_scaled(g, node1(g, "Reciprocal", rest));
}

WEIR_UNARY_INIT(sinh_init, SINH)
WEIR_UNARY_INIT(cosh_init, COSH)
WEIR_UNARY_INIT(asinh_init, ASINH)
WEIR_UNARY_INIT(acosh_init, ACOSH)
WEIR_UNARY_INIT(atanh_init, ATANH)

const weir_op_module_t weir_ops_math_hyperbolic = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        UNARY_OP("Sinh", FLOATING_COMPLEX_TYPES, "The hyperbolic sine of x", sinh_grad, sinh_init,
                 NULL),
        UNARY_OP("Cosh", FLOATING_COMPLEX_TYPES, "The hyperbolic cosine of x", cosh_grad, cosh_init,
                 NULL),
        UNARY_OP("Asinh", FLOATING_COMPLEX_TYPES, "The inverse hyperbolic sine of x", asinh_grad,
                 asinh_init, NULL),
        UNARY_OP("Acosh", FLOATING_COMPLEX_TYPES, "The inverse hyperbolic cosine of x", acosh_grad,
                 acosh_init, NULL),
        UNARY_OP("Atanh", FLOATING_COMPLEX_TYPES, "The inverse hyperbolic tangent of x", atanh_grad,
                 atanh_init, NULL),
        {0}}};
