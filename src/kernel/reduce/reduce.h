// reduce.h — Reductions over any set of dimensions. Thread-safe.
//
// Work is cut into pieces whose sizes depend on the shape alone, and pieces are combined in order,
// so results do not depend on the number of threads. Sums are accumulated in lanes and trees: the
// error grows with the logarithm of the length.
#ifndef WEIR_KERNEL_REDUCE_REDUCE_H_
#define WEIR_KERNEL_REDUCE_REDUCE_H_

#include "base/thread.h"
#include "weir/dtype.h"

typedef enum weir_reduce_op_t {
  WEIR_REDUCE_SUM = 0,
  WEIR_REDUCE_MEAN,  // integers: of 64-bit sums, truncated
  WEIR_REDUCE_PROD,
  WEIR_REDUCE_MAX,  // a NaN wins
  WEIR_REDUCE_MIN,
  WEIR_REDUCE_NORM,          // square root of the sum of squared magnitudes
  WEIR_REDUCE_HALF_SQUARES,  // half the sum of squares; floating types
  WEIR_REDUCE_ALL,           // of bool
  WEIR_REDUCE_ANY,
  WEIR_REDUCE_COUNT
} weir_reduce_op_t;

bool weir_reduce_supports(weir_reduce_op_t op, weir_dtype_t dtype);

// Reduces |input| of shape |dims| over the dimensions marked in |is_reduced|; |output| takes the
// elements of what is left, in order. Half and bfloat16 are accumulated in float. UNIMPLEMENTED for
// a type without code, RESOURCE_EXHAUSTED.
WEIR_MUST_USE weir_status_t* weir_reduce(weir_pool_t* pool, weir_reduce_op_t op, weir_dtype_t dtype,
                                         int rank, const int64_t* dims, const bool* is_reduced,
                                         const void* input, void* output);

#endif  // WEIR_KERNEL_REDUCE_REDUCE_H_
