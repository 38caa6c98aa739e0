// depthwise_conv2d.c — DepthwiseConv2dNative and its gradients by input and by filter.
#include "kernel/conv/conv_op.h"

#define CONV_ATTRS                                                             \
  "strides: list(int); padding: {'SAME','VALID','EXPLICIT'}; "                 \
  "explicit_paddings: list(int) = []; data_format: {'NHWC','NCHW'} = 'NHWC'; " \
  "dilations: list(int) = [1,1,1,1]"

static const weir_conv_family_t depthwise = {
    .forward = "DepthwiseConv2dNative",
    .by_input = "DepthwiseConv2dNativeBackpropInput",
    .by_filter = "DepthwiseConv2dNativeBackpropFilter",
    .run_forward = weir_depthwise_forward,
    .run_by_input = weir_depthwise_backprop_input,
    .run_by_filter = weir_depthwise_backprop_filter,
    .is_depthwise = true,
};

static weir_status_t* depthwise_grad(weir_grad_ctx_t* g) {
  return weir_conv_op_grad(g, &depthwise);
}
static weir_status_t* by_input_grad(weir_grad_ctx_t* g) {
  return weir_conv_op_by_input_grad(g, &depthwise);
}
static weir_status_t* by_filter_grad(weir_grad_ctx_t* g) {
  return weir_conv_op_by_filter_grad(g, &depthwise);
}

static weir_status_t* run_depthwise(weir_kernel_ctx_t* ctx) {
  return weir_conv_op_forward(ctx, &depthwise, ctx->state, NULL);
}
static weir_status_t* run_by_input(weir_kernel_ctx_t* ctx) {
  return weir_conv_op_by_input(ctx, &depthwise);
}
static weir_status_t* run_by_filter(weir_kernel_ctx_t* ctx) {
  return weir_conv_op_by_filter(ctx, &depthwise);
}

const weir_op_module_t weir_ops_nn_depthwise_conv2d = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DepthwiseConv2dNative",
         .mixed = WEIR_MIXED_ALLOW,
         .summary = "Convolves each channel by filters of its own",
         .attrs = "T: {half, bfloat16, float, double}; " CONV_ATTRS,
         .inputs = "input: T; filter: T",
         .outputs = "output: T",
         .infer_shape = weir_conv_op_depthwise_shape,
         .cost = weir_conv_op_depthwise_cost,
         .build_grad = depthwise_grad,
         .kernels = WEIR_CONV_KERNELS(.compute = run_depthwise, .init = weir_conv_op_init,
                                      .state_size = sizeof(weir_window_t))},
        {.name = "DepthwiseConv2dNativeBackpropInput",
         .mixed = WEIR_MIXED_ALLOW,
         .summary = "Gradient of DepthwiseConv2dNative by its input",
         .attrs = "T: {half, bfloat16, float, double}; " CONV_ATTRS,
         .inputs = "input_sizes: int32; filter: T; out_backprop: T",
         .outputs = "output: T",
         .infer_shape = weir_conv_op_by_input_shape,
         .cost = weir_conv_op_depthwise_by_input_cost,
         .build_grad = by_input_grad,
         .kernels =
             WEIR_CONV_KERNELS(.compute = run_by_input, .init = weir_conv_op_init,
                               .state_size = sizeof(weir_window_t), .host_inputs = "input_sizes")},
        {.name = "DepthwiseConv2dNativeBackpropFilter",
         .mixed = WEIR_MIXED_ALLOW,
         .summary = "Gradient of DepthwiseConv2dNative by its filter",
         .attrs = "T: {half, bfloat16, float, double}; " CONV_ATTRS,
         .inputs = "input: T; filter_sizes: int32; out_backprop: T",
         .outputs = "output: T",
         .infer_shape = weir_conv_op_by_filter_shape,
         .cost = weir_conv_op_depthwise_by_filter_cost,
         .build_grad = by_filter_grad,
         .kernels =
             WEIR_CONV_KERNELS(.compute = run_by_filter, .init = weir_conv_op_init,
                               .state_size = sizeof(weir_window_t), .host_inputs = "filter_sizes")},
        {0}}};
