// conv2d.c — Conv2D, its gradients by input and by filter, and _FusedConv2D, as TensorFlow's graph
// optimizer joins it with what follows.
#include "kernel/conv/conv_op.h"

#define CONV_ATTRS                                                                            \
  "strides: list(int); use_cudnn_on_gpu: bool = true; padding: {'SAME','VALID','EXPLICIT'}; " \
  "explicit_paddings: list(int) = []; data_format: {'NHWC','NCHW'} = 'NHWC'; "                \
  "dilations: list(int) = [1,1,1,1]"

static const weir_conv_family_t conv2d = {
    .forward = "Conv2D",
    .by_input = "Conv2DBackpropInput",
    .by_filter = "Conv2DBackpropFilter",
    .by_input_label = "Conv2DCustomBackpropInput",
    .by_filter_label = "Conv2DCustomBackpropFilter",
    .run_forward = weir_conv_forward,
    .run_by_input = weir_conv_backprop_input,
    .run_by_filter = weir_conv_backprop_filter,
    .has_short_sizes = true,
};

static weir_status_t* conv2d_grad(weir_grad_ctx_t* g) { return weir_conv_op_grad(g, &conv2d); }
static weir_status_t* by_input_grad(weir_grad_ctx_t* g) {
  return weir_conv_op_by_input_grad(g, &conv2d);
}
static weir_status_t* by_filter_grad(weir_grad_ctx_t* g) {
  return weir_conv_op_by_filter_grad(g, &conv2d);
}

// Alone of the three, the gradient by the filter calls such strides wrong, not missing.
static weir_status_t* conv2d_init(const weir_kernel_init_t* init, void* state) {
  return weir_conv_op_init_as(init, WEIR_UNIMPLEMENTED, state);
}

// Without this a filter of no elements would make zeros; TensorFlow refuses it.
static weir_status_t* forward(weir_kernel_ctx_t* ctx, const weir_window_t* w,
                              const weir_fused_tail_t* tail) {
  const weir_tensor_t* filter = weir_kernel_input(ctx, 1);
  if (filter->rank == 4 && filter->dims[2] > 0 && filter->count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "filter must not have zero elements (i.e. all dimensions must be non-zero)");
  }
  return weir_conv_op_forward(ctx, &conv2d, w, tail);
}
static weir_status_t* run_conv2d(weir_kernel_ctx_t* ctx) { return forward(ctx, ctx->state, NULL); }
static weir_status_t* run_by_input(weir_kernel_ctx_t* ctx) {
  return weir_conv_op_by_input(ctx, &conv2d);
}
static weir_status_t* run_by_filter(weir_kernel_ctx_t* ctx) {
  return weir_conv_op_by_filter(ctx, &conv2d);
}

// Formats of other devices say nothing of the shape here.
static weir_status_t* fused_shape(weir_shape_ctx_t* ctx) {
  weir_attrs_t attrs = weir_shape_attrs(ctx);
  bool is_plain = weir_attrs_string(attrs, "data_format").size == 4 &&
                  weir_view_equal(weir_attrs_string(attrs, "filter_format"), weir_view_of("HWIO"));
  return is_plain ? weir_conv_op_shape(ctx) : NULL;
}

static weir_status_t* by_input_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *shape, *filter, *dy;
  weir_window_t w;
  int64_t dims[4], joined;
  WEIR_TRY(weir_window_read_conv_shape(weir_shape_attrs(ctx), "Conv2D", &w));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 4, &filter));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 4, &dy));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(dy, weir_window_channels(&w)),
                         weir_shape_dim(filter, 3), &joined));
  WEIR_TRY(weir_shape_from_value(ctx, 0, &shape));
  if (shape->rank >= 0 && shape->rank != 4 && shape->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, "
                       "but got: %d",
                       shape->rank);
  }
  if (shape->rank == 4)
    WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(shape, 0), weir_shape_dim(dy, 0), &joined));
  if (shape->rank != 2) return weir_conv_op_by_input_shape(ctx);  // else height and width alone
  weir_window_dims(&w, weir_shape_dim(weir_shape_input(ctx, 2), 0), shape->dims,
                   weir_shape_dim(weir_shape_input(ctx, 1), 2), dims);
  return weir_shape_set_dims(ctx, 0, 4, dims);
}

typedef struct fused_state_t {
  weir_window_t window;
  weir_fused_tail_t tail;
} fused_state_t;

static weir_status_t* fused_init(const weir_kernel_init_t* init, void* state) {
  fused_state_t* s = state;
  weir_attrs_t attrs = init->node->attrs;
  weir_view_t format = weir_attrs_string(attrs, "data_format");
  weir_view_t filter = weir_attrs_string(attrs, "filter_format");
  const weir_attr_t* types = weir_attrs_list(attrs, "TArgs");
  if (format.size > 4 || !weir_view_equal(filter, weir_view_of("HWIO"))) {
    return WEIR_STATUS(UNIMPLEMENTED, "_FusedConv2D has no kernel for formats %.*s and %.*s",
                       WEIR_VIEW_ARG(format), WEIR_VIEW_ARG(filter));
  }
  for (size_t i = 0; i < types->count; ++i) {
    if (types->u.types[i] == weir_attrs_type(attrs, "T")) continue;
    return WEIR_STATUS(UNIMPLEMENTED, "_FusedConv2D takes arguments of its own type alone, not %s",
                       weir_dtype_name(types->u.types[i]));
  }
  WEIR_TRY(conv2d_init(init, &s->window));
  return weir_fused_tail_init(init, (int)types->count, &s->tail);
}

static weir_status_t* fused_gpu_init(const weir_kernel_init_t* init, void* state) {
  const fused_state_t* s = state;
  WEIR_TRY(fused_init(init, state));
  if (weir_fused_tail_is_on_gpu(&s->tail)) return NULL;
  return WEIR_STATUS(
      UNIMPLEMENTED,
      "No OpKernel was registered to support Op '_FusedConv2D' used by {{node %s}} "
      "with these fused_ops on a GPU: it takes BiasAdd, and Relu or nothing after it",
      init->node->name);
}

static weir_status_t* run_fused(weir_kernel_ctx_t* ctx) {
  const fused_state_t* s = ctx->state;
  return forward(ctx, &s->window, &s->tail);
}

const weir_op_module_t weir_ops_nn_conv2d = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Conv2D",
         .mixed = WEIR_MIXED_ALLOW,
         .summary = "Convolves images by a filter",
         .attrs = "T: {half, bfloat16, float, double, int32}; " CONV_ATTRS,
         .inputs = "input: T; filter: T",
         .outputs = "output: T",
         .infer_shape = weir_conv_op_shape,
         .cost = weir_conv_op_cost,
         .build_grad = conv2d_grad,
         .extended = {"_FusedConv2D", WEIR_EXTENDED_LIST},
         .kernels = WEIR_CONV_KERNELS(.compute = run_conv2d, .init = conv2d_init,
                                      .state_size = sizeof(weir_window_t))},
        {.name = "Conv2DBackpropInput",
         .mixed = WEIR_MIXED_ALLOW,
         .summary = "Gradient of Conv2D by its input",
         .attrs = "T: {half, bfloat16, float, double, int32}; " CONV_ATTRS,
         .inputs = "input_sizes: int32; filter: T; out_backprop: T",
         .outputs = "output: T",
         .infer_shape = by_input_shape,
         .cost = weir_conv_op_by_input_cost,
         .build_grad = by_input_grad,
         .kernels =
             WEIR_CONV_KERNELS(.compute = run_by_input, .init = conv2d_init,
                               .state_size = sizeof(weir_window_t), .host_inputs = "input_sizes")},
        {.name = "Conv2DBackpropFilter",
         .mixed = WEIR_MIXED_ALLOW,
         .summary = "Gradient of Conv2D by its filter",
         .attrs = "T: {half, bfloat16, float, double}; " CONV_ATTRS,
         .inputs = "input: T; filter_sizes: int32; out_backprop: T",
         .outputs = "output: T",
         .infer_shape = weir_conv_op_by_filter_shape,
         .cost = weir_conv_op_by_filter_cost,
         .build_grad = by_filter_grad,
         .kernels =
             WEIR_CONV_KERNELS(.compute = run_by_filter, .init = weir_conv_op_init,
                               .state_size = sizeof(weir_window_t), .host_inputs = "filter_sizes")},
        {.name = "_FusedConv2D",
         .mixed = WEIR_MIXED_ALLOW,
         .summary = "Convolution, a bias or a normalisation, and an activation in one",
         .attrs = "T: {half, bfloat16, float, double, int8, qint8}; TArgs: list(type) >= 1; "
                  "num_args: int >= 0; num_host_args: int >= 0 = 0; strides: list(int); padding: "
                  "{'SAME','VALID','EXPLICIT'}; explicit_paddings: list(int) = []; data_format: "
                  "{'NHWC','NCHW','NCHW_VECT_C'} = 'NHWC'; filter_format: "
                  "{'HWIO','OIHW','OIHW_VECT_I'} = 'HWIO'; dilations: list(int) = [1,1,1,1]; "
                  "use_cudnn_on_gpu: bool = true; fused_ops: list(string) = []; epsilon: float = "
                  "0.0001; leakyrelu_alpha: float = 0.2",
         .inputs = "input: T; filter: T; args: TArgs; host_args: num_host_args * float",
         .outputs = "output: T",
         .infer_shape = fused_shape,
         .cost = weir_conv_op_cost,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .types = "T: half, bfloat16, float, double",
                  .compute = run_fused, .init = fused_init, .state_size = sizeof(fused_state_t)},
                 {WEIR_DEVICE_GPU, .types = "T: half, bfloat16, float, double",
                  .compute = run_fused, .init = fused_gpu_init, .state_size = sizeof(fused_state_t),
                  .tails = "BiasAdd, Relu", .host_inputs = "host_args"},
                 {0}}},
        {0}}};
