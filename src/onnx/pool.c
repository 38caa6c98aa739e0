// pool.c — Ops of ONNX that look at windows: convolutions and pools. Images have channels first,
// and one to three dimensions behind them; one dimension is treated as an image of one row.
#include <math.h>

#include "onnx/import.h"

enum { kMaxSpace = 3 };

// The geometry of windows along the dimensions behind channels.
typedef struct windows_t {
  int rank;  // of the space: 1 to 3
  int64_t size[kMaxSpace], stride[kMaxSpace], dilation[kMaxSpace];
  int64_t before[kMaxSpace], after[kMaxSpace];  // padding
  int64_t extra[kMaxSpace];                     // more padding behind, where sizes are rounded up
} windows_t;

// ---- attributes ----

static void read_list(onnx_call_t* call, const char* name, int64_t otherwise, int rank,
                      int64_t* out_values) {
  int count = 0;
  const int64_t* given = onnx_attr_ints(call, name, &count);
  if (given && count != rank) onnx_fail(call, "has %d %s for %d dimensions", count, name, rank);
  for (int i = 0; i < rank; ++i) {
    out_values[i] = given && count == rank ? given[i] : otherwise;
    bool is_good = out_values[i] >= 1 && out_values[i] <= INT32_MAX;
    if (!is_good) onnx_fail(call, "has %lld in %s", (long long)out_values[i], name);
  }
}

static int64_t span(const windows_t* w, int i) { return (w->size[i] - 1) * w->dilation[i] + 1; }

static void read_pads(onnx_call_t* call, weir_edge_t x, windows_t* w) {
  weir_view_t mode = onnx_attr_string(call, "auto_pad", "NOTSET");
  bool is_same = weir_view_starts_with(mode, "SAME");
  int count = 0;
  const int64_t* pads = onnx_attr_ints(call, "pads", &count);
  if (pads && count != 2 * w->rank)
    onnx_fail(call, "has %d pads for %d dimensions", count, w->rank);
  for (int i = 0; i < w->rank && !onnx_failed(call); ++i) {
    if (pads && !is_same) {
      w->before[i] = pads[i];
      w->after[i] = pads[w->rank + i];
      if (pads[i] < 0 || pads[w->rank + i] < 0) onnx_refuse(call, "with pads below zero");
    }
    if (!is_same) continue;
    int64_t dim = onnx_dim(x, 2 + i);
    if (dim < 0) {
      onnx_refuse(call, "padded to the same size, of a value whose size is not known");
      return;
    }
    int64_t windows = (dim + w->stride[i] - 1) / w->stride[i];
    int64_t total = WEIR_MAX((windows - 1) * w->stride[i] + span(w, i) - dim, 0);
    bool is_upper = weir_view_is(mode, "SAME_UPPER");
    w->before[i] = is_upper ? total / 2 : total - total / 2;
    w->after[i] = total - w->before[i];
  }
}

// With ceil_mode the last window may begin within the padded value and end behind it.
static void read_extra(onnx_call_t* call, weir_edge_t x, windows_t* w) {
  for (int i = 0; i < w->rank && onnx_attr_int(call, "ceil_mode", 0); ++i) {
    int64_t dim = onnx_dim(x, 2 + i);
    if (dim < 0) {
      onnx_refuse(call, "rounded up, of a value whose size is not known");
      return;
    }
    int64_t length = dim + w->before[i] + w->after[i];
    int64_t count = (length - span(w, i) + w->stride[i] - 1) / w->stride[i] + 1;
    if ((count - 1) * w->stride[i] >= dim + w->before[i]) count -= 1;  // begins in the padding
    w->extra[i] = WEIR_MAX((count - 1) * w->stride[i] + span(w, i) - length, 0);
  }
}

// Windows over |x|; the size is |sizes|, or the attribute kernel_shape.
static bool read_windows(onnx_call_t* call, weir_edge_t x, const int64_t* sizes, windows_t* w) {
  w->rank = onnx_need_rank(call, x) - 2;
  if (!onnx_failed(call) && (w->rank < 1 || w->rank > kMaxSpace))
    onnx_refuse(call, "of a value of rank %d", w->rank + 2);
  if (onnx_failed(call)) return false;
  read_list(call, "strides", 1, w->rank, w->stride);
  read_list(call, "dilations", 1, w->rank, w->dilation);
  if (sizes) memcpy(w->size, sizes, sizeof(int64_t) * (size_t)w->rank);
  else read_list(call, "kernel_shape", 0, w->rank, w->size);
  if (!onnx_failed(call)) read_pads(call, x, w);
  if (!onnx_failed(call)) read_extra(call, x, w);
  return !onnx_failed(call);
}

// As windows over an image of one row.
static void make_flat(windows_t* w) {
  if (w->rank != 1) return;
  windows_t flat = {.rank = 2, .size = {1}, .stride = {1}, .dilation = {1}};
  flat.size[1] = w->size[0];
  flat.stride[1] = w->stride[0];
  flat.dilation[1] = w->dilation[0];
  flat.before[1] = w->before[0];
  flat.after[1] = w->after[0];
  flat.extra[1] = w->extra[0];
  *w = flat;
}

static bool is_padded(const windows_t* w) {
  for (int i = 0; i < w->rank; ++i) {
    if (w->before[i] || w->after[i] || w->extra[i]) return true;
  }
  return false;
}
static bool is_dilated(const windows_t* w) {
  for (int i = 0; i < w->rank; ++i) {
    if (w->dilation[i] != 1) return true;
  }
  return false;
}

// The space of |x| padded by |value|; |first| is its first dimension of space.
static weir_edge_t padded(onnx_call_t* call, const windows_t* w, weir_edge_t x, int first,
                          bool with_extra, weir_edge_t value) {
  int64_t pads[2 * (kMaxSpace + 2)] = {0};
  if (!is_padded(w)) return x;
  int rank = onnx_need_rank(call, x);
  for (int i = 0; i < w->rank; ++i) {
    pads[2 * (first + i)] = w->before[i];
    pads[2 * (first + i) + 1] = w->after[i] + (with_extra ? w->extra[i] : 0);
  }
  weir_edge_t rows = onnx_reshape(call, onnx_ints(call, pads, 2 * rank), INTS(call, rank, 2));
  return ADD(call, "PadV2", x, rows, value);
}

// {1, values, 1} or {1, 1, values}, as attributes of ours have them.
static weir_named_attr_t around(onnx_call_t* call, const char* name, const int64_t* values,
                                int rank, bool is_first) {
  int64_t* list = weir_scope_alloc(call->scope, kMaxSpace + 2, sizeof(*list));
  for (int i = 0; list && i < rank + 2; ++i) list[i] = 1;
  for (int i = 0; list && i < rank; ++i) list[i + (is_first ? 2 : 1)] = values[i];
  return weir_attr_ints(name, list, list ? (size_t)rank + 2 : 0);
}

// ---- convolutions ----

// From {out, in, space} to {space, in, out}.
static weir_edge_t filter_of(onnx_call_t* call, weir_edge_t weights, int space) {
  int64_t perm[kMaxSpace + 2];
  for (int i = 0; i < space; ++i) perm[i] = i + 2;
  perm[space] = 1;
  perm[space + 1] = 0;
  return onnx_transpose(call, weights, perm, space + 2);
}

static weir_edge_t conv_2d(onnx_call_t* call, const windows_t* w, weir_edge_t x,
                           weir_edge_t weights) {
  const int64_t pads[] = {0, 0, 0, 0, w->before[0], w->after[0], w->before[1], w->after[1]};
  weir_attrs_t attrs = WEIR_ATTRS(around(call, "strides", w->stride, 2, true),
                                  around(call, "dilations", w->dilation, 2, true),
                                  weir_attr_string("data_format", "NCHW"),
                                  weir_attr_string("padding", is_padded(w) ? "EXPLICIT" : "VALID"),
                                  weir_attr_ints("explicit_paddings", pads, is_padded(w) ? 8 : 0));
  return ADD_WITH(call, "Conv2D", attrs, x, filter_of(call, weights, 2));
}

static weir_edge_t conv_3d(onnx_call_t* call, const windows_t* w, weir_edge_t x,
                           weir_edge_t weights) {
  static const int64_t kLast[] = {0, 2, 3, 4, 1}, kFirst[] = {0, 4, 1, 2, 3};
  x = onnx_transpose(call, padded(call, w, x, 2, false, onnx_like(call, x, 0)), kLast, 5);
  weir_attrs_t attrs = WEIR_ATTRS(around(call, "strides", w->stride, 3, false),
                                  around(call, "dilations", w->dilation, 3, false),
                                  weir_attr_string("padding", "VALID"));
  weir_edge_t y = ADD_WITH(call, "Conv3D", attrs, x, filter_of(call, weights, 3));
  return onnx_transpose(call, y, kFirst, 5);
}

// A filter of its own for each channel.
static weir_edge_t depthwise(onnx_call_t* call, const windows_t* w, weir_edge_t x,
                             weir_edge_t weights, int64_t groups) {
  static const int64_t kPerm[] = {2, 3, 0, 1};
  const int64_t pads[] = {0, 0, 0, 0, w->before[0], w->after[0], w->before[1], w->after[1]};
  weights = onnx_reshape(call, weights, INTS(call, groups, -1, w->size[0], w->size[1]));
  weir_attrs_t attrs = WEIR_ATTRS(around(call, "strides", w->stride, 2, true),
                                  around(call, "dilations", w->dilation, 2, true),
                                  weir_attr_string("data_format", "NCHW"),
                                  weir_attr_string("padding", is_padded(w) ? "EXPLICIT" : "VALID"),
                                  weir_attr_ints("explicit_paddings", pads, is_padded(w) ? 8 : 0));
  return ADD_WITH(call, "DepthwiseConv2dNative", attrs, x, onnx_transpose(call, weights, kPerm, 4));
}

// Part |index| of |count| equal ones of a dimension.
static weir_edge_t part_of(onnx_call_t* call, weir_edge_t all, int64_t axis, int64_t count,
                           int64_t index) {
  weir_edge_t first = ADD_WITH(call, "Split", WEIR_ATTRS(weir_attr_int("num_split", count)),
                               onnx_number(call, WEIR_DTYPE_INT32, (double)axis), all);
  return onnx_output(first, (int)index);
}

typedef weir_edge_t (*conv_fn_t)(onnx_call_t* call, const windows_t* w, weir_edge_t x,
                                 weir_edge_t weights);
// The groups one after another, which have channels and filters of their own.
static weir_edge_t grouped(onnx_call_t* call, const windows_t* w, conv_fn_t fn, weir_edge_t x,
                           weir_edge_t weights, int64_t groups) {
  enum { kMaxGroups = 1024 };
  if (groups == 1) return fn(call, w, x, weights);
  if (groups < 1 || groups > kMaxGroups) {
    onnx_refuse(call, "of %lld groups", (long long)groups);
    return x;
  }
  weir_edge_t* parts = weir_scope_alloc(call->scope, (size_t)groups + 1, sizeof(*parts));
  weir_edge_t xs = part_of(call, x, 1, groups, 0), filters = part_of(call, weights, 0, groups, 0);
  for (int i = 0; parts && i < groups; ++i)
    parts[i] = fn(call, w, onnx_output(xs, i), onnx_output(filters, i));
  return parts ? onnx_join(call, parts, (int)groups, 1) : x;
}

static bool read_filter(onnx_call_t* call, weir_edge_t weights, int64_t size[kMaxSpace]) {
  int rank = onnx_need_rank(call, weights);
  for (int i = 2; i < rank && i < kMaxSpace + 2; ++i) {
    size[i - 2] = onnx_dim(weights, i);
    if (size[i - 2] < 1) onnx_refuse(call, "with weights whose shape is not known");
  }
  return !onnx_failed(call);
}

static weir_edge_t with_bias(onnx_call_t* call, weir_edge_t y, weir_edge_t bias, int space) {
  int64_t shape[kMaxSpace + 1] = {-1, 1, 1, 1};
  if (!bias.node) return y;
  return ADD(call, "AddV2", y, onnx_reshape(call, bias, onnx_ints(call, shape, space + 1)));
}

static weir_edge_t conv_of(onnx_call_t* call, weir_edge_t x, weir_edge_t weights) {
  windows_t w = {0};
  int64_t size[kMaxSpace] = {0};
  int64_t groups = onnx_attr_int(call, "group", 1);
  if (!read_filter(call, weights, size) || !read_windows(call, x, size, &w)) return x;
  bool is_line = w.rank == 1;
  make_flat(&w);
  if (is_line) x = onnx_expand(call, x, 2);
  if (is_line) weights = onnx_expand(call, weights, 2);
  bool is_depthwise = groups > 1 && w.rank == 2 && onnx_dim(weights, 1) == 1;
  weir_edge_t y = is_depthwise
                      ? depthwise(call, &w, x, weights, groups)
                      : grouped(call, &w, w.rank == 3 ? conv_3d : conv_2d, x, weights, groups);
  return is_line ? onnx_squeeze(call, y, 2) : y;
}
static void conv(onnx_call_t* call) {
  weir_edge_t y = conv_of(call, onnx_in(call, 0), onnx_in(call, 1));
  onnx_out(call, 0, with_bias(call, y, onnx_in(call, 2), onnx_rank(y) - 2));
}

// ---- transposed convolutions: gradients of convolutions without padding, cut to size ----

static weir_edge_t full_transposed(onnx_call_t* call, const windows_t* w, weir_edge_t x,
                                   weir_edge_t weights) {
  weir_edge_t dims = onnx_shape(call, x), one = onnx_int(call, 1);
  int64_t spans[kMaxSpace], last[] = {0, 2, 3, 4, 1}, first[] = {0, 4, 1, 2, 3};
  for (int i = 0; i < w->rank; ++i) spans[i] = span(w, i);
  weir_edge_t space = ADD(call, "Sub", onnx_part(call, dims, 2, INT64_MAX), one);
  space = ADD(call, "Mul", space, onnx_ints(call, w->stride, w->rank));
  space = ADD(call, "AddV2", space, onnx_ints(call, spans, w->rank));
  weir_edge_t batch = onnx_part(call, dims, 0, 1);
  weir_edge_t channels = onnx_part(call, onnx_shape(call, weights), 1, 2);
  bool is_3d = w->rank == 3;
  weir_edge_t sizes =
      is_3d ? JOIN(call, batch, space, channels) : JOIN(call, batch, channels, space);
  weir_attrs_t attrs = WEIR_ATTRS(around(call, "strides", w->stride, w->rank, !is_3d),
                                  around(call, "dilations", w->dilation, w->rank, !is_3d),
                                  weir_attr_string("data_format", is_3d ? "NDHWC" : "NCHW"),
                                  weir_attr_string("padding", "VALID"));
  if (is_3d) x = onnx_transpose(call, x, last, 5);
  weir_edge_t y =
      ADD_WITH(call, is_3d ? "Conv3DBackpropInputV2" : "Conv2DBackpropInput", attrs,
               onnx_cast(call, sizes, WEIR_DTYPE_INT32), filter_of(call, weights, w->rank), x);
  return is_3d ? onnx_transpose(call, y, first, 5) : y;
}

// How much of the full result is cut off, or added where it is negative, on both sides.
static void read_cuts(onnx_call_t* call, weir_edge_t x, windows_t* w, int64_t* more) {
  int count = 0;
  const int64_t* shape = onnx_attr_ints(call, "output_shape", &count);
  weir_view_t mode = onnx_attr_string(call, "auto_pad", "NOTSET");
  bool is_same = weir_view_starts_with(mode, "SAME");
  if (shape && count < w->rank) onnx_fail(call, "has an output_shape of %d dimensions", count);
  for (int i = 0; i < w->rank && (shape || is_same) && !onnx_failed(call); ++i) {
    int64_t dim = onnx_dim(x, 2 + i);
    if (dim < 0) onnx_refuse(call, "of a value whose size is not known");
    int64_t want = shape ? shape[count - w->rank + i] : dim * w->stride[i];
    int64_t total = (dim - 1) * w->stride[i] + more[i] + span(w, i) - want;
    if (total < 0) {
      more[i] -= total;
      total = 0;
    }
    w->before[i] = weir_view_is(mode, "SAME_UPPER") ? total / 2 : total - total / 2;
    if (!is_same) w->before[i] = total / 2;
    w->after[i] = total - w->before[i];
  }
}

static weir_edge_t cut(onnx_call_t* call, const windows_t* w, weir_edge_t y, const int64_t* more) {
  int64_t begin[kMaxSpace + 2] = {0}, end[kMaxSpace + 2] = {0},
                            step[kMaxSpace + 2] = {1, 1, 1, 1, 1};
  int64_t open = 3;  // which ends are those of the value
  windows_t pads = {.rank = w->rank};
  for (int i = 0; i < w->rank; ++i) {
    pads.after[i] = more[i];
    begin[i + 2] = w->before[i];
    end[i + 2] = -w->after[i];
    if (w->after[i] == 0) open |= (int64_t)1 << (i + 2);
  }
  int rank = w->rank + 2;
  y = padded(call, &pads, y, 2, false, onnx_like(call, y, 0));
  return ADD_WITH(call, "StridedSlice", WEIR_ATTRS(weir_attr_int("end_mask", open)), y,
                  onnx_ints(call, begin, rank), onnx_ints(call, end, rank),
                  onnx_ints(call, step, rank));
}

// The same groups, whose channels are the first dimension of the weights.
static void conv_transpose(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), weights = onnx_in(call, 1);
  windows_t w = {0};
  int64_t size[kMaxSpace] = {0}, more[kMaxSpace] = {0};
  int count = 0;
  if (!read_filter(call, weights, size)) return;
  w.rank = onnx_need_rank(call, x) - 2;
  const int64_t* given = onnx_attr_ints(call, "output_padding", &count);
  for (int i = 0; i < count && i < kMaxSpace && given; ++i) more[i] = given[i];
  windows_t same = {0};
  if (!read_windows(call, x, size, &same)) return;
  w = same;
  read_cuts(call, x, &w, more);
  bool is_line = w.rank == 1;
  make_flat(&w);
  if (is_line) {
    more[1] = more[0];
    more[0] = 0;
    x = onnx_expand(call, x, 2);
    weights = onnx_expand(call, weights, 2);
  }
  weir_edge_t y = grouped(call, &w, full_transposed, x, weights, onnx_attr_int(call, "group", 1));
  y = cut(call, &w, y, more);
  if (is_line) y = onnx_squeeze(call, y, 2);
  onnx_out(call, 0, with_bias(call, y, onnx_in(call, 2), onnx_rank(y) - 2));
}

// ---- pools ----

static double lowest(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_INT8: return INT8_MIN;
    case WEIR_DTYPE_UINT8: return 0;
    default: return -INFINITY;
  }
}

// Each channel of each image as an image of one channel, {images * channels, space, 1}.
static weir_edge_t single(onnx_call_t* call, weir_edge_t x) {
  weir_edge_t space = onnx_part(call, onnx_shape(call, x), 2, INT64_MAX);
  return onnx_reshape(call, x, JOIN(call, INTS(call, -1), space, INTS(call, 1)));
}
// And back: |y| is such images, |x| what they came from.
static weir_edge_t rejoined(onnx_call_t* call, weir_edge_t y, weir_edge_t x) {
  weir_edge_t batch = onnx_part(call, onnx_shape(call, x), 0, 2);
  weir_edge_t space = onnx_part(call, onnx_shape(call, y), 1, -1);
  return onnx_reshape(call, y, JOIN(call, batch, space));
}

static weir_edge_t max_of(onnx_call_t* call, const windows_t* w, weir_edge_t x) {
  weir_edge_t image = single(call, x);
  image = padded(call, w, image, 1, true, onnx_like(call, x, lowest(onnx_dtype_of(x))));
  if (is_dilated(w)) {
    if (w->rank != 2) onnx_refuse(call, "with dilations in %d dimensions", w->rank);
    weir_edge_t zeros =
        ADD(call, "Fill", INTS(call, w->size[0], w->size[1], 1), onnx_like(call, x, 0));
    weir_attrs_t attrs = WEIR_ATTRS(around(call, "strides", w->stride, 2, false),
                                    around(call, "rates", w->dilation, 2, false),
                                    weir_attr_string("padding", "VALID"));
    return rejoined(call, ADD_WITH(call, "Dilation2D", attrs, image, zeros), x);
  }
  weir_attrs_t attrs = WEIR_ATTRS(around(call, "ksize", w->size, w->rank, false),
                                  around(call, "strides", w->stride, w->rank, false),
                                  weir_attr_string("padding", "VALID"));
  return rejoined(call, ADD_WITH(call, w->rank == 3 ? "MaxPool3D" : "MaxPool", attrs, image), x);
}

// Where in |x| the largest elements are, counted over all of it.
static weir_edge_t max_places(onnx_call_t* call, const windows_t* w, weir_edge_t x) {
  weir_edge_t image = single(call, x);
  if (w->rank != 2 || is_dilated(w))
    onnx_refuse(call, "with Indices in %d dimensions, or dilated", w->rank);
  weir_edge_t wide = padded(call, w, image, 1, true, onnx_like(call, x, lowest(onnx_dtype_of(x))));
  weir_attrs_t attrs = WEIR_ATTRS(
      around(call, "ksize", w->size, 2, false), around(call, "strides", w->stride, 2, false),
      weir_attr_string("padding", "VALID"), weir_attr_bool("include_batch_in_index", true));
  weir_edge_t at = onnx_output(ADD_WITH(call, "MaxPoolWithArgmax", attrs, wide), 1);
  weir_edge_t dims = onnx_shape(call, wide), own = onnx_shape(call, image);
  weir_edge_t columns = onnx_part(call, dims, 2, 3), rows = onnx_part(call, dims, 1, 2);
  weir_edge_t column =
      ADD(call, "Sub", ADD(call, "FloorMod", at, columns), onnx_int(call, w->before[1]));
  weir_edge_t line = ADD(call, "FloorDiv", at, columns);
  weir_edge_t row =
      ADD(call, "Sub", ADD(call, "FloorMod", line, rows), onnx_int(call, w->before[0]));
  weir_edge_t number = ADD(call, "FloorDiv", line, rows);
  weir_edge_t height = onnx_part(call, own, 1, 2), width = onnx_part(call, own, 2, 3);
  bool by_column = onnx_attr_int(call, "storage_order", 0) != 0;
  weir_edge_t inner = by_column ? ADD(call, "AddV2", ADD(call, "Mul", column, height), row)
                                : ADD(call, "AddV2", ADD(call, "Mul", row, width), column);
  weir_edge_t area = ADD(call, "Mul", height, width);
  return rejoined(call, ADD(call, "AddV2", ADD(call, "Mul", number, area), inner), x);
}

// The value as an image of one row where it is a line; |*was_line| says so.
static weir_edge_t as_image(onnx_call_t* call, windows_t* w, weir_edge_t x, bool* was_line) {
  *was_line = w->rank == 1;
  make_flat(w);
  return *was_line ? onnx_expand(call, x, 2) : x;
}

static void max_pool(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  windows_t w = {0};
  bool was_line = false;
  if (!read_windows(call, x, NULL, &w)) return;
  x = as_image(call, &w, x, &was_line);
  weir_edge_t y = max_of(call, &w, x);
  onnx_out(call, 0, was_line ? onnx_squeeze(call, y, 2) : y);
  if (!onnx_wants_out(call, 1)) return;
  weir_edge_t places = max_places(call, &w, x);
  onnx_out(call, 1, was_line ? onnx_squeeze(call, places, 2) : places);
}

// Sums over windows of images of one channel: a convolution by ones.
static weir_edge_t sums(onnx_call_t* call, const windows_t* w, weir_edge_t image) {
  bool is_3d = w->rank == 3;
  int64_t size[kMaxSpace + 2] = {1, 1, 1, 1, 1};
  for (int i = 0; i < w->rank; ++i) size[i] = w->size[i];
  weir_edge_t ones =
      ADD(call, "Fill", onnx_ints(call, size, w->rank + 2), onnx_like(call, image, 1));
  weir_attrs_t attrs = WEIR_ATTRS(around(call, "strides", w->stride, w->rank, false),
                                  around(call, "dilations", w->dilation, w->rank, false),
                                  weir_attr_string("padding", "VALID"));
  return ADD_WITH(call, is_3d ? "Conv3D" : "Conv2D", attrs, image, ones);
}

// How many elements each window of an image like |image| has that count.
static weir_edge_t window_counts(onnx_call_t* call, const windows_t* w, weir_edge_t image) {
  weir_edge_t zero = onnx_like(call, image, 0), one = onnx_like(call, image, 1);
  weir_edge_t space = onnx_part(call, onnx_shape(call, image), 1, -1);
  weir_edge_t shape = JOIN(call, INTS(call, 1), space, INTS(call, 1));
  bool counts_pads = onnx_attr_int(call, "count_include_pad", 0) != 0;
  windows_t pads = *w, extra = *w;
  for (int i = 0; i < w->rank; ++i) {
    pads.extra[i] = 0;
    extra.before[i] = extra.after[i] = 0;
  }
  weir_edge_t ones = ADD(call, "Fill", shape, one);
  ones = padded(call, &pads, ones, 1, false, counts_pads ? one : zero);
  ones = padded(call, &extra, ones, 1, true, zero);
  return sums(call, w, ones);
}

static weir_edge_t average_of(onnx_call_t* call, const windows_t* w, weir_edge_t x) {
  weir_edge_t image = single(call, x);
  if (!is_padded(w) && !is_dilated(w)) {
    weir_attrs_t attrs = WEIR_ATTRS(around(call, "ksize", w->size, w->rank, false),
                                    around(call, "strides", w->stride, w->rank, false),
                                    weir_attr_string("padding", "VALID"));
    return rejoined(call, ADD_WITH(call, w->rank == 3 ? "AvgPool3D" : "AvgPool", attrs, image), x);
  }
  weir_edge_t wide = padded(call, w, image, 1, true, onnx_like(call, x, 0));
  weir_edge_t y = ADD(call, "RealDiv", sums(call, w, wide), window_counts(call, w, image));
  return rejoined(call, y, x);
}
static void average_pool(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  windows_t w = {0};
  bool was_line = false;
  if (!read_windows(call, x, NULL, &w)) return;
  x = as_image(call, &w, x, &was_line);
  weir_edge_t y = average_of(call, &w, x);
  onnx_out(call, 0, was_line ? onnx_squeeze(call, y, 2) : y);
}

// The p-th root of the sum of p-th powers.
static void lp_pool(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  windows_t w = {0};
  bool was_line = false;
  if (!read_windows(call, x, NULL, &w)) return;
  x = as_image(call, &w, x, &was_line);
  double p = (double)onnx_attr_int(call, "p", 2);
  weir_edge_t powers = ADD(call, "Pow", ADD(call, "Abs", x), onnx_like(call, x, p));
  weir_edge_t wide = padded(call, &w, single(call, powers), 1, true, onnx_like(call, x, 0));
  weir_edge_t y = rejoined(call, sums(call, &w, wide), x);
  y = ADD(call, "Pow", y, onnx_like(call, x, 1 / p));
  onnx_out(call, 0, was_line ? onnx_squeeze(call, y, 2) : y);
}

// Over all of space.
static weir_edge_t global(onnx_call_t* call, const char* op, weir_edge_t x) {
  int64_t axes[WEIR_MAX_RANK];
  int rank = onnx_need_rank(call, x);
  for (int i = 2; i < rank; ++i) axes[i - 2] = i;
  return onnx_reduce(call, op, x, onnx_ints(call, axes, WEIR_MAX(rank - 2, 0)), true);
}
static void global_pool(onnx_call_t* call) {
  onnx_out(call, 0, global(call, call->row->with, onnx_in(call, 0)));
}
static void global_lp_pool(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  double p = (double)onnx_attr_int(call, "p", 2);
  weir_edge_t powers = ADD(call, "Pow", ADD(call, "Abs", x), onnx_like(call, x, p));
  onnx_out(call, 0, ADD(call, "Pow", global(call, "Sum", powers), onnx_like(call, x, 1 / p)));
}

// Puts elements back where a pool found them; all others are zero.
static void max_unpool(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), at = onnx_in(call, 1), shape = onnx_in(call, 2);
  windows_t w = {0};
  if (!read_windows(call, x, NULL, &w)) return;
  // Places count over the size that the pool had.
  int64_t one[kMaxSpace];
  for (int i = 0; i < w.rank; ++i) one[i] = w.size[i] - w.before[i] - w.after[i];
  weir_edge_t dims = onnx_shape(call, x);
  weir_edge_t space = ADD(call, "Sub", onnx_part(call, dims, 2, INT64_MAX), onnx_int(call, 1));
  space = ADD(call, "Mul", space, onnx_ints(call, w.stride, w.rank));
  space = ADD(call, "AddV2", space, onnx_ints(call, one, w.rank));
  weir_edge_t own = JOIN(call, onnx_part(call, dims, 0, 2), space);
  weir_edge_t count = onnx_reduce(call, "Prod", own, INTS(call, 0), true), flat = INTS(call, -1);
  weir_edge_t y = ADD(call, "ScatterNd", onnx_expand(call, onnx_reshape(call, at, flat), 1),
                      onnx_reshape(call, x, flat), count);
  y = onnx_reshape(call, y, own);
  if (shape.node) {
    weir_edge_t after = onnx_expand(call, ADD(call, "Sub", shape, own), 1);
    weir_edge_t pads =
        onnx_join(call, (const weir_edge_t[]){ADD(call, "ZerosLike", after), after}, 2, 1);
    y = ADD(call, "Pad", y, pads);
  }
  onnx_out(call, 0, y);
}

// ---- whole numbers: computed in double, which has room for all that 8 bits come to ----

static weir_edge_t less_zero_point(onnx_call_t* call, weir_edge_t x, weir_edge_t zero, int rank) {
  x = onnx_cast(call, x, WEIR_DTYPE_DOUBLE);
  if (!zero.node) return x;
  zero = onnx_cast(call, zero, WEIR_DTYPE_DOUBLE);
  int64_t shape[kMaxSpace + 2] = {-1, 1, 1, 1, 1};  // a number for each filter
  if (onnx_rank(zero) == 1) zero = onnx_reshape(call, zero, onnx_ints(call, shape, rank));
  return ADD(call, "Sub", x, zero);
}
static void conv_integer(onnx_call_t* call) {
  weir_edge_t x =
      less_zero_point(call, onnx_in(call, 0), onnx_in(call, 2), onnx_rank(onnx_in(call, 0)));
  weir_edge_t w =
      less_zero_point(call, onnx_in(call, 1), onnx_in(call, 3), onnx_rank(onnx_in(call, 1)));
  onnx_out(call, 0, onnx_cast(call, conv_of(call, x, w), WEIR_DTYPE_INT32));
}

static weir_edge_t filter_row(onnx_call_t* call, weir_edge_t x, int rank) {
  int64_t shape[kMaxSpace + 1] = {-1, 1, 1, 1};
  x = onnx_cast(call, x, WEIR_DTYPE_DOUBLE);
  return onnx_rank(x) == 1 ? onnx_reshape(call, x, onnx_ints(call, shape, rank - 1)) : x;
}
static void q_linear_conv(onnx_call_t* call) {
  int rank = onnx_need_rank(call, onnx_in(call, 0));
  weir_edge_t x = less_zero_point(call, onnx_in(call, 0), onnx_in(call, 2), rank);
  weir_edge_t w = less_zero_point(call, onnx_in(call, 3), onnx_in(call, 5), rank);
  weir_edge_t zero = onnx_in(call, 7), bias = onnx_in(call, 8);
  weir_edge_t y = conv_of(call, x, w);
  if (bias.node) y = with_bias(call, y, onnx_cast(call, bias, WEIR_DTYPE_DOUBLE), rank - 2);
  weir_edge_t scale = ADD(call, "Mul", filter_row(call, onnx_in(call, 1), rank),
                          filter_row(call, onnx_in(call, 4), rank));
  scale = ADD(call, "RealDiv", scale, filter_row(call, onnx_in(call, 6), rank));
  y = ADD(call, "Round", ADD(call, "Mul", y, scale));
  y = ADD(call, "AddV2", y, onnx_cast(call, zero, WEIR_DTYPE_DOUBLE));
  bool is_signed = onnx_dtype_of(zero) == WEIR_DTYPE_INT8;
  y = ADD(call, "Maximum", y, onnx_like(call, y, is_signed ? INT8_MIN : 0));
  y = ADD(call, "Minimum", y, onnx_like(call, y, is_signed ? INT8_MAX : UINT8_MAX));
  onnx_out(call, 0, onnx_cast(call, y, onnx_dtype_of(zero)));
}

const onnx_row_t onnx_pool_rows[] = {ONNX_OP("AveragePool", 7, average_pool),
                                     ONNX_OP("Conv", 1, conv),
                                     ONNX_OP("ConvInteger", 10, conv_integer),
                                     ONNX_OP("ConvTranspose", 1, conv_transpose),
                                     ONNX_OP_WITH("GlobalAveragePool", 1, global_pool, "Mean"),
                                     ONNX_OP("GlobalLpPool", 2, global_lp_pool),
                                     ONNX_OP_WITH("GlobalMaxPool", 1, global_pool, "Max"),
                                     ONNX_OP("LpPool", 2, lp_pool),
                                     ONNX_OP("MaxPool", 1, max_pool),
                                     ONNX_OP("MaxUnpool", 9, max_unpool),
                                     ONNX_OP("QLinearConv", 10, q_linear_conv),
                                     {.op = NULL}};
