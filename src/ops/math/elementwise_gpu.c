// elementwise_gpu.c — Elementwise ops on GPUs: which, and for which types. Their functions are the
// CPU's formulas (kernel/elementwise/).
//
// int32 is the type of shapes, sizes and counters, which the host needs to know: as in TensorFlow,
// a GPU's kernels of it compute on the host, in host memory.
#include "kernel/elementwise/cuda_elementwise.h"
#include "kernel/elementwise/cwise.h"

#define FLOATING "T: bfloat16, half, float, double"
#define NUMBERS FLOATING ", int8, int16, int64, uint8, uint16, uint32, uint64"
#define INTEGERS "T: int8, int16, int64, uint8, uint16, uint32, uint64"
#define WIDE "T: float, double"

#define GPU_ROW(types_, compute_, init_)                                  \
  {                                                                       \
    WEIR_DEVICE_GPU, .types = types_, .compute = compute_, .init = init_, \
                     .state_size = sizeof(weir_cuda_elementwise_t)        \
  }
#define HOST_ROW(types_, compute_, init_, state_, in, out)                                \
  {                                                                                       \
    WEIR_DEVICE_GPU, .types = types_, .compute = compute_, .init = init_,                 \
                     .state_size = sizeof(state_), .host_inputs = in, .host_outputs = out \
  }

// Functions of an operation's own: UNARY_FNS(sqrt, SQRT), BINARY_FNS(add, ADD).
#define UNARY_FNS(fn, NAME)                                                     \
  static weir_status_t* fn##_gpu(const weir_kernel_init_t* init, void* state) { \
    return weir_cuda_unary_init(init, state, WEIR_UNARY_##NAME);                \
  }
#define BINARY_FNS(fn, NAME)                                                    \
  static weir_status_t* fn##_gpu(const weir_kernel_init_t* init, void* state) { \
    return weir_cuda_binary_init(init, state, WEIR_BINARY_##NAME);              \
  }
#define BINARY_HOST_FNS(fn, NAME) BINARY_FNS(fn, NAME) WEIR_BINARY_INIT(fn##_host, NAME)

#define UNARY(Op, fn, types_)                                   \
  {                                                             \
    .name = #Op, .kernels = (const weir_kernel_def_t[]) {       \
      GPU_ROW(types_, weir_cuda_unary_compute, fn##_gpu), { 0 } \
    }                                                           \
  }
#define BINARY(Op, fn, types_)                                   \
  {                                                              \
    .name = #Op, .kernels = (const weir_kernel_def_t[]) {        \
      GPU_ROW(types_, weir_cuda_binary_compute, fn##_gpu), { 0 } \
    }                                                            \
  }
#define BINARY_FLAT(Op, fn, types_)                                   \
  {                                                                   \
    .name = #Op, .kernels = (const weir_kernel_def_t[]) {             \
      GPU_ROW(types_, weir_cuda_binary_flat_compute, fn##_gpu), { 0 } \
    }                                                                 \
  }
// Of those that take int32, too.
#define BINARY_ROWS(Op, fn, types_, host_types)                                                   \
  {                                                                                               \
    .name = #Op, .kernels = (const weir_kernel_def_t[]) {                                         \
      GPU_ROW(types_, weir_cuda_binary_compute, fn##_gpu),                                        \
          HOST_ROW(host_types, weir_binary_compute, fn##_host, weir_binary_state_t, "x, y", "z"), \
      {                                                                                           \
        0                                                                                         \
      }                                                                                           \
    }                                                                                             \
  }

#define BINARY_HOST(Op, fn, types_) BINARY_ROWS(Op, fn, types_, "T: int32")
// Integers have no quotient by 0, nor a power to a negative one, which a GPU cannot say.
#define BINARY_CHECKED(Op, fn) BINARY_ROWS(Op, fn, FLOATING, INTEGERS ", int32")

// Of complex numbers and their parts, in attributes |whole| and |part|.
#define COMPLEX_ROWS(Op, fn, compute_, whole, part)                              \
  {                                                                              \
    .name = #Op, .kernels = (const weir_kernel_def_t[]) {                        \
      GPU_ROW(whole ": complex64; " part ": float", compute_, fn##_gpu),         \
          GPU_ROW(whole ": complex128; " part ": double", compute_, fn##_gpu), { \
        0                                                                        \
      }                                                                          \
    }                                                                            \
  }
#define PART(Op, fn) COMPLEX_ROWS(Op, fn, weir_cuda_unary_compute, "T", "Tout")

#define BINARY_EQUAL(Op, fn)                                   \
  {                                                            \
    .name = #Op, .kernels = (const weir_kernel_def_t[]) {      \
      GPU_ROW(NUMBERS ", bool", fn##_compute, fn##_gpu), { 0 } \
    }                                                          \
  }

// Shapes that do not broadcast may mean that the tensors differ.
static weir_status_t* compute_equality(weir_kernel_ctx_t* ctx, bool if_mismatched) {
  weir_broadcast_t plan;
  weir_tensor_t* z = NULL;
  weir_shape_view_t x = weir_shape_view_of(weir_kernel_input(ctx, 0));
  weir_shape_view_t y = weir_shape_view_of(weir_kernel_input(ctx, 1));
  if (weir_attrs_bool(weir_kernel_attrs(ctx), "incompatible_shape_error") ||
      weir_broadcast_plan(x, y, &plan))
    return weir_cuda_binary_compute(ctx);
  WEIR_TRY(weir_kernel_output(ctx, 0, 0, NULL, &z));
  return weir_cuda_set(ctx->device, z->data, if_mismatched, 1);
}
static weir_status_t* equal_compute(weir_kernel_ctx_t* ctx) { return compute_equality(ctx, false); }
static weir_status_t* not_equal_compute(weir_kernel_ctx_t* ctx) {
  return compute_equality(ctx, true);
}

UNARY_FNS(neg, NEG)
UNARY_FNS(abs, ABS)
UNARY_FNS(sign, SIGN)
UNARY_FNS(square, SQUARE)
UNARY_FNS(reciprocal, RECIPROCAL)
UNARY_FNS(sqrt, SQRT)
UNARY_FNS(rsqrt, RSQRT)
UNARY_FNS(exp, EXP)
UNARY_FNS(expm1, EXPM1)
UNARY_FNS(log, LOG)
UNARY_FNS(log1p, LOG1P)
UNARY_FNS(tanh, TANH)
UNARY_FNS(sigmoid, SIGMOID)
UNARY_FNS(sin, SIN)
UNARY_FNS(cos, COS)
UNARY_FNS(tan, TAN)
UNARY_FNS(asin, ASIN)
UNARY_FNS(acos, ACOS)
UNARY_FNS(atan, ATAN)
UNARY_FNS(sinh, SINH)
UNARY_FNS(cosh, COSH)
UNARY_FNS(asinh, ASINH)
UNARY_FNS(acosh, ACOSH)
UNARY_FNS(atanh, ATANH)
UNARY_FNS(erf, ERF)
UNARY_FNS(erfc, ERFC)
UNARY_FNS(erfinv, ERFINV)
UNARY_FNS(ndtri, NDTRI)
UNARY_FNS(lgamma, LGAMMA)
UNARY_FNS(digamma, DIGAMMA)
UNARY_FNS(floor, FLOOR)
UNARY_FNS(ceil, CEIL)
UNARY_FNS(rint, RINT)
UNARY_FNS(round, ROUND)
UNARY_FNS(is_nan, IS_NAN)
UNARY_FNS(is_inf, IS_INF)
UNARY_FNS(is_finite, IS_FINITE)
UNARY_FNS(not, NOT)
UNARY_FNS(invert, INVERT)
UNARY_FNS(conj, CONJ)
UNARY_FNS(real, REAL)
UNARY_FNS(imag, IMAG)
UNARY_FNS(complex_abs, COMPLEX_ABS)
UNARY_FNS(angle, ANGLE)

BINARY_HOST_FNS(add, ADD)
BINARY_HOST_FNS(sub, SUB)
BINARY_HOST_FNS(mul, MUL)
BINARY_HOST_FNS(div, DIV)
BINARY_HOST_FNS(floor_div, FLOOR_DIV)
BINARY_HOST_FNS(floor_mod, FLOOR_MOD)
BINARY_HOST_FNS(truncate_div, TRUNCATE_DIV)
BINARY_HOST_FNS(truncate_mod, TRUNCATE_MOD)
BINARY_HOST_FNS(pow, POW)
BINARY_HOST_FNS(squared_difference, SQUARED_DIFFERENCE)
BINARY_HOST_FNS(maximum, MAXIMUM)
BINARY_HOST_FNS(minimum, MINIMUM)
BINARY_FNS(div_no_nan, DIV_NO_NAN)
BINARY_FNS(mul_no_nan, MUL_NO_NAN)
BINARY_FNS(xdivy, XDIVY)
BINARY_FNS(xlogy, XLOGY)
BINARY_FNS(xlog1py, XLOG1PY)
BINARY_FNS(atan2, ATAN2)
BINARY_FNS(next_after, NEXT_AFTER)
BINARY_FNS(zeta, ZETA)
BINARY_FNS(polygamma, POLYGAMMA)
BINARY_FNS(tanh_grad, TANH_GRAD)
BINARY_FNS(sigmoid_grad, SIGMOID_GRAD)
BINARY_FNS(sqrt_grad, SQRT_GRAD)
BINARY_FNS(rsqrt_grad, RSQRT_GRAD)
BINARY_FNS(reciprocal_grad, RECIPROCAL_GRAD)
BINARY_HOST_FNS(less, LESS)
BINARY_HOST_FNS(less_equal, LESS_EQUAL)
BINARY_HOST_FNS(greater, GREATER)
BINARY_HOST_FNS(greater_equal, GREATER_EQUAL)
BINARY_FNS(equal, EQUAL)
BINARY_FNS(not_equal, NOT_EQUAL)
BINARY_FNS(bitwise_and, BITWISE_AND)
BINARY_FNS(bitwise_or, BITWISE_OR)
BINARY_FNS(bitwise_xor, BITWISE_XOR)
BINARY_FNS(left_shift, LEFT_SHIFT)
BINARY_FNS(right_shift, RIGHT_SHIFT)
BINARY_FNS(make_complex, COMPLEX)

const weir_op_module_t weir_ops_math_elementwise_gpu = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        UNARY(Neg, neg, NUMBERS),
        UNARY(Abs, abs, NUMBERS),
        UNARY(Sign, sign, NUMBERS),
        UNARY(Square, square, NUMBERS),
        UNARY(Reciprocal, reciprocal, FLOATING),
        UNARY(Inv, reciprocal, FLOATING),
        UNARY(Sqrt, sqrt, FLOATING),
        UNARY(Rsqrt, rsqrt, FLOATING),
        UNARY(Exp, exp, FLOATING),
        UNARY(Expm1, expm1, FLOATING),
        UNARY(Log, log, FLOATING),
        UNARY(Log1p, log1p, FLOATING),
        UNARY(Tanh, tanh, FLOATING),
        UNARY(Sigmoid, sigmoid, FLOATING),
        UNARY(Sin, sin, FLOATING),
        UNARY(Cos, cos, FLOATING),
        UNARY(Tan, tan, FLOATING),
        UNARY(Asin, asin, FLOATING),
        UNARY(Acos, acos, FLOATING),
        UNARY(Atan, atan, FLOATING),
        UNARY(Sinh, sinh, FLOATING),
        UNARY(Cosh, cosh, FLOATING),
        UNARY(Asinh, asinh, FLOATING),
        UNARY(Acosh, acosh, FLOATING),
        UNARY(Atanh, atanh, FLOATING),
        UNARY(Erf, erf, FLOATING),
        UNARY(Erfc, erfc, FLOATING),
        UNARY(Erfinv, erfinv, WIDE),
        UNARY(Ndtri, ndtri, WIDE),
        UNARY(Lgamma, lgamma, FLOATING),
        UNARY(Digamma, digamma, "T: half, float, double"),
        UNARY(Floor, floor, FLOATING),
        UNARY(Ceil, ceil, FLOATING),
        UNARY(Rint, rint, WIDE),
        UNARY(Round, round, FLOATING ", int64"),
        UNARY(IsNan, is_nan, FLOATING),
        UNARY(IsInf, is_inf, FLOATING),
        UNARY(IsFinite, is_finite, FLOATING),
        UNARY(LogicalNot, not, NULL),
        UNARY(Invert, invert, INTEGERS),
        BINARY_HOST(AddV2, add, NUMBERS),
        BINARY_HOST(Add, add, NUMBERS),
        BINARY_HOST(Sub, sub, NUMBERS),
        BINARY_HOST(Mul, mul, NUMBERS),
        BINARY_CHECKED(Div, div),
        BINARY(RealDiv, div, FLOATING),
        BINARY_CHECKED(FloorDiv, floor_div),
        BINARY_CHECKED(FloorMod, floor_mod),
        BINARY_CHECKED(TruncateDiv, truncate_div),
        BINARY_ROWS(TruncateMod, truncate_mod, WIDE, "T: int64, int32"),
        BINARY_ROWS(Mod, truncate_mod, WIDE, "T: int64, int32"),
        BINARY_CHECKED(Pow, pow),
        BINARY_HOST(SquaredDifference, squared_difference, FLOATING ", int64"),
        BINARY_HOST(Maximum, maximum, NUMBERS),
        BINARY_HOST(Minimum, minimum, NUMBERS),
        BINARY(DivNoNan, div_no_nan, FLOATING),
        BINARY(MulNoNan, mul_no_nan, FLOATING),
        BINARY(Xdivy, xdivy, FLOATING),
        BINARY(Xlogy, xlogy, FLOATING),
        BINARY(Xlog1py, xlog1py, FLOATING),
        BINARY(Atan2, atan2, FLOATING),
        BINARY(NextAfter, next_after, WIDE),
        BINARY(Zeta, zeta, WIDE),
        BINARY(Polygamma, polygamma, WIDE),
        BINARY_FLAT(TanhGrad, tanh_grad, FLOATING),
        BINARY_FLAT(SigmoidGrad, sigmoid_grad, FLOATING),
        BINARY_FLAT(SqrtGrad, sqrt_grad, FLOATING),
        BINARY_FLAT(RsqrtGrad, rsqrt_grad, FLOATING),
        BINARY_FLAT(ReciprocalGrad, reciprocal_grad, FLOATING),
        BINARY_FLAT(InvGrad, reciprocal_grad, FLOATING),
        BINARY_HOST(Less, less, NUMBERS),
        BINARY_HOST(LessEqual, less_equal, NUMBERS),
        BINARY_HOST(Greater, greater, NUMBERS),
        BINARY_HOST(GreaterEqual, greater_equal, NUMBERS),
        BINARY_EQUAL(Equal, equal),
        BINARY_EQUAL(NotEqual, not_equal),
        BINARY(LogicalAnd, bitwise_and, NULL),
        BINARY(LogicalOr, bitwise_or, NULL),
        BINARY(BitwiseAnd, bitwise_and, INTEGERS),
        BINARY(BitwiseOr, bitwise_or, INTEGERS),
        BINARY(BitwiseXor, bitwise_xor, INTEGERS),
        BINARY(LeftShift, left_shift, INTEGERS),
        BINARY(RightShift, right_shift, INTEGERS),
        UNARY(Conj, conj, "T: complex64, complex128"),
        PART(Real, real),
        PART(Imag, imag),
        PART(ComplexAbs, complex_abs),
        PART(Angle, angle),
        COMPLEX_ROWS(Complex, make_complex, weir_cuda_binary_compute, "Tout", "T"),
        {0}}};
