// special.c — Error and gamma functions: Erf, Erfc, Erfinv, Ndtri, Lgamma, Digamma, Polygamma,
// Zeta.
#include "ops/math/common.h"

// dy * scale * exp(-x^2)
static weir_status_t* gauss_grad(weir_grad_ctx_t* g, double scale) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t scaled = weir_grad_mul(g, dy, weir_grad_scalar(g, dy, scale));
  weir_edge_t bell = node1(g, "Exp", weir_grad_neg(g, node1(g, "Square", weir_grad_input(g, 0))));
  return weir_grad_set(g, 0, weir_grad_mul(g, scaled, bell));
}
static weir_status_t* erf_grad(weir_grad_ctx_t* g) { return gauss_grad(g, 1.12837916709551257390); }
static weir_status_t* erfc_grad(weir_grad_ctx_t* g) {
  return gauss_grad(g, -1.12837916709551257390);
}

// dy * sqrt(pi) / 2 * exp(y^2)
static weir_status_t* erfinv_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t scaled = weir_grad_mul(g, dy, weir_grad_scalar(g, dy, 0.88622692545275801365));
  return weir_grad_set(
      g, 0, weir_grad_mul(g, scaled, node1(g, "Exp", node1(g, "Square", weir_grad_output(g, 0)))));
}

// dy * sqrt(2 pi) * exp(y^2 / 2)
static weir_status_t* ndtri_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t scaled = weir_grad_mul(g, dy, weir_grad_scalar(g, dy, 2.50662827463100050242));
  weir_edge_t half =
      node2(g, "RealDiv", node1(g, "Square", weir_grad_output(g, 0)), weir_grad_scalar(g, dy, 2));
  return weir_grad_set(g, 0, weir_grad_mul(g, scaled, node1(g, "Exp", half)));
}

static weir_status_t* lgamma_grad(weir_grad_ctx_t* g) {
  return set_scaled(g, node1(g, "Digamma", weir_grad_input(g, 0)));
}
static weir_status_t* digamma_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = weir_grad_input(g, 0);
  return set_scaled(g, node2(g, "Polygamma", weir_grad_scalar(g, x, 1), x));
}

// Of the second input only, as in TensorFlow.
static weir_status_t* polygamma_grad(weir_grad_ctx_t* g) {
  weir_edge_t n = weir_grad_input(g, 0);
  weir_edge_t slope =
      node2(g, "Polygamma", node2(g, "AddV2", n, weir_grad_scalar(g, n, 1)), weir_grad_input(g, 1));
  return weir_grad_set(g, 1,
                       weir_grad_unbroadcast(g, weir_grad_mul(g, slope, weir_grad_dy(g, 0)), 1, 0));
}
static weir_status_t* zeta_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = weir_grad_input(g, 0);
  weir_edge_t next =
      node2(g, "Zeta", node2(g, "AddV2", x, weir_grad_scalar(g, x, 1)), weir_grad_input(g, 1));
  weir_edge_t slope = weir_grad_mul(g, weir_grad_neg(g, x), next);
  return weir_grad_set(g, 1,
                       weir_grad_unbroadcast(g, weir_grad_mul(g, slope, weir_grad_dy(g, 0)), 1, 0));
}

WEIR_UNARY_INIT(erf_init, ERF)
WEIR_UNARY_INIT(erfc_init, ERFC)
WEIR_UNARY_INIT(erfinv_init, ERFINV)
WEIR_UNARY_INIT(ndtri_init, NDTRI)
WEIR_UNARY_INIT(lgamma_init, LGAMMA)
WEIR_UNARY_INIT(digamma_init, DIGAMMA)
WEIR_BINARY_INIT(polygamma_init, POLYGAMMA)
WEIR_BINARY_INIT(zeta_init, ZETA)

const weir_op_module_t weir_ops_math_special = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        UNARY_OP("Erf", FLOATING_TYPES, "The error function of x", erf_grad, erf_init, NULL),
        UNARY_OP("Erfc", FLOATING_TYPES, "1 - erf(x), precise for large x", erfc_grad, erfc_init,
                 NULL),
        UNARY_OP("Erfinv", FLOATING_TYPES, "The inverse of erf", erfinv_grad, erfinv_init,
                 "T: float, double"),
        UNARY_OP("Ndtri", FLOATING_TYPES, "The quantile function of the normal distribution",
                 ndtri_grad, ndtri_init, "T: float, double"),
        UNARY_OP("Lgamma", FLOATING_TYPES, "log |gamma(x)|", lgamma_grad, lgamma_init,
                 "T: half, float, double"),
        UNARY_OP("Digamma", FLOATING_TYPES, "The derivative of lgamma", digamma_grad, digamma_init,
                 "T: half, float, double"),
        {.name = "Polygamma",
         .attrs = "T: {float,double}",
         .inputs = "a: T; x: T",
         .outputs = "z: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "The a-th derivative of digamma at x",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = polygamma_grad,
         .kernels = WEIR_BINARY_KERNELS(polygamma_init, NULL)},
        {.name = "Zeta",
         .attrs = "T: {float,double}",
         .inputs = "x: T; q: T",
         .outputs = "z: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "The Hurwitz zeta function",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = zeta_grad,
         .kernels = WEIR_BINARY_KERNELS(zeta_init, NULL)},
        {0}}};
