// cuda_bias.h — A vector added along one dimension on GPUs, and the ReLU of that. Thread-safe.
#ifndef WEIR_KERNEL_NN_CUDA_BIAS_H_
#define WEIR_KERNEL_NN_CUDA_BIAS_H_

#include "device/cuda/cuda.h"
#include "kernel/nn/bias.h"
#include "op/kernel.h"

WEIR_MUST_USE weir_status_t* weir_cuda_bias_find(weir_device_t* device, weir_dtype_t dtype,
                                                 bool is_relu, weir_cuda_function_t* out_function);
// y = x + bias, which are of |dtype| and in device memory; y may be x.
WEIR_MUST_USE weir_status_t* weir_cuda_bias_add(weir_device_t* device,
                                                weir_cuda_function_t function, weir_dtype_t dtype,
                                                const weir_bias_t* shape, const void* x,
                                                const void* bias, void* y);

#endif  // WEIR_KERNEL_NN_CUDA_BIAS_H_
