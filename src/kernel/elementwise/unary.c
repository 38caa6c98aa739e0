// unary.c — Unary loops: operations × types, made from the rows of unary_ops.inc.
//
// A row has up to three formulas: for real, integer and complex numbers. Each block below describes
// a type (how an element is loaded, what it is computed in, how it is stored, which formula
// applies) and includes unary_loops.inc, which writes the loops of all rows for it. half and
// bfloat16 are computed in float; integers in an unsigned type at least as wide, where sums and
// products wrap.
//
// The compiler vectorises a loop by what its formula calls. Float functions of libm stay calls, one
// an element, so the frequent ones have vector forms in vmath.h: branch-free, several elements at a
// time, compiled for several instruction sets. A row marked VECTOR uses weir_v<name> for float; its
// formula then serves half, bfloat16 and double, by V(f): the inline form of vmath.h where float is
// computed in, libm for double.
//
// The table at the end takes from all those loops the ones a row's class of types names. The others
// are never referred to, and so never become code; that is why a formula may be NONE, or
// meaningless for a type outside its class (|x| of an unsigned one).
#include <math.h>

#include "kernel/elementwise/elementwise.h"
#include "kernel/elementwise/loops.h"
#include "kernel/elementwise/special.h"
#include "kernel/elementwise/types.h"
#include "kernel/elementwise/vmath.h"
#include "kernel/elementwise/vmath_erf.h"
#include "kernel/elementwise/vmath_trig.h"

#define NONE weir_elementwise_no_formula(&a)

#define LOOP(name, result, formula)                                                 \
  static void WEIR_CAT2(name, SUFFIX)(const void* input, void* output, int64_t n) { \
    const T* x = input;                                                             \
    RESULT_##result* y = output;                                                    \
    WEIR_IVDEP                                                                      \
    for (int64_t i = 0; i < n; ++i) {                                               \
      ACC a = LOAD(x[i]);                                                           \
      y[i] = STORE_##result(formula);                                               \
    }                                                                               \
  }
#define CALL(name, result, formula) \
  static void WEIR_CAT2(name, SUFFIX)(const void* x, void* y, int64_t n) { weir_v##name(x, y, n); }

// ---- floating types ----

// What libm lacks for V(f) of double.
WEIR_INLINE double sigmoid(double x) {
  double e = exp(-fabs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}
WEIR_INLINE double erfinv(double x) { return weir_erfinv(x); }
WEIR_INLINE double ndtri(double x) { return weir_ndtri(x); }

#define T float
#define SUFFIX float
#define ACC float
#define FORMULA OF_REAL
#define M(name) name##f
#define V(f) weir_vm_##f
#define HAS_VECTORS
#include "kernel/elementwise/unary_loops.inc"

#define T double
#define SUFFIX double
#define ACC double
#define FORMULA OF_REAL
#define M(name) name
#define V(f) f
#include "kernel/elementwise/unary_loops.inc"

#define T weir_half_t
#define SUFFIX half
#define ACC float
#define LOAD(v) weir_half_to_float(v)
#define STORE(v) weir_half_from_float((float)(v))
#define FORMULA OF_REAL
#define M(name) name##f
#define V(f) weir_vm_##f
#include "kernel/elementwise/unary_loops.inc"

#define T weir_bfloat16_t
#define SUFFIX bfloat16
#define ACC float
#define LOAD(v) weir_bfloat16_to_float(v)
#define STORE(v) weir_bfloat16_from_float((float)(v))
#define FORMULA OF_REAL
#define M(name) name##f
#define V(f) weir_vm_##f
#include "kernel/elementwise/unary_loops.inc"

// ---- integers ----

// Of the element alone: |a| may have more bits, copies of its sign.
#define POPCOUNT(a)                                               \
  (sizeof(T) == 8 ? __builtin_popcountll((unsigned long long)(a)) \
                  : __builtin_popcount((unsigned)(a) &            \
                                       (unsigned)(((uint64_t)1 << (8 * sizeof(T) & 63)) - 1)))

#define T int8_t
#define SUFFIX int8
#define ACC uint32_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/unary_loops.inc"
#define T int16_t
#define SUFFIX int16
#define ACC uint32_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/unary_loops.inc"
#define T int32_t
#define SUFFIX int32
#define ACC uint32_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/unary_loops.inc"
#define T int64_t
#define SUFFIX int64
#define ACC uint64_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/unary_loops.inc"
#define T uint8_t
#define SUFFIX uint8
#define ACC uint32_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/unary_loops.inc"
#define T uint16_t
#define SUFFIX uint16
#define ACC uint32_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/unary_loops.inc"
#define T uint32_t
#define SUFFIX uint32
#define ACC uint32_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/unary_loops.inc"
#define T uint64_t
#define SUFFIX uint64
#define ACC uint64_t
#define FORMULA OF_INTEGER
#include "kernel/elementwise/unary_loops.inc"

// ---- complex numbers ----
#define T weir_complex64_t
#define SUFFIX complex64
#define ACC T
#define R float
#define FORMULA OF_COMPLEX
#define M(name) name##f
#include "kernel/elementwise/unary_loops.inc"
#define T weir_complex128_t
#define SUFFIX complex128
#define ACC T
#define R double
#define FORMULA OF_COMPLEX
#define M(name) name
#include "kernel/elementwise/unary_loops.inc"

// ---- what is found ----

static const weir_unary_fn_t table[WEIR_UNARY_COUNT][WEIR_DTYPE_COUNT] = {
#define FUNCTION(NAME, name, loops, ...) [WEIR_UNARY_##NAME] = {LOOPS_##loops(name)},
#include "kernel/elementwise/unary_ops.inc"
};

static const uint8_t results[WEIR_UNARY_COUNT] = {
#define FUNCTION(NAME, name, loops, form, result, ...) WEIR_RESULT_##result,
#include "kernel/elementwise/unary_ops.inc"
};

static const double costs[WEIR_UNARY_COUNT] = {
#define FUNCTION(NAME, name, loops, form, result, ns, ...) ns,
#include "kernel/elementwise/unary_ops.inc"
};

weir_unary_fn_t weir_unary_find(weir_unary_op_t op, weir_dtype_t dtype) {
  return (int)dtype < 0 || dtype >= WEIR_DTYPE_COUNT ? NULL : table[op][dtype];
}

double weir_unary_cost(weir_unary_op_t op) { return costs[op]; }

weir_dtype_t weir_unary_result(weir_unary_op_t op, weir_dtype_t dtype) {
  return weir_result_type((weir_result_t)results[op], dtype);
}
