// cuda_scan.h — Running sums, products and log-sums along a dimension, on a GPU.
#ifndef WEIR_KERNEL_REDUCE_CUDA_SCAN_H_
#define WEIR_KERNEL_REDUCE_CUDA_SCAN_H_

#include "device/cuda/cuda.h"
#include "kernel/elementwise/elementwise.h"
#include "op/kernel.h"

// Immutable after it was found.
typedef struct weir_cuda_scan_t {
  weir_cuda_function_t columns, rows, totals, carries;
} weir_cuda_scan_t;

// Finds the functions for |op|, one of ADD, MUL and LOG_ADD_EXP, of floating-point numbers, or ADD
// of int64.
WEIR_MUST_USE weir_status_t* weir_cuda_scan_find(weir_device_t* device, weir_binary_op_t op,
                                                 weir_dtype_t dtype, weir_cuda_scan_t* out);

// A tensor as [outer, length, inner]: it is the middle that is scanned.
typedef struct weir_scan_shape_t {
  int64_t outer, length, inner;
  bool is_exclusive;  // an element is not in the sum of its own place
  bool is_reverse;    // from the end
} weir_scan_shape_t;
WEIR_MUST_USE weir_status_t* weir_cuda_scan(weir_kernel_ctx_t* ctx,
                                            const weir_cuda_scan_t* functions,
                                            const weir_scan_shape_t* shape, const void* x, void* y);

#endif  // WEIR_KERNEL_REDUCE_CUDA_SCAN_H_
