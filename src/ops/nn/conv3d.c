// conv3d.c — Conv3D, its gradients by input and by filter, also in their older form, which takes
// tensors for their shapes, and _FusedConv3D, joined with what follows.
#include "kernel/conv/conv_op.h"

#define CONV_ATTRS                                                \
  "T: {half, bfloat16, float, double}; strides: list(int) >= 5; " \
  "padding: {'SAME','VALID'}; "                                   \
  "data_format: {'NDHWC','NCDHW'} = 'NDHWC'; dilations: list(int) = [1,1,1,1,1]"

static const weir_conv_family_t conv3d = {
    .forward = "Conv3D",
    .by_input = "Conv3DBackpropInputV2",
    .by_filter = "Conv3DBackpropFilterV2",
    .by_input_label = "Conv3DBackpropInputOp",
    .by_filter_label = "Conv3DBackpropFilterOp",
    .run_forward = weir_conv_forward,
    .run_by_input = weir_conv_backprop_input,
    .run_by_filter = weir_conv_backprop_filter,
};

static weir_status_t* conv3d_grad(weir_grad_ctx_t* g) { return weir_conv_op_grad(g, &conv3d); }
static weir_status_t* by_input_grad(weir_grad_ctx_t* g) {
  return weir_conv_op_by_input_grad(g, &conv3d);
}
static weir_status_t* by_filter_grad(weir_grad_ctx_t* g) {
  return weir_conv_op_by_filter_grad(g, &conv3d);
}

// Groups are more than TensorFlow's kernel takes.
static weir_status_t* check_channels(const weir_window_t* w, const weir_tensor_t* in,
                                     const weir_tensor_t* filter) {
  if (in->rank != 5 || filter->rank != 5) return NULL;  // which is refused all the same
  const int64_t depth = in->dims[weir_window_channels(w)], taps = filter->dims[3];
  if (taps == 0) return WEIR_STATUS(INVALID_ARGUMENT, "filter_depth must be non-zero");
  if (depth % taps == 0 && (depth == 0 || filter->dims[4] % (depth / taps) != 0)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of channels in filter (%lld) must match last dimension of input "
                       "(%lld)",
                       (long long)taps, (long long)depth);
  }
  if (depth % taps != 0 || filter->count > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "filter must not have zero elements (i.e. all dimensions must be non-zero)");
}

static weir_status_t* forward(weir_kernel_ctx_t* ctx, const weir_window_t* w,
                              const weir_fused_tail_t* tail) {
  WEIR_TRY(check_channels(w, weir_kernel_input(ctx, 0), weir_kernel_input(ctx, 1)));
  return weir_conv_op_forward(ctx, &conv3d, w, tail);
}
static weir_status_t* run_forward(weir_kernel_ctx_t* ctx) { return forward(ctx, ctx->state, NULL); }
static weir_status_t* run_by_input(weir_kernel_ctx_t* ctx) {
  return weir_conv_op_by_input(ctx, &conv3d);
}
static weir_status_t* run_by_filter(weir_kernel_ctx_t* ctx) {
  return weir_conv_op_by_filter(ctx, &conv3d);
}

// ---- older gradients ----

#define OLD_ATTRS                                                                             \
  "T: {half, float, double}; strides: list(int) >= 5; padding: {'SAME','VALID'}; dilations: " \
  "list(int) = [1,1,1,1,1]"

static const weir_conv_family_t old = {
    .by_input = "Conv3DBackpropInput",
    .by_filter = "Conv3DBackpropFilter",
    .by_input_label = "Conv3DBackpropInputOp",
    .by_filter_label = "Conv3DBackpropFilterOp",
    .run_by_input = weir_conv_backprop_input,
    .run_by_filter = weir_conv_backprop_filter,
    .takes_tensors = true,
};

static weir_status_t* old_by_input_cpu(weir_kernel_ctx_t* ctx) {
  return weir_conv_op_by_input(ctx, &old);
}
static weir_status_t* old_by_filter_cpu(weir_kernel_ctx_t* ctx) {
  return weir_conv_op_by_filter(ctx, &old);
}

static weir_status_t* like_input(weir_shape_ctx_t* ctx, int i) {
  const weir_shape_t* shape;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 5, &shape));
  return weir_shape_set(ctx, 0, shape);
}
static weir_status_t* old_by_input_shape(weir_shape_ctx_t* ctx) { return like_input(ctx, 0); }
static weir_status_t* old_by_filter_shape(weir_shape_ctx_t* ctx) { return like_input(ctx, 1); }

// ---- with a tail ----

typedef struct fused_state_t {
  weir_window_t window;
  weir_fused_tail_t tail;
} fused_state_t;

static weir_status_t* fused_init(const weir_kernel_init_t* init, void* state) {
  fused_state_t* s = state;
  weir_attrs_t attrs = init->node->attrs;
  if (weir_attrs_list(attrs, "padding_list")->count > 0) {
    return WEIR_STATUS(UNIMPLEMENTED, "_FusedConv3D has no kernel for a padding_list");
  }
  WEIR_TRY(weir_conv_op_init(init, &s->window));
  return weir_fused_tail_init(init, (int)weir_attrs_int(attrs, "num_args"), &s->tail);
}

static weir_status_t* fused_cpu(weir_kernel_ctx_t* ctx) {
  const fused_state_t* s = ctx->state;
  return forward(ctx, &s->window, &s->tail);
}

const weir_op_module_t weir_ops_nn_conv3d = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Conv3D",
         .mixed = WEIR_MIXED_ALLOW,
         .summary = "Convolves volumes by a filter",
         .attrs = CONV_ATTRS,
         .inputs = "input: T; filter: T",
         .outputs = "output: T",
         .infer_shape = weir_conv_op_shape,
         .cost = weir_conv_op_cost,
         .build_grad = conv3d_grad,
         .kernels = WEIR_CONV_KERNELS(.compute = run_forward, .init = weir_conv_op_init,
                                      .state_size = sizeof(weir_window_t))},
        {.name = "Conv3DBackpropInputV2",
         .mixed = WEIR_MIXED_ALLOW,
         .summary = "Gradient of Conv3D by its input",
         .attrs = CONV_ATTRS "; Tshape: {int32, int64} = DT_INT32",
         .inputs = "input_sizes: Tshape; filter: T; out_backprop: T",
         .outputs = "output: T",
         .infer_shape = weir_conv_op_by_input_shape,
         .cost = weir_conv_op_by_input_cost,
         .build_grad = by_input_grad,
         .kernels =
             WEIR_CONV_KERNELS(.compute = run_by_input, .init = weir_conv_op_init,
                               .state_size = sizeof(weir_window_t), .host_inputs = "input_sizes")},
        {.name = "Conv3DBackpropFilterV2",
         .mixed = WEIR_MIXED_ALLOW,
         .summary = "Gradient of Conv3D by its filter",
         .attrs = CONV_ATTRS,
         .inputs = "input: T; filter_sizes: int32; out_backprop: T",
         .outputs = "output: T",
         .infer_shape = weir_conv_op_by_filter_shape,
         .cost = weir_conv_op_by_filter_cost,
         .build_grad = by_filter_grad,
         .kernels =
             WEIR_CONV_KERNELS(.compute = run_by_filter, .init = weir_conv_op_init,
                               .state_size = sizeof(weir_window_t), .host_inputs = "filter_sizes")},
        {.name = "Conv3DBackpropInput",
         .mixed = WEIR_MIXED_ALLOW,
         .summary = "Gradient of Conv3D by its input",
         .attrs = OLD_ATTRS,
         .inputs = "input: T; filter: T; out_backprop: T",
         .outputs = "output: T",
         .infer_shape = old_by_input_shape,
         .cost = weir_conv_op_by_input_cost,
         .kernels = WEIR_CPU_KERNEL(.compute = old_by_input_cpu, .init = weir_conv_op_init,
                                    .state_size = sizeof(weir_window_t))},
        {.name = "Conv3DBackpropFilter",
         .mixed = WEIR_MIXED_ALLOW,
         .summary = "Gradient of Conv3D by its filter",
         .attrs = OLD_ATTRS,
         .inputs = "input: T; filter: T; out_backprop: T",
         .outputs = "output: T",
         .infer_shape = old_by_filter_shape,
         .cost = weir_conv_op_by_filter_cost,
         .kernels = WEIR_CPU_KERNEL(.compute = old_by_filter_cpu, .init = weir_conv_op_init,
                                    .state_size = sizeof(weir_window_t))},
        {.name = "_FusedConv3D",
         .summary = "Convolution of volumes, a bias or a normalisation, and an activation in one",
         .attrs = "T: {bfloat16, float, half}; num_args: int >= 0; strides: list(int) >= 5; "
                  "padding: {'SAME','VALID'}; data_format: {'NDHWC','NCDHW'} = 'NDHWC'; "
                  "dilations: list(int) = [1,1,1,1,1]; padding_list: list(int) = []; fused_ops: "
                  "list(string) = []; epsilon: float = 0.0001; leakyrelu_alpha: float = 0.2",
         .inputs = "input: T; filter: T; args: num_args * T",
         .outputs = "output: T",
         .infer_shape = weir_conv_op_shape,
         .cost = weir_conv_op_cost,
         .kernels = WEIR_CPU_KERNEL(.compute = fused_cpu, .init = fused_init,
                                    .state_size = sizeof(fused_state_t))},
        {0}}};
