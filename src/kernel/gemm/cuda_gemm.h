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

// As weir_gemm_any, of float, double, half and bfloat16, in the compute stream.
WEIR_MUST_USE weir_status_t* weir_cuda_gemm(weir_device_t* device, const weir_gemm_args_t* args,
                                            weir_gemm_batch_t batch);

// weir_gemm_any on the device of |ctx|.
WEIR_MUST_USE weir_status_t* weir_kernel_gemm(weir_kernel_ctx_t* ctx, const weir_gemm_args_t* args);

#endif  // WEIR_KERNEL_GEMM_CUDA_GEMM_H_
