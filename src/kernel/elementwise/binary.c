// binary.c — Binary loops: operations × types, made from the rows of binary_ops.inc as unary.c
// makes its own; the essay is there.
//
// A loop runs over two operands, or over one and a single element of the other: broadcasting
// (elementwise.c) breaks every shape down to such runs. It goes on where an element has no result,
// and says so at the end.
#include <float.h>
#include <math.h>

#include "kernel/elementwise/elementwise.h"
#include "kernel/elementwise/loops.h"
#include "kernel/elementwise/special.h"
#include "kernel/elementwise/types.h"
#include "kernel/elementwise/vmath.h"
#include "kernel/elementwise/vmath_trig.h"

#define NONE weir_elementwise_no_formula(&a, &b)

#define FOR_EACH(load, store)       \
  WEIR_IVDEP                        \
  for (int64_t i = 0; i < n; ++i) { \
    load;                           \
    z[i] = store;                   \
  }
#define LOOP(name, result, formula)                                                      \
  static bool WEIR_CAT2(name, SUFFIX)(const void* left, const void* right, void* output, \
                                      int64_t n, weir_span_t span) {                     \
    const T* x = left;                                                                   \
    const T* y = right;                                                                  \
    RESULT_##result* z = output;                                                         \
    bool is_good = true;                                                                 \
    if (span == WEIR_SPAN_BOTH) {                                                        \
      FOR_EACH(ACC a = LOAD(x[i]); ACC b = LOAD(y[i]), STORE_##result(formula))          \
    } else if (span == WEIR_SPAN_X) {                                                    \
      ACC b = LOAD(y[0]);                                                                \
      FOR_EACH(ACC a = LOAD(x[i]), STORE_##result(formula))                              \
    } else {                                                                             \
      ACC a = LOAD(x[0]);                                                                \
      FOR_EACH(ACC b = LOAD(y[i]), STORE_##result(formula))                              \
    }                                                                                    \
    return is_good;                                                                      \
  }

// ---- what formulas are made of ----

// The remainder takes the divisor's sign.
WEIR_INLINE float floor_mod_of_float(float a, float b) {
  float r = fmodf(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
WEIR_INLINE double floor_mod_of_double(double a, double b) {
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// Where subnormal numbers count as zero (base/subnormal.h), the C library's pow goes wrong on them.
WEIR_INLINE float real_powerf(float a, float b) {
  return powf(fabsf(a) < FLT_MIN ? copysignf(0, a) : a, b);
}
WEIR_INLINE double real_power(double a, double b) {
  return pow(fabs(a) < DBL_MIN ? copysign(0, a) : a, b);
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

// The quotient is rounded to the type before it is cut off, as in TensorFlow.
#define ROUNDED(v) LOAD(STORE(v))

#define UNLESS(bad, value) ((bad) ? (is_good = false, (T)0) : (T)(value))
#define IS_SIGNED ((T)-1 < (T)0)
// Division by -1 by hand: the least number has no quotient in the type, and the processor may trap
// on it.
#define QUOTIENT(a, b) (IS_SIGNED && (b) == (T)-1 ? (T)((U)0 - (U)(a)) : (T)((a) / (b)))
#define REMAINDER(a, b) (IS_SIGNED && (b) == (T)-1 ? (T)0 : (T)((a) % (b)))
// Shift counts are clamped to the width.
#define SHIFT(b) ((b) < 0 ? (T)0 : (b) > (T)(8 * sizeof(T) - 1) ? (T)(8 * sizeof(T) - 1) : (b))

// ---- floating types ----
#define T float
#define SUFFIX float
#define FORMULA OF_REAL
#define M(name) name##f
#define V(f) weir_vm_##f
#include "kernel/elementwise/binary_loops.inc"

#define T double
#define SUFFIX double
#define C weir_complex128_t
#define FORMULA OF_REAL
#define M(name) name
#define V(f) f
#include "kernel/elementwise/binary_loops.inc"

#define T weir_half_t
#define SUFFIX half
#define ACC float
#define LOAD(v) weir_half_to_float(v)
#define STORE(v) weir_half_from_float((float)(v))
#define FORMULA OF_REAL
#define M(name) name##f
#define V(f) weir_vm_##f
#include "kernel/elementwise/binary_loops.inc"

#define T weir_bfloat16_t
#define SUFFIX bfloat16
#define ACC float
#define LOAD(v) weir_bfloat16_to_float(v)
#define STORE(v) weir_bfloat16_from_float((float)(v))
#define FORMULA OF_REAL
#define M(name) name##f
#define V(f) weir_vm_##f
#include "kernel/elementwise/binary_loops.inc"

// ---- integers ----
#define T int8_t
#define SUFFIX int8
#define U uint32_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/binary_loops.inc"
#define T int16_t
#define SUFFIX int16
#define U uint32_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/binary_loops.inc"
#define T int32_t
#define SUFFIX int32
#define U uint32_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/binary_loops.inc"
#define T int64_t
#define SUFFIX int64
#define U uint64_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/binary_loops.inc"
#define T uint8_t
#define SUFFIX uint8
#define U uint32_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/binary_loops.inc"
#define T uint16_t
#define SUFFIX uint16
#define U uint32_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/binary_loops.inc"
#define T uint32_t
#define SUFFIX uint32
#define U uint32_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/binary_loops.inc"
#define T uint64_t
#define SUFFIX uint64
#define U uint64_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/binary_loops.inc"

// ---- complex numbers ----
#define T weir_complex64_t
#define SUFFIX complex64
#define R float
#define FORMULA OF_COMPLEX
#define M(name) name##f
#include "kernel/elementwise/binary_loops.inc"
#define T weir_complex128_t
#define SUFFIX complex128
#define R double
#define FORMULA OF_COMPLEX
#define M(name) name
#include "kernel/elementwise/binary_loops.inc"

// ---- what is found ----

static const weir_binary_fn_t table[WEIR_BINARY_COUNT][WEIR_DTYPE_COUNT] = {
#define FUNCTION(NAME, name, loops, ...) [WEIR_BINARY_##NAME] = {LOOPS_##loops(name)},
#include "kernel/elementwise/binary_ops.inc"
};

static const uint8_t results[WEIR_BINARY_COUNT] = {
#define FUNCTION(NAME, name, loops, result, ...) WEIR_RESULT_##result,
#include "kernel/elementwise/binary_ops.inc"
};

static const double costs[WEIR_BINARY_COUNT] = {
#define FUNCTION(NAME, name, loops, result, ns, ...) ns,
#include "kernel/elementwise/binary_ops.inc"
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

weir_dtype_t weir_binary_result(weir_binary_op_t op, weir_dtype_t dtype) {
  return weir_result_type((weir_result_t)results[op], dtype);
}

bool weir_binary_may_fail(weir_binary_op_t op, weir_dtype_t dtype) {
  switch (op) {
    case WEIR_BINARY_DIV:
    case WEIR_BINARY_FLOOR_DIV:
    case WEIR_BINARY_FLOOR_MOD:
    case WEIR_BINARY_TRUNCATE_DIV:
    case WEIR_BINARY_TRUNCATE_MOD:
    case WEIR_BINARY_POW: return weir_dtype_is_integer(dtype);
    default: return false;
  }
}

weir_status_t* weir_binary_error(weir_binary_op_t op) {
  if (op == WEIR_BINARY_POW) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Integers to negative integer powers are not allowed");
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "Integer division by zero");
}
