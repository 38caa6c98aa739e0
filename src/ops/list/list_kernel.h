// list_kernel.h — TensorLists as inputs and outputs of kernels.
#ifndef WEIR_OPS_LIST_LIST_KERNEL_H_
#define WEIR_OPS_LIST_LIST_KERNEL_H_

#include "op/kernel.h"
#include "tensor/tensor_list.h"

// The list in input |i|; borrowed. INVALID_ARGUMENT when it is not a scalar that holds one.
WEIR_MUST_USE weir_status_t* weir_list_input(weir_kernel_ctx_t* ctx, int i,
                                             const weir_list_t** out_list);
// As input, checking that its elements are of the node's element_dtype.
WEIR_MUST_USE weir_status_t* weir_list_input_typed(weir_kernel_ctx_t* ctx, int i,
                                                   weir_dtype_t dtype,
                                                   const weir_list_t** out_list);
// Makes output |to| the list of input |from|, in a form that may be changed; borrowed from the
// output.
WEIR_MUST_USE weir_status_t* weir_list_forward(weir_kernel_ctx_t* ctx, int from, int to,
                                               weir_list_t** out_list);
// Makes |take_list| output |i|; consumes it in every case.
WEIR_MUST_USE weir_status_t* weir_list_output(weir_kernel_ctx_t* ctx, int i,
                                              weir_list_t* take_list);

#endif  // WEIR_OPS_LIST_LIST_KERNEL_H_
