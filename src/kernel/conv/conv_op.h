// conv_op.h — What the convolution ops have in common: shape functions, gradients and kernels of a
// forward op and its gradients by input and by filter. Thread-safe.
#ifndef WEIR_KERNEL_CONV_CONV_OP_H_
#define WEIR_KERNEL_CONV_CONV_OP_H_

#include "device/cuda/cuda.h"
#include "kernel/conv/window.h"
#include "kernel/nn/fused_tail.h"
#include "op/cost.h"
#include "op/grad_ctx.h"

// A forward op (input, filter), its gradient by the input (input_sizes, filter, dy) and its
// gradient by the filter (input, filter_sizes, dy). The three agree in all window attributes.
typedef struct weir_conv_family_t {
  const char *forward, *by_input, *by_filter;    // names of the ops
  const char *by_input_label, *by_filter_label;  // what TensorFlow calls kernels in messages
  weir_conv_fn_t run_forward, run_by_input, run_by_filter;
  bool is_depthwise;
  bool has_short_sizes;  // input_sizes may be those of the axes alone
  bool takes_tensors;    // gradients are given a tensor of their shape instead of sizes
} weir_conv_family_t;

// ---- shapes ----
WEIR_MUST_USE weir_status_t* weir_conv_op_shape(weir_shape_ctx_t* ctx);
WEIR_MUST_USE weir_status_t* weir_conv_op_depthwise_shape(weir_shape_ctx_t* ctx);
WEIR_MUST_USE weir_status_t* weir_conv_op_by_input_shape(weir_shape_ctx_t* ctx);
WEIR_MUST_USE weir_status_t* weir_conv_op_by_filter_shape(weir_shape_ctx_t* ctx);

// ---- costs of each of the three ----
void weir_conv_op_cost(const weir_cost_ctx_t* ctx, weir_cost_t* cost);
void weir_conv_op_by_input_cost(const weir_cost_ctx_t* ctx, weir_cost_t* cost);
void weir_conv_op_by_filter_cost(const weir_cost_ctx_t* ctx, weir_cost_t* cost);
void weir_conv_op_depthwise_cost(const weir_cost_ctx_t* ctx, weir_cost_t* cost);
void weir_conv_op_depthwise_by_input_cost(const weir_cost_ctx_t* ctx, weir_cost_t* cost);
void weir_conv_op_depthwise_by_filter_cost(const weir_cost_ctx_t* ctx, weir_cost_t* cost);

// ---- gradients of each of the three ----
WEIR_MUST_USE weir_status_t* weir_conv_op_grad(weir_grad_ctx_t* g, const weir_conv_family_t* f);
WEIR_MUST_USE weir_status_t* weir_conv_op_by_input_grad(weir_grad_ctx_t* g,
                                                        const weir_conv_family_t* f);
WEIR_MUST_USE weir_status_t* weir_conv_op_by_filter_grad(weir_grad_ctx_t* g,
                                                         const weir_conv_family_t* f);

// ---- kernels, whose state is a weir_window_t ----
WEIR_MUST_USE weir_status_t* weir_conv_op_init(const weir_kernel_init_t* init, void* state);
// The same where strides and dilations along batch and channels are |unsupported|, not
// INVALID_ARGUMENT.
WEIR_MUST_USE weir_status_t* weir_conv_op_init_as(const weir_kernel_init_t* init,
                                                  weir_code_t unsupported, void* state);
// |tail| is applied to the result, with arguments from input 2 on; may be NULL.
WEIR_MUST_USE weir_status_t* weir_conv_op_forward(weir_kernel_ctx_t* ctx,
                                                  const weir_conv_family_t* f,
                                                  const weir_window_t* w,
                                                  const weir_fused_tail_t* tail);
WEIR_MUST_USE weir_status_t* weir_conv_op_by_input(weir_kernel_ctx_t* ctx,
                                                   const weir_conv_family_t* f);
WEIR_MUST_USE weir_status_t* weir_conv_op_by_filter(weir_kernel_ctx_t* ctx,
                                                    const weir_conv_family_t* f);

// Rows of a CPU and of a GPU.
#define WEIR_CONV_KERNELS(...)                                                     \
  ((const weir_kernel_def_t[]){                                                    \
      {WEIR_DEVICE_CPU, __VA_ARGS__},                                              \
      {WEIR_DEVICE_GPU, .types = "T: half, bfloat16, float, double", __VA_ARGS__}, \
      {0}})

#endif  // WEIR_KERNEL_CONV_CONV_OP_H_
