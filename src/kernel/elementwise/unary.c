// unary.c — Unary loops of every type, and the table of them.
#include <math.h>

#include "kernel/elementwise/elementwise.h"
#include "kernel/elementwise/special.h"
#include "kernel/elementwise/vmath.h"
#include "kernel/elementwise/vmath_erf.h"
#include "kernel/elementwise/vmath_trig.h"

// What V(f) means for double: libm, but for the functions it lacks.
WEIR_INLINE double sigmoid_of(double x) {
  double e = exp(-fabs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}
#define fast_exp exp
#define fast_expm1 expm1
#define fast_log log
#define fast_log1p log1p
#define fast_tanh tanh
#define fast_sigmoid sigmoid_of
#define fast_asin asin
#define fast_acos acos
#define fast_atan atan
#define fast_sinh sinh
#define fast_cosh cosh
#define fast_atanh atanh
#define fast_erf erf
#define fast_erfc erfc
#define fast_erfinv weir_erfinv
#define fast_ndtri weir_ndtri

#define T float
#define SUFFIX float
#define ACC float
#define LOAD(v) (v)
#define STORE(v) ((float)(v))
#define M(name) name##f
#define V(f) weir_vm_##f
#include "kernel/elementwise/unary_floating.inc"

#define T double
#define SUFFIX double
#define ACC double
#define LOAD(v) (v)
#define STORE(v) ((double)(v))
#define M(name) name
#define V(f) fast_##f
#include "kernel/elementwise/unary_floating.inc"

#define T weir_half_t
#define SUFFIX half
#define ACC float
#define LOAD(v) weir_half_to_float(v)
#define STORE(v) weir_half_from_float((float)(v))
#define M(name) name##f
#define V(f) weir_vm_##f
#include "kernel/elementwise/unary_floating.inc"

#define T weir_bfloat16_t
#define SUFFIX bfloat16
#define ACC float
#define LOAD(v) weir_bfloat16_to_float(v)
#define STORE(v) weir_bfloat16_from_float((float)(v))
#define M(name) name##f
#define V(f) weir_vm_##f
#include "kernel/elementwise/unary_floating.inc"

#define T int8_t
#define SUFFIX int8
#define ACC uint32_t
#define IS_SIGNED
#include "kernel/elementwise/unary_integer.inc"
#define T int16_t
#define SUFFIX int16
#define ACC uint32_t
#define IS_SIGNED
#include "kernel/elementwise/unary_integer.inc"
#define T int32_t
#define SUFFIX int32
#define ACC uint32_t
#define IS_SIGNED
#include "kernel/elementwise/unary_integer.inc"
#define T int64_t
#define SUFFIX int64
#define ACC uint64_t
#define IS_SIGNED
#include "kernel/elementwise/unary_integer.inc"
#define T uint8_t
#define SUFFIX uint8
#define ACC uint32_t
#include "kernel/elementwise/unary_integer.inc"
#define T uint16_t
#define SUFFIX uint16
#define ACC uint32_t
#include "kernel/elementwise/unary_integer.inc"
#define T uint32_t
#define SUFFIX uint32
#define ACC uint32_t
#include "kernel/elementwise/unary_integer.inc"
#define T uint64_t
#define SUFFIX uint64
#define ACC uint64_t
#include "kernel/elementwise/unary_integer.inc"

#define T weir_complex64_t
#define SUFFIX complex64
#define R float
#define M(name) name##f
#include "kernel/elementwise/unary_complex.inc"
#define T weir_complex128_t
#define SUFFIX complex128
#define R double
#define M(name) name
#include "kernel/elementwise/unary_complex.inc"

#define T bool
#define SUFFIX logical
#define ACC bool
#define LOAD(v) (v)
#define STORE(v) (v)
#define NAME not
#define EXPR(a) (!(a))
#include "kernel/elementwise/elementwise_types.inc"
#include "kernel/elementwise/unary_loop.inc"

static const weir_unary_fn_t table[WEIR_UNARY_COUNT][WEIR_DTYPE_COUNT] = {
#define X(NAME_, name, types, cost) [WEIR_UNARY_##NAME_] = {TYPES_##types(name)},
    WEIR_UNARY_LIST(X)
#undef X
};

static const double costs[WEIR_UNARY_COUNT] = {
#define X(NAME_, name, types, cost) cost,
    WEIR_UNARY_LIST(X)
#undef X
};

// Float functions that are more than one loop, or are compiled for several instruction sets.
#define X(NAME_, name) \
  static void array_##name(const void* x, void* y, int64_t n) { weir_v##name(x, y, n); }
WEIR_VMATH_LIST(X)
#undef X

static const weir_unary_fn_t float_arrays[WEIR_UNARY_COUNT] = {
#define X(NAME_, name) [WEIR_UNARY_##NAME_] = array_##name,
    WEIR_VMATH_LIST(X)
#undef X
};

weir_unary_fn_t weir_unary_find(weir_unary_op_t op, weir_dtype_t dtype) {
  if ((int)dtype < 0 || dtype >= WEIR_DTYPE_COUNT) return NULL;
  if (dtype == WEIR_DTYPE_FLOAT && float_arrays[op]) return float_arrays[op];
  return table[op][dtype];
}

double weir_unary_cost(weir_unary_op_t op) { return costs[op]; }
