// quantize.c — Quantised numbers of ONNX: whole numbers that stand for floats by a scale and a zero
// point, for all of a value, for each place along an axis, or for each block of places.
#include "onnx/import.h"

static weir_edge_t wide(onnx_call_t* call, weir_edge_t x) {
  return onnx_cast(call, x, WEIR_DTYPE_FLOAT);
}

// A scale or zero point as it stands beside |x|.
static weir_edge_t beside(onnx_call_t* call, weir_edge_t x, weir_edge_t factor) {
  int64_t axis = onnx_attr_int(call, "axis", 1), block = onnx_attr_int(call, "block_size", 0);
  int64_t shape[WEIR_MAX_RANK];
  int own = onnx_rank(factor);  // where it is not known, shapes must agree
  if (own == 0 || (own == 1 && onnx_dim(factor, 0) == 1))
    return onnx_reshape(call, factor, onnx_ints(call, NULL, 0));
  int rank = onnx_need_rank(call, x);
  if (axis < 0) axis += rank;
  if (own == 1 && rank > 1) {
    for (int i = 0; i < rank; ++i) shape[i] = i == axis ? -1 : 1;
    return onnx_reshape(call, factor, onnx_ints(call, shape, rank));
  }
  if (block <= 0) return factor;
  // One for each block: each is repeated, the last maybe less often.
  weir_edge_t length = onnx_part(call, onnx_shape(call, x), axis, axis + 1);
  weir_edge_t all =
      ADD(call, "Range", onnx_int(call, 0), onnx_squeeze(call, length, 0), onnx_int(call, 1));
  return ADD(call, "GatherV2", factor, ADD(call, "FloorDiv", all, onnx_int(call, block)),
             onnx_int(call, axis));
}

typedef struct limits_t {
  weir_dtype_t dtype;
  double low, high;
} limits_t;
static const limits_t kLimits[] = {{WEIR_DTYPE_INT8, -128, 127},
                                   {WEIR_DTYPE_UINT8, 0, 255},
                                   {WEIR_DTYPE_INT16, -32768, 32767},
                                   {WEIR_DTYPE_UINT16, 0, 65535},
                                   {WEIR_DTYPE_INT4, -8, 7},
                                   {WEIR_DTYPE_UINT4, 0, 15},
                                   {WEIR_DTYPE_FLOAT8_E4M3FN, -448, 448},
                                   {WEIR_DTYPE_FLOAT8_E5M2, -57344, 57344},
                                   {WEIR_DTYPE_FLOAT8_E4M3FNUZ, -240, 240},
                                   {WEIR_DTYPE_FLOAT8_E5M2FNUZ, -57344, 57344}};

// Rounded to even, moved by the zero point, within the limits of |dtype|.
static weir_edge_t saturated(onnx_call_t* call, weir_edge_t y, weir_edge_t zero,
                             weir_dtype_t dtype) {
  for (size_t i = 0; i < WEIR_COUNT_OF(kLimits); ++i) {
    const limits_t* limits = &kLimits[i];
    if (limits->dtype != dtype) continue;
    if (!weir_dtype_is_floating(dtype)) y = ADD(call, "Round", y);
    if (zero.node) y = ADD(call, "AddV2", y, zero);
    y = ADD(call, "Maximum", y, onnx_like(call, y, limits->low));
    y = ADD(call, "Minimum", y, onnx_like(call, y, limits->high));
    return onnx_cast(call, y, dtype);
  }
  onnx_refuse(call, "to %s", weir_dtype_name(dtype));
  return y;
}

static void quantize_linear(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), zero = onnx_in(call, 2);
  weir_dtype_t dtype = zero.node ? onnx_dtype_of(zero) : WEIR_DTYPE_UINT8;
  const onnx_attr_t* given = onnx_attr(call, "output_dtype");
  if (given && given->i != 0 && !zero.node) dtype = onnx_dtype(given->i);
  weir_edge_t y =
      ADD(call, "RealDiv", wide(call, x), beside(call, x, wide(call, onnx_in(call, 1))));
  if (zero.node) zero = beside(call, x, wide(call, zero));
  onnx_out(call, 0, saturated(call, y, zero, dtype));
}

static void dequantize_linear(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), scale = onnx_in(call, 1), y = wide(call, x);
  weir_dtype_t dtype = onnx_dtype_of(scale);
  if (onnx_has_in(call, 2)) y = ADD(call, "Sub", y, beside(call, x, wide(call, onnx_in(call, 2))));
  y = ADD(call, "Mul", y, beside(call, x, wide(call, scale)));
  onnx_out(call, 0,
           onnx_cast(call, y,
                     onnx_dtype(onnx_attr_int(call, "output_dtype", 0))
                         ? onnx_dtype(onnx_attr_int(call, "output_dtype", 0))
                         : dtype));
}

// Scale and zero point are such that 0 and all elements are within the limits.
static void dynamic_quantize_linear(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), zero = onnx_like(call, x, 0);
  weir_edge_t flat = onnx_reshape(call, x, INTS(call, -1)), first = INTS(call, 0);
  weir_edge_t low = ADD(call, "Minimum", onnx_reduce(call, "Min", flat, first, false), zero);
  weir_edge_t high = ADD(call, "Maximum", onnx_reduce(call, "Max", flat, first, false), zero);
  weir_edge_t scale = ADD(call, "RealDiv", ADD(call, "Sub", high, low), onnx_like(call, x, 255));
  weir_edge_t point = ADD(call, "DivNoNan", ADD(call, "Neg", low), scale);
  weir_edge_t byte = saturated(call, point, WEIR_NO_EDGE, WEIR_DTYPE_UINT8);
  onnx_out(call, 0,
           saturated(call, ADD(call, "DivNoNan", x, scale), wide(call, byte), WEIR_DTYPE_UINT8));
  onnx_out(call, 1, scale);
  onnx_out(call, 2, byte);
}

// ---- products ----

// Zero points and scales of rows of the left, or columns of the right factor.
static weir_edge_t aligned(onnx_call_t* call, weir_edge_t factor, bool is_left) {
  return is_left && onnx_rank(factor) == 1 ? onnx_expand(call, factor, 1) : factor;
}
static weir_edge_t shifted(onnx_call_t* call, weir_edge_t x, weir_edge_t zero, bool is_left,
                           weir_dtype_t dtype) {
  x = onnx_cast(call, x, dtype);
  if (!zero.node) return x;
  return ADD(call, "Sub", x, onnx_cast(call, aligned(call, zero, is_left), dtype));
}
static void mat_mul_integer(onnx_call_t* call) {
  const weir_dtype_t type = WEIR_DTYPE_INT32;
  weir_edge_t a = shifted(call, onnx_in(call, 0), onnx_in(call, 2), true, type);
  weir_edge_t b = shifted(call, onnx_in(call, 1), onnx_in(call, 3), false, type);
  onnx_out(call, 0, ADD(call, "BatchMatMulV2", a, b));
}
static void q_linear_mat_mul(onnx_call_t* call) {
  const weir_dtype_t type = WEIR_DTYPE_DOUBLE;
  weir_edge_t a = shifted(call, onnx_in(call, 0), onnx_in(call, 2), true, type);
  weir_edge_t b = shifted(call, onnx_in(call, 3), onnx_in(call, 5), false, type);
  weir_edge_t zero = onnx_in(call, 7);
  weir_edge_t scale = ADD(call, "Mul", onnx_cast(call, aligned(call, onnx_in(call, 1), true), type),
                          onnx_cast(call, onnx_in(call, 4), type));
  scale = ADD(call, "RealDiv", scale, onnx_cast(call, aligned(call, onnx_in(call, 6), true), type));
  weir_edge_t y = ADD(call, "Mul", ADD(call, "BatchMatMulV2", a, b), scale);
  weir_edge_t point = onnx_cast(call, aligned(call, zero, true), type);
  onnx_out(call, 0, saturated(call, y, point, onnx_dtype_of(zero)));
}

const onnx_row_t onnx_quantize_rows[] = {
    ONNX_OP("DequantizeLinear", 10, dequantize_linear),
    ONNX_OP("DynamicQuantizeLinear", 11, dynamic_quantize_linear),
    ONNX_OP("MatMulInteger", 10, mat_mul_integer),
    ONNX_OP("QLinearMatMul", 10, q_linear_mat_mul),
    ONNX_OP("QuantizeLinear", 10, quantize_linear),
    {.op = NULL}};
