// trig.c — Sin, Cos, Tan, their inverses, and Atan2.
#include "ops/math/common.h"

static weir_status_t* sin_grad(weir_grad_ctx_t* g) {
  return set_scaled(g, node1(g, "Cos", conj_input(g, 0)));
}

static weir_status_t* cos_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_neg(g, weir_grad_dy(g, 0));
  return weir_grad_set(g, 0, weir_grad_mul(g, dy, node1(g, "Sin", conj_input(g, 0))));
}

static weir_status_t* tan_grad(weir_grad_ctx_t* g) {
  weir_edge_t secant = node1(g, "Reciprocal", node1(g, "Cos", conj_input(g, 0)));
  return weir_grad_set(g, 0, weir_grad_mul(g, node1(g, "Square", secant), weir_grad_dy(g, 0)));
}

// 1 / sqrt(1 - x^2)
static weir_edge_t asin_slope(weir_grad_ctx_t* g) {
  weir_edge_t x = conj_input(g, 0);
  weir_edge_t rest = node2(g, "Sub", weir_grad_scalar(g, x, 1), node1(g, "Square", x));
  return node1(g, "Reciprocal", node1(g, "Sqrt", rest));
}

static weir_status_t* asin_grad(weir_grad_ctx_t* g) { return set_scaled(g, asin_slope(g)); }
static weir_status_t* acos_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, weir_grad_mul(g, weir_grad_neg(g, weir_grad_dy(g, 0)), asin_slope(g)));
}

static weir_status_t* atan_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = conj_input(g, 0);
  weir_edge_t sum = node2(g, "AddV2", weir_grad_scalar(g, x, 1), node1(g, "Square", x));
  return set_scaled(g, node1(g, "Reciprocal", sum));
}

// Inputs are y, x: dy = x dz / (x^2 + y^2), dx = -y dz / (x^2 + y^2).
static weir_status_t* atan2_grad(weir_grad_ctx_t* g) {
  weir_edge_t y = weir_grad_input(g, 0);
  weir_edge_t x = weir_grad_input(g, 1);
  weir_edge_t norm = node2(g, "AddV2", node1(g, "Square", y), node1(g, "Square", x));
  weir_edge_t scaled = node2(g, "RealDiv", weir_grad_dy(g, 0), norm);
  return set_broadcast(g, weir_grad_mul(g, x, scaled),
                       weir_grad_mul(g, weir_grad_neg(g, y), scaled));
}

WEIR_UNARY_INIT(sin_init, SIN)
WEIR_UNARY_INIT(cos_init, COS)
WEIR_UNARY_INIT(tan_init, TAN)
WEIR_UNARY_INIT(asin_init, ASIN)
WEIR_UNARY_INIT(acos_init, ACOS)
WEIR_UNARY_INIT(atan_init, ATAN)
WEIR_BINARY_INIT(atan2_init, ATAN2)

const weir_op_module_t weir_ops_math_trig = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        UNARY_OP("Sin", FLOATING_COMPLEX_TYPES, "The sine of x", sin_grad, sin_init, NULL),
        UNARY_OP("Cos", FLOATING_COMPLEX_TYPES, "The cosine of x", cos_grad, cos_init, NULL),
        UNARY_OP("Tan", FLOATING_COMPLEX_TYPES, "The tangent of x", tan_grad, tan_init, NULL),
        UNARY_OP("Asin", FLOATING_COMPLEX_TYPES, "The inverse sine of x", asin_grad, asin_init,
                 NULL),
        UNARY_OP("Acos", FLOATING_COMPLEX_TYPES, "The inverse cosine of x", acos_grad, acos_init,
                 NULL),
        UNARY_OP("Atan", FLOATING_COMPLEX_TYPES, "The inverse tangent of x", atan_grad, atan_init,
                 NULL),
        {.name = "Atan2",
         .attrs = "T: " FLOATING_TYPES,
         .inputs = "y: T; x: T",
         .outputs = "z: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "The angle of the point (x, y)",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = atan2_grad,
         .kernels = WEIR_BINARY_KERNELS(atan2_init, NULL)},
        {0}}};
