// cuda_gemm.h — Products of matrices on GPUs, by cuBLASLt. Thread-safe.
#ifndef WEIR_KERNEL_GEMM_CUDA_GEMM_H_
#define WEIR_KERNEL_GEMM_CUDA_GEMM_H_

#include "device/cuda/cuda.h"
#include "kernel/gemm/gemm.h"
#include "op/kernel.h"

// What follows one product: |count| in all, each so many elements after the one before.
typedef struct weir_gemm_batch_t {
  int64_t count;
  int64_t a_stride, b_stride, c_stride;
} weir_gemm_batch_t;

// What is done to a product before it is stored: a vector is added to each row, then its ReLU
// taken.
typedef struct weir_gemm_tail_t {
  const void* bias;  // n elements of the product's type, in device memory
  bool is_relu;
} weir_gemm_tail_t;

// As weir_gemm_any, of float, double, half and bfloat16, in the compute stream.
WEIR_MUST_USE weir_status_t* weir_cuda_gemm(weir_device_t* device, const weir_gemm_args_t* args,
                                            weir_gemm_batch_t batch);

// The same with |tail|. UNIMPLEMENTED where the library has nothing like it, or k is 0.
WEIR_MUST_USE weir_status_t* weir_cuda_gemm_with_tail(weir_device_t* device,
                                                      const weir_gemm_args_t* args,
                                                      const weir_gemm_tail_t* tail);

// weir_gemm_any on the device of |ctx|.
WEIR_MUST_USE weir_status_t* weir_kernel_gemm(weir_kernel_ctx_t* ctx, const weir_gemm_args_t* args);

#endif  // WEIR_KERNEL_GEMM_CUDA_GEMM_H_
