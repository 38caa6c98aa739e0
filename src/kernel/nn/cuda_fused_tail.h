// cuda_fused_tail.h — What follows a product within one fused op, on GPUs. Thread-safe.
#ifndef WEIR_KERNEL_NN_CUDA_FUSED_TAIL_H_
#define WEIR_KERNEL_NN_CUDA_FUSED_TAIL_H_

#include "device/cuda/cuda.h"
#include "kernel/nn/fused_tail.h"

// UNIMPLEMENTED for a batch normalisation.
WEIR_MUST_USE weir_status_t* weir_cuda_tail_find(weir_device_t* device,
                                                 const weir_fused_tail_t* tail, weir_dtype_t dtype,
                                                 weir_cuda_function_t* out_function);

// Device memory; elements are of one type.
typedef struct weir_cuda_tail_t {
  int64_t rows, channels;
  const void* bias;  // |channels| elements
  const void* side;  // as many as |y|, or NULL
  void* y;           // changed in place
} weir_cuda_tail_t;
WEIR_MUST_USE weir_status_t* weir_cuda_tail_apply(weir_device_t* device,
                                                  weir_cuda_function_t function,
                                                  const weir_cuda_tail_t* run);

#endif  // WEIR_KERNEL_NN_CUDA_FUSED_TAIL_H_
