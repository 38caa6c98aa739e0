// exp_log.c — Exp, Expm1, Log, Log1p.
#include "ops/math/common.h"

static weir_status_t* exp_grad(weir_grad_ctx_t* g) { return set_scaled(g, conj_output(g)); }
static weir_status_t* expm1_grad(weir_grad_ctx_t* g) {
  return set_scaled(g, node1(g, "Exp", conj_input(g, 0)));
}
static weir_status_t* log_grad(weir_grad_ctx_t* g) {
  return set_scaled(g, node1(g, "Reciprocal", conj_input(g, 0)));
}
static weir_status_t* log1p_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = conj_input(g, 0);
  return set_scaled(g, node1(g, "Reciprocal", node2(g, "AddV2", weir_grad_scalar(g, x, 1), x)));
}

WEIR_UNARY_INIT(exp_init, EXP)
WEIR_UNARY_INIT(expm1_init, EXPM1)
WEIR_UNARY_INIT(log_init, LOG)
WEIR_UNARY_INIT(log1p_init, LOG1P)

const weir_op_module_t weir_ops_math_exp_log = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        UNARY_OP("Exp", FLOATING_COMPLEX_TYPES, "e to the power of x", exp_grad, exp_init, NULL),
        UNARY_OP("Expm1", FLOATING_COMPLEX_TYPES, "exp(x) - 1, precise near 0", expm1_grad,
                 expm1_init, NULL),
        UNARY_OP("Log", FLOATING_COMPLEX_TYPES, "The natural logarithm of x", log_grad, log_init,
                 NULL),
        UNARY_OP("Log1p", FLOATING_COMPLEX_TYPES, "log(1 + x), precise near 0", log1p_grad,
                 log1p_init, NULL),
        {0}}};
