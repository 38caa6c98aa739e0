// cuda_batch_norm.h — Normalisation of channels over a batch on GPUs, and its gradient: half,
// bfloat16 and float, moments in float.
#ifndef WEIR_KERNEL_NN_CUDA_BATCH_NORM_H_
#define WEIR_KERNEL_NN_CUDA_BATCH_NORM_H_

#include "device/cuda/cuda.h"
#include "op/kernel.h"

// What a gradient does about a ReLU that follows the normalisation.
typedef enum weir_norm_mask_t {
  WEIR_NORM_NO_MASK = 0,
  WEIR_NORM_MASK_BY_X,  // x tells what the ReLU let pass: y is made of it alone
  WEIR_NORM_MASK_BY_Y,  // y does: something was added before the ReLU
} weir_norm_mask_t;

// Functions for one type, forwards or backwards; immutable after they were found.
typedef struct weir_cuda_norm_t {
  weir_cuda_function_t sums[4];   // channels last, the same in packs, channels first, in packs
  weir_cuda_function_t apply[4];  // likewise
  weir_cuda_function_t finish;
} weir_cuda_norm_t;

// The shape, as [outer, channels, inner], and what the ops' attributes say; as the kernels have it.
typedef struct weir_norm_t {
  int64_t outer, channels, inner;
  int64_t pieces, per_piece;  // set by the functions below
  float epsilon, factor;      // factor: of new moments in running ones
  int is_training, is_relu;
} weir_norm_t;

// Device memory; all of one shape and type.
typedef struct weir_norm_tensors_t {
  const void* x;
  const void* other;  // dy; or what is added to x normalised, NULL for nothing
  const void* y;      // of WEIR_NORM_MASK_BY_Y, else NULL
  void* out;          // y or dx
  void* masked;       // of WEIR_NORM_MASK_BY_Y: dy where the ReLU let y pass; else NULL
} weir_norm_tensors_t;

// Device memory. Vectors are of |channels| floats.
typedef struct weir_norm_moments_t {
  const float *old_mean, *old_variance;  // may be NULL in training with a factor of 1
  const float *scale, *offset;
  float *mean, *variance, *saved_mean, *saved_variance;
} weir_norm_moments_t;
typedef struct weir_norm_grads_t {
  const float *mean, *variance, *scale;
  const float* offset;  // of WEIR_NORM_MASK_BY_X, else NULL
  float *dscale, *doffset;
} weir_norm_grads_t;

WEIR_MUST_USE weir_status_t* weir_cuda_norm_find(weir_device_t* device, weir_dtype_t dtype,
                                                 weir_cuda_norm_t* out_functions);
WEIR_MUST_USE weir_status_t* weir_cuda_norm_grad_find(weir_device_t* device, weir_dtype_t dtype,
                                                      weir_norm_mask_t mask,
                                                      weir_cuda_norm_t* out_functions);
// out = x normalised, plus |other| unless NULL, and its ReLU if so; there are elements.
WEIR_MUST_USE weir_status_t* weir_cuda_norm(weir_kernel_ctx_t* ctx, const weir_cuda_norm_t* f,
                                            const weir_norm_t* norm,
                                            const weir_norm_tensors_t* tensors,
                                            const weir_norm_moments_t* moments);
WEIR_MUST_USE weir_status_t* weir_cuda_norm_grad(weir_kernel_ctx_t* ctx, const weir_cuda_norm_t* f,
                                                 const weir_norm_t* norm,
                                                 const weir_norm_tensors_t* tensors,
                                                 const weir_norm_grads_t* grads);

#endif  // WEIR_KERNEL_NN_CUDA_BATCH_NORM_H_
