// bias.h — Adding a vector along one dimension, and its gradient: a sum over all others.
// Thread-safe.
#ifndef WEIR_KERNEL_NN_BIAS_H_
#define WEIR_KERNEL_NN_BIAS_H_

#include "base/thread.h"
#include "kernel/elementwise/elementwise.h"
#include "weir/dtype.h"

// A tensor seen as [outer, channels, inner]: inner is 1 when channels come last.
typedef struct weir_bias_t {
  int64_t outer, channels, inner;
} weir_bias_t;

// INVALID_ARGUMENT when |bias| is no vector along dimension |axis| of |x|; -1: the last.
WEIR_MUST_USE weir_status_t* weir_bias_check(weir_shape_view_t x, weir_shape_view_t bias, int axis);
// y = x + bias, any number type; y may be x. Integers wrap.
void weir_bias_add(weir_pool_t* pool, weir_dtype_t dtype, const weir_bias_t* shape, const void* x,
                   const void* bias, void* y);
// bias = sum of x over outer and inner; half and bfloat16 sum in float. Partial sums are of blocks
// that depend on the shape alone. RESOURCE_EXHAUSTED when there is no memory for them.
WEIR_MUST_USE weir_status_t* weir_bias_sum(weir_pool_t* pool, weir_dtype_t dtype,
                                           const weir_bias_t* shape, const void* x, void* bias);

#endif  // WEIR_KERNEL_NN_BIAS_H_
