// cwise.h — Kernels of elementwise ops: what binds the loops of elementwise.h to a kernel context.
//
// The function is looked up once, at init; a step on equal shapes or scalars costs a forward and a
// call.
#ifndef WEIR_KERNEL_ELEMENTWISE_CWISE_H_
#define WEIR_KERNEL_ELEMENTWISE_CWISE_H_

#include "kernel/elementwise/elementwise.h"
#include "op/kernel.h"

// Immutable after init.
typedef struct weir_unary_state_t {
  weir_unary_fn_t fn;
  double cost;
  size_t size;      // bytes of an element of the input
  size_t out_size;  // and of the output
} weir_unary_state_t;

typedef struct weir_binary_state_t {
  weir_binary_fn_t fn;
  weir_binary_op_t op;
  double cost;
  size_t size;
  size_t out_size;
} weir_binary_state_t;

// UNIMPLEMENTED when the operation has no loop for the type of input 0.
WEIR_MUST_USE weir_status_t* weir_unary_init(const weir_kernel_init_t* init, void* state,
                                             weir_unary_op_t op);
WEIR_MUST_USE weir_status_t* weir_binary_init(const weir_kernel_init_t* init, void* state,
                                              weir_binary_op_t op);

weir_status_t* weir_unary_compute(weir_kernel_ctx_t* ctx);
// Broadcasts. INVALID_ARGUMENT "Incompatible shapes: [2] vs. [3]".
weir_status_t* weir_binary_compute(weir_kernel_ctx_t* ctx);
// Element by element: both inputs must have as many.
weir_status_t* weir_binary_flat_compute(weir_kernel_ctx_t* ctx);

// Plans the broadcast of two shapes, with the errors of weir_binary_compute.
WEIR_MUST_USE weir_status_t* weir_cwise_broadcast(weir_shape_view_t x, weir_shape_view_t y,
                                                  weir_broadcast_t* out_plan);
// The error of weir_binary_flat_compute.
WEIR_MUST_USE weir_status_t* weir_cwise_flat_error(weir_shape_view_t x, weir_shape_view_t y);
// The error of SelectV2 where the condition does not broadcast with the other two.
WEIR_MUST_USE weir_status_t* weir_cwise_select_error(weir_shape_view_t condition,
                                                     weir_shape_view_t t, weir_shape_view_t e);
// Plans the broadcast of inputs |i| and |j|.
WEIR_MUST_USE weir_status_t* weir_kernel_broadcast(const weir_kernel_ctx_t* ctx, int i, int j,
                                                   weir_broadcast_t* out_plan);
WEIR_INLINE weir_shape_view_t weir_shape_view_of(const weir_tensor_t* t) {
  return (weir_shape_view_t){.rank = t->rank, .dims = t->dims};
}

// Defines the init function |name| of an op: WEIR_UNARY_INIT(exp_init, EXP), and what it looks up.
#define WEIR_UNARY_INIT(name, OP)                                           \
  enum { name##_function = WEIR_UNARY_##OP };                               \
  static weir_status_t* name(const weir_kernel_init_t* init, void* state) { \
    return weir_unary_init(init, state, WEIR_UNARY_##OP);                   \
  }
#define WEIR_BINARY_INIT(name, OP)                                          \
  enum { name##_function = WEIR_BINARY_##OP };                              \
  static weir_status_t* name(const weir_kernel_init_t* init, void* state) { \
    return weir_binary_init(init, state, WEIR_BINARY_##OP);                 \
  }

// Kernel tables of elementwise ops, each followed by the op's .scalar; |constraint| is as
// weir_kernel_def_t.types, or NULL.
#define WEIR_UNARY_KERNELS(init_fn, constraint)                                              \
  (const weir_kernel_def_t[]){                                                               \
      {WEIR_DEVICE_CPU, .types = constraint, .compute = weir_unary_compute, .init = init_fn, \
       .state_size = sizeof(weir_unary_state_t)},                                            \
      {0}},                                                                                  \
      .scalar = {WEIR_SCALAR_UNARY, init_fn##_function}
#define WEIR_BINARY_KERNELS(init_fn, constraint)                                              \
  (const weir_kernel_def_t[]){                                                                \
      {WEIR_DEVICE_CPU, .types = constraint, .compute = weir_binary_compute, .init = init_fn, \
       .state_size = sizeof(weir_binary_state_t)},                                            \
      {0}},                                                                                   \
      .scalar = {WEIR_SCALAR_BINARY, init_fn##_function}
#define WEIR_BINARY_FLAT_KERNELS(init_fn)                                                   \
  (const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .compute = weir_binary_flat_compute,        \
                               .init = init_fn, .state_size = sizeof(weir_binary_state_t)}, \
                              {0}},                                                         \
      .scalar = {WEIR_SCALAR_BINARY_FLAT, init_fn##_function}

#endif  // WEIR_KERNEL_ELEMENTWISE_CWISE_H_
