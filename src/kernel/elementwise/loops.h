// loops.h — What the rows of unary_ops.inc and binary_ops.inc need to become loops; for unary.c and
// binary.c only.
#ifndef WEIR_KERNEL_ELEMENTWISE_LOOPS_H_
#define WEIR_KERNEL_ELEMENTWISE_LOOPS_H_

// Loops that no table refers to, and signed formulas of unsigned types among them.
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wtype-limits"

// Defined nowhere: a class that names a type its row has no formula for does not link. Only where
// the compiler does not remove what is never called does it have to be there.
#ifdef __OPTIMIZE__
int weir_elementwise_no_formula(const void* a, ...);
#else
WEIR_INLINE int weir_elementwise_no_formula(const void* a, ...) { return a != NULL; }
#endif

#define OF_REAL(real, integer, complex) real
#define OF_INTEGER(real, integer, complex) integer
#define OF_COMPLEX(real, integer, complex) complex

// What results are stored as; T, STORE, R and C are the type's (see unary_loops.inc,
// binary_loops.inc).
#define RESULT_SAME T
#define RESULT_BOOL bool
#define RESULT_BYTE uint8_t
#define RESULT_PART R
#define RESULT_PAIR C
#define STORE_SAME(v) STORE(v)
#define STORE_BOOL(v) ((bool)(v))
#define STORE_BYTE(v) ((uint8_t)(v))
#define STORE_PART(v) ((R)(v))
#define STORE_PAIR(v) ((C)(v))

#endif  // WEIR_KERNEL_ELEMENTWISE_LOOPS_H_
