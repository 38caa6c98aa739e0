// root.c — Square, Sqrt, Rsqrt, Reciprocal (Inv), and the ops their gradients are made of.
#include "ops/math/common.h"

static weir_status_t* square_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = conj_input(g, 0);
  return set_scaled(g, weir_grad_mul(g, x, weir_grad_scalar(g, x, 2)));
}

static weir_status_t* sqrt_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, node2(g, "SqrtGrad", weir_grad_output(g, 0), weir_grad_dy(g, 0)));
}
static weir_status_t* rsqrt_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, node2(g, "RsqrtGrad", weir_grad_output(g, 0), weir_grad_dy(g, 0)));
}
static weir_status_t* reciprocal_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0,
                       node2(g, "ReciprocalGrad", weir_grad_output(g, 0), weir_grad_dy(g, 0)));
}

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

WEIR_UNARY_INIT(square_init, SQUARE)
WEIR_UNARY_INIT(sqrt_init, SQRT)
WEIR_UNARY_INIT(rsqrt_init, RSQRT)
WEIR_UNARY_INIT(reciprocal_init, RECIPROCAL)
WEIR_BINARY_INIT(sqrt_grad_init, SQRT_GRAD)
WEIR_BINARY_INIT(rsqrt_grad_init, RSQRT_GRAD)
WEIR_BINARY_INIT(reciprocal_grad_init, RECIPROCAL_GRAD)

#define SQUARE_TYPES                                                                         \
  "{bfloat16,half,float,double,int8,int16,int32,int64,uint8,uint16,uint32,uint64,complex64," \
  "complex128}"
#define RECIPROCAL_TYPES "{bfloat16,half,float,double,int8,int16,int32,int64,complex64,complex128}"
#define RECIPROCAL_CPU "T: bfloat16, half, float, double, complex64, complex128"

const weir_op_module_t weir_ops_math_root = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        UNARY_OP("Square", SQUARE_TYPES, "x * x", square_grad, square_init, NULL),
        UNARY_OP("Sqrt", FLOATING_COMPLEX_TYPES, "The square root of x", sqrt_grad, sqrt_init,
                 NULL),
        UNARY_OP("Rsqrt", FLOATING_COMPLEX_TYPES, "1 / sqrt(x)", rsqrt_grad, rsqrt_init, NULL),
        UNARY_OP("Reciprocal", RECIPROCAL_TYPES, "1 / x", reciprocal_grad, reciprocal_init,
                 RECIPROCAL_CPU),
        UNARY_OP("Inv", RECIPROCAL_TYPES, "1 / x", reciprocal_grad, reciprocal_init,
                 RECIPROCAL_CPU),
        GRADIENT_OP("SqrtGrad", "The gradient of Sqrt, from its output", sqrt_grad_grad,
                    sqrt_grad_init),
        GRADIENT_OP("RsqrtGrad", "The gradient of Rsqrt, from its output", rsqrt_grad_grad,
                    rsqrt_grad_init),
        GRADIENT_OP("ReciprocalGrad", "The gradient of Reciprocal, from its output",
                    reciprocal_grad_grad, reciprocal_grad_init),
        GRADIENT_OP("InvGrad", "The gradient of Inv, from its output", reciprocal_grad_grad,
                    reciprocal_grad_init),
        {0}}};
