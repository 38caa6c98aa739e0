// staging.h — Inputs and outputs of a kernel in another type or data format: widened to the type
// computed in, NHWC in memory.
#ifndef WEIR_KERNEL_MOVE_STAGING_H_
#define WEIR_KERNEL_MOVE_STAGING_H_

#include "op/kernel.h"

// The type computed in: float for half and bfloat16, the type itself for all others.
WEIR_INLINE weir_dtype_t weir_compute_type(weir_dtype_t dtype) {
  return dtype == WEIR_DTYPE_HALF || dtype == WEIR_DTYPE_BFLOAT16 ? WEIR_DTYPE_FLOAT : dtype;
}

// A tensor's elements in the type computed in, batch and channels apart from the spatial dimensions
// as NHWC.
typedef struct weir_staged_t {
  void* data;              // to read, or to write
  weir_tensor_t* scratch;  // owned; NULL when |data| is the tensor's own memory
} weir_staged_t;

// Stages |tensor| for reading. With |is_nchw|, dimension 1 of a tensor of rank 3 or more is moved
// last.
WEIR_MUST_USE weir_status_t* weir_stage_input(weir_kernel_ctx_t* ctx, const weir_tensor_t* tensor,
                                              bool is_nchw, weir_staged_t* out_staged);
// Stages |tensor| for writing all of it; weir_stage_finish then brings what was written into
// |tensor|.
WEIR_MUST_USE weir_status_t* weir_stage_output(weir_kernel_ctx_t* ctx, weir_tensor_t* tensor,
                                               bool is_nchw, weir_staged_t* out_staged);
WEIR_MUST_USE weir_status_t* weir_stage_finish(weir_kernel_ctx_t* ctx, weir_tensor_t* tensor,
                                               bool is_nchw, weir_staged_t* staged);
void weir_staged_release(weir_staged_t* staged);  // of zeroes too

// Transposes |batch| matrices of |rows| x |columns| elements of |size| bytes (1, 2, 4, 8 or 16).
void weir_transpose_batch(weir_pool_t* pool, size_t size, int64_t batch, int64_t rows,
                          int64_t columns, const void* src, void* dst);

#endif  // WEIR_KERNEL_MOVE_STAGING_H_
