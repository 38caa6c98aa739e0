// cuda_reduce.h — Reductions over any set of dimensions on GPUs.
#ifndef WEIR_KERNEL_REDUCE_CUDA_REDUCE_H_
#define WEIR_KERNEL_REDUCE_CUDA_REDUCE_H_

#include "device/cuda/cuda.h"
#include "kernel/reduce/reduce.h"
#include "op/kernel.h"

// Functions of one operation on one type; immutable after they were found.
typedef struct weir_cuda_reduce_t {
  weir_cuda_function_t lanes, rows, columns, packs, join;
} weir_cuda_reduce_t;

// UNIMPLEMENTED for types that CUDA sources do not have.
WEIR_MUST_USE weir_status_t* weir_cuda_reduce_find(weir_device_t* device, weir_reduce_op_t op,
                                                   weir_dtype_t dtype,
                                                   weir_cuda_reduce_t* out_functions);
// As weir_reduce, on |ctx|'s device. Half and bfloat16 are accumulated in float, integers in 64
// bits; the order of sums depends on shapes and the device alone.
WEIR_MUST_USE weir_status_t* weir_cuda_reduce(weir_kernel_ctx_t* ctx,
                                              const weir_cuda_reduce_t* functions,
                                              weir_dtype_t dtype, int rank, const int64_t* dims,
                                              const bool* is_reduced, const void* x, void* y);

#endif  // WEIR_KERNEL_REDUCE_CUDA_REDUCE_H_
