// lrn.h — Local response normalisation over neighbouring channels, and its gradient. Float,
// channels last. Thread-safe.
#ifndef WEIR_KERNEL_NN_LRN_H_
#define WEIR_KERNEL_NN_LRN_H_

#include "base/thread.h"

typedef struct weir_lrn_t {
  int64_t rows, channels;
  int64_t radius;  // channels on each side
  float bias, alpha, beta;
} weir_lrn_t;

// y = x / (bias + alpha * sum of squares over the neighbourhood)^beta. Both: RESOURCE_EXHAUSTED
// without memory for a row.
WEIR_MUST_USE weir_status_t* weir_lrn(weir_pool_t* pool, const weir_lrn_t* lrn, const float* x,
                                      float* y);
WEIR_MUST_USE weir_status_t* weir_lrn_grad(weir_pool_t* pool, const weir_lrn_t* lrn,
                                           const float* dy, const float* x, const float* y,
                                           float* dx);

#endif  // WEIR_KERNEL_NN_LRN_H_
