// special.c — Gamma functions of two arguments: Polygamma, Zeta, Igamma, Igammac.
#include "ops/math/common.h"

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

// dx is the density at x, da the derivative by the shape.
static weir_status_t* igamma_grads(weir_grad_ctx_t* g, bool is_upper) {
  weir_edge_t a = weir_grad_input(g, 0), x = weir_grad_input(g, 1), dy = weir_grad_dy(g, 0);
  weir_edge_t power =
      weir_grad_mul(g, node2(g, "Sub", a, weir_grad_scalar(g, a, 1)), node1(g, "Log", x));
  weir_edge_t exponent =
      node2(g, "Sub", node2(g, "AddV2", weir_grad_neg(g, x), power), node1(g, "Lgamma", a));
  weir_edge_t da = weir_grad_mul(g, node2(g, "IgammaGradA", a, x), dy);
  weir_edge_t dx = weir_grad_mul(g, node1(g, "Exp", exponent), dy);
  return is_upper ? set_broadcast(g, weir_grad_neg(g, da), weir_grad_neg(g, dx))
                  : set_broadcast(g, da, dx);
}
static weir_status_t* igamma_grad(weir_grad_ctx_t* g) { return igamma_grads(g, false); }
static weir_status_t* igammac_grad(weir_grad_ctx_t* g) { return igamma_grads(g, true); }

WEIR_BINARY_INIT(igamma_init, IGAMMA)
WEIR_BINARY_INIT(igammac_init, IGAMMAC)
WEIR_BINARY_INIT(igamma_grad_a_init, IGAMMA_GRAD_A)
WEIR_BINARY_INIT(polygamma_init, POLYGAMMA)
WEIR_BINARY_INIT(zeta_init, ZETA)

#define IGAMMA_OP(op_name, types_, text, grad, init_fn)                                  \
  {                                                                                      \
    .name = op_name, .attrs = "T: " types_, .inputs = "a: T; x: T", .outputs = "z: T",   \
    .flags = WEIR_OP_POINTWISE, .summary = text, .infer_shape = weir_shape_fn_broadcast, \
    .build_grad = grad, .kernels = WEIR_BINARY_KERNELS(init_fn, "T: float, double")      \
  }

const weir_op_module_t weir_ops_math_special = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
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
        IGAMMA_OP("Igamma", FLOATING_TYPES, "The lower regularised incomplete gamma function",
                  igamma_grad, igamma_init),
        IGAMMA_OP("Igammac", FLOATING_TYPES, "The upper regularised incomplete gamma function",
                  igammac_grad, igammac_init),
        IGAMMA_OP("IgammaGradA", "{float,double}", "The derivative of Igamma by a", NULL,
                  igamma_grad_a_init),
        {0}}};
