// reduce_types.c — The loops of every reduction and type, and the table of them.
#include "kernel/elementwise/vmath.h"
#include "kernel/reduce/reduce_internal.h"

#define REDUCE_LANES 16    // independent sums of a block: enough to fill the vector units
#define REDUCE_FEW 4       // lanes left when the others have joined them
#define REDUCE_GROUP 64    // elements that join the lanes together where the order is free
#define REDUCE_BLOCK 4096  // elements of a block; blocks are combined as a tree

#define T float
#define SUFFIX float
#define ACC float
#define WIDEN(v) (v)
#define NARROW(v) (v)
#define SQRT(v) sqrtf(v)
#define SELECT weir_vm_select_
#include "kernel/reduce/reduce_floating.inc"
#define T double
#define SUFFIX double
#define ACC double
#define WIDEN(v) (v)
#define NARROW(v) (v)
#define SQRT(v) sqrt(v)
#define SELECT(is_a, a, b) ((is_a) ? (a) : (b))
#include "kernel/reduce/reduce_floating.inc"
#define T weir_half_t
#define SUFFIX half
#define ACC float
#define WIDEN(v) weir_half_to_float(v)
#define NARROW(v) weir_half_from_float(v)
#define SQRT(v) sqrtf(v)
#define SELECT(is_a, a, b) ((is_a) ? (a) : (b))
#include "kernel/reduce/reduce_floating.inc"
#define T weir_bfloat16_t
#define SUFFIX bfloat16
#define ACC float
#define WIDEN(v) weir_bfloat16_to_float(v)
#define NARROW(v) weir_bfloat16_from_float(v)
#define SQRT(v) sqrtf(v)
#define SELECT weir_vm_select_
#include "kernel/reduce/reduce_floating.inc"

#define T int8_t
#define SUFFIX int8
#define WRAP uint32_t
#define WIDE int64_t
#define LOWEST INT8_MIN
#define HIGHEST INT8_MAX
#include "kernel/reduce/reduce_integer.inc"
#define T int16_t
#define SUFFIX int16
#define WRAP uint32_t
#define WIDE int64_t
#define LOWEST INT16_MIN
#define HIGHEST INT16_MAX
#include "kernel/reduce/reduce_integer.inc"
#define T int32_t
#define SUFFIX int32
#define WRAP uint32_t
#define WIDE int64_t
#define LOWEST INT32_MIN
#define HIGHEST INT32_MAX
#include "kernel/reduce/reduce_integer.inc"
#define T int64_t
#define SUFFIX int64
#define WRAP uint64_t
#define WIDE int64_t
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#include "kernel/reduce/reduce_integer.inc"
#define T uint8_t
#define SUFFIX uint8
#define WRAP uint32_t
#define WIDE uint64_t
#define LOWEST 0
#define HIGHEST UINT8_MAX
#include "kernel/reduce/reduce_integer.inc"
#define T uint16_t
#define SUFFIX uint16
#define WRAP uint32_t
#define WIDE uint64_t
#define LOWEST 0
#define HIGHEST UINT16_MAX
#include "kernel/reduce/reduce_integer.inc"
#define T uint32_t
#define SUFFIX uint32
#define WRAP uint32_t
#define WIDE uint64_t
#define LOWEST 0
#define HIGHEST UINT32_MAX
#include "kernel/reduce/reduce_integer.inc"
#define T uint64_t
#define SUFFIX uint64
#define WRAP uint64_t
#define WIDE uint64_t
#define LOWEST 0
#define HIGHEST UINT64_MAX
#include "kernel/reduce/reduce_integer.inc"

#define T weir_complex64_t
#define SUFFIX complex64
#define R float
#define ABS(v) cabsf(v)
#include "kernel/reduce/reduce_complex.inc"
#define T weir_complex128_t
#define SUFFIX complex128
#define R double
#define ABS(v) cabs(v)
#include "kernel/reduce/reduce_complex.inc"

#define BOTH(a, b) ((a) & (b))
#define EITHER(a, b) ((a) | (b))
#define T uint8_t
#define SUFFIX logical
#define ACC uint8_t
#define NAME all
#define LOAD(v) (v)
#define IDENTITY 1
#define COMBINE BOTH
#define FINISH(a, n) (a)
#include "kernel/reduce/reduce_loop.inc"
#define NAME any
#define LOAD(v) (v)
#define IDENTITY 0
#define COMBINE EITHER
#define FINISH(a, n) (a)
#include "kernel/reduce/reduce_loop.inc"

#define FLOATING(name)                                                                      \
  [WEIR_DTYPE_FLOAT] = &name##_reducer_float, [WEIR_DTYPE_DOUBLE] = &name##_reducer_double, \
  [WEIR_DTYPE_HALF] = &name##_reducer_half, [WEIR_DTYPE_BFLOAT16] = &name##_reducer_bfloat16
#define INTEGER(name)                                                                       \
  [WEIR_DTYPE_INT8] = &name##_reducer_int8, [WEIR_DTYPE_INT16] = &name##_reducer_int16,     \
  [WEIR_DTYPE_INT32] = &name##_reducer_int32, [WEIR_DTYPE_INT64] = &name##_reducer_int64,   \
  [WEIR_DTYPE_UINT8] = &name##_reducer_uint8, [WEIR_DTYPE_UINT16] = &name##_reducer_uint16, \
  [WEIR_DTYPE_UINT32] = &name##_reducer_uint32, [WEIR_DTYPE_UINT64] = &name##_reducer_uint64
#define COMPLEX(name)                                                           \
  [WEIR_DTYPE_COMPLEX64] = &name##_reducer_complex64, [WEIR_DTYPE_COMPLEX128] = \
                                                          &name##_reducer_complex128

static const reducer_t* const table[WEIR_REDUCE_COUNT][WEIR_DTYPE_COUNT] = {
    [WEIR_REDUCE_SUM] = {FLOATING(sum), INTEGER(sum), COMPLEX(sum)},
    [WEIR_REDUCE_MEAN] = {FLOATING(mean), INTEGER(mean), COMPLEX(mean)},
    [WEIR_REDUCE_PROD] = {FLOATING(prod), INTEGER(prod), COMPLEX(prod)},
    [WEIR_REDUCE_MAX] = {FLOATING(max), INTEGER(max)},
    [WEIR_REDUCE_MIN] = {FLOATING(min), INTEGER(min)},
    [WEIR_REDUCE_NORM] = {FLOATING(norm), INTEGER(norm), COMPLEX(norm)},
    [WEIR_REDUCE_HALF_SQUARES] = {FLOATING(half_squares)},
    [WEIR_REDUCE_ALL] = {[WEIR_DTYPE_BOOL] = &all_reducer_logical},
    [WEIR_REDUCE_ANY] = {[WEIR_DTYPE_BOOL] = &any_reducer_logical},
};

const reducer_t* weir_reducer_find(weir_reduce_op_t op, weir_dtype_t dtype) {
  return (int)dtype > 0 && dtype < WEIR_DTYPE_COUNT ? table[op][dtype] : NULL;
}
