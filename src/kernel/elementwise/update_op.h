// update_op.h — Kernels that update a variable's memory in place, on CPUs and GPUs.
#ifndef WEIR_KERNEL_ELEMENTWISE_UPDATE_OP_H_
#define WEIR_KERNEL_ELEMENTWISE_UPDATE_OP_H_

#include "kernel/elementwise/cuda_elementwise.h"
#include "kernel/elementwise/update.h"

// The inits of a GPU's kernels, whose states are weir_cuda_elementwise_t. Input 1 is what is added
// or subtracted.
weir_status_t* weir_update_add_gpu(const weir_kernel_init_t* init, void* state);
weir_status_t* weir_update_sub_gpu(const weir_kernel_init_t* init, void* state);

// |target| = |target| OP |value|, of the same type and shape, both where the kernel computes.
WEIR_MUST_USE weir_status_t* weir_kernel_update(weir_kernel_ctx_t* ctx, weir_update_op_t update,
                                                weir_tensor_t* target, const weir_tensor_t* value);

#endif  // WEIR_KERNEL_ELEMENTWISE_UPDATE_OP_H_
