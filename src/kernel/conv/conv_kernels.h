// conv_kernels.h — The kernels of our own that convolutions on GPUs need around cuDNN's.
// Thread-safe.
#ifndef WEIR_KERNEL_CONV_CONV_KERNELS_H_
#define WEIR_KERNEL_CONV_CONV_KERNELS_H_

#include "device/cuda/cuda.h"
#include "kernel/conv/conv.h"

// What follows a forward convolution.
typedef enum weir_conv_tail_t {
  WEIR_CONV_NO_TAIL,
  WEIR_CONV_BIAS,
  WEIR_CONV_BIAS_RELU,
} weir_conv_tail_t;

// Of one type of elements. Immutable after create.
typedef struct weir_conv_kernels_t {
  weir_cuda_function_t transpose, turn;  // filters
  weir_cuda_function_t pad, crop;        // images in larger ones
  weir_cuda_function_t fold, unfold;     // pixels into channels
  weir_cuda_function_t bias, bias_relu;  // tails
} weir_conv_kernels_t;

// Those of |dtype|, a float type, which are compiled the first time; |out_kernels| is the device's.
WEIR_MUST_USE weir_status_t* weir_conv_kernels_find(weir_device_t* device, weir_dtype_t dtype,
                                                    const weir_conv_kernels_t** out_kernels);

// y = tail(y + bias), in place, of the outputs of a convolution.
typedef struct weir_conv_tail_run_t {
  weir_conv_tail_t tail;  // REQUIRES: one
  weir_dtype_t dtype;
  const weir_conv_t* conv;
  bool is_nchw;
  const void* bias;
  void* y;
} weir_conv_tail_run_t;
WEIR_MUST_USE weir_status_t* weir_conv_kernels_tail(weir_device_t* device,
                                                    const weir_conv_kernels_t* kernels,
                                                    const weir_conv_tail_run_t* run);

#endif  // WEIR_KERNEL_CONV_CONV_KERNELS_H_
