// math.c — Ops of ONNX that compute element by element, and products of matrices.
#include "onnx/import.h"

// ---- the same op of ours ----

static void unary(onnx_call_t* call) {
  onnx_out(call, 0, ADD(call, call->row->with, onnx_in(call, 0)));
}
static void binary(onnx_call_t* call) {
  onnx_out(call, 0, ADD(call, call->row->with, onnx_in(call, 0), onnx_in(call, 1)));
}

// Max, Min, Sum and Mean of any number of values.
static weir_edge_t chain(onnx_call_t* call) {
  weir_edge_t all = onnx_in(call, 0);
  for (int i = 1; i < call->input_count; ++i)
    all = ADD(call, call->row->with, all, onnx_in(call, i));
  return all;
}
static void variadic(onnx_call_t* call) { onnx_out(call, 0, ADD(call, "Identity", chain(call))); }
static void mean(onnx_call_t* call) {
  weir_edge_t all = chain(call);
  onnx_out(call, 0, ADD(call, "RealDiv", all, onnx_like(call, all, call->input_count)));
}

// ---- arithmetic ----

static bool is_whole(weir_edge_t x) { return weir_dtype_is_integer(onnx_dtype_of(x)); }

// Whole numbers are divided towards zero.
static void divide(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  onnx_out(call, 0, ADD(call, is_whole(x) ? "TruncateDiv" : "RealDiv", x, onnx_in(call, 1)));
}

// The result has the sign of the divisor, or with fmod that of the dividend.
static void mod(onnx_call_t* call) {
  bool is_c = onnx_attr_int(call, "fmod", 0) != 0;
  weir_edge_t x = onnx_in(call, 0), y = onnx_in(call, 1);
  weir_dtype_t dtype = onnx_dtype_of(x);
  bool is_short = dtype == WEIR_DTYPE_HALF || dtype == WEIR_DTYPE_BFLOAT16;
  weir_dtype_t wide = is_short ? WEIR_DTYPE_FLOAT : dtype;
  weir_edge_t rest = ADD(call, is_c ? "TruncateMod" : "FloorMod", onnx_cast(call, x, wide),
                         onnx_cast(call, y, wide));
  onnx_out(call, 0, onnx_cast(call, rest, dtype));
}

// The exponent may be of any type; the result is of the base's.
static void power(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), y = onnx_in(call, 1);
  weir_dtype_t dtype = onnx_dtype_of(x);
  bool is_mixed = is_whole(x) && !is_whole(y);
  weir_dtype_t common = is_mixed ? WEIR_DTYPE_DOUBLE : dtype;
  weir_edge_t result = ADD(call, "Pow", onnx_cast(call, x, common), onnx_cast(call, y, common));
  onnx_out(call, 0, onnx_cast(call, result, dtype));
}

// Shifts by the width or more, or by less than nothing, leave the sign alone.
static void bit_shift(onnx_call_t* call) {
  bool is_left = weir_view_is(onnx_attr_string(call, "direction", ""), "LEFT");
  weir_edge_t x = onnx_in(call, 0), by = onnx_in(call, 1);
  double width = 8 * (double)weir_dtype_size(onnx_dtype_of(x));
  weir_edge_t zero = onnx_like(call, by, 0), last = onnx_like(call, by, width - 1);
  weir_edge_t is_good = ADD(call, "LogicalAnd", ADD(call, "GreaterEqual", by, zero),
                            ADD(call, "LessEqual", by, last));
  weir_edge_t safe = ADD(call, "SelectV2", is_good, by, zero);
  weir_edge_t y = ADD(call, is_left ? "LeftShift" : "RightShift", x, safe);
  weir_edge_t rest = onnx_like(call, x, 0);
  bool is_unsigned = weir_view_starts_with(weir_view_of(weir_dtype_name(onnx_dtype_of(x))), "u");
  if (!is_left && !is_unsigned) rest = ADD(call, "RightShift", x, last);
  onnx_out(call, 0, ADD(call, "SelectV2", is_good, y, rest));
}

static void is_infinite(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  weir_edge_t result = ADD(call, "IsInf", x);
  weir_edge_t zero = onnx_like(call, x, 0);
  if (!onnx_attr_int(call, "detect_negative", 1))
    result = ADD(call, "LogicalAnd", result, ADD(call, "Greater", x, zero));
  if (!onnx_attr_int(call, "detect_positive", 1))
    result = ADD(call, "LogicalAnd", result, ADD(call, "Less", x, zero));
  onnx_out(call, 0, result);
}

static void sign(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  weir_dtype_t dtype = onnx_dtype_of(x);
  bool is_small = is_whole(x) && dtype != WEIR_DTYPE_INT32 && dtype != WEIR_DTYPE_INT64;
  weir_edge_t wide = is_small ? onnx_cast(call, x, WEIR_DTYPE_INT64) : x;
  onnx_out(call, 0, onnx_cast(call, ADD(call, "Sign", wide), dtype));
}

// Limits came as attributes up to opset 10, as inputs since.
static void clip(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), low = onnx_in(call, 1), high = onnx_in(call, 2);
  if (onnx_attr(call, "min")) low = onnx_like(call, x, onnx_attr_float(call, "min", 0));
  if (onnx_attr(call, "max")) high = onnx_like(call, x, onnx_attr_float(call, "max", 0));
  if (low.node) x = ADD(call, "Maximum", x, low);
  if (high.node) x = ADD(call, "Minimum", x, high);
  onnx_out(call, 0, ADD(call, "Identity", x));
}

static void cumulate(onnx_call_t* call) {
  weir_edge_t axis = onnx_in(call, 1);
  if (onnx_rank(axis) != 0) axis = onnx_reshape(call, axis, onnx_ints(call, NULL, 0));
  weir_attrs_t attrs =
      WEIR_ATTRS(weir_attr_bool("exclusive", onnx_attr_int(call, "exclusive", 0) != 0),
                 weir_attr_bool("reverse", onnx_attr_int(call, "reverse", 0) != 0));
  onnx_out(call, 0, ADD_WITH(call, call->row->with, attrs, onnx_in(call, 0), axis));
}

// ---- types ----

// Floats of 8 bits have no room for most numbers: what is too large becomes the largest, unless the
// model says otherwise.
static weir_edge_t saturated(onnx_call_t* call, weir_edge_t x, weir_dtype_t dtype) {
  double limit = 0;
  if (dtype == WEIR_DTYPE_FLOAT8_E4M3FN) limit = 448;
  if (dtype == WEIR_DTYPE_FLOAT8_E4M3FNUZ) limit = 240;
  if (dtype == WEIR_DTYPE_FLOAT8_E5M2 || dtype == WEIR_DTYPE_FLOAT8_E5M2FNUZ) limit = 57344;
  bool is_wide = weir_dtype_size(onnx_dtype_of(x)) > 1;
  if (limit == 0 || !is_wide || !onnx_attr_int(call, "saturate", 1)) return x;
  weir_edge_t wide = onnx_cast(call, x, WEIR_DTYPE_DOUBLE);
  wide = ADD(call, "Minimum", wide, onnx_number(call, WEIR_DTYPE_DOUBLE, limit));
  return ADD(call, "Maximum", wide, onnx_number(call, WEIR_DTYPE_DOUBLE, -limit));
}

static weir_edge_t convert(onnx_call_t* call, weir_edge_t x, weir_dtype_t dtype) {
  weir_dtype_t from = onnx_dtype_of(x);
  if (dtype == WEIR_DTYPE_INVALID) onnx_refuse(call, "to a type that Weir lacks");
  if (dtype == from) return ADD(call, "Identity", x);
  if (dtype == WEIR_DTYPE_STRING) {
    // Numbers in the fewest digits that are read as the same number.
    return ADD_WITH(call, "AsString",
                    WEIR_ATTRS(weir_attr_bool("shortest", weir_dtype_is_floating(from))), x);
  }
  if (from == WEIR_DTYPE_STRING) {
    weir_edge_t number = ADD_WITH(call, "StringToNumber",
                                  WEIR_ATTRS(weir_attr_type("out_type", WEIR_DTYPE_DOUBLE)), x);
    return onnx_cast(call, number, dtype);
  }
  return onnx_cast(call, saturated(call, x, dtype), dtype);
}
static void cast(onnx_call_t* call) {
  onnx_out(call, 0, convert(call, onnx_in(call, 0), onnx_dtype(onnx_attr_int(call, "to", 0))));
}
static void cast_like(onnx_call_t* call) {
  onnx_out(call, 0, convert(call, onnx_in(call, 0), onnx_dtype_of(onnx_in(call, 1))));
}
static void bit_cast(onnx_call_t* call) {
  weir_dtype_t dtype = onnx_dtype(onnx_attr_int(call, "to", 0));
  weir_edge_t x = onnx_in(call, 0);
  if (onnx_dtype_of(x) == WEIR_DTYPE_BOOL) x = onnx_cast(call, x, WEIR_DTYPE_UINT8);
  bool is_same = onnx_dtype_of(x) == dtype || dtype == WEIR_DTYPE_BOOL;
  if (is_same) onnx_out(call, 0, ADD(call, "Identity", onnx_cast(call, x, dtype)));
  else onnx_out(call, 0, ADD_WITH(call, "Bitcast", WEIR_ATTRS(weir_attr_type("type", dtype)), x));
}

// ---- products ----

// As numpy.matmul: a vector is a row on the left, a column on the right.
static weir_edge_t mat_mul_of(onnx_call_t* call, weir_edge_t a, weir_edge_t b) {
  bool is_row = onnx_need_rank(call, a) == 1, is_column = onnx_need_rank(call, b) == 1;
  if (is_row) a = onnx_expand(call, a, 0);
  if (is_column) b = onnx_expand(call, b, 1);
  weir_edge_t product = ADD(call, "BatchMatMulV2", a, b);
  if (is_column) product = onnx_squeeze(call, product, -1);
  if (is_row) product = onnx_squeeze(call, product, is_column ? -1 : -2);
  return product;
}
static void mat_mul(onnx_call_t* call) {
  weir_edge_t a = onnx_in(call, 0), b = onnx_in(call, 1);
  weir_dtype_t dtype = onnx_dtype_of(a);
  bool is_unsigned = dtype == WEIR_DTYPE_UINT32 || dtype == WEIR_DTYPE_UINT64;
  weir_dtype_t common = is_unsigned ? WEIR_DTYPE_INT64 : dtype;
  weir_edge_t y = mat_mul_of(call, onnx_cast(call, a, common), onnx_cast(call, b, common));
  onnx_out(call, 0, onnx_cast(call, y, dtype));
}

static weir_edge_t scaled(onnx_call_t* call, weir_edge_t x, float factor) {
  return factor == 1.0f ? x : ADD(call, "Mul", x, onnx_like(call, x, (double)factor));
}
static void gemm(onnx_call_t* call) {
  weir_attrs_t attrs =
      WEIR_ATTRS(weir_attr_bool("transpose_a", onnx_attr_int(call, "transA", 0) != 0),
                 weir_attr_bool("transpose_b", onnx_attr_int(call, "transB", 0) != 0));
  weir_edge_t y = ADD_WITH(call, "MatMul", attrs, onnx_in(call, 0), onnx_in(call, 1));
  y = scaled(call, y, onnx_attr_float(call, "alpha", 1));
  if (onnx_has_in(call, 2))
    y = ADD(call, "AddV2", y, scaled(call, onnx_in(call, 2), onnx_attr_float(call, "beta", 1)));
  onnx_out(call, 0, y);
}

// The equation without spaces and with its result, which is what appears once, by the alphabet.
static const char* full_equation(onnx_call_t* call, weir_view_t text) {
  weir_strbuf_t out = {0};
  int seen[256] = {0};
  bool has_result = false, has_dots = false;
  for (size_t i = 0; i < text.size; ++i) {
    char c = text.data[i];
    if (c == ' ') continue;
    has_result |= c == '>';
    has_dots |= c == '.';
    seen[(uint8_t)c] += 1;
    weir_strbuf_putc(&out, c);
  }
  if (!has_result) {
    weir_strbuf_puts(&out, has_dots ? "->..." : "->");
    for (int c = 'A'; c <= 'z'; ++c) {
      bool is_letter = c <= 'Z' || c >= 'a';
      if (is_letter && seen[c] == 1) weir_strbuf_putc(&out, (char)c);
    }
  }
  char* kept = weir_scope_alloc(call->scope, out.size + 1, 1);
  if (kept && out.size) memcpy(kept, out.data, out.size);
  weir_strbuf_free(&out);
  return kept ? kept : "";
}
static void einsum(onnx_call_t* call) {
  const char* equation = full_equation(call, onnx_attr_string(call, "equation", ""));
  onnx_out(call, 0,
           onnx_add(call, "Einsum", (weir_edges_t){call->inputs, call->input_count},
                    WEIR_ATTRS(weir_attr_string("equation", equation),
                               weir_attr_int("N", call->input_count))));
}

const onnx_row_t onnx_math_rows[] = {ONNX_OP_WITH("Abs", 6, unary, "Abs"),
                                     ONNX_OP_WITH("Acos", 7, unary, "Acos"),
                                     ONNX_OP_WITH("Acosh", 9, unary, "Acosh"),
                                     ONNX_OP_WITH("Add", 7, binary, "AddV2"),
                                     ONNX_OP_WITH("And", 7, binary, "LogicalAnd"),
                                     ONNX_OP_WITH("Asin", 7, unary, "Asin"),
                                     ONNX_OP_WITH("Asinh", 9, unary, "Asinh"),
                                     ONNX_OP_WITH("Atan", 7, unary, "Atan"),
                                     ONNX_OP_WITH("Atanh", 9, unary, "Atanh"),
                                     ONNX_OP("BitCast", 26, bit_cast),
                                     ONNX_OP("BitShift", 11, bit_shift),
                                     ONNX_OP_WITH("BitwiseAnd", 18, binary, "BitwiseAnd"),
                                     ONNX_OP_WITH("BitwiseNot", 18, unary, "Invert"),
                                     ONNX_OP_WITH("BitwiseOr", 18, binary, "BitwiseOr"),
                                     ONNX_OP_WITH("BitwiseXor", 18, binary, "BitwiseXor"),
                                     ONNX_OP("Cast", 6, cast),
                                     ONNX_OP("CastLike", 15, cast_like),
                                     ONNX_OP_WITH("Ceil", 6, unary, "Ceil"),
                                     ONNX_OP("Clip", 6, clip),
                                     ONNX_OP_WITH("Cos", 7, unary, "Cos"),
                                     ONNX_OP_WITH("Cosh", 9, unary, "Cosh"),
                                     ONNX_OP_WITH("CumProd", 26, cumulate, "Cumprod"),
                                     ONNX_OP_WITH("CumSum", 11, cumulate, "Cumsum"),
                                     ONNX_OP_WITH("Det", 11, unary, "MatrixDeterminant"),
                                     ONNX_OP("Div", 7, divide),
                                     ONNX_OP("Einsum", 12, einsum),
                                     ONNX_OP_WITH("Equal", 7, binary, "Equal"),
                                     ONNX_OP_WITH("Erf", 9, unary, "Erf"),
                                     ONNX_OP_WITH("Exp", 6, unary, "Exp"),
                                     ONNX_OP_WITH("Floor", 6, unary, "Floor"),
                                     ONNX_OP("Gemm", 7, gemm),
                                     ONNX_OP_WITH("Greater", 7, binary, "Greater"),
                                     ONNX_OP_WITH("GreaterOrEqual", 12, binary, "GreaterEqual"),
                                     ONNX_OP("IsInf", 10, is_infinite),
                                     ONNX_OP_WITH("IsNaN", 9, unary, "IsNan"),
                                     ONNX_OP_WITH("Less", 7, binary, "Less"),
                                     ONNX_OP_WITH("LessOrEqual", 12, binary, "LessEqual"),
                                     ONNX_OP_WITH("Log", 6, unary, "Log"),
                                     ONNX_OP("MatMul", 1, mat_mul),
                                     ONNX_OP_WITH("Max", 8, variadic, "Maximum"),
                                     ONNX_OP_WITH("Mean", 8, mean, "AddV2"),
                                     ONNX_OP_WITH("Min", 8, variadic, "Minimum"),
                                     ONNX_OP("Mod", 10, mod),
                                     ONNX_OP_WITH("Mul", 7, binary, "Mul"),
                                     ONNX_OP_WITH("Neg", 6, unary, "Neg"),
                                     ONNX_OP_WITH("Not", 1, unary, "LogicalNot"),
                                     ONNX_OP_WITH("Or", 7, binary, "LogicalOr"),
                                     ONNX_OP("Pow", 7, power),
                                     ONNX_OP_WITH("Reciprocal", 6, unary, "Reciprocal"),
                                     ONNX_OP_WITH("Round", 11, unary, "Round"),
                                     ONNX_OP_WITH("Sigmoid", 6, unary, "Sigmoid"),
                                     ONNX_OP("Sign", 9, sign),
                                     ONNX_OP_WITH("Sin", 7, unary, "Sin"),
                                     ONNX_OP_WITH("Sinh", 9, unary, "Sinh"),
                                     ONNX_OP_WITH("Sqrt", 6, unary, "Sqrt"),
                                     ONNX_OP_WITH("Sub", 7, binary, "Sub"),
                                     ONNX_OP_WITH("Sum", 8, variadic, "AddV2"),
                                     ONNX_OP_WITH("Tan", 7, unary, "Tan"),
                                     ONNX_OP_WITH("Tanh", 6, unary, "Tanh"),
                                     ONNX_OP_WITH("Xor", 7, binary, "NotEqual"),
                                     {.op = NULL}};
