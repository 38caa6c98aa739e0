// special.c — Gamma functions of two arguments: Polygamma, Zeta.
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

WEIR_BINARY_INIT(polygamma_init, POLYGAMMA)
WEIR_BINARY_INIT(zeta_init, ZETA)

const weir_op_module_t weir_ops_math_special = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "Polygamma",
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
