// window.c — Geometry of sliding windows, from attributes to sizes.
#include "kernel/conv/window.h"

static weir_status_t* read_format(weir_attrs_t attrs, weir_window_t* out) {
  if (!weir_attrs_find(attrs, "data_format")) {  // ops that know of channels last alone
    out->axes = weir_attrs_list(attrs, "strides")->count >= 5 ? 3 : 2;
    return NULL;
  }
  weir_view_t format = weir_attrs_string(attrs, "data_format");
  if (weir_view_is(format, "CHANNELS_LAST") || weir_view_is(format, "CHANNELS_FIRST")) {
    out->axes = weir_attrs_list(attrs, "strides")->count == 5 ? 3 : 2;
    out->is_nchw = weir_view_is(format, "CHANNELS_FIRST");
    return NULL;
  }
  out->axes = format.size == 5 ? 3 : 2;
  out->is_nchw = weir_view_is(format, out->axes == 3 ? "NCDHW" : "NCHW");
  if (out->is_nchw || weir_view_is(format, out->axes == 3 ? "NDHWC" : "NHWC")) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED, "data format %.*s is not supported on the CPU",
                     WEIR_VIEW_ARG(format));
}

static weir_status_t* read_explicit(weir_attrs_t attrs, weir_window_t* out) {
  const weir_attr_t* pads = weir_attrs_find(attrs, "explicit_paddings");
  size_t count = pads ? pads->count : 0;
  if (out->padding != WEIR_PADDING_EXPLICIT) {
    if (count == 0) return NULL;
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
  }
  if (!pads || count != 2 * (size_t)(out->axes + 2)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "explicit_paddings attribute must contain %d values, but got: %zu",
                       2 * (out->axes + 2), count);
  }
  for (size_t i = 0; i < count; ++i) {
    if (pads->u.ints[i] < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "All elements of explicit_paddings must be nonnegative");
    }
  }
  int c = weir_window_channels(out);
  if (pads->u.ints[0] || pads->u.ints[1] || pads->u.ints[2 * c] || pads->u.ints[2 * c + 1]) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Nonzero explicit padding in the batch or depth dimensions is not supported");
  }
  for (int axis = 0; axis < out->axes; ++axis) {
    int d = weir_window_axis(out, axis);
    out->pads[axis][0] = pads->u.ints[2 * d];
    out->pads[axis][1] = pads->u.ints[2 * d + 1];
  }
  return NULL;
}

static weir_status_t* read_padding(weir_attrs_t attrs, weir_window_t* out) {
  weir_view_t padding = weir_attrs_string(attrs, "padding");
  out->padding = weir_view_is(padding, "SAME")       ? WEIR_PADDING_SAME
                 : weir_view_is(padding, "EXPLICIT") ? WEIR_PADDING_EXPLICIT
                                                     : WEIR_PADDING_VALID;
  return read_explicit(attrs, out);
}

static const char* rate_name(const char* name, int axes) {
  if (strcmp(name, "dilations") == 0) return "Dilated rates";
  return axes == 3 ? "Spatial strides" : "Row and column strides";
}

// One value a dimension, of which those of batch and depth must be 1: |unsupported| otherwise.
static weir_status_t* read_rates(weir_attrs_t attrs, const char* name, weir_code_t unsupported,
                                 const weir_window_t* w, int64_t out_rates[3]) {
  const weir_attr_t* list = weir_attrs_list(attrs, name);
  if (list->count != (size_t)(w->axes + 2)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Sliding window %s field must specify %d dimensions, but got %zu", name,
                       w->axes + 2, list->count);
  }
  const int64_t* values = list->u.ints;
  if (values[0] != 1 || values[weir_window_channels(w)] != 1) {
    return weir_status_create(
        unsupported, __FILE__, __LINE__,
        "Current implementation does not yet support %s in the batch and depth dimensions.", name);
  }
  for (int axis = 0; axis < w->axes; ++axis) {
    out_rates[axis] = values[weir_window_axis(w, axis)];
    if (out_rates[axis] > 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s should be larger than 0, but got %lld",
                       rate_name(name, w->axes), (long long)out_rates[axis]);
  }
  return NULL;
}

static void start_conv(weir_window_t* out) {
  *out = (weir_window_t){.depth_size = 1, .depth_stride = 1, .dilation = {1, 1, 1}};
}

// None at all is the default of Conv, but an error elsewhere.
static bool has_dilations(weir_attrs_t attrs) {
  const weir_attr_t* list = weir_attrs_find(attrs, "dilations");
  return list && (list->count > 0 || !weir_attrs_find(attrs, "batch_dims"));
}

weir_status_t* weir_window_read_conv(weir_attrs_t attrs, weir_code_t unsupported,
                                     weir_window_t* out_window) {
  weir_window_t* w = out_window;
  start_conv(w);
  WEIR_TRY(read_format(attrs, w));
  WEIR_TRY(read_rates(attrs, "strides", unsupported, w, w->stride));
  if (has_dilations(attrs)) WEIR_TRY(read_rates(attrs, "dilations", unsupported, w, w->dilation));
  return read_padding(attrs, w);
}

// As shape functions read them: what the values are is the kernel's concern.
static weir_status_t* read_shape_rates(weir_attrs_t attrs, const char* name, const char* op,
                                       const weir_window_t* w, int64_t out_rates[3]) {
  const weir_attr_t* list = weir_attrs_list(attrs, name);
  if (list->count != (size_t)(w->axes + 2)) {
    return WEIR_STATUS(
        INVALID_ARGUMENT, "%s requires the %s attribute to contain %d values, but got: %zu", op,
        strcmp(name, "strides") == 0 ? "stride" : "dilation", w->axes + 2, list->count);
  }
  for (int axis = 0; axis < w->axes; ++axis)
    out_rates[axis] = list->u.ints[weir_window_axis(w, axis)];
  return NULL;
}

weir_status_t* weir_window_read_conv_shape(weir_attrs_t attrs, const char* op,
                                           weir_window_t* out_window) {
  weir_window_t* w = out_window;
  start_conv(w);
  WEIR_TRY(read_format(attrs, w));
  if (!op) op = w->axes == 3 ? "Conv3D" : "Conv2D";
  if (has_dilations(attrs)) WEIR_TRY(read_shape_rates(attrs, "dilations", op, w, w->dilation));
  WEIR_TRY(read_shape_rates(attrs, "strides", op, w, w->stride));
  return read_padding(attrs, w);
}

// A window that lies in the padding alone would have no maximum.
static weir_status_t* check_pool_pads(const weir_window_t* w) {
  static const char* const names[2][2] = {{"Top", "Bottom"}, {"Left", "Right"}};
  for (int axis = 0; axis < 2; ++axis) {
    for (int side = 0; side < 2; ++side) {
      if (w->pads[axis][side] >= w->size[axis]) {
        return WEIR_STATUS(
            INVALID_ARGUMENT, "%s padding %lld needs to be smaller than the window size %lld",
            names[axis][side], (long long)w->pads[axis][side], (long long)w->size[axis]);
      }
    }
  }
  return NULL;
}

weir_status_t* weir_window_read_pool(weir_attrs_t attrs, const int64_t* ksize,
                                     const int64_t* strides, weir_window_t* out_window) {
  weir_window_t* w = out_window;
  *w = (weir_window_t){.batch_size = ksize[0], .batch_stride = strides[0], .dilation = {1, 1}};
  WEIR_TRY(read_format(attrs, w));
  for (int axis = 0; axis < 2; ++axis) {
    int d = weir_window_axis(w, axis);
    w->size[axis] = ksize[d];
    w->stride[axis] = strides[d];
  }
  w->depth_size = ksize[weir_window_channels(w)];
  w->depth_stride = strides[weir_window_channels(w)];
  WEIR_TRY(read_padding(attrs, w));
  return w->padding == WEIR_PADDING_EXPLICIT ? check_pool_pads(w) : NULL;
}

weir_status_t* weir_window_read_pool_attrs(weir_attrs_t attrs, weir_window_t* out_window) {
  const weir_attr_t* ksize = weir_attrs_list(attrs, "ksize");
  const weir_attr_t* strides = weir_attrs_list(attrs, "strides");
  if (ksize->count != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Sliding window ksize field must specify 4 dimensions");
  }
  if (strides->count != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Sliding window stride field must specify 4 dimensions");
  }
  return weir_window_read_pool(attrs, ksize->u.ints, strides->u.ints, out_window);
}

weir_status_t* weir_window_read_pool_shape(weir_attrs_t attrs, const char* op,
                                           weir_window_t* out_window) {
  static const char* const names[2][2] = {{"strides", "stride"}, {"ksize", "ksize"}};
  for (int i = 0; i < 2; ++i) {
    size_t count = weir_attrs_list(attrs, names[i][0])->count;
    if (count == 4) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "%s requires the %s attribute to contain 4 values, but got: %zu", op,
                       names[i][1], count);
  }
  return weir_window_read_pool_attrs(attrs, out_window);
}

weir_status_t* weir_window_check_pool_sizes(const weir_window_t* w) {
  int64_t dims[4];
  if (w->batch_size > 0 && w->size[0] > 0 && w->size[1] > 0 && w->depth_size > 0) return NULL;
  weir_window_dims(w, w->batch_size, w->size, w->depth_size, dims);
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Sliding window ksize must be positive. The specified or inferred ksize "
                     "is: %lld,%lld,%lld,%lld",
                     (long long)dims[0], (long long)dims[1], (long long)dims[2],
                     (long long)dims[3]);
}

weir_status_t* weir_window_check_pool_batch(const weir_window_t* w) {
  if (w->batch_size == 1 && w->batch_stride == 1) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED, "Pooling is not yet supported on the batch dimension.");
}

weir_status_t* weir_window_check_pool_input(const weir_tensor_t* in) {
  if (in->rank == 4) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "tensor_in_shape must have 2 spatial dimensions. %d 0",
                     in->rank);
}

static weir_status_t* check_stride(int64_t stride) {
  if (stride > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Stride must be > 0, but got %lld", (long long)stride);
}

weir_status_t* weir_window_check_pool_stride(const weir_window_t* w) {
  return check_stride(w->depth_stride);
}

weir_status_t* weir_window_check_pool_depth(const weir_window_t* w, int64_t channels) {
  if (w->depth_size == 1) return NULL;
  if (w->size[0] != 1 || w->size[1] != 1) {
    return WEIR_STATUS(
        UNIMPLEMENTED,
        "MaxPooling supports exactly one of pooling across depth or pooling across width/height.");
  }
  if (w->depth_size <= 0) return WEIR_STATUS(INVALID_ARGUMENT, "depth_window must not be 0");
  if (channels % w->depth_size != 0) {
    return WEIR_STATUS(
        UNIMPLEMENTED,
        "Depthwise max pooling requires the depth window to evenly divide the input depth");
  }
  if (w->depth_size == w->depth_stride) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED,
                     "Depthwise max pooling requires the depth window to equal the depth stride.");
}

// ---- sizes ----

// What a window of |size| elements covers.
static weir_status_t* find_extent(int64_t size, int64_t dilation, int64_t* out_extent) {
  if (!__builtin_mul_overflow(size - 1, dilation, out_extent) &&
      !__builtin_add_overflow(*out_extent, 1, out_extent)) {
    return NULL;
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "window of %lld elements with dilation %lld is too large",
                     (long long)size, (long long)dilation);
}

weir_status_t* weir_window_output(const weir_window_t* w, int axis, int64_t in, int64_t size,
                                  int64_t* out_size, int64_t* out_pad) {
  int64_t stride = w->stride[axis], extent = 0;
  WEIR_TRY(check_stride(stride));
  WEIR_TRY(find_extent(size, w->dilation[axis], &extent));
  if (w->padding == WEIR_PADDING_SAME) {
    *out_size = in == 0 ? 0 : (in - 1) / stride + 1;
    *out_pad = WEIR_MAX((*out_size - 1) * stride + extent - in, 0) / 2;
    return NULL;
  }
  int64_t padded = in + w->pads[axis][0] + w->pads[axis][1];
  *out_pad = w->pads[axis][0];
  *out_size = (padded - extent + stride) / stride;  // less than a stride too short: none
  if (*out_size >= 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Computed output size would be negative: %lld [input_size: %lld, "
                     "effective_filter_size: %lld, "
                     "stride: %lld]",
                     (long long)*out_size, (long long)in, (long long)extent, (long long)stride);
}

weir_status_t* weir_window_output_if_known(const weir_window_t* w, int axis, int64_t in,
                                           int64_t size, int64_t* out_size) {
  int64_t pad;
  const bool is_known = in >= 0 && (size >= 0 || w->padding == WEIR_PADDING_SAME);
  *out_size = -1;
  return is_known ? weir_window_output(w, axis, in, size, out_size, &pad)
                  : check_stride(w->stride[axis]);
}

// Windows of |extent| elements within |in|, neither of which need be known; -1: nor is the result.
static weir_status_t* count_windows(int64_t in, int64_t extent, int64_t stride, int64_t* out_size) {
  *out_size = -1;
  WEIR_TRY(check_stride(stride));
  if (in < 0 || extent == -1) return NULL;
  if (extent > in) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Negative dimension size caused by subtracting %lld from %lld",
                       (long long)extent, (long long)in);
  }
  *out_size = (in - extent + stride) / stride;
  return NULL;
}

weir_status_t* weir_window_output_shape(const weir_window_t* w, int axis, int64_t in, int64_t size,
                                        int64_t* out_size) {
  int64_t extent = -1, pads = w->pads[axis][0] + w->pads[axis][1];
  if (w->dilation[axis] < 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Dilation rate must be >= 1, but got %lld",
                       (long long)w->dilation[axis]);
  }
  if (w->padding == WEIR_PADDING_SAME) {  // whatever the window
    WEIR_TRY(check_stride(w->stride[axis]));
    *out_size = in <= 0 ? in : (in - 1) / w->stride[axis] + 1;
    return NULL;
  }
  if (size != -1) WEIR_TRY(find_extent(size, w->dilation[axis], &extent));
  return count_windows(in < 0 ? -1 : in + pads, extent, w->stride[axis], out_size);
}

// |filter| is what the filter has behind its axes.
static weir_status_t* check_depths(const char* op, int64_t depth, const int64_t filter[2],
                                   bool is_depthwise) {
  if (is_depthwise) {
    if (depth == filter[0]) return NULL;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "%s: input and filter must have the same depth: %lld vs %lld", op,
                       (long long)depth, (long long)filter[0]);
  }
  if (filter[0] <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: filter depth must be stricly positive, got %lld", op,
                       (long long)filter[0]);
  }
  if (depth % filter[0] != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "%s: input depth must be evenly divisible by filter depth: %lld vs %lld", op,
                       (long long)depth, (long long)filter[0]);
  }
  int64_t groups = depth / filter[0];
  if (groups > 0 && filter[1] % groups != 0) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "%s: output depth must be evenly divisible by number of groups: %lld vs %lld", op,
        (long long)filter[1], (long long)groups);
  }
  return NULL;
}

weir_status_t* weir_window_conv(const weir_window_t* w, const char* op, const int64_t* in_dims,
                                const int64_t* filter_dims, bool is_depthwise,
                                weir_conv_t* out_conv) {
  int64_t depth = in_dims[weir_window_channels(w)];
  const int64_t* filter = filter_dims + w->axes;
  WEIR_TRY(check_depths(op, depth, filter, is_depthwise));
  weir_conv_t c = {.batch = in_dims[0],
                   .in_c = depth,
                   .groups = is_depthwise ? depth : WEIR_MAX(depth / filter[0], 1),
                   .in = {1, 1, 1},
                   .filter = {1, 1, 1},
                   .out = {1, 1, 1},
                   .stride = {1, 1, 1},
                   .dilation = {1, 1, 1}};
  c.group_in = is_depthwise ? 1 : depth == 0 ? 0 : filter[0];  // no channels: patches are empty
  c.group_out = is_depthwise ? filter[1] : filter[1] / c.groups;
  c.out_c = is_depthwise ? depth * filter[1] : filter[1];
  for (int axis = 0; axis < w->axes; ++axis) {
    int to = 3 - w->axes + axis;
    c.in[to] = in_dims[weir_window_axis(w, axis)];
    c.filter[to] = filter_dims[axis];
    c.stride[to] = w->stride[axis];
    c.dilation[to] = w->dilation[axis];
    WEIR_TRY(weir_window_output(w, axis, c.in[to], c.filter[to], &c.out[to], &c.pad[to]));
  }
  *out_conv = c;
  return NULL;
}

weir_status_t* weir_window_pool2d(const weir_window_t* w, const int64_t in_dims[4],
                                  weir_pool2d_t* out_pool) {
  weir_pool2d_t p = {
      .batch = in_dims[0],
      .in_h = in_dims[weir_window_axis(w, 0)],
      .in_w = in_dims[weir_window_axis(w, 1)],
      .channels = in_dims[weir_window_channels(w)],
      .window_h = w->size[0],
      .window_w = w->size[1],
      .stride_h = w->stride[0],
      .stride_w = w->stride[1],
  };
  WEIR_TRY(weir_window_output(w, 0, p.in_h, p.window_h, &p.out_h, &p.pad_top));
  WEIR_TRY(weir_window_output(w, 1, p.in_w, p.window_w, &p.out_w, &p.pad_left));
  *out_pool = p;
  return NULL;
}

void weir_window_dims(const weir_window_t* w, int64_t n, const int64_t* sizes, int64_t c,
                      int64_t* out_dims) {
  out_dims[0] = n;
  out_dims[weir_window_channels(w)] = c;
  for (int axis = 0; axis < w->axes; ++axis) out_dims[weir_window_axis(w, axis)] = sizes[axis];
}

weir_status_t* weir_window_expect(const weir_tensor_t* tensor, int rank, const int64_t* dims,
                                  const char* what) {
  if (tensor->rank == rank && memcmp(tensor->dims, dims, (size_t)rank * sizeof(int64_t)) == 0)
    return NULL;
  char actual[WEIR_SHAPE_TEXT_SIZE], wanted[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Size of %s doesn't match computed: actual = %s, computed = %s", what,
                     weir_tensor_shape_text(tensor, actual), weir_shape_text(rank, dims, wanted));
}

weir_status_t* weir_window_expect_pooled(const weir_tensor_t* tensor, const int64_t dims[4],
                                         const char* what) {
  if (tensor->rank == 4 && memcmp(tensor->dims, dims, 4 * sizeof(*dims)) == 0) return NULL;
  char actual[WEIR_SHAPE_TEXT_SIZE], wanted[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "Expected %s shape to be %s, but got %s", what,
                     weir_shape_text(4, dims, wanted), weir_tensor_shape_text(tensor, actual));
}

// |is_strict|: channels are counted by their stride even where the window takes one at a time.
static weir_status_t* pool_shape(weir_shape_ctx_t* ctx, const weir_window_t* w, bool is_strict) {
  const weir_shape_t* in;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &in));
  int64_t sizes[2], dims[4], depth = weir_shape_dim(in, weir_window_channels(w));
  for (int axis = 0; axis < 2; ++axis) {
    int64_t size = weir_shape_dim(in, weir_window_axis(w, axis));
    WEIR_TRY(weir_window_output_shape(w, axis, size, w->size[axis], &sizes[axis]));
  }
  WEIR_TRY(check_stride(w->depth_stride));
  if (w->depth_size != 1 || is_strict) {
    const weir_window_t along = {
        .padding = w->padding, .stride = {w->depth_stride}, .dilation = {1}};
    WEIR_TRY(weir_window_output_shape(&along, 0, depth, w->depth_size, &depth));
  }
  weir_window_dims(w, weir_shape_dim(in, 0), sizes, depth, dims);
  return weir_shape_set_dims(ctx, 0, 4, dims);
}

weir_status_t* weir_window_pool_shape(weir_shape_ctx_t* ctx, const weir_window_t* w) {
  return pool_shape(ctx, w, false);
}

weir_status_t* weir_window_pool_grad_shape(weir_shape_ctx_t* ctx, const weir_window_t* w) {
  return pool_shape(ctx, w, true);
}
