// cuda_top_k.h — The largest elements of rows, on GPUs.
#ifndef WEIR_KERNEL_REDUCE_CUDA_TOP_K_H_
#define WEIR_KERNEL_REDUCE_CUDA_TOP_K_H_

#include "device/cuda/cuda.h"
#include "op/kernel.h"

// Immutable after init.
typedef struct weir_cuda_top_k_t {
  weir_cuda_function_t function;
  size_t entry_size;  // what an element takes when it is sorted
} weir_cuda_top_k_t;

WEIR_MUST_USE weir_status_t* weir_cuda_top_k_find(weir_device_t* device, weir_dtype_t dtype,
                                                  weir_dtype_t index, weir_cuda_top_k_t* out);
// The largest elements of the rows of |x|, as many as |values| has in one, the largest first, NaN
// before all; and their |indices|. Of equal ones the first. UNIMPLEMENTED for rows of more than
// 2^30.
WEIR_MUST_USE weir_status_t* weir_cuda_top_k(weir_kernel_ctx_t* ctx, const weir_cuda_top_k_t* self,
                                             const weir_tensor_t* x, weir_tensor_t* values,
                                             weir_tensor_t* indices);

#endif  // WEIR_KERNEL_REDUCE_CUDA_TOP_K_H_
