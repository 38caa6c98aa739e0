// depthwise_conv2d.c — DepthwiseConv2dNative, its gradients by input and by filter, and
// _FusedDepthwiseConv2dNative, joined with what follows.
#include "kernel/conv/conv_op.h"

#define CONV_ATTRS                                                             \
  "strides: list(int); padding: {'SAME','VALID','EXPLICIT'}; "                 \
  "explicit_paddings: list(int) = []; data_format: {'NHWC','NCHW'} = 'NHWC'; " \
  "dilations: list(int) = [1,1,1,1]"

static const weir_conv_family_t depthwise = {
    .forward = "DepthwiseConv2dNative",
    .by_input = "DepthwiseConv2dNativeBackpropInput",
    .by_filter = "DepthwiseConv2dNativeBackpropFilter",
    .by_input_label = "DepthwiseConv2DBackpropInput",
    .by_filter_label = "DepthwiseConv2DBackpropFilter",
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

// One stride serves height and width.
static weir_status_t* depthwise_init(const weir_kernel_init_t* init, void* state) {
  const weir_attr_t* strides = weir_attrs_list(init->node->attrs, "strides");
  const bool is_nchw = weir_view_is(weir_attrs_string(init->node->attrs, "data_format"), "NCHW");
  if (strides->count == 4 && strides->u.ints[1 + is_nchw] != strides->u.ints[2 + is_nchw]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Current implementation only supports equal length strides in the row and "
                       "column dimensions.");
  }
  return weir_conv_op_init(init, state);
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

typedef struct fused_state_t {
  weir_window_t window;
  weir_fused_tail_t tail;
} fused_state_t;

static weir_status_t* fused_init(const weir_kernel_init_t* init, void* state) {
  fused_state_t* s = state;
  WEIR_TRY(depthwise_init(init, &s->window));
  int arg_count = (int)weir_attrs_int(init->node->attrs, "num_args");
  return weir_fused_tail_init(init, arg_count, &s->tail);
}

static weir_status_t* run_fused(weir_kernel_ctx_t* ctx) {
  const fused_state_t* s = ctx->state;
  return weir_conv_op_forward(ctx, &depthwise, &s->window, &s->tail);
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
         .kernels = WEIR_CONV_KERNELS(.compute = run_depthwise, .init = depthwise_init,
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
             WEIR_CONV_KERNELS(.compute = run_by_input, .init = depthwise_init,
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
             WEIR_CONV_KERNELS(.compute = run_by_filter, .init = depthwise_init,
                               .state_size = sizeof(weir_window_t), .host_inputs = "filter_sizes")},
        {.name = "_FusedDepthwiseConv2dNative",
         .summary = "Depthwise convolution, a bias or a normalisation, and an activation in one",
         .attrs = "T: {half, bfloat16, float, double}; num_args: int >= 0; strides: list(int); "
                  "padding: {'SAME','VALID'}; data_format: {'NHWC','NCHW'} = 'NHWC'; dilations: "
                  "list(int) = [1,1,1,1]; fused_ops: list(string) = []; epsilon: float = 0.0001; "
                  "leakyrelu_alpha: float = 0.2",
         .inputs = "input: T; filter: T; args: num_args * T",
         .outputs = "output: T",
         .infer_shape = weir_conv_op_depthwise_shape,
         .cost = weir_conv_op_depthwise_cost,
         .kernels = WEIR_CPU_KERNEL(.types = "T: half, bfloat16, float", .compute = run_fused,
                                    .init = fused_init, .state_size = sizeof(fused_state_t))},
        {0}}};
