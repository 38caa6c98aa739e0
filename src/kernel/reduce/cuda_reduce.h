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

// ---- reductions of what a kernel computes ----
//
// The elements need not be in memory: whoever defines HAS_SOURCE, and the words that reduce.cu has
// for those that are, gives the kernels others, element by element.

// Appends what reduce.cu says of an operation on a type, but for WIDTH. UNIMPLEMENTED for types
// that CUDA sources do not have.
WEIR_MUST_USE weir_status_t* weir_cuda_reduce_define(weir_reduce_op_t op, weir_dtype_t dtype,
                                                     weir_strbuf_t* out);
// The functions of reduce.cu after |definitions|, a finished text: for an innermost run that is
// reduced, or one that is kept, or both.
WEIR_MUST_USE weir_status_t* weir_cuda_reduce_build(weir_device_t* device,
                                                    const weir_strbuf_t* definitions, bool has_rows,
                                                    bool has_columns,
                                                    weir_cuda_reduce_t* out_functions);

typedef struct weir_cuda_reduction_t {
  int rank;
  const int64_t* dims;
  const bool* is_reduced;
  const void* source;  // source_t of the text
  void* y;
  int64_t width;   // WIDTH of the text
  bool is_packed;  // packs lie well wherever a pack of the elements begins
} weir_cuda_reduction_t;
// Each element is fetched and taken exactly once, unless there are no outputs. REQUIRES: if there
// are any, there are elements, or the source does nothing but give them.
WEIR_MUST_USE weir_status_t* weir_cuda_reduce_from(weir_kernel_ctx_t* ctx,
                                                   const weir_cuda_reduce_t* functions,
                                                   const weir_cuda_reduction_t* what);

#endif  // WEIR_KERNEL_REDUCE_CUDA_REDUCE_H_
