// conv3d.c — Conv3D and its gradients by input and by filter.
#include "kernel/conv3d.h"

#include "kernel/staging.h"
#include "kernel/window.h"
#include "op/grad_ctx.h"

#define CONV_ATTRS                                                \
  "T: {half, bfloat16, float, double}; strides: list(int) >= 5; " \
  "padding: {'SAME','VALID'}; "                                   \
  "data_format: {'NDHWC','NCDHW'} = 'NDHWC'; dilations: list(int) = [1,1,1,1,1]"

// What the attributes say; the axes are depth, height and width.
typedef struct window3_t {
  bool is_channels_first;
  weir_padding_t padding;
  int64_t stride[3];
  int64_t dilation[3];
} window3_t;

// ---- geometry ----
static weir_status_t* read_rates(weir_attrs_t attrs, const char* name, const window3_t* w,
                                 int64_t out_rates[3]) {
  const weir_attr_t* list = weir_attrs_list(attrs, name);
  if (list->count != 5) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Sliding window %s field must specify 5 dimensions, but got %zu", name,
                       list->count);
  }
  const int64_t* values = list->u.ints;
  if (values[0] != 1 || values[w->is_channels_first ? 1 : 4] != 1) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Current implementation does not yet support %s in the batch and depth dimensions.", name);
  }
  for (int axis = 0; axis < 3; ++axis) {
    out_rates[axis] = values[axis + (w->is_channels_first ? 2 : 1)];
    if (out_rates[axis] <= 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%s should be larger than 0, but got %lld",
                         strcmp(name, "strides") == 0 ? "Spatial strides" : "Dilated rates",
                         (long long)out_rates[axis]);
    }
  }
  return NULL;
}

static weir_status_t* read_window(weir_attrs_t attrs, window3_t* out) {
  *out = (window3_t){
      .is_channels_first = weir_view_is(weir_attrs_string(attrs, "data_format"), "NCDHW"),
      .padding = weir_view_is(weir_attrs_string(attrs, "padding"), "SAME") ? WEIR_PADDING_SAME
                                                                           : WEIR_PADDING_VALID};
  WEIR_TRY(read_rates(attrs, "strides", out, out->stride));
  return read_rates(attrs, "dilations", out, out->dilation);
}

// Output size and leading padding along one axis; unknown sizes are -1.
static weir_status_t* window_output(const window3_t* w, int axis, int64_t in, int64_t filter,
                                    int64_t* out_size, int64_t* out_pad) {
  weir_window_t one = {
      .padding = w->padding, .stride = {w->stride[axis], 1}, .dilation = {w->dilation[axis], 1}};
  return weir_window_output(&one, 0, in, filter, out_size, out_pad);
}

// Writes [n, d, h, w, c] in the order of the data format.
static void format_dims(const window3_t* w, int64_t n, const int64_t sizes[3], int64_t c,
                        int64_t out_dims[5]) {
  out_dims[0] = n;
  out_dims[w->is_channels_first ? 1 : 4] = c;
  for (int axis = 0; axis < 3; ++axis)
    out_dims[axis + (w->is_channels_first ? 2 : 1)] = sizes[axis];
}

static weir_status_t* check_depths(const char* op, int64_t depth, const int64_t filter[5]) {
  if (filter[3] <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: filter depth must be strictly positive, got %lld", op,
                       (long long)filter[3]);
  }
  if (depth % filter[3] != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "%s: input depth must be evenly divisible by filter depth: %lld vs %lld", op,
                       (long long)depth, (long long)filter[3]);
  }
  if (depth > 0 && filter[4] % (depth / filter[3]) != 0) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "%s: output depth must be evenly divisible by number of groups: %lld vs %lld", op,
        (long long)filter[4], (long long)(depth / filter[3]));
  }
  return NULL;
}

static weir_status_t* make_conv(const window3_t* w, const char* op, const int64_t in[5],
                                const int64_t filter[5], weir_conv3d_t* out) {
  const int64_t depth = in[w->is_channels_first ? 1 : 4];
  WEIR_TRY(check_depths(op, depth, filter));
  weir_conv3d_t c = {.batch = in[0],
                     .in_c = depth,
                     .out_c = filter[4],
                     .groups = WEIR_MAX(depth / filter[3], 1),
                     .group_in = depth == 0 ? 0 : filter[3]};
  c.group_out = c.out_c / c.groups;
  for (int axis = 0; axis < 3; ++axis) {
    c.in[axis] = in[axis + (w->is_channels_first ? 2 : 1)];
    c.filter[axis] = filter[axis];
    c.stride[axis] = w->stride[axis];
    c.dilation[axis] = w->dilation[axis];
    WEIR_TRY(window_output(w, axis, c.in[axis], c.filter[axis], &c.out[axis], &c.pad[axis]));
  }
  *out = c;
  return NULL;
}

// ---- shapes ----
static weir_status_t* conv3d_shape(weir_shape_ctx_t* ctx) {
  window3_t w;
  const weir_shape_t *in, *filter;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 5, &in));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 5, &filter));
  WEIR_TRY(read_window(weir_shape_attrs(ctx), &w));
  const int64_t depth = weir_shape_dim(in, w.is_channels_first ? 1 : 4);
  const int64_t filter_dims[5] = {0, 0, 0, weir_shape_dim(filter, 3), weir_shape_dim(filter, 4)};
  if (depth >= 0 && filter_dims[3] >= 0 && filter_dims[4] >= 0)
    WEIR_TRY(check_depths("Conv3D", depth, filter_dims));
  int64_t sizes[3], pad, dims[5];
  for (int axis = 0; axis < 3; ++axis) {
    int64_t size = weir_shape_dim(in, axis + (w.is_channels_first ? 2 : 1));
    WEIR_TRY(window_output(&w, axis, size, weir_shape_dim(filter, axis), &sizes[axis], &pad));
    // The kernel would give no voxels where the filter is longer than the input by no more than the
    // stride; TensorFlow's shape function refuses that too.
    int64_t extent = (weir_shape_dim(filter, axis) - 1) * w.dilation[axis] + 1;
    if (w.padding == WEIR_PADDING_VALID && size >= 0 && extent > size) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Negative dimension size caused by subtracting %lld from %lld",
                         (long long)extent, (long long)size);
    }
  }
  format_dims(&w, weir_shape_dim(in, 0), sizes, filter_dims[4], dims);
  return weir_shape_set_dims(ctx, 0, 5, dims);
}

static weir_status_t* shape_of_value(weir_shape_ctx_t* ctx, int i) {
  const weir_shape_t* shape;
  WEIR_TRY(weir_shape_from_value(ctx, i, &shape));
  WEIR_TRY(weir_shape_with_rank(ctx, shape, 5, &shape));
  return weir_shape_set(ctx, 0, shape);
}
static weir_status_t* backprop_input_shape(weir_shape_ctx_t* ctx) { return shape_of_value(ctx, 0); }
static weir_status_t* backprop_filter_shape(weir_shape_ctx_t* ctx) {
  return shape_of_value(ctx, 1);
}

// ---- gradients ----
static weir_edge_t conv_node(weir_grad_ctx_t* g, const char* op, weir_edges_t inputs) {
  static const char* const names[] = {"strides", "padding", "data_format", "dilations"};
  weir_named_attr_t attrs[WEIR_COUNT_OF(names)];
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    attrs[i] = weir_attr_copy(names[i], weir_attrs_find(weir_grad_attrs(g), names[i]));
  }
  return weir_grad_node_with(g, op, inputs,
                             (weir_attrs_t){.items = attrs, .count = WEIR_COUNT_OF(attrs)});
}

static weir_edge_t by_input(weir_grad_ctx_t* g, weir_edge_t x, weir_edge_t w, weir_edge_t dy) {
  return conv_node(g, "Conv3DBackpropInputV2", WEIR_EDGES(weir_grad_shape_of(g, x), w, dy));
}

static weir_edge_t by_filter(weir_grad_ctx_t* g, weir_edge_t x, weir_edge_t w, weir_edge_t dy) {
  return conv_node(g, "Conv3DBackpropFilterV2", WEIR_EDGES(x, weir_grad_shape_of(g, w), dy));
}

static weir_status_t* conv3d_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = weir_grad_input(g, 0), w = weir_grad_input(g, 1), dy = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 0, by_input(g, x, w, dy)));
  return weir_grad_set(g, 1, by_filter(g, x, w, dy));
}

static weir_status_t* backprop_input_grad(weir_grad_ctx_t* g) {
  weir_edge_t w = weir_grad_input(g, 1), dy = weir_grad_input(g, 2), grad = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 1, by_filter(g, grad, w, dy)));
  return weir_grad_set(g, 2, conv_node(g, "Conv3D", WEIR_EDGES(grad, w)));
}

static weir_status_t* backprop_filter_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = weir_grad_input(g, 0), dy = weir_grad_input(g, 2), grad = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 0, by_input(g, x, grad, dy)));
  return weir_grad_set(g, 2, conv_node(g, "Conv3D", WEIR_EDGES(x, grad)));
}

// ---- kernels ----
static weir_status_t* conv_init(const weir_kernel_init_t* init, void* state) {
  return read_window(init->node->attrs, state);
}

static weir_status_t* check_rank5(const weir_tensor_t* t, const char* name) {
  if (t->rank == 5) return NULL;
  char text[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be 5-dimensional: %s", name,
                     weir_tensor_shape_text(t, text));
}

// Reads a shape of five dimensions given as a vector.
static weir_status_t* read_sizes(const weir_kernel_ctx_t* ctx, int i, const char* name,
                                 int64_t sizes[5]) {
  const weir_tensor_t* t = weir_kernel_input(ctx, i);
  if (t->rank != 1 || t->count != 5) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a vector of 5 values, but has shape %s", name,
                       weir_tensor_shape_text(t, text));
  }
  int count;
  int64_t elements;
  WEIR_TRY(weir_kernel_ints(ctx, i, sizes, 5, &count));
  return weir_shape_count(WEIR_DTYPE_FLOAT, 5, sizes, &elements);
}

static weir_status_t* check_dy(const window3_t* w, const char* op, const weir_conv3d_t* conv,
                               const weir_tensor_t* dy) {
  int64_t dims[5];
  format_dims(w, conv->batch, conv->out, conv->out_c, dims);
  if (memcmp(dims, dy->dims, sizeof(dims)) == 0) return NULL;
  char actual[WEIR_SHAPE_TEXT_SIZE], computed[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "%s: out_backprop doesn't match computed: actual = %s, computed = %s", op,
                     weir_tensor_shape_text(dy, actual), weir_shape_text(5, dims, computed));
}

typedef weir_status_t* (*conv_fn_t)(weir_pool_t* pool, weir_dtype_t dtype,
                                    const weir_conv3d_t* conv, const void* a, const void* b,
                                    void* out);

// A tensor of a convolution, and whether it is in the data format (filters never are).
typedef struct operand_t {
  const weir_tensor_t* tensor;
  bool is_channels_first;
} operand_t;

// Runs |fn| on operands in the type computed in and channels last.
static weir_status_t* run_conv(weir_kernel_ctx_t* ctx, const weir_conv3d_t* conv, conv_fn_t fn,
                               operand_t a, operand_t b, bool is_out_channels_first) {
  weir_staged_t sa = {0}, sb = {0}, so = {0};
  weir_tensor_t* out = ctx->outputs[0].tensor;
  weir_status_t* status = weir_stage_input(ctx, a.tensor, a.is_channels_first, &sa);
  if (!status) status = weir_stage_input(ctx, b.tensor, b.is_channels_first, &sb);
  if (!status) status = weir_stage_output(ctx, out, is_out_channels_first, &so);
  if (status) goto done;
  status = fn(weir_kernel_pool(ctx), weir_compute_type(weir_tensor_type(out)), conv, sa.data,
              sb.data, so.data);
  if (!status) status = weir_stage_finish(ctx, out, is_out_channels_first, &so);
done:
  weir_staged_release(&sa);
  weir_staged_release(&sb);
  weir_staged_release(&so);
  return status;
}

static weir_status_t* conv3d_cpu(weir_kernel_ctx_t* ctx) {
  const window3_t* w = ctx->state;
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *filter = weir_kernel_input(ctx, 1);
  weir_tensor_t* out;
  weir_conv3d_t conv;
  int64_t dims[5];
  WEIR_TRY(check_rank5(in, "input"));
  WEIR_TRY(check_rank5(filter, "filter"));
  WEIR_TRY(make_conv(w, "Conv3D", in->dims, filter->dims, &conv));
  format_dims(w, conv.batch, conv.out, conv.out_c, dims);
  WEIR_TRY(weir_kernel_output(ctx, 0, 5, dims, &out));
  if (out->count == 0) return NULL;
  return run_conv(ctx, &conv, weir_conv3d_forward, (operand_t){in, w->is_channels_first},
                  (operand_t){filter, false}, w->is_channels_first);
}

static weir_status_t* backprop_input_cpu(weir_kernel_ctx_t* ctx) {
  static const char op[] = "Conv3DBackpropInputOpV2";
  const window3_t* w = ctx->state;
  const weir_tensor_t *filter = weir_kernel_input(ctx, 1), *dy = weir_kernel_input(ctx, 2);
  weir_tensor_t* out;
  weir_conv3d_t conv;
  int64_t dims[5];
  WEIR_TRY(check_rank5(filter, "filter"));
  WEIR_TRY(check_rank5(dy, "out_backprop"));
  WEIR_TRY(read_sizes(ctx, 0, "input_sizes", dims));
  WEIR_TRY(make_conv(w, op, dims, filter->dims, &conv));
  WEIR_TRY(check_dy(w, op, &conv, dy));
  WEIR_TRY(weir_kernel_output(ctx, 0, 5, dims, &out));
  if (out->count == 0) return NULL;
  return run_conv(ctx, &conv, weir_conv3d_backprop_input, (operand_t){filter, false},
                  (operand_t){dy, w->is_channels_first}, w->is_channels_first);
}

static weir_status_t* backprop_filter_cpu(weir_kernel_ctx_t* ctx) {
  static const char op[] = "Conv3DBackpropFilterOpV2";
  const window3_t* w = ctx->state;
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *dy = weir_kernel_input(ctx, 2);
  weir_tensor_t* out;
  weir_conv3d_t conv;
  int64_t dims[5];
  WEIR_TRY(check_rank5(in, "input"));
  WEIR_TRY(check_rank5(dy, "out_backprop"));
  WEIR_TRY(read_sizes(ctx, 1, "filter_sizes", dims));
  WEIR_TRY(make_conv(w, op, in->dims, dims, &conv));
  WEIR_TRY(check_dy(w, op, &conv, dy));
  WEIR_TRY(weir_kernel_output(ctx, 0, 5, dims, &out));
  if (out->count == 0) return NULL;
  if (in->count == 0) {
    memset(out->data, 0, weir_tensor_byte_size(out));
    return NULL;
  }
  return run_conv(ctx, &conv, weir_conv3d_backprop_filter, (operand_t){in, w->is_channels_first},
                  (operand_t){dy, w->is_channels_first}, false);
}

const weir_op_module_t weir_ops_nn_conv3d = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Conv3D",
         .summary = "Convolves volumes by a filter",
         .attrs = CONV_ATTRS,
         .inputs = "input: T; filter: T",
         .outputs = "output: T",
         .infer_shape = conv3d_shape,
         .build_grad = conv3d_grad,
         .kernels = (const weir_kernel_def_t[]){{.device = WEIR_DEVICE_CPU,
                                                 .compute = conv3d_cpu,
                                                 .init = conv_init,
                                                 .state_size = sizeof(window3_t)},
                                                {0}}},
        {.name = "Conv3DBackpropInputV2",
         .summary = "Gradient of Conv3D by its input",
         .attrs = CONV_ATTRS "; Tshape: {int32, int64} = DT_INT32",
         .inputs = "input_sizes: Tshape; filter: T; out_backprop: T",
         .outputs = "output: T",
         .infer_shape = backprop_input_shape,
         .build_grad = backprop_input_grad,
         .kernels = (const weir_kernel_def_t[]){{.device = WEIR_DEVICE_CPU,
                                                 .compute = backprop_input_cpu,
                                                 .init = conv_init,
                                                 .state_size = sizeof(window3_t),
                                                 .host_inputs = "input_sizes"},
                                                {0}}},
        {.name = "Conv3DBackpropFilterV2",
         .summary = "Gradient of Conv3D by its filter",
         .attrs = CONV_ATTRS,
         .inputs = "input: T; filter_sizes: int32; out_backprop: T",
         .outputs = "output: T",
         .infer_shape = backprop_filter_shape,
         .build_grad = backprop_filter_grad,
         .kernels = (const weir_kernel_def_t[]){{.device = WEIR_DEVICE_CPU,
                                                 .compute = backprop_filter_cpu,
                                                 .init = conv_init,
                                                 .state_size = sizeof(window3_t),
                                                 .host_inputs = "filter_sizes"},
                                                {0}}},
        {0}}};
