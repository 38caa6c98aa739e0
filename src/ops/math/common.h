// common.h — What the op files of this folder share: sets of types, and short names for the nodes
// gradients are made of.
#ifndef WEIR_OPS_MATH_COMMON_H_
#define WEIR_OPS_MATH_COMMON_H_

#include "kernel/elementwise/cwise.h"
#include "op/cost.h"
#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "op/simplify.h"

#define FLOATING_TYPES "{bfloat16,half,float,double}"
#define FLOATING_COMPLEX_TYPES "{bfloat16,half,float,double,complex64,complex128}"
#define INTEGER_TYPES "{int8,int16,int32,int64,uint8,uint16,uint32,uint64}"

// Types with code on the CPU, for kernels of ops whose definition allows the quantised ones too.
#define CPU_REAL_NUMBER \
  "T: float, double, half, bfloat16, int8, int16, int32, int64, uint8, uint16, uint32, uint64"
#define CPU_NUMBER CPU_REAL_NUMBER ", complex64, complex128"

// Rows of the tables: an elementwise function of two inputs, broadcast; of an output and its
// gradient.
#define BINARY_OP(op_name, types_, mixed_, text, extra_flags, grad, init_fn, constraint)       \
  {                                                                                            \
    .name = op_name, .attrs = "T: " types_, .inputs = "x: T; y: T", .outputs = "z: T",         \
    .flags = WEIR_OP_POINTWISE | (extra_flags), .mixed = WEIR_MIXED_##mixed_, .summary = text, \
    .infer_shape = weir_shape_fn_broadcast, .build_grad = grad,                                \
    .kernels = WEIR_BINARY_KERNELS(init_fn, constraint)                                        \
  }
#define GRADIENT_OP(op_name, mixed_, text, grad, init_fn)                                         \
  {                                                                                               \
    .name = op_name, .attrs = "T: " FLOATING_COMPLEX_TYPES, .inputs = "y: T; dy: T",              \
    .outputs = "z: T", .flags = WEIR_OP_POINTWISE, .mixed = WEIR_MIXED_##mixed_, .summary = text, \
    .infer_shape = weir_shape_fn_unchanged, .build_grad = grad,                                   \
    .kernels = WEIR_BINARY_FLAT_KERNELS(init_fn)                                                  \
  }

static inline weir_edge_t node1(weir_grad_ctx_t* g, const char* op, weir_edge_t a) {
  return weir_grad_node(g, op, WEIR_EDGES(a));
}
static inline weir_edge_t node2(weir_grad_ctx_t* g, const char* op, weir_edge_t a, weir_edge_t b) {
  return weir_grad_node(g, op, WEIR_EDGES(a, b));
}
static inline weir_edge_t node3(weir_grad_ctx_t* g, const char* op, weir_edge_t a, weir_edge_t b,
                                weir_edge_t c) {
  return weir_grad_node(g, op, WEIR_EDGES(a, b, c));
}
static inline weir_edge_t cast_to(weir_grad_ctx_t* g, weir_edge_t a, weir_dtype_t dtype) {
  return weir_grad_node_with(g, "Cast", WEIR_EDGES(a), WEIR_ATTRS(weir_attr_type("DstT", dtype)));
}
// Conjugates of forward values: x for real types.
static inline weir_edge_t conj_input(weir_grad_ctx_t* g, int i) {
  return weir_grad_conj(g, weir_grad_input(g, i));
}
static inline weir_edge_t conj_output(weir_grad_ctx_t* g) {
  return weir_grad_conj(g, weir_grad_output(g, 0));
}

// dx = dy * |factor|, for ops of one input.
static inline weir_status_t* set_scaled(weir_grad_ctx_t* g, weir_edge_t factor) {
  return weir_grad_set(g, 0, weir_grad_mul(g, weir_grad_dy(g, 0), factor));
}

// Sets the gradients of both inputs of a broadcasting op, summed down to their shapes.
static inline weir_status_t* set_broadcast(weir_grad_ctx_t* g, weir_edge_t dx, weir_edge_t dy) {
  WEIR_TRY(weir_grad_set(g, 0, weir_grad_unbroadcast(g, dx, 0, 1)));
  return weir_grad_set(g, 1, weir_grad_unbroadcast(g, dy, 1, 0));
}

#endif  // WEIR_OPS_MATH_COMMON_H_
