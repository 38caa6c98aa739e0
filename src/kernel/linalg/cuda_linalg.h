// cuda_linalg.h — What GPU kernels of matrices share on the host: they have a block a matrix.
#ifndef WEIR_KERNEL_LINALG_CUDA_LINALG_H_
#define WEIR_KERNEL_LINALG_CUDA_LINALG_H_

#include "device/cuda/cuda.h"
#include "op/kernel.h"

// The function |name| of |text|, which comes after matrix.cu, for elements of input 0's type.
WEIR_MUST_USE weir_status_t* weir_cuda_linalg_find(const weir_kernel_init_t* init, const char* text,
                                                   const char* name,
                                                   weir_cuda_function_t* out_function);
// For |count| matrices.
weir_cuda_size_t weir_cuda_linalg_size(const weir_device_t* device, int64_t count);

#endif  // WEIR_KERNEL_LINALG_CUDA_LINALG_H_
