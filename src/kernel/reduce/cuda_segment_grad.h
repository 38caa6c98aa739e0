// cuda_segment_grad.h — Gradients of sums of picked rows, on GPUs.
#ifndef WEIR_KERNEL_REDUCE_CUDA_SEGMENT_GRAD_H_
#define WEIR_KERNEL_REDUCE_CUDA_SEGMENT_GRAD_H_

#include "kernel/move/scatter_op.h"
#include "kernel/reduce/cuda_segment.h"

// Immutable after init.
typedef struct weir_cuda_segment_grad_t {
  weir_cuda_function_t count_ids, spread_rows;
  weir_scatter_state_t scatter;
} weir_cuda_segment_grad_t;

// Of a node whose inputs begin with the gradients, the indices of rows, and their ids.
WEIR_MUST_USE weir_status_t* weir_cuda_segment_grad_find(const weir_kernel_init_t* init,
                                                         weir_cuda_segment_grad_t* out);
// |y| is zero, plus, at each of |indices|, the gradient of the segment that |ids| (of the device's)
// name. What is out of range is left out. Sums are in order where those of scatters are.
WEIR_MUST_USE weir_status_t* weir_cuda_segment_grad(weir_kernel_ctx_t* ctx,
                                                    const weir_cuda_segment_grad_t* functions,
                                                    weir_segment_norm_t norm,
                                                    const weir_tensor_t* indices, const void* ids,
                                                    weir_tensor_t* y);

#endif  // WEIR_KERNEL_REDUCE_CUDA_SEGMENT_GRAD_H_
