// depthwise_conv2d.c — DepthwiseConv2dNative and its gradients by input and by filter.
#include "kernel/staging.h"
#include "kernel/window.h"
#include "op/grad_ctx.h"

#define CONV_ATTRS                                                             \
  "strides: list(int); padding: {'SAME','VALID','EXPLICIT'}; "                 \
  "explicit_paddings: list(int) = []; data_format: {'NHWC','NCHW'} = 'NHWC'; " \
  "dilations: list(int) = [1,1,1,1]"

// ---- shapes ----
static weir_status_t* depthwise_shape(weir_shape_ctx_t* ctx) {
  weir_window_t w;
  const weir_shape_t *in, *filter;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &in));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 4, &filter));
  WEIR_TRY(weir_window_read_conv(weir_shape_attrs(ctx), &w));
  int64_t depth = weir_shape_dim(in, weir_window_axis(&w, WEIR_AXIS_C)),
          multiplier = weir_shape_dim(filter, 3);
  WEIR_TRY(weir_dim_join(ctx, depth, weir_shape_dim(filter, 2), &depth));
  int64_t sizes[2], pad, dims[4];
  for (int axis = 0; axis < 2; ++axis) {
    WEIR_TRY(weir_window_output(&w, axis,
                                weir_shape_dim(in, weir_window_axis(&w, WEIR_AXIS_H + axis)),
                                weir_shape_dim(filter, axis), &sizes[axis], &pad));
  }
  weir_window_dims(&w, weir_shape_dim(in, 0), sizes[0], sizes[1],
                   depth < 0 || multiplier < 0 ? -1 : depth * multiplier, dims);
  return weir_shape_set_dims(ctx, 0, 4, dims);
}

static weir_status_t* backprop_input_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape;
  WEIR_TRY(weir_shape_from_value(ctx, 0, &shape));
  WEIR_TRY(weir_shape_with_rank(ctx, shape, 4, &shape));
  return weir_shape_set(ctx, 0, shape);
}

static weir_status_t* backprop_filter_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape;
  WEIR_TRY(weir_shape_from_value(ctx, 1, &shape));
  WEIR_TRY(weir_shape_with_rank(ctx, shape, 4, &shape));
  return weir_shape_set(ctx, 0, shape);
}

// ---- gradients ----
static weir_edge_t conv_node(weir_grad_ctx_t* g, const char* op, weir_edges_t inputs) {
  static const char* const names[] = {"strides", "padding", "explicit_paddings", "data_format",
                                      "dilations"};
  weir_named_attr_t attrs[WEIR_COUNT_OF(names)];
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    attrs[i] = weir_attr_copy(names[i], weir_attrs_find(weir_grad_attrs(g), names[i]));
  }
  return weir_grad_node_with(g, op, inputs,
                             (weir_attrs_t){.items = attrs, .count = WEIR_COUNT_OF(attrs)});
}

static weir_status_t* depthwise_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = weir_grad_input(g, 0), w = weir_grad_input(g, 1), dy = weir_grad_dy(g, 0);
  weir_edge_t dx = conv_node(g, "DepthwiseConv2dNativeBackpropInput",
                             WEIR_EDGES(weir_grad_shape_of(g, x), w, dy));
  weir_edge_t dw = conv_node(g, "DepthwiseConv2dNativeBackpropFilter",
                             WEIR_EDGES(x, weir_grad_shape_of(g, w), dy));
  WEIR_TRY(weir_grad_set(g, 0, dx));
  return weir_grad_set(g, 1, dw);
}

static weir_status_t* backprop_input_grad(weir_grad_ctx_t* g) {
  weir_edge_t w = weir_grad_input(g, 1), dy = weir_grad_input(g, 2), grad = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 1,
                         conv_node(g, "DepthwiseConv2dNativeBackpropFilter",
                                   WEIR_EDGES(grad, weir_grad_shape_of(g, w), dy))));
  return weir_grad_set(g, 2, conv_node(g, "DepthwiseConv2dNative", WEIR_EDGES(grad, w)));
}

static weir_status_t* backprop_filter_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = weir_grad_input(g, 0), dy = weir_grad_input(g, 2), grad = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 0,
                         conv_node(g, "DepthwiseConv2dNativeBackpropInput",
                                   WEIR_EDGES(weir_grad_shape_of(g, x), grad, dy))));
  return weir_grad_set(g, 2, conv_node(g, "DepthwiseConv2dNative", WEIR_EDGES(x, grad)));
}

// ---- kernels ----
static weir_status_t* conv_init(const weir_kernel_init_t* init, void* state) {
  return weir_window_read_conv(init->node->attrs, state);
}

static weir_status_t* check_rank4(const weir_tensor_t* t, const char* name) {
  if (t->rank == 4) return NULL;
  char text[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be 4-dimensional: %s", name,
                     weir_tensor_shape_text(t, text));
}

static weir_status_t* depthwise_cpu(weir_kernel_ctx_t* ctx) {
  const weir_window_t* w = ctx->state;
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *filter = weir_kernel_input(ctx, 1);
  weir_staged_t x = {0}, f = {0}, y = {0};
  weir_tensor_t* out;
  weir_conv2d_t conv;
  int64_t dims[4];
  WEIR_TRY(check_rank4(in, "input"));
  WEIR_TRY(check_rank4(filter, "filter"));
  WEIR_TRY(weir_window_conv2d(w, "DepthwiseConv2dNative", in->dims, filter->dims, true, &conv));
  weir_window_dims(w, conv.batch, conv.out_h, conv.out_w, conv.out_c, dims);
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  weir_status_t* status = weir_stage_input(ctx, in, w->is_nchw, &x);
  if (!status) status = weir_stage_input(ctx, filter, false, &f);
  if (!status) status = weir_stage_output(ctx, out, w->is_nchw, &y);
  if (status) goto done;
  weir_depthwise2d_forward(weir_kernel_pool(ctx), weir_compute_type(weir_tensor_type(in)), &conv,
                           x.data, f.data, y.data);
  status = weir_stage_finish(ctx, out, w->is_nchw, &y);
done:
  weir_staged_release(&x);
  weir_staged_release(&f);
  weir_staged_release(&y);
  return status;
}

// Reads a shape given as a vector of int32.
static weir_status_t* read_sizes(const weir_kernel_ctx_t* ctx, int i, const char* what,
                                 int64_t sizes[4], int* out_count) {
  if (weir_kernel_input(ctx, i)->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s input must be 1-dim, not %d", what,
                       weir_kernel_input(ctx, i)->rank);
  }
  if (weir_kernel_input(ctx, i)->count > 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s requires 4 values, but got: %lld", what,
                       (long long)weir_kernel_input(ctx, i)->count);
  }
  WEIR_TRY(weir_kernel_ints(ctx, i, sizes, 4, out_count));
  int64_t count;
  return weir_shape_count(WEIR_DTYPE_FLOAT, *out_count, sizes, &count);
}

static weir_status_t* check_dy(const weir_window_t* w, const char* op, const weir_conv2d_t* conv,
                               const weir_tensor_t* dy) {
  int64_t dims[4];
  weir_window_dims(w, conv->batch, conv->out_h, conv->out_w, conv->out_c, dims);
  weir_status_t* status = weir_window_expect(dy, dims, "out_backprop");
  return weir_status_prefix(status, "%s: ", op);
}

static weir_status_t* backprop_input_cpu(weir_kernel_ctx_t* ctx) {
  static const char op[] = "DepthwiseConv2dNativeBackpropInput";
  const weir_window_t* w = ctx->state;
  const weir_tensor_t *filter = weir_kernel_input(ctx, 1), *dy = weir_kernel_input(ctx, 2);
  weir_staged_t f = {0}, y = {0}, x = {0};
  weir_tensor_t* out;
  weir_conv2d_t conv;
  int64_t dims[4];
  int count;
  WEIR_TRY(check_rank4(filter, "filter"));
  WEIR_TRY(check_rank4(dy, "out_backprop"));
  WEIR_TRY(read_sizes(ctx, 0, "DepthwiseConv2dNativeBackpropInput: input_sizes", dims, &count));
  if (count != 4)
    return WEIR_STATUS(INVALID_ARGUMENT, "%s requires input_sizes of 4 values, but got: %d", op,
                       count);
  WEIR_TRY(weir_window_conv2d(w, op, dims, filter->dims, true, &conv));
  WEIR_TRY(check_dy(w, op, &conv, dy));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  weir_status_t* status = weir_stage_input(ctx, filter, false, &f);
  if (!status) status = weir_stage_input(ctx, dy, w->is_nchw, &y);
  if (!status) status = weir_stage_output(ctx, out, w->is_nchw, &x);
  if (status) goto done;
  weir_depthwise2d_backprop_input(weir_kernel_pool(ctx), weir_compute_type(weir_tensor_type(dy)),
                                  &conv, f.data, y.data, x.data);
  status = weir_stage_finish(ctx, out, w->is_nchw, &x);
done:
  weir_staged_release(&f);
  weir_staged_release(&y);
  weir_staged_release(&x);
  return status;
}

static weir_status_t* backprop_filter_cpu(weir_kernel_ctx_t* ctx) {
  static const char op[] = "DepthwiseConv2dNativeBackpropFilter";
  const weir_window_t* w = ctx->state;
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *dy = weir_kernel_input(ctx, 2);
  weir_staged_t x = {0}, y = {0}, f = {0};
  weir_tensor_t* out;
  weir_conv2d_t conv;
  int64_t dims[4];
  int count;
  WEIR_TRY(check_rank4(in, "input"));
  WEIR_TRY(check_rank4(dy, "out_backprop"));
  WEIR_TRY(read_sizes(ctx, 1, "DepthwiseConv2dNativeBackpropFilter: filter_sizes", dims, &count));
  if (count != 4)
    return WEIR_STATUS(INVALID_ARGUMENT, "%s requires filter_sizes of 4 values, but got: %d", op,
                       count);
  WEIR_TRY(weir_window_conv2d(w, op, in->dims, dims, true, &conv));
  WEIR_TRY(check_dy(w, op, &conv, dy));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  weir_status_t* status = weir_stage_input(ctx, in, w->is_nchw, &x);
  if (!status) status = weir_stage_input(ctx, dy, w->is_nchw, &y);
  if (!status) status = weir_stage_output(ctx, out, false, &f);
  if (status) goto done;
  status = weir_depthwise2d_backprop_filter(weir_kernel_pool(ctx),
                                            weir_compute_type(weir_tensor_type(in)), &conv, x.data,
                                            y.data, f.data);
  if (!status) status = weir_stage_finish(ctx, out, false, &f);
done:
  weir_staged_release(&x);
  weir_staged_release(&y);
  weir_staged_release(&f);
  return status;
}

const weir_op_module_t weir_ops_nn_depthwise_conv2d = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DepthwiseConv2dNative",
         .summary = "Convolves each channel by filters of its own",
         .attrs = "T: {half, bfloat16, float, double}; " CONV_ATTRS,
         .inputs = "input: T; filter: T",
         .outputs = "output: T",
         .infer_shape = depthwise_shape,
         .build_grad = depthwise_grad,
         .kernels = (const weir_kernel_def_t[]){{.device = WEIR_DEVICE_CPU,
                                                 .compute = depthwise_cpu,
                                                 .init = conv_init,
                                                 .state_size = sizeof(weir_window_t)},
                                                {0}}},
        {.name = "DepthwiseConv2dNativeBackpropInput",
         .summary = "Gradient of DepthwiseConv2dNative by its input",
         .attrs = "T: {half, bfloat16, float, double}; " CONV_ATTRS,
         .inputs = "input_sizes: int32; filter: T; out_backprop: T",
         .outputs = "output: T",
         .infer_shape = backprop_input_shape,
         .build_grad = backprop_input_grad,
         .kernels = (const weir_kernel_def_t[]){{.device = WEIR_DEVICE_CPU,
                                                 .compute = backprop_input_cpu,
                                                 .init = conv_init,
                                                 .state_size = sizeof(weir_window_t),
                                                 .host_inputs = "input_sizes"},
                                                {0}}},
        {.name = "DepthwiseConv2dNativeBackpropFilter",
         .summary = "Gradient of DepthwiseConv2dNative by its filter",
         .attrs = "T: {half, bfloat16, float, double}; " CONV_ATTRS,
         .inputs = "input: T; filter_sizes: int32; out_backprop: T",
         .outputs = "output: T",
         .infer_shape = backprop_filter_shape,
         .build_grad = backprop_filter_grad,
         .kernels = (const weir_kernel_def_t[]){{.device = WEIR_DEVICE_CPU,
                                                 .compute = backprop_filter_cpu,
                                                 .init = conv_init,
                                                 .state_size = sizeof(weir_window_t),
                                                 .host_inputs = "filter_sizes"},
                                                {0}}},
        {0}}};
