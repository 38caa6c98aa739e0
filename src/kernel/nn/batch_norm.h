// batch_norm.h — Normalisation of channels over a batch, and its gradient. Float memory, channels
// last. Thread-safe.
//
// Sums are of blocks of rows that depend on the shape alone, so results do not depend on the number
// of threads.
#ifndef WEIR_KERNEL_NN_BATCH_NORM_H_
#define WEIR_KERNEL_NN_BATCH_NORM_H_

#include "base/thread.h"

// |rows| pixels of |channels| each. All vectors have |channels| elements.
typedef struct weir_batch_norm_t {
  int64_t rows, channels;
  float epsilon;
  const float* scale;
  const float* offset;
} weir_batch_norm_t;

// Mean and (biased) variance of each channel. RESOURCE_EXHAUSTED when there is no memory for
// partial sums.
WEIR_MUST_USE weir_status_t* weir_batch_norm_moments(weir_pool_t* pool, const weir_batch_norm_t* bn,
                                                     const float* x, float* mean, float* variance);
// y = (x - mean) / sqrt(variance + epsilon) * scale + offset; y may be x.
WEIR_MUST_USE weir_status_t* weir_batch_norm_apply(weir_pool_t* pool, const weir_batch_norm_t* bn,
                                                   const float* x, const float* mean,
                                                   const float* variance, float* y);

typedef struct weir_batch_norm_grad_t {
  const float* dy;
  const float* x;
  const float* mean;
  const float* variance;
  bool is_training;  // mean and variance are of the batch; else they are constants
  float* dx;         // may be |dy|
  float* dscale;
  float* doffset;
} weir_batch_norm_grad_t;
WEIR_MUST_USE weir_status_t* weir_batch_norm_grad(weir_pool_t* pool, const weir_batch_norm_t* bn,
                                                  const weir_batch_norm_grad_t* grad);

#endif  // WEIR_KERNEL_NN_BATCH_NORM_H_
