// mul.c — Mul, MulNoNan, SquaredDifference: products with broadcasting.
#include "ops/math/common.h"

static weir_status_t* mul_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  return set_broadcast(g, weir_grad_mul(g, dy, conj_input(g, 1)),
                       weir_grad_mul(g, conj_input(g, 0), dy));
}

static weir_status_t* mul_no_nan_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  return set_broadcast(g, node2(g, "MulNoNan", dy, weir_grad_input(g, 1)),
                       node2(g, "MulNoNan", weir_grad_input(g, 0), dy));
}

static weir_status_t* squared_difference_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t twice = weir_grad_mul(g, weir_grad_scalar(g, dy, 2), dy);
  weir_edge_t dx =
      weir_grad_mul(g, twice, node2(g, "Sub", weir_grad_input(g, 0), weir_grad_input(g, 1)));
  WEIR_TRY(weir_grad_set(g, 0, weir_grad_unbroadcast(g, dx, 0, 1)));
  return weir_grad_set(g, 1, weir_grad_neg(g, weir_grad_unbroadcast(g, dx, 1, 0)));
}

// x * 1 = x; x * 0 is not 0 where x is not finite.
static weir_status_t* mul_simplify(weir_simplify_ctx_t* ctx) {
  if (weir_simplify_is_all(ctx, 1, 1)) return weir_simplify_to_input(ctx, 0);
  if (weir_simplify_is_all(ctx, 0, 1)) return weir_simplify_to_input(ctx, 1);
  return NULL;
}

WEIR_BINARY_INIT(mul_init, MUL)
WEIR_BINARY_INIT(mul_no_nan_init, MUL_NO_NAN)
WEIR_BINARY_INIT(squared_difference_init, SQUARED_DIFFERENCE)

const weir_op_module_t weir_ops_math_mul = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Mul",
         .mixed = WEIR_MIXED_INFER,
         .attrs = "T: "
                  "{bfloat16,half,float,double,uint8,int8,uint16,int16,int32,uint32,uint64,int64,"
                  "complex64,complex128}",
         .inputs = "x: T; y: T",
         .outputs = "z: T",
         .flags = WEIR_OP_COMMUTATIVE | WEIR_OP_POINTWISE,
         .summary = "x * y, element by element",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = mul_grad,
         .simplify = mul_simplify,
         .kernels = WEIR_BINARY_KERNELS(mul_init, NULL)},
        {.name = "MulNoNan",
         .attrs = "T: " FLOATING_COMPLEX_TYPES,
         .inputs = "x: T; y: T",
         .outputs = "z: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "x * y, and 0 where y is 0 whatever x is",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = mul_no_nan_grad,
         .kernels = WEIR_BINARY_KERNELS(mul_no_nan_init, NULL)},
        {.name = "SquaredDifference",
         .attrs = "T: {bfloat16,half,float,double,int32,int64,complex64,complex128}",
         .inputs = "x: T; y: T",
         .outputs = "z: T",
         .flags = WEIR_OP_COMMUTATIVE | WEIR_OP_POINTWISE,
         .summary = "conj(x - y) (x - y)",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = squared_difference_grad,
         .kernels = WEIR_BINARY_KERNELS(squared_difference_init, NULL)},
        {0}}};
