// activation_op.h — Kernels of activation ops, shared by the files that define them. Thread-safe.
#ifndef WEIR_KERNEL_NN_ACTIVATION_OP_H_
#define WEIR_KERNEL_NN_ACTIVATION_OP_H_

#include "kernel/nn/activation.h"
#include "op/kernel.h"

// State of the kernels below; their init sets |activation| (and |alpha|) and they are looked up
// once a plan.
typedef struct weir_activation_op_t {
  weir_activation_t activation;
  float alpha;
  weir_activation_loop_fn_t forward;
  weir_activation_grad_fn_t backward;
} weir_activation_op_t;

// Looks the functions up for the node's attribute T. INTERNAL when there are none.
WEIR_MUST_USE weir_status_t* weir_activation_op_init(const weir_kernel_init_t* init,
                                                     weir_activation_t activation, float alpha,
                                                     weir_activation_op_t* out_op);
weir_status_t* weir_activation_op_forward(
    weir_kernel_ctx_t* ctx);  // (features) -> activations, in place where possible
weir_status_t* weir_activation_op_backward(
    weir_kernel_ctx_t* ctx);  // (gradients, features) -> backprops
// INVALID_ARGUMENT unless gradients and features have one shape.
WEIR_MUST_USE weir_status_t* weir_activation_op_check(const weir_kernel_ctx_t* ctx);

// The error of a gradient, at node |name|, whose inputs have the shapes |dy| and |x|.
WEIR_MUST_USE weir_status_t* weir_activation_shape_error(const char* name, const char* op,
                                                         const char* dy, const char* x);

#define WEIR_ACTIVATION_KERNEL(init_fn, compute_fn, row_types)                \
  WEIR_CPU_KERNEL(.types = row_types, .compute = compute_fn, .init = init_fn, \
                  .state_size = sizeof(weir_activation_op_t))

#endif  // WEIR_KERNEL_NN_ACTIVATION_OP_H_
