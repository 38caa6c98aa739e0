// conv_op.c — Shape functions, gradients and kernels that all convolution ops share.
#include "kernel/conv/conv_op.h"

#include "kernel/conv/conv_grad.h"
#include "kernel/conv/cuda_conv.h"
#include "kernel/move/staging.h"

enum { MAX_RANK = WEIR_CONV_MAX_RANK, FIRST_ARG = 2 };  // where the arguments of a tail begin

// ---- shapes ----
// Sizes along the axes; |out_dims| is [n, sizes…, |channels|] in the order of the data format.
static weir_status_t* spatial_dims(const weir_window_t* w, const weir_shape_t* in,
                                   const weir_shape_t* filter, int64_t channels,
                                   int64_t out_dims[MAX_RANK]) {
  int64_t sizes[3];
  for (int axis = 0; axis < w->axes; ++axis) {
    int64_t size = weir_shape_dim(in, weir_window_axis(w, axis));
    WEIR_TRY(weir_window_output_shape(w, axis, size, weir_shape_dim(filter, axis), &sizes[axis]));
  }
  weir_window_dims(w, weir_shape_dim(in, 0), sizes, channels, out_dims);
  return NULL;
}

static weir_status_t* read_inputs(weir_shape_ctx_t* ctx, bool is_depthwise, weir_window_t* w,
                                  const weir_shape_t** in, const weir_shape_t** filter) {
  WEIR_TRY(weir_window_read_conv_shape(weir_shape_attrs(ctx),
                                       is_depthwise ? "DepthwiseConv2D" : NULL, w));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), w->axes + 2, in));
  return weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), w->axes + 2, filter);
}

static weir_status_t* check_groups(int64_t depth, int64_t filter_depth, int64_t out_depth) {
  if (filter_depth == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Depth of filter must not be 0");
  if (depth < 0 || filter_depth < 0) return NULL;
  if (depth == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Number of groups must not be 0");
  if (depth % filter_depth != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Depth of input (%lld) is not a multiple of input depth of filter (%lld)",
                       (long long)depth, (long long)filter_depth);
  }
  int64_t groups = depth / filter_depth;
  if (out_depth < 0 || out_depth % groups == 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Depth of output (%lld) is not a multiple of the number of groups (%lld)",
                     (long long)out_depth, (long long)groups);
}

weir_status_t* weir_conv_op_shape(weir_shape_ctx_t* ctx) {
  weir_window_t w;
  const weir_shape_t *in, *filter;
  int64_t dims[MAX_RANK];
  WEIR_TRY(read_inputs(ctx, false, &w, &in, &filter));
  int64_t out_depth = weir_shape_dim(filter, w.axes + 1);
  WEIR_TRY(check_groups(weir_shape_dim(in, weir_window_channels(&w)),
                        weir_shape_dim(filter, w.axes), out_depth));
  WEIR_TRY(spatial_dims(&w, in, filter, out_depth, dims));
  return weir_shape_set_dims(ctx, 0, w.axes + 2, dims);
}

weir_status_t* weir_conv_op_depthwise_shape(weir_shape_ctx_t* ctx) {
  weir_window_t w;
  const weir_shape_t *in, *filter;
  int64_t dims[MAX_RANK], depth;
  WEIR_TRY(read_inputs(ctx, true, &w, &in, &filter));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(in, weir_window_channels(&w)),
                         weir_shape_dim(filter, w.axes), &depth));
  int64_t multiplier = weir_shape_dim(filter, w.axes + 1);
  WEIR_TRY(
      spatial_dims(&w, in, filter, depth < 0 || multiplier < 0 ? -1 : depth * multiplier, dims));
  return weir_shape_set_dims(ctx, 0, w.axes + 2, dims);
}

// A gradient has the shape that input |i| says.
static weir_status_t* sizes_shape(weir_shape_ctx_t* ctx, int i) {
  const weir_shape_t* shape;
  const int rank = (int)weir_attrs_string(weir_shape_attrs(ctx), "data_format").size;
  WEIR_TRY(weir_shape_from_value(ctx, i, &shape));
  WEIR_TRY(weir_shape_with_rank(ctx, shape, rank, &shape));
  return weir_shape_set(ctx, 0, shape);
}

weir_status_t* weir_conv_op_by_input_shape(weir_shape_ctx_t* ctx) { return sizes_shape(ctx, 0); }
weir_status_t* weir_conv_op_by_filter_shape(weir_shape_ctx_t* ctx) { return sizes_shape(ctx, 1); }

// ---- gradients ----
static weir_edge_t conv_node(weir_grad_ctx_t* g, const char* op, weir_edges_t inputs) {
  return weir_grad_node_like(g, op, inputs,
                             WEIR_NAMES("strides", "use_cudnn_on_gpu", "padding",
                                        "explicit_paddings", "data_format", "dilations"));
}

static weir_edge_t by_input(weir_grad_ctx_t* g, const weir_conv_family_t* f, weir_edge_t x,
                            weir_edge_t w, weir_edge_t dy) {
  return conv_node(g, f->by_input, WEIR_EDGES(weir_grad_shape_of(g, x), w, dy));
}

static weir_edge_t by_filter(weir_grad_ctx_t* g, const weir_conv_family_t* f, weir_edge_t x,
                             weir_edge_t w, weir_edge_t dy) {
  return conv_node(g, f->by_filter, WEIR_EDGES(x, weir_grad_shape_of(g, w), dy));
}

weir_status_t* weir_conv_op_grad(weir_grad_ctx_t* g, const weir_conv_family_t* f) {
  weir_edge_t x = weir_grad_input(g, 0), w = weir_grad_input(g, 1), dy = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 0, by_input(g, f, x, w, dy)));
  return weir_grad_set(g, 1, by_filter(g, f, x, w, dy));
}

weir_status_t* weir_conv_op_by_input_grad(weir_grad_ctx_t* g, const weir_conv_family_t* f) {
  weir_edge_t w = weir_grad_input(g, 1), dy = weir_grad_input(g, 2), grad = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 1, by_filter(g, f, grad, w, dy)));
  return weir_grad_set(g, 2, conv_node(g, f->forward, WEIR_EDGES(grad, w)));
}

weir_status_t* weir_conv_op_by_filter_grad(weir_grad_ctx_t* g, const weir_conv_family_t* f) {
  weir_edge_t x = weir_grad_input(g, 0), dy = weir_grad_input(g, 2), grad = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 0, by_input(g, f, x, grad, dy)));
  return weir_grad_set(g, 2, conv_node(g, f->forward, WEIR_EDGES(x, grad)));
}

// ---- kernels ----
weir_status_t* weir_conv_op_init(const weir_kernel_init_t* init, void* state) {
  return weir_conv_op_init_as(init, WEIR_INVALID_ARGUMENT, state);
}

weir_status_t* weir_conv_op_init_as(const weir_kernel_init_t* init, weir_code_t unsupported,
                                    void* state) {
  const weir_conv_kernels_t* kernels;  // are compiled now, not in the first step
  WEIR_TRY(weir_window_read_conv(init->node->attrs, unsupported, state));
  if (!weir_device_is_cuda(init->device)) return NULL;
  return weir_conv_kernels_find(init->device, weir_attrs_type(init->node->attrs, "T"), &kernels);
}

static weir_status_t* check_rank(const weir_window_t* w, const weir_tensor_t* t, const char* name) {
  if (t->rank == w->axes + 2) return NULL;
  char text[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be %d-dimensional: %s", name, w->axes + 2,
                     weir_tensor_shape_text(t, text));
}

static void out_dims(const weir_window_t* w, const weir_conv_t* conv, int64_t dims[MAX_RANK]) {
  weir_window_dims(w, conv->batch, conv->out + 3 - w->axes, conv->out_c, dims);
}

// A tensor of a convolution, and whether its channels come first (those of filters never do).
typedef struct operand_t {
  const weir_tensor_t* tensor;
  bool is_nchw;
} operand_t;

static weir_conv_fn_t function_of(const weir_conv_family_t* f, weir_conv_kind_t kind) {
  return kind == WEIR_CONV_FORWARD    ? f->run_forward
         : kind == WEIR_CONV_BY_INPUT ? f->run_by_input
                                      : f->run_by_filter;
}

static weir_status_t* run_cuda(weir_kernel_ctx_t* ctx, const weir_conv_t* conv,
                               weir_conv_kind_t kind, operand_t a, operand_t b,
                               const weir_fused_tail_t* tail) {
  weir_cuda_conv_t passed = {.conv = conv, .kind = kind, .is_nchw = a.is_nchw || b.is_nchw};
  if (tail) {
    WEIR_TRY(weir_fused_tail_check(ctx, tail, FIRST_ARG, conv->out_c));
    passed.tail = tail->function == WEIR_TAIL_RELU ? WEIR_CONV_BIAS_RELU : WEIR_CONV_BIAS;
    passed.bias = weir_kernel_input(ctx, FIRST_ARG)->data;
  }
  return weir_cuda_conv(ctx, &passed, a.tensor->data, b.tensor->data, ctx->outputs[0].tensor);
}

// On a CPU: on operands in the type computed in and channels last.
static weir_status_t* run(weir_kernel_ctx_t* ctx, const weir_conv_t* conv,
                          const weir_conv_family_t* f, weir_conv_kind_t kind, operand_t a,
                          operand_t b, bool is_out_nchw, const weir_fused_tail_t* tail) {
  if (weir_device_is_cuda(ctx->device)) return run_cuda(ctx, conv, kind, a, b, tail);
  weir_conv_fn_t fn = function_of(f, kind);
  weir_staged_t sa = {0}, sb = {0}, so = {0};
  weir_tensor_t* out = ctx->outputs[0].tensor;
  weir_dtype_t dtype = weir_compute_type(weir_tensor_type(out));
  weir_status_t* status = weir_stage_input(ctx, a.tensor, a.is_nchw, &sa);
  if (!status) status = weir_stage_input(ctx, b.tensor, b.is_nchw, &sb);
  if (!status) status = weir_stage_output(ctx, out, is_out_nchw, &so);
  if (!status) status = fn(weir_kernel_pool(ctx), dtype, conv, sa.data, sb.data, so.data);
  if (!status && tail) {
    weir_tail_run_t tail_run = {.first_arg = FIRST_ARG,
                                .dtype = dtype,
                                .rows = conv->batch * conv->out[0] * conv->out[1] * conv->out[2],
                                .channels = conv->out_c,
                                .is_nchw = is_out_nchw,
                                .y = so.data};
    status = weir_fused_tail_apply(ctx, tail, &tail_run);
  }
  if (!status) status = weir_stage_finish(ctx, out, is_out_nchw, &so);
  weir_staged_release(&sa);
  weir_staged_release(&sb);
  weir_staged_release(&so);
  return status;
}

weir_status_t* weir_conv_op_forward(weir_kernel_ctx_t* ctx, const weir_conv_family_t* f,
                                    const weir_window_t* w, const weir_fused_tail_t* tail) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *filter = weir_kernel_input(ctx, 1);
  weir_tensor_t* out;
  weir_conv_t conv;
  int64_t dims[MAX_RANK];
  WEIR_TRY(check_rank(w, in, "input"));
  WEIR_TRY(check_rank(w, filter, "filter"));
  WEIR_TRY(weir_window_conv(w, f->forward, in->dims, filter->dims, f->is_depthwise, &conv));
  out_dims(w, &conv, dims);
  WEIR_TRY(weir_kernel_output(ctx, 0, w->axes + 2, dims, &out));
  return run(ctx, &conv, f, WEIR_CONV_FORWARD, (operand_t){in, w->is_nchw},
             (operand_t){filter, false}, w->is_nchw, tail);
}

weir_status_t* weir_conv_op_by_input(weir_kernel_ctx_t* ctx, const weir_conv_family_t* f) {
  const weir_window_t* w = ctx->state;
  const weir_tensor_t *filter = weir_kernel_input(ctx, 1), *dy = weir_kernel_input(ctx, 2);
  const int rank = w->axes + 2;
  weir_tensor_t* out;
  weir_conv_t conv;
  int64_t dims[MAX_RANK];
  int count;
  const weir_conv_grad_t grad = {.family = f,
                                 .window = w,
                                 .label = f->by_input_label,
                                 .in = dims,
                                 .filter = filter->dims,
                                 .dy = dy};
  WEIR_TRY(weir_conv_grad_sizes(ctx, &grad, 0, dims, &count));
  WEIR_TRY(weir_conv_grad_rank(&grad, filter, "filter"));
  WEIR_TRY(weir_conv_grad_rank(&grad, dy, f->has_short_sizes ? "input_sizes" : "out_backprop"));
  if (count != rank) {
    int64_t sizes[3];
    memcpy(sizes, dims, (size_t)count * sizeof(*sizes));
    weir_window_dims(w, dy->dims[0], sizes, filter->dims[w->axes], dims);
  }
  WEIR_TRY(weir_conv_grad_conv(&grad, &conv));
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  return run(ctx, &conv, f, WEIR_CONV_BY_INPUT, (operand_t){filter, false},
             (operand_t){dy, w->is_nchw}, w->is_nchw, NULL);
}

weir_status_t* weir_conv_op_by_filter(weir_kernel_ctx_t* ctx, const weir_conv_family_t* f) {
  const weir_window_t* w = ctx->state;
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *dy = weir_kernel_input(ctx, 2);
  weir_tensor_t* out;
  weir_conv_t conv;
  int64_t dims[MAX_RANK];
  int count;
  const weir_conv_grad_t grad = {.family = f,
                                 .window = w,
                                 .label = f->by_filter_label,
                                 .in = in->dims,
                                 .filter = dims,
                                 .dy = dy};
  WEIR_TRY(weir_conv_grad_sizes(ctx, &grad, 1, dims, &count));
  WEIR_TRY(weir_conv_grad_rank(&grad, in, "input"));
  WEIR_TRY(weir_conv_grad_rank(&grad, dy, "out_backprop"));
  WEIR_TRY(weir_conv_grad_conv(&grad, &conv));
  WEIR_TRY(weir_kernel_output(ctx, 0, count, dims, &out));
  if (in->count == 0 && !weir_device_is_cuda(ctx->device)) {
    if (out->count > 0) memset(out->data, 0, weir_tensor_byte_size(out));
    return NULL;
  }
  return run(ctx, &conv, f, WEIR_CONV_BY_FILTER, (operand_t){in, w->is_nchw},
             (operand_t){dy, w->is_nchw}, false, NULL);
}

// ---- costs ----

// Each output of a convolution, or its gradient |dy|, meets each weight that leads to its channel.
static double conv_flops(const weir_shape_t* filter, const weir_shape_t* dy) {
  return 2 * weir_cost_count(dy) * weir_cost_count(filter) / WEIR_MAX(weir_cost_dim(filter, -1), 1);
}

static double depthwise_flops(const weir_shape_t* filter, const weir_shape_t* dy) {
  return conv_flops(filter, dy) / WEIR_MAX(weir_cost_dim(filter, -2), 1);
}

void weir_conv_op_cost(const weir_cost_ctx_t* ctx, weir_cost_t* cost) {
  cost->flops = conv_flops(ctx->inputs[1], ctx->outputs[0]);
}

void weir_conv_op_by_input_cost(const weir_cost_ctx_t* ctx, weir_cost_t* cost) {
  cost->flops = conv_flops(ctx->inputs[1], ctx->inputs[2]);
}

void weir_conv_op_by_filter_cost(const weir_cost_ctx_t* ctx, weir_cost_t* cost) {
  cost->flops = conv_flops(ctx->outputs[0], ctx->inputs[2]);
}

void weir_conv_op_depthwise_cost(const weir_cost_ctx_t* ctx, weir_cost_t* cost) {
  cost->flops = depthwise_flops(ctx->inputs[1], ctx->outputs[0]);
}

void weir_conv_op_depthwise_by_input_cost(const weir_cost_ctx_t* ctx, weir_cost_t* cost) {
  cost->flops = depthwise_flops(ctx->inputs[1], ctx->inputs[2]);
}

void weir_conv_op_depthwise_by_filter_cost(const weir_cost_ctx_t* ctx, weir_cost_t* cost) {
  cost->flops = depthwise_flops(ctx->outputs[0], ctx->inputs[2]);
}
