// cuda_segment.h — Reductions of runs of rows with equal ids, on GPUs.
#ifndef WEIR_KERNEL_REDUCE_CUDA_SEGMENT_H_
#define WEIR_KERNEL_REDUCE_CUDA_SEGMENT_H_

#include "device/cuda/cuda.h"
#include "kernel/elementwise/cwise.h"
#include "op/kernel.h"

// What a sum is divided by: nothing, the number of its rows, or the root of that.
typedef enum weir_segment_norm_t {
  WEIR_SEGMENT_SUM,
  WEIR_SEGMENT_MEAN,
  WEIR_SEGMENT_SQRT,
} weir_segment_norm_t;

// Immutable after init.
typedef struct weir_cuda_segment_t {
  weir_cuda_function_t segments;
  weir_cuda_function_t long_segments;
} weir_cuda_segment_t;

// Finds the functions for sums (ADD), products (MUL), maxima (MAXIMUM) or minima (MINIMUM) of
// elements of type |dtype|; of rows that indices of type |index| pick.
WEIR_MUST_USE weir_status_t* weir_cuda_segment_find(const weir_kernel_init_t* init,
                                                    weir_binary_op_t op, weir_dtype_t dtype,
                                                    weir_dtype_t id, weir_dtype_t index,
                                                    weir_cuda_segment_t* out);

typedef struct weir_segments_t {
  const weir_tensor_t* data;
  const void* indices;  // of the device's, one for each id; NULL: the rows in their order
  const void* ids;      // likewise; they must not decrease
  int64_t id_count;
  weir_segment_norm_t norm;
} weir_segments_t;
// |y| gets a row for each id from 0 on. Rows that indices look for in vain are left out.
WEIR_MUST_USE weir_status_t* weir_cuda_segment(const weir_kernel_ctx_t* ctx,
                                               const weir_cuda_segment_t* functions,
                                               const weir_segments_t* segments, weir_tensor_t* y);

// What GPUs reduce so: TensorFlow's types, and for what is no mean integers.
#define WEIR_SEGMENT_FLOATS "float, double, half, bfloat16"
#define WEIR_SEGMENT_NUMBERS \
  WEIR_SEGMENT_FLOATS ", int8, int16, int32, int64, uint8, uint16, uint32, uint64"

#endif  // WEIR_KERNEL_REDUCE_CUDA_SEGMENT_H_
