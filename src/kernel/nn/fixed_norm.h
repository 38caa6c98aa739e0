// fixed_norm.h — Normalisation of channels by given moments, and its gradient by all that goes
// into it. Channels last, float or double. Thread-safe.
#ifndef WEIR_KERNEL_NN_FIXED_NORM_H_
#define WEIR_KERNEL_NN_FIXED_NORM_H_

#include "base/thread.h"
#include "weir/dtype.h"

// |rows| pixels of |channels| each. All vectors have |channels| elements.
typedef struct weir_fixed_norm_t {
  int64_t rows, channels;
  float epsilon;
  const void *mean, *variance;
  const void* scale;  // NULL: none
} weir_fixed_norm_t;

// y = (x - mean) / sqrt(variance + epsilon) * scale + offset. RESOURCE_EXHAUSTED when there is no
// memory for a row; the same below.
WEIR_MUST_USE weir_status_t* weir_fixed_norm(weir_pool_t* pool, weir_dtype_t dtype,
                                             const weir_fixed_norm_t* n, const void* x,
                                             const void* offset, void* y);

typedef struct weir_fixed_norm_grad_t {
  const void *x, *dy;
  void *dx, *dmean, *dvariance, *doffset, *dscale;
} weir_fixed_norm_grad_t;
WEIR_MUST_USE weir_status_t* weir_fixed_norm_grad(weir_pool_t* pool, weir_dtype_t dtype,
                                                  const weir_fixed_norm_t* n,
                                                  const weir_fixed_norm_grad_t* grad);

#endif  // WEIR_KERNEL_NN_FIXED_NORM_H_
