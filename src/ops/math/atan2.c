// atan2.c — Atan2: the angle of a point.
#include "ops/math/common.h"

// Inputs are y, x: dy = x dz / (x^2 + y^2), dx = -y dz / (x^2 + y^2).
static weir_status_t* atan2_grad(weir_grad_ctx_t* g) {
  weir_edge_t y = weir_grad_input(g, 0);
  weir_edge_t x = weir_grad_input(g, 1);
  weir_edge_t norm = node2(g, "AddV2", node1(g, "Square", y), node1(g, "Square", x));
  weir_edge_t scaled = node2(g, "RealDiv", weir_grad_dy(g, 0), norm);
  return set_broadcast(g, weir_grad_mul(g, x, scaled),
                       weir_grad_mul(g, weir_grad_neg(g, y), scaled));
}

WEIR_BINARY_INIT(atan2_init, ATAN2)

const weir_op_module_t weir_ops_math_atan2 = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "Atan2",
                                    .attrs = "T: " FLOATING_TYPES,
                                    .inputs = "y: T; x: T",
                                    .outputs = "z: T",
                                    .flags = WEIR_OP_POINTWISE,
                                    .summary = "The angle of the point (x, y)",
                                    .infer_shape = weir_shape_fn_broadcast,
                                    .build_grad = atan2_grad,
                                    .kernels = WEIR_BINARY_KERNELS(atan2_init, NULL)},
                                   {0}}};
