// conv.c — Conv: a convolution of images or volumes, with any number of batch dimensions.
#include "kernel/conv/window.h"
#include "kernel/move/staging.h"

enum { MAX_RANK = 5 };  // of a batch dimension, axes and channels

typedef struct state_t {
  weir_window_t window;  // where strides are for images or volumes
  size_t strides_count;
  int64_t batch_dims;
} state_t;

// ---- attributes ----

// What only the kernel refuses besides.
static weir_status_t* check_supported(weir_attrs_t attrs, const weir_window_t* w) {
  static const char* const names[] = {"strides", "dilations"};
  for (int i = 0; i < 2; ++i) {
    const weir_attr_t* list = weir_attrs_list(attrs, names[i]);
    if (list->count == 0) continue;
    if (list->u.ints[0] == 1 && list->u.ints[weir_window_channels(w)] == 1) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Current implementation does not support %s in the batch and depth "
                       "dimensions.",
                       i == 0 ? "strides" : "dilation rates");
  }
  return NULL;
}

static weir_status_t* check_lengths(weir_attrs_t attrs, int64_t rank) {
  size_t strides = weir_attrs_list(attrs, "strides")->count;
  size_t dilations = weir_attrs_list(attrs, "dilations")->count;
  if (strides != (size_t)rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Stride attribute should contain %lld values, but got: %zu", (long long)rank,
                       strides);
  }
  if (dilations == 0 || dilations == (size_t)rank) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Conv requires the dilation attribute to contain %lld values, but got: %zu",
                     (long long)rank, dilations);
}

// Of convolutions of |rank| dimensions, 4 or 5, one of them that of the batch.
static weir_status_t* read_window(weir_attrs_t attrs, int64_t rank, weir_window_t* out) {
  WEIR_TRY(check_lengths(attrs, rank));
  *out = (weir_window_t){
      .axes = (int)rank - 2,
      .is_nchw = weir_view_is(weir_attrs_string(attrs, "data_format"), "CHANNELS_FIRST")};
  WEIR_TRY(check_supported(attrs, out));
  WEIR_TRY(weir_window_read_conv(attrs, WEIR_INVALID_ARGUMENT, out));
  if (rank == 4 || out->padding != WEIR_PADDING_EXPLICIT) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Explicit padding not supported for 3D Convolution");
}

// ---- shape ----

static weir_status_t* check_groups(weir_attrs_t attrs, int64_t depth, int64_t filter_depth) {
  const int64_t groups = weir_attrs_int(attrs, "groups");
  if (groups <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Groups attribute should be a positive integer");
  }
  if (filter_depth == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Depth of filter must not be 0");
  if (depth >= 0 && depth % groups != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Number of groups should divide input depth");
  }
  if (depth < 0 || filter_depth < 0) return NULL;
  if (depth % filter_depth != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Depth of input (%lld) is not a multiple of input depth of filter (%lld)",
                       (long long)depth, (long long)filter_depth);
  }
  if (depth / filter_depth == groups) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "Input depth divided by filter input depth does not match with groups parameter (%lld)",
      (long long)groups);
}

// |dims| and |sizes| are those of the axes; the former become those of the output.
static weir_status_t* spatial_dims(const weir_window_t* w, const weir_shape_t* filter,
                                   int64_t* dims) {
  for (int axis = 0; axis < w->axes; ++axis) {
    WEIR_TRY(
        weir_window_output_shape(w, axis, dims[axis], weir_shape_dim(filter, axis), &dims[axis]));
  }
  return NULL;
}

// |rank|: that of the input, with one dimension for the batch.
static weir_status_t* check_ranks(int64_t rank, int filter_rank) {
  if (rank != 4 && rank != 5) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Input tensor must be rank 4 or 5, excluding extra batch dimensions, but got: %lld",
        (long long)rank);
  }
  if (filter_rank != 4 && filter_rank != 5) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Filter tensor must be rank 4 or 5, but got: %d",
                       filter_rank);
  }
  if (filter_rank == rank) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Input tensor rank must be the same as filter rank.");
}

static weir_status_t* conv_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *in = weir_shape_input(ctx, 0), *filter = weir_shape_input(ctx, 1);
  weir_attrs_t attrs = weir_shape_attrs(ctx);
  const int64_t batch_dims = weir_attrs_int(attrs, "batch_dims");
  weir_window_t w;
  int64_t dims[WEIR_MAX_RANK];
  if (batch_dims < 0) return WEIR_STATUS(INVALID_ARGUMENT, "Batch dims must be non-negative.");
  if (in->rank < 0 || filter->rank < 0) return NULL;
  WEIR_TRY(check_ranks(in->rank - batch_dims + 1, filter->rank));
  WEIR_TRY(read_window(attrs, filter->rank, &w));
  const int first = (int)batch_dims;  // the first dimension behind the batch
  const int channels = first - 1 + weir_window_channels(&w);
  for (int i = 0; i < in->rank; ++i) dims[i] = in->dims[i];
  WEIR_TRY(check_groups(attrs, dims[channels], weir_shape_dim(filter, w.axes)));
  WEIR_TRY(spatial_dims(&w, filter, dims + first + w.is_nchw));
  dims[channels] = weir_shape_dim(filter, w.axes + 1);
  return weir_shape_set_dims(ctx, 0, in->rank, dims);
}

// ---- kernel ----

static weir_status_t* conv_init(const weir_kernel_init_t* init, void* state) {
  state_t* s = state;
  weir_attrs_t attrs = init->node->attrs;
  if (weir_attrs_int(attrs, "groups") != 1) {
    return WEIR_STATUS(UNIMPLEMENTED, "Grouped/Depthwise Convolutions are not supported yet.");
  }
  s->batch_dims = weir_attrs_int(attrs, "batch_dims");
  s->strides_count = weir_attrs_list(attrs, "strides")->count;
  if (s->strides_count != 4 && s->strides_count != 5) return NULL;  // check_inputs() refuses it
  WEIR_TRY(read_window(attrs, (int64_t)s->strides_count, &s->window));
  if (!s->window.is_nchw) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED, "Conv takes channels last alone on the CPU");
}

static weir_status_t* check_inputs(const state_t* s, const weir_tensor_t* in,
                                   const weir_tensor_t* filter) {
  const int64_t axes = in->rank - 1 - s->batch_dims;
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (s->batch_dims < 0 || (axes != 2 && axes != 3)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The input must have 2 or 3 spatial dimensions but got %lld",
                       (long long)axes);
  }
  if (filter->rank != 4 && filter->rank != 5) {
    return WEIR_STATUS(INVALID_ARGUMENT, "The filter must be rank 4 or 5 but got %d", filter->rank);
  }
  if (s->strides_count != (size_t)axes + 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Sliding window strides field must specify %lld dimensions",
                       (long long)axes + 2);
  }
  if (filter->rank != axes + 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "filter must be %lld-dimensional: %s", (long long)axes + 2,
                       weir_tensor_shape_text(filter, text));
  }
  if (in->dims[in->rank - 1] != filter->dims[axes]) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input depth must be equal to filter depth: %lld vs %lld",
                       (long long)in->dims[in->rank - 1], (long long)filter->dims[axes]);
  }
  if (filter->count > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "filter must not have zero elements (i.e. all dimensions must be non-zero)");
}

static weir_status_t* run(weir_kernel_ctx_t* ctx, const weir_conv_t* conv, weir_tensor_t* out) {
  weir_staged_t x = {0}, f = {0}, y = {0};
  weir_dtype_t dtype = weir_compute_type(weir_tensor_type(out));
  weir_status_t* status = weir_stage_input(ctx, weir_kernel_input(ctx, 0), false, &x);
  if (!status) status = weir_stage_input(ctx, weir_kernel_input(ctx, 1), false, &f);
  if (!status) status = weir_stage_output(ctx, out, false, &y);
  if (!status)
    status = weir_conv_forward(weir_kernel_pool(ctx), dtype, conv, x.data, f.data, y.data);
  if (!status) status = weir_stage_finish(ctx, out, false, &y);
  weir_staged_release(&x);
  weir_staged_release(&f);
  weir_staged_release(&y);
  return status;
}

static weir_status_t* conv_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* s = ctx->state;
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *filter = weir_kernel_input(ctx, 1);
  const int axes = s->window.axes;
  int64_t flat[MAX_RANK] = {1}, dims[WEIR_MAX_RANK];
  weir_tensor_t* out;
  weir_conv_t conv;
  WEIR_TRY(check_inputs(s, in, filter));
  for (int i = 0; i < s->batch_dims; ++i) flat[0] *= dims[i] = in->dims[i];
  for (int i = 0; i <= axes; ++i) flat[i + 1] = in->dims[s->batch_dims + i];
  WEIR_TRY(weir_window_conv(&s->window, "Conv", flat, filter->dims, false, &conv));
  for (int axis = 0; axis < axes; ++axis) dims[s->batch_dims + axis] = conv.out[3 - axes + axis];
  dims[in->rank - 1] = conv.out_c;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, dims, &out));
  return out->count == 0 ? NULL : run(ctx, &conv, out);
}

const weir_op_module_t weir_ops_nn_conv = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Conv",
         .summary = "Convolves images or volumes by a filter",
         .attrs = "T: {half, bfloat16, float, double, int32}; strides: list(int); padding: "
                  "{'SAME','VALID','EXPLICIT'}; explicit_paddings: list(int) = []; data_format: "
                  "{'CHANNELS_FIRST','CHANNELS_LAST'} = 'CHANNELS_LAST'; dilations: list(int) = "
                  "[]; batch_dims: int = 1; groups: int = 1",
         .inputs = "input: T; filter: T",
         .outputs = "output: T",
         .infer_shape = conv_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = conv_cpu, .init = conv_init,
                                    .state_size = sizeof(state_t))},
        {0}}};
