// cuda_ternary.h — Operations of three operands on GPUs: choosing and clamping.
#ifndef WEIR_KERNEL_ELEMENTWISE_CUDA_TERNARY_H_
#define WEIR_KERNEL_ELEMENTWISE_CUDA_TERNARY_H_

#include "device/cuda/cuda.h"
#include "tensor/tensor.h"

// Immutable after it was found.
typedef struct weir_cuda_ternary_t {
  weir_cuda_function_t flat;    // operands of the result's shape, or of one element
  weir_cuda_function_t spread;  // others
} weir_cuda_ternary_t;

// Operands x, a and b, and where they are in the result: strides in elements over its dimensions,
// 0 where an operand repeats.
typedef struct weir_ternary_t {
  const void* x;
  const void* a;
  const void* b;
  void* y;
  int rank;
  const int64_t* dims;
  const int64_t* strides[3];
} weir_ternary_t;

// y = x ? a : b, of elements of |size| bytes: 1, 2, 4, 8 or 16.
WEIR_MUST_USE weir_status_t* weir_cuda_select_find(weir_device_t* device, size_t size,
                                                   weir_cuda_ternary_t* out_functions);
// y = max(min(x, b), a). UNIMPLEMENTED for types that have no order.
WEIR_MUST_USE weir_status_t* weir_cuda_clamp_find(weir_device_t* device, weir_dtype_t dtype,
                                                  weir_cuda_ternary_t* out_functions);
// UNIMPLEMENTED when more than 8 dimensions are left where neighbours are merged.
WEIR_MUST_USE weir_status_t* weir_cuda_ternary_run(weir_device_t* device,
                                                   const weir_cuda_ternary_t* functions,
                                                   const weir_ternary_t* operands);

#endif  // WEIR_KERNEL_ELEMENTWISE_CUDA_TERNARY_H_
