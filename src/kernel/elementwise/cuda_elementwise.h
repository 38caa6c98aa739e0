// cuda_elementwise.h — Elementwise ops on GPUs, from the formulas of unary_ops.inc and
// binary_ops.inc.
#ifndef WEIR_KERNEL_ELEMENTWISE_CUDA_ELEMENTWISE_H_
#define WEIR_KERNEL_ELEMENTWISE_CUDA_ELEMENTWISE_H_

#include "device/cuda/cuda.h"
#include "kernel/elementwise/elementwise.h"
#include "op/kernel.h"

// Of both kinds; immutable after init.
typedef struct weir_cuda_elementwise_t {
  weir_cuda_function_t function;   // equal shapes, and scalars
  weir_cuda_function_t broadcast;  // of a binary operation
} weir_cuda_elementwise_t;

// UNIMPLEMENTED when there is no formula for the type of input 0.
WEIR_MUST_USE weir_status_t* weir_cuda_unary_init(const weir_kernel_init_t* init, void* state,
                                                  weir_unary_op_t op);
WEIR_MUST_USE weir_status_t* weir_cuda_binary_init(const weir_kernel_init_t* init, void* state,
                                                   weir_binary_op_t op);
weir_status_t* weir_cuda_unary_compute(weir_kernel_ctx_t* ctx);
weir_status_t* weir_cuda_binary_compute(weir_kernel_ctx_t* ctx);
// Element by element: both inputs must have as many.
weir_status_t* weir_cuda_binary_flat_compute(weir_kernel_ctx_t* ctx);

// Launches |functions|, made by weir_cuda_binary_init, on |n| elements of equal shapes: z = f(x,
// y).
WEIR_MUST_USE weir_status_t* weir_cuda_binary_run(weir_device_t* device,
                                                  const weir_cuda_elementwise_t* functions,
                                                  const void* x, const void* y, void* z, int64_t n,
                                                  weir_span_t span);
// The functions of an operation on operands of |dtype| with results of |result|.
WEIR_MUST_USE weir_status_t* weir_cuda_binary_find(weir_device_t* device, weir_binary_op_t op,
                                                   weir_dtype_t dtype, weir_dtype_t result,
                                                   weir_cuda_elementwise_t* out_functions);
// The same of a formula of one's own, the value at |a|, or at |a| and |b|, both of type ACC: the
// operands', or float for half and bfloat16. UNIMPLEMENTED where |formula| is NULL.
WEIR_MUST_USE weir_status_t* weir_cuda_formula_find(weir_device_t* device, bool is_unary,
                                                    const char* formula, weir_dtype_t dtype,
                                                    weir_dtype_t result,
                                                    weir_cuda_elementwise_t* out_functions);

#endif  // WEIR_KERNEL_ELEMENTWISE_CUDA_ELEMENTWISE_H_
