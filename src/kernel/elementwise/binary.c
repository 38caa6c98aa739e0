// binary.c — Binary loops of every type, and the table of them.
#include <math.h>

#include "kernel/elementwise/elementwise.h"
#include "kernel/elementwise/special.h"
#include "kernel/elementwise/types.h"
#include "kernel/elementwise/vmath.h"
#include "kernel/elementwise/vmath_trig.h"

// The remainder takes the divisor's sign.
WEIR_INLINE float floor_mod_of_float(float a, float b) {
  float r = fmodf(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
WEIR_INLINE double floor_mod_of_double(double a, double b) {
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// Modulo 2^64, of which every narrower type takes the low bits.
static uint64_t power_of(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

// cpow gives NaN for a base of 0.
static weir_complex128_t complex_power_complex128(weir_complex128_t a, weir_complex128_t b) {
  if (a == 0) return b == 0 ? 1 : 0;
  return cpow(a, b);
}
static weir_complex64_t complex_power_complex64(weir_complex64_t a, weir_complex64_t b) {
  return (weir_complex64_t)complex_power_complex128((weir_complex128_t)a, (weir_complex128_t)b);
}

#define T float
#define SUFFIX float
#define REAL float
#define WIDEN(v) (v)
#define STORE(v) ((float)(v))
#define M(name) name##f
#define LOG(a) weir_vm_log(a)
#define LOG1P(a) weir_vm_log1p(a)
#define ATAN2(a, b) weir_vm_atan2(a, b)
#include "kernel/elementwise/binary_floating.inc"

#define T double
#define SUFFIX double
#define REAL double
#define WIDEN(v) (v)
#define STORE(v) ((double)(v))
#define M(name) name
#define LOG(a) log(a)
#define LOG1P(a) log1p(a)
#define ATAN2(a, b) atan2(a, b)
#include "kernel/elementwise/binary_floating.inc"

// The neighbours of a 16-bit float are not those of the float it is computed in; no op asks for
// them.
#define T weir_half_t
#define SUFFIX half
#define REAL float
#define WIDEN(v) weir_half_to_float(v)
#define STORE(v) weir_half_from_float((float)(v))
#define M(name) name##f
#define LOG(a) weir_vm_log(a)
#define LOG1P(a) weir_vm_log1p(a)
#define ATAN2(a, b) weir_vm_atan2(a, b)
#include "kernel/elementwise/binary_floating.inc"

#define T weir_bfloat16_t
#define SUFFIX bfloat16
#define REAL float
#define WIDEN(v) weir_bfloat16_to_float(v)
#define STORE(v) weir_bfloat16_from_float((float)(v))
#define M(name) name##f
#define LOG(a) weir_vm_log(a)
#define LOG1P(a) weir_vm_log1p(a)
#define ATAN2(a, b) weir_vm_atan2(a, b)
#include "kernel/elementwise/binary_floating.inc"

#define T int8_t
#define SUFFIX int8
#define WRAP uint32_t
#define IS_SIGNED
#include "kernel/elementwise/binary_integer.inc"
#define T int16_t
#define SUFFIX int16
#define WRAP uint32_t
#define IS_SIGNED
#include "kernel/elementwise/binary_integer.inc"
#define T int32_t
#define SUFFIX int32
#define WRAP uint32_t
#define IS_SIGNED
#include "kernel/elementwise/binary_integer.inc"
#define T int64_t
#define SUFFIX int64
#define WRAP uint64_t
#define IS_SIGNED
#include "kernel/elementwise/binary_integer.inc"
#define T uint8_t
#define SUFFIX uint8
#define WRAP uint32_t
#include "kernel/elementwise/binary_integer.inc"
#define T uint16_t
#define SUFFIX uint16
#define WRAP uint32_t
#include "kernel/elementwise/binary_integer.inc"
#define T uint32_t
#define SUFFIX uint32
#define WRAP uint32_t
#include "kernel/elementwise/binary_integer.inc"
#define T uint64_t
#define SUFFIX uint64
#define WRAP uint64_t
#include "kernel/elementwise/binary_integer.inc"

#define T weir_complex64_t
#define SUFFIX complex64
#define R float
#define M(name) name##f
#include "kernel/elementwise/binary_complex.inc"
#define T weir_complex128_t
#define SUFFIX complex128
#define R double
#define M(name) name
#include "kernel/elementwise/binary_complex.inc"

#define T float
#define SUFFIX float
#define ACC float
#define LOAD(v) (v)
#define NAME make_complex
#define OUT weir_complex64_t
#define EXPR(a, b) __builtin_complex(a, b)
#include "kernel/elementwise/binary_loop.inc"
#undef T
#undef SUFFIX
#undef ACC
#define T double
#define SUFFIX double
#define ACC double
#define NAME make_complex
#define OUT weir_complex128_t
#define EXPR(a, b) __builtin_complex(a, b)
#include "kernel/elementwise/binary_loop.inc"

static const weir_binary_fn_t table[WEIR_BINARY_COUNT][WEIR_DTYPE_COUNT] = {
#define X(NAME_, name, types, cost) [WEIR_BINARY_##NAME_] = {LOOPS_##types(name)},
    WEIR_BINARY_LIST(X)
#undef X
};

static const double costs[WEIR_BINARY_COUNT] = {
#define X(NAME_, name, types, cost) cost,
    WEIR_BINARY_LIST(X)
#undef X
};

// Types whose elements act as another type's bytes: bools are 0 or 1, quantised integers compare as
// plain ones.
static weir_dtype_t alias_of(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_BOOL:
    case WEIR_DTYPE_QUINT8: return WEIR_DTYPE_UINT8;
    case WEIR_DTYPE_QINT8: return WEIR_DTYPE_INT8;
    case WEIR_DTYPE_QINT16: return WEIR_DTYPE_INT16;
    case WEIR_DTYPE_QUINT16: return WEIR_DTYPE_UINT16;
    case WEIR_DTYPE_QINT32: return WEIR_DTYPE_INT32;
    default: return dtype;
  }
}

weir_binary_fn_t weir_binary_find(weir_binary_op_t op, weir_dtype_t dtype) {
  if ((int)dtype < 0 || dtype >= WEIR_DTYPE_COUNT) return NULL;
  bool takes_aliases = op == WEIR_BINARY_EQUAL || op == WEIR_BINARY_NOT_EQUAL ||
                       op == WEIR_BINARY_BITWISE_AND || op == WEIR_BINARY_BITWISE_OR ||
                       op == WEIR_BINARY_BITWISE_XOR;
  return table[op][takes_aliases ? alias_of(dtype) : dtype];
}

double weir_binary_cost(weir_binary_op_t op) { return costs[op]; }

weir_status_t* weir_binary_error(weir_binary_op_t op) {
  if (op == WEIR_BINARY_POW) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Integers to negative integer powers are not allowed");
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "Integer division by zero");
}
