// round.c — Round, Rint, Floor, Ceil, and the tests IsNan, IsInf, IsFinite.
#include "ops/math/common.h"

WEIR_UNARY_INIT(round_init, ROUND)
WEIR_UNARY_INIT(rint_init, RINT)
WEIR_UNARY_INIT(floor_init, FLOOR)
WEIR_UNARY_INIT(ceil_init, CEIL)
WEIR_UNARY_INIT(is_nan_init, IS_NAN)
WEIR_UNARY_INIT(is_inf_init, IS_INF)
WEIR_UNARY_INIT(is_finite_init, IS_FINITE)

#define TEST_OP(op_name, text, init_fn)                                                     \
  {                                                                                         \
    .name = op_name, .attrs = "T: " FLOATING_TYPES, .inputs = "x: T", .outputs = "y: bool", \
    .flags = WEIR_OP_POINTWISE | WEIR_OP_NO_GRADIENT, .summary = text,                      \
    .infer_shape = weir_shape_fn_unchanged, .kernels = WEIR_UNARY_KERNELS(init_fn, NULL)    \
  }

const weir_op_module_t weir_ops_math_round = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        UNARY_OP("Round",
                 "{bfloat16,half,float,double,int8,int16,int32,int64,complex64,complex128}",
                 "The nearest integer, ties to even", weir_grad_fn_none, round_init,
                 "T: bfloat16, half, float, double, int32, int64"),
        UNARY_OP("Rint", FLOATING_TYPES, "The nearest integer, ties to even", weir_grad_fn_none,
                 rint_init, "T: float, double"),
        UNARY_OP("Floor", FLOATING_TYPES, "The largest integer not above x", weir_grad_fn_none,
                 floor_init, NULL),
        UNARY_OP("Ceil", FLOATING_TYPES, "The smallest integer not below x", weir_grad_fn_none,
                 ceil_init, NULL),
        TEST_OP("IsNan", "Whether x is not a number", is_nan_init),
        TEST_OP("IsInf", "Whether x is infinite", is_inf_init),
        TEST_OP("IsFinite", "Whether x is neither infinite nor NaN", is_finite_init),
        {0}}};
