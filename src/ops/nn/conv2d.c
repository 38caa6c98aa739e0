// conv2d.c — Conv2D, its gradients by input and by filter, and _FusedConv2D, as TensorFlow's graph
// optimizer joins it with what follows.
#include "kernel/fused_tail.h"
#include "kernel/staging.h"
#include "kernel/window.h"
#include "op/grad_ctx.h"

#define CONV_ATTRS                                                                            \
  "strides: list(int); use_cudnn_on_gpu: bool = true; padding: {'SAME','VALID','EXPLICIT'}; " \
  "explicit_paddings: list(int) = []; data_format: {'NHWC','NCHW'} = 'NHWC'; "                \
  "dilations: list(int) = [1,1,1,1]"

// ---- shapes ----
static weir_status_t* conv2d_shape(weir_shape_ctx_t* ctx) {
  weir_window_t w;
  const weir_shape_t *in, *filter;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &in));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 4, &filter));
  WEIR_TRY(weir_window_read_conv(weir_shape_attrs(ctx), &w));
  int64_t depth = weir_shape_dim(in, weir_window_axis(&w, WEIR_AXIS_C));
  int64_t filter_depth = weir_shape_dim(filter, 2), out_depth = weir_shape_dim(filter, 3);
  if (filter_depth == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Depth of filter must not be 0");
  if (depth == 0 && filter_depth > 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Number of groups must not be 0");
  if (depth > 0 && filter_depth > 0) {
    if (depth % filter_depth != 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Depth of input (%lld) is not a multiple of input depth of filter (%lld)",
                         (long long)depth, (long long)filter_depth);
    }
    int64_t groups = depth / filter_depth;
    if (out_depth >= 0 && out_depth % groups != 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Depth of output (%lld) is not a multiple of the number of groups (%lld)",
                         (long long)out_depth, (long long)groups);
    }
  }
  int64_t sizes[2], pad, dims[4];
  for (int axis = 0; axis < 2; ++axis) {
    WEIR_TRY(weir_window_output(&w, axis,
                                weir_shape_dim(in, weir_window_axis(&w, WEIR_AXIS_H + axis)),
                                weir_shape_dim(filter, axis), &sizes[axis], &pad));
  }
  weir_window_dims(&w, weir_shape_dim(in, 0), sizes[0], sizes[1], out_depth, dims);
  return weir_shape_set_dims(ctx, 0, 4, dims);
}

// Formats of other devices say nothing of the shape here.
static weir_status_t* fused_shape(weir_shape_ctx_t* ctx) {
  weir_attrs_t attrs = weir_shape_attrs(ctx);
  bool is_plain = weir_attrs_string(attrs, "data_format").size == 4 &&
                  weir_view_equal(weir_attrs_string(attrs, "filter_format"), weir_view_of("HWIO"));
  return is_plain ? conv2d_shape(ctx) : NULL;
}

static weir_status_t* backprop_input_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape;
  WEIR_TRY(weir_shape_from_value(ctx, 0, &shape));
  if (shape->rank == 2) {  // height and width alone
    weir_window_t w;
    int64_t dims[4];
    WEIR_TRY(weir_window_read_conv(weir_shape_attrs(ctx), &w));
    weir_window_dims(&w, weir_shape_dim(weir_shape_input(ctx, 2), 0), shape->dims[0],
                     shape->dims[1], weir_shape_dim(weir_shape_input(ctx, 1), 2), dims);
    return weir_shape_set_dims(ctx, 0, 4, dims);
  }
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
  static const char* const names[] = {"strides",           "use_cudnn_on_gpu", "padding",
                                      "explicit_paddings", "data_format",      "dilations"};
  weir_named_attr_t attrs[WEIR_COUNT_OF(names)];
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    attrs[i] = weir_attr_copy(names[i], weir_attrs_find(weir_grad_attrs(g), names[i]));
  }
  return weir_grad_node_with(g, op, inputs,
                             (weir_attrs_t){.items = attrs, .count = WEIR_COUNT_OF(attrs)});
}

static weir_status_t* conv2d_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = weir_grad_input(g, 0), w = weir_grad_input(g, 1), dy = weir_grad_dy(g, 0);
  weir_edge_t dx = conv_node(g, "Conv2DBackpropInput", WEIR_EDGES(weir_grad_shape_of(g, x), w, dy));
  weir_edge_t dw =
      conv_node(g, "Conv2DBackpropFilter", WEIR_EDGES(x, weir_grad_shape_of(g, w), dy));
  WEIR_TRY(weir_grad_set(g, 0, dx));
  return weir_grad_set(g, 1, dw);
}

static weir_status_t* backprop_input_grad(weir_grad_ctx_t* g) {
  weir_edge_t w = weir_grad_input(g, 1), dy = weir_grad_input(g, 2), grad = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(
      g, 1, conv_node(g, "Conv2DBackpropFilter", WEIR_EDGES(grad, weir_grad_shape_of(g, w), dy))));
  return weir_grad_set(g, 2, conv_node(g, "Conv2D", WEIR_EDGES(grad, w)));
}

static weir_status_t* backprop_filter_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = weir_grad_input(g, 0), dy = weir_grad_input(g, 2), grad = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(
      g, 0, conv_node(g, "Conv2DBackpropInput", WEIR_EDGES(weir_grad_shape_of(g, x), grad, dy))));
  return weir_grad_set(g, 2, conv_node(g, "Conv2D", WEIR_EDGES(x, grad)));
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

// |tail| may be NULL.
static weir_status_t* convolve(weir_kernel_ctx_t* ctx, const weir_window_t* w,
                               const weir_fused_tail_t* tail) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *filter = weir_kernel_input(ctx, 1);
  weir_staged_t x = {0}, f = {0}, y = {0};
  weir_tensor_t* out;
  weir_conv2d_t conv;
  int64_t dims[4];
  WEIR_TRY(check_rank4(in, "input"));
  WEIR_TRY(check_rank4(filter, "filter"));
  if (filter->dims[2] > 0 && filter->count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "filter must not have zero elements (i.e. all dimensions must be non-zero)");
  }
  WEIR_TRY(weir_window_conv2d(w, "Conv2D", in->dims, filter->dims, false, &conv));
  weir_window_dims(w, conv.batch, conv.out_h, conv.out_w, conv.out_c, dims);
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  weir_status_t* status = weir_stage_input(ctx, in, w->is_nchw, &x);
  if (!status) status = weir_stage_input(ctx, filter, false, &f);
  if (!status) status = weir_stage_output(ctx, out, w->is_nchw, &y);
  if (status) goto done;
  weir_dtype_t dtype = weir_compute_type(weir_tensor_type(in));
  status = weir_conv2d_forward(weir_kernel_pool(ctx), dtype, &conv, x.data, f.data, y.data);
  weir_tail_run_t run = {.first_arg = 2,
                         .dtype = dtype,
                         .rows = conv.batch * conv.out_h * conv.out_w,
                         .channels = conv.out_c,
                         .is_nchw = w->is_nchw,
                         .y = y.data};
  if (!status && tail) status = weir_fused_tail_apply(ctx, tail, &run);
  if (!status) status = weir_stage_finish(ctx, out, w->is_nchw, &y);
done:
  weir_staged_release(&x);
  weir_staged_release(&f);
  weir_staged_release(&y);
  return status;
}

static weir_status_t* conv2d_cpu(weir_kernel_ctx_t* ctx) { return convolve(ctx, ctx->state, NULL); }

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
    return WEIR_STATUS(UNIMPLEMENTED, "_FusedConv2D has no CPU kernel for formats %.*s and %.*s",
                       WEIR_VIEW_ARG(format), WEIR_VIEW_ARG(filter));
  }
  for (size_t i = 0; i < types->count; ++i) {
    if (types->u.types[i] == weir_attrs_type(attrs, "T")) continue;
    return WEIR_STATUS(UNIMPLEMENTED, "_FusedConv2D takes arguments of its own type alone, not %s",
                       weir_dtype_name(types->u.types[i]));
  }
  WEIR_TRY(weir_window_read_conv(attrs, &s->window));
  return weir_fused_tail_init(init, (int)types->count, &s->tail);
}

static weir_status_t* fused_cpu(weir_kernel_ctx_t* ctx) {
  const fused_state_t* s = ctx->state;
  return convolve(ctx, &s->window, &s->tail);
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
  static const char op[] = "Conv2DBackpropInput";
  const weir_window_t* w = ctx->state;
  const weir_tensor_t *filter = weir_kernel_input(ctx, 1), *dy = weir_kernel_input(ctx, 2);
  weir_staged_t f = {0}, y = {0}, x = {0};
  weir_tensor_t* out;
  weir_conv2d_t conv;
  int64_t dims[4];
  int count;
  WEIR_TRY(check_rank4(filter, "filter"));
  WEIR_TRY(check_rank4(dy, "out_backprop"));
  WEIR_TRY(read_sizes(ctx, 0, "Conv2DBackpropInput: input_sizes", dims, &count));
  if (count == 2) weir_window_dims(w, dy->dims[0], dims[0], dims[1], filter->dims[2], dims);
  if (count != 4 && count != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "%s requires input_sizes to contain 4 values or 2 values, but got: %d", op,
                       count);
  }
  WEIR_TRY(weir_window_conv2d(w, op, dims, filter->dims, false, &conv));
  WEIR_TRY(check_dy(w, op, &conv, dy));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  weir_status_t* status = weir_stage_input(ctx, filter, false, &f);
  if (!status) status = weir_stage_input(ctx, dy, w->is_nchw, &y);
  if (!status) status = weir_stage_output(ctx, out, w->is_nchw, &x);
  if (status) goto done;
  status =
      weir_conv2d_backprop_input(weir_kernel_pool(ctx), weir_compute_type(weir_tensor_type(dy)),
                                 &conv, f.data, y.data, x.data);
  if (!status) status = weir_stage_finish(ctx, out, w->is_nchw, &x);
done:
  weir_staged_release(&f);
  weir_staged_release(&y);
  weir_staged_release(&x);
  return status;
}

static weir_status_t* backprop_filter_cpu(weir_kernel_ctx_t* ctx) {
  static const char op[] = "Conv2DBackpropFilter";
  const weir_window_t* w = ctx->state;
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *dy = weir_kernel_input(ctx, 2);
  weir_staged_t x = {0}, y = {0}, f = {0};
  weir_tensor_t* out;
  weir_conv2d_t conv;
  int64_t dims[4];
  int count;
  WEIR_TRY(check_rank4(in, "input"));
  WEIR_TRY(check_rank4(dy, "out_backprop"));
  WEIR_TRY(read_sizes(ctx, 1, "Conv2DBackpropFilter: filter_sizes", dims, &count));
  if (count != 4)
    return WEIR_STATUS(INVALID_ARGUMENT, "%s requires filter_sizes of 4 values, but got: %d", op,
                       count);
  WEIR_TRY(weir_window_conv2d(w, op, in->dims, dims, false, &conv));
  WEIR_TRY(check_dy(w, op, &conv, dy));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  if (in->count == 0) {
    if (out->count > 0) memset(out->data, 0, weir_tensor_byte_size(out));
    return NULL;
  }
  weir_status_t* status = weir_stage_input(ctx, in, w->is_nchw, &x);
  if (!status) status = weir_stage_input(ctx, dy, w->is_nchw, &y);
  if (!status) status = weir_stage_output(ctx, out, false, &f);
  if (status) goto done;
  status =
      weir_conv2d_backprop_filter(weir_kernel_pool(ctx), weir_compute_type(weir_tensor_type(in)),
                                  &conv, x.data, y.data, f.data);
  if (!status) status = weir_stage_finish(ctx, out, false, &f);
done:
  weir_staged_release(&x);
  weir_staged_release(&y);
  weir_staged_release(&f);
  return status;
}

const weir_op_module_t weir_ops_nn_conv2d = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Conv2D",
         .summary = "Convolves images by a filter",
         .attrs = "T: {half, bfloat16, float, double, int32}; " CONV_ATTRS,
         .inputs = "input: T; filter: T",
         .outputs = "output: T",
         .infer_shape = conv2d_shape,
         .build_grad = conv2d_grad,
         .kernels = (const weir_kernel_def_t[]){{.device = WEIR_DEVICE_CPU,
                                                 .compute = conv2d_cpu,
                                                 .init = conv_init,
                                                 .state_size = sizeof(weir_window_t)},
                                                {0}}},
        {.name = "Conv2DBackpropInput",
         .summary = "Gradient of Conv2D by its input",
         .attrs = "T: {half, bfloat16, float, double, int32}; " CONV_ATTRS,
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
        {.name = "Conv2DBackpropFilter",
         .summary = "Gradient of Conv2D by its filter",
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
        {.name = "_FusedConv2D",
         .summary = "Convolution, a bias or a normalisation, and an activation in one",
         .attrs = "T: {half, float, double, int8, qint8}; TArgs: list(type) >= 1; num_args: int >= "
                  "0; num_host_args: int >= 0 = 0; strides: list(int); padding: "
                  "{'SAME','VALID','EXPLICIT'}; explicit_paddings: list(int) = []; data_format: "
                  "{'NHWC','NCHW','NCHW_VECT_C'} = 'NHWC'; filter_format: "
                  "{'HWIO','OIHW','OIHW_VECT_I'} = 'HWIO'; dilations: list(int) = [1,1,1,1]; "
                  "use_cudnn_on_gpu: bool = true; fused_ops: list(string) = []; epsilon: float = "
                  "0.0001; leakyrelu_alpha: float = 0.2",
         .inputs = "input: T; filter: T; args: TArgs; host_args: num_host_args * float",
         .outputs = "output: T",
         .infer_shape = fused_shape,
         .kernels = (const weir_kernel_def_t[]){{.device = WEIR_DEVICE_CPU,
                                                 .types = "T: half, float, double",
                                                 .compute = fused_cpu,
                                                 .init = fused_init,
                                                 .state_size = sizeof(fused_state_t)},
                                                {0}}},
        {0}}};
