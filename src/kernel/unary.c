// unary.c — Unary loops of every type, and the table of them.
#include <math.h>

#include "kernel/elementwise.h"
#include "kernel/special.h"
#include "kernel/vmath.h"

// What V(f) means for double: libm, but for the function it lacks.
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
#define fast_erf erf

#define T float
#define SUFFIX float
#define ACC float
#define LOAD(v) (v)
#define STORE(v) ((float)(v))
#define M(name) name##f
#define V(f) weir_vm_##f
#include "kernel/unary_floating.inc"

#define T double
#define SUFFIX double
#define ACC double
#define LOAD(v) (v)
#define STORE(v) ((double)(v))
#define M(name) name
#define V(f) fast_##f
#include "kernel/unary_floating.inc"

#define T weir_half_t
#define SUFFIX half
#define ACC float
#define LOAD(v) weir_half_to_float(v)
#define STORE(v) weir_half_from_float((float)(v))
#define M(name) name##f
#define V(f) weir_vm_##f
#include "kernel/unary_floating.inc"

#define T weir_bfloat16_t
#define SUFFIX bfloat16
#define ACC float
#define LOAD(v) weir_bfloat16_to_float(v)
#define STORE(v) weir_bfloat16_from_float((float)(v))
#define M(name) name##f
#define V(f) weir_vm_##f
#include "kernel/unary_floating.inc"

#define T int8_t
#define SUFFIX int8
#define ACC uint32_t
#define IS_SIGNED
#include "kernel/unary_integer.inc"
#define T int16_t
#define SUFFIX int16
#define ACC uint32_t
#define IS_SIGNED
#include "kernel/unary_integer.inc"
#define T int32_t
#define SUFFIX int32
#define ACC uint32_t
#define IS_SIGNED
#include "kernel/unary_integer.inc"
#define T int64_t
#define SUFFIX int64
#define ACC uint64_t
#define IS_SIGNED
#include "kernel/unary_integer.inc"
#define T uint8_t
#define SUFFIX uint8
#define ACC uint32_t
#include "kernel/unary_integer.inc"
#define T uint16_t
#define SUFFIX uint16
#define ACC uint32_t
#include "kernel/unary_integer.inc"
#define T uint32_t
#define SUFFIX uint32
#define ACC uint32_t
#include "kernel/unary_integer.inc"
#define T uint64_t
#define SUFFIX uint64
#define ACC uint64_t
#include "kernel/unary_integer.inc"

#define T weir_complex64_t
#define SUFFIX complex64
#define R float
#define M(name) name##f
#include "kernel/unary_complex.inc"
#define T weir_complex128_t
#define SUFFIX complex128
#define R double
#define M(name) name
#include "kernel/unary_complex.inc"

#define T bool
#define SUFFIX logical
#define ACC bool
#define LOAD(v) (v)
#define STORE(v) (v)
#define NAME not
#define EXPR(a) (!(a))
#include "kernel/elementwise_types.inc"
#include "kernel/unary_loop.inc"

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
static void array_exp(const void* x, void* y, int64_t n) { weir_vexp(x, y, n); }
static void array_log(const void* x, void* y, int64_t n) { weir_vlog(x, y, n); }
static void array_tanh(const void* x, void* y, int64_t n) { weir_vtanh(x, y, n); }
static void array_sigmoid(const void* x, void* y, int64_t n) { weir_vsigmoid(x, y, n); }
static void array_sin(const void* x, void* y, int64_t n) { weir_vsin(x, y, n); }
static void array_cos(const void* x, void* y, int64_t n) { weir_vcos(x, y, n); }
static void array_erf(const void* x, void* y, int64_t n) { weir_verf(x, y, n); }

static const weir_unary_fn_t float_arrays[WEIR_UNARY_COUNT] = {
    [WEIR_UNARY_EXP] = array_exp,   [WEIR_UNARY_LOG] = array_log,
    [WEIR_UNARY_TANH] = array_tanh, [WEIR_UNARY_SIGMOID] = array_sigmoid,
    [WEIR_UNARY_SIN] = array_sin,   [WEIR_UNARY_COS] = array_cos,
    [WEIR_UNARY_ERF] = array_erf,
};

weir_unary_fn_t weir_unary_find(weir_unary_op_t op, weir_dtype_t dtype) {
  if ((int)dtype < 0 || dtype >= WEIR_DTYPE_COUNT) return NULL;
  if (dtype == WEIR_DTYPE_FLOAT && float_arrays[op]) return float_arrays[op];
  return table[op][dtype];
}

double weir_unary_cost(weir_unary_op_t op) { return costs[op]; }
