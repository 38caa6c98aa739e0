// call.h — What kernels that call functions share: a function instantiated on first use, a call on
// a kernel's inputs, truth.
#ifndef WEIR_OP_CALL_H_
#define WEIR_OP_CALL_H_

#include "op/kernel.h"

// A function a kernel calls, part of its state. It is instantiated at the first call and not
// before: a body that calls itself could not be built otherwise. Thread-safe.
typedef struct weir_callee_t {
  const weir_func_t* func;  // borrowed from the node
  atomic_ullong handle;     // weir_function_handle_t; 0: not yet
} weir_callee_t;

WEIR_INLINE void weir_callee_init(weir_callee_t* callee, const weir_func_t* func) {
  callee->func = func;
  atomic_init(&callee->handle, 0);
}
// Whether the attributes of a conditional or loop ask for Switch, Merge and loops in its place.
bool weir_call_asks_to_lower(weir_attrs_t attrs);
// FAILED_PRECONDITION when the step has no functions, NOT_FOUND for a name nobody defined.
WEIR_MUST_USE weir_status_t* weir_callee_handle(weir_callee_t* callee, weir_kernel_ctx_t* ctx,
                                                weir_function_handle_t* out_handle);

// Calls on the kernel's inputs from |first_input| on, makes the results its outputs, and calls
// |done|.
void weir_callee_call(weir_callee_t* callee, weir_kernel_ctx_t* ctx, int first_input,
                      weir_done_t done);

// Makes |take_tensors|, as many as it has outputs, the kernel's. Takes them in every case. INTERNAL
// when a function made another type than its caller's node says.
WEIR_MUST_USE weir_status_t* weir_kernel_set_results(weir_kernel_ctx_t* ctx,
                                                     weir_tensor_t** take_tensors);

// TensorFlow's truth of a tensor: a scalar that is not zero or not the empty string; any other
// tensor that is not empty.
WEIR_MUST_USE weir_status_t* weir_tensor_truth(const weir_tensor_t* tensor, bool* out_truth);

#endif  // WEIR_OP_CALL_H_
