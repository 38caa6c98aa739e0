// index.c — Ops of ONNX that pick and place elements by indices.
#include "onnx/import.h"

// Indices that are negative count from the end of a dimension of size |n|.
static weir_edge_t wrap(onnx_call_t* call, weir_edge_t indices, weir_edge_t n) {
  const weir_tensor_t* known = onnx_constant(indices);
  bool is_plain = known != NULL && known->dtype != WEIR_DTYPE_UINT8;
  for (int64_t i = 0; is_plain && i < known->count; ++i)
    is_plain = weir_tensor_int_at(known, i) >= 0;
  if (is_plain) return indices;
  n = onnx_cast(call, n, onnx_dtype_of(indices));
  weir_edge_t below = ADD(call, "Less", indices, onnx_like(call, indices, 0));
  return ADD(call, "SelectV2", below, ADD(call, "AddV2", indices, n), indices);
}

static weir_edge_t scalar(onnx_call_t* call, weir_edge_t x) {
  return onnx_reshape(call, x, onnx_ints(call, NULL, 0));
}
static weir_edge_t size_of(onnx_call_t* call, weir_edge_t x, int64_t axis) {
  return scalar(call,
                onnx_part(call, onnx_shape(call, x), axis, axis == -1 ? INT64_MAX : axis + 1));
}

static void gather(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  int64_t axis = onnx_attr_int(call, "axis", 0);
  weir_edge_t indices = wrap(call, onnx_in(call, 1), size_of(call, x, axis));
  onnx_out(call, 0, ADD(call, "GatherV2", x, indices, onnx_int(call, axis)));
}

// ---- places of elements as rows of coordinates ----

// The numbers of dimension |axis| at each place of a value of |shape|, which has |rank| axes.
static weir_edge_t grid(onnx_call_t* call, weir_edge_t shape, int axis, int rank) {
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i < rank; ++i) dims[i] = i == axis ? -1 : 1;
  weir_edge_t n = scalar(call, onnx_part(call, shape, axis, axis + 1));
  weir_edge_t line = ADD(call, "Range", onnx_int(call, 0), n, onnx_int(call, 1));
  return ADD(call, "BroadcastTo", onnx_reshape(call, line, onnx_ints(call, dims, rank)), shape);
}

// For each element of |indices| where it stands in a value: as itself, but along |axis| by its
// value.
static weir_edge_t places(onnx_call_t* call, weir_edge_t x, weir_edge_t indices, int64_t axis) {
  weir_edge_t parts[WEIR_MAX_RANK];
  int rank = onnx_need_rank(call, x);
  if (axis < 0) axis += rank;
  indices = onnx_cast(call, indices, WEIR_DTYPE_INT64);
  weir_edge_t shape = onnx_shape(call, indices);
  for (int i = 0; i < rank && !onnx_failed(call); ++i) {
    parts[i] = i == axis ? wrap(call, indices, size_of(call, x, axis)) : grid(call, shape, i, rank);
    parts[i] = onnx_expand(call, parts[i], -1);
  }
  return onnx_failed(call) || rank == 0 ? indices : onnx_join(call, parts, rank, rank);
}

static void gather_elements(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  int64_t axis = onnx_attr_int(call, "axis", 0);
  onnx_out(call, 0, ADD(call, "GatherNd", x, places(call, x, onnx_in(call, 1), axis)));
}

// Rows of coordinates, none of which is negative.
static weir_edge_t wrap_rows(onnx_call_t* call, weir_edge_t x, weir_edge_t rows, int64_t skipped) {
  weir_edge_t length = onnx_part(call, onnx_shape(call, rows), -1, INT64_MAX);
  weir_edge_t dims = ADD(call, "Slice", onnx_shape(call, x), INTS(call, skipped), length);
  return wrap(call, rows, dims);
}

static void gather_nd(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), rows = onnx_in(call, 1);
  int64_t batch = onnx_attr_int(call, "batch_dims", 0);
  int rank = onnx_need_rank(call, rows);
  weir_edge_t parts[WEIR_MAX_RANK];
  rows = wrap_rows(call, x, onnx_cast(call, rows, WEIR_DTYPE_INT64), batch);
  weir_edge_t shape = onnx_part(call, onnx_shape(call, rows), 0, -1);
  if (batch < 0 || batch >= rank) batch = 0;
  for (int i = 0; i < batch; ++i) parts[i] = onnx_expand(call, grid(call, shape, i, rank - 1), -1);
  parts[batch] = rows;
  onnx_out(call, 0, ADD(call, "GatherNd", x, onnx_join(call, parts, (int)batch + 1, rank - 1)));
}

// Products have no op of their own: the factors of each place are multiplied first.
static weir_edge_t scatter_products(onnx_call_t* call, weir_edge_t x, weir_edge_t rows,
                                    weir_edge_t updates) {
  weir_edge_t first = INTS(call, 0), shape = onnx_shape(call, x);
  weir_edge_t depth = onnx_part(call, onnx_shape(call, rows), -1, INT64_MAX);
  weir_edge_t dims = ADD(call, "Slice", shape, first, depth);
  weir_edge_t strides =
      ADD_WITH(call, "Cumprod",
               WEIR_ATTRS(weir_attr_bool("exclusive", true), weir_attr_bool("reverse", true)), dims,
               onnx_int(call, 0));
  weir_edge_t at = onnx_reduce(call, "Sum", ADD(call, "Mul", rows, strides), INTS(call, -1), false);
  weir_edge_t count = onnx_reduce(call, "Prod", dims, first, false);
  weir_edge_t inner = onnx_part(call, onnx_shape(call, updates), 0, INT64_MAX);
  weir_edge_t rest =
      ADD(call, "Slice", inner, onnx_shape(call, onnx_shape(call, at)), INTS(call, -1));
  weir_edge_t flat = INTS(call, -1);
  weir_edge_t factors =
      ADD(call, "UnsortedSegmentProd", onnx_reshape(call, updates, JOIN(call, flat, rest)),
          onnx_reshape(call, at, flat), count);
  return ADD(call, "Mul", x, onnx_reshape(call, factors, shape));
}

static void scatter_at(onnx_call_t* call, weir_edge_t rows) {
  weir_edge_t x = onnx_in(call, 0), updates = onnx_in(call, 2);
  weir_view_t reduction = onnx_attr_string(call, "reduction", "none");
  const char* op = "TensorScatterUpdate";
  if (weir_view_is(reduction, "add")) op = "TensorScatterAdd";
  if (weir_view_is(reduction, "max")) op = "TensorScatterMax";
  if (weir_view_is(reduction, "min")) op = "TensorScatterMin";
  if (weir_view_is(reduction, "mul")) onnx_out(call, 0, scatter_products(call, x, rows, updates));
  else onnx_out(call, 0, ADD(call, op, x, rows, updates));
}
static void scatter_elements(onnx_call_t* call) {
  scatter_at(call,
             places(call, onnx_in(call, 0), onnx_in(call, 1), onnx_attr_int(call, "axis", 0)));
}
static void scatter_nd(onnx_call_t* call) {
  weir_edge_t rows = onnx_cast(call, onnx_in(call, 1), WEIR_DTYPE_INT64);
  scatter_at(call, wrap_rows(call, onnx_in(call, 0), rows, 0));
}

// ---- which elements ----

static void where(onnx_call_t* call) {
  onnx_out(call, 0, ADD(call, "SelectV2", onnx_in(call, 0), onnx_in(call, 1), onnx_in(call, 2)));
}
static void non_zero(onnx_call_t* call) {
  static const int64_t kSwap[] = {1, 0};
  onnx_out(call, 0, onnx_transpose(call, ADD(call, "Where", onnx_in(call, 0)), kSwap, 2));
}

static void compress(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  weir_edge_t at = onnx_squeeze(call, ADD(call, "Where", onnx_in(call, 1)), 1);
  const onnx_attr_t* axis = onnx_attr(call, "axis");
  if (!axis) x = onnx_reshape(call, x, INTS(call, -1));
  onnx_out(call, 0, ADD(call, "GatherV2", x, at, onnx_int(call, axis ? axis->i : 0)));
}

static void one_hot(onnx_call_t* call) {
  weir_edge_t indices = onnx_cast(call, onnx_in(call, 0), WEIR_DTYPE_INT64);
  weir_edge_t depth = onnx_cast(call, scalar(call, onnx_in(call, 1)), WEIR_DTYPE_INT64);
  weir_edge_t values = onnx_in(call, 2);
  weir_edge_t off = scalar(call, onnx_part(call, values, 0, 1));
  weir_edge_t on = scalar(call, onnx_part(call, values, 1, 2));
  int64_t axis = onnx_attr_int(call, "axis", -1);
  if (axis < -1) axis += onnx_need_rank(call, indices) + 1;
  onnx_out(call, 0,
           ADD_WITH(call, "OneHot", WEIR_ATTRS(weir_attr_int("axis", axis)),
                    wrap(call, indices, depth), onnx_cast(call, depth, WEIR_DTYPE_INT32), on, off));
}

static weir_edge_t pick(onnx_call_t* call, weir_edge_t x, weir_edge_t indices, int64_t axis) {
  return ADD(call, "GatherV2", x, indices, onnx_int(call, axis));
}

// Ours finds them in the order in which they come; sorting is a permutation after that.
static void unique(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  const onnx_attr_t* given = onnx_attr(call, "axis");
  int64_t axis = given ? given->i : 0;
  bool is_sorted = onnx_attr_int(call, "sorted", 1) != 0;
  if (!given) x = onnx_reshape(call, x, INTS(call, -1));
  if (axis < 0) axis += onnx_need_rank(call, x);
  if (is_sorted && onnx_need_rank(call, x) != 1) {
    onnx_refuse(call, "sorted along an axis of several");
    return;
  }
  weir_edge_t y =
      ADD_WITH(call, "UniqueWithCountsV2", WEIR_ATTRS(weir_attr_type("out_idx", WEIR_DTYPE_INT64)),
               x, INTS(call, axis));
  weir_edge_t inverse = onnx_output(y, 1), counts = onnx_output(y, 2);
  weir_edge_t n = scalar(call, onnx_shape(call, counts));
  weir_edge_t all = ADD(call, "Range", onnx_int(call, 0), scalar(call, onnx_shape(call, inverse)),
                        onnx_int(call, 1));
  weir_edge_t firsts = ADD(call, "UnsortedSegmentMin", all, inverse, n);
  if (is_sorted) {
    weir_edge_t k = onnx_cast(call, n, WEIR_DTYPE_INT32);
    weir_edge_t order = onnx_output(ADD(call, "TopKV2", ADD(call, "Neg", y), k), 1);
    y = pick(call, y, order, 0);
    firsts = pick(call, firsts, order, 0);
    counts = pick(call, counts, order, 0);
    inverse = onnx_cast(call, pick(call, ADD(call, "InvertPermutation", order), inverse, 0),
                        WEIR_DTYPE_INT64);
  }
  onnx_out(call, 0, y);
  onnx_out(call, 1, firsts);
  onnx_out(call, 2, inverse);
  onnx_out(call, 3, counts);
}

static void reverse_sequence(onnx_call_t* call) {
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_int("seq_dim", onnx_attr_int(call, "time_axis", 0)),
                                  weir_attr_int("batch_dim", onnx_attr_int(call, "batch_axis", 1)));
  onnx_out(call, 0, ADD_WITH(call, "ReverseSequence", attrs, onnx_in(call, 0), onnx_in(call, 1)));
}

// ---- boxes ----

// Corners of boxes given by centre and size.
static weir_edge_t corners(onnx_call_t* call, weir_edge_t boxes) {
  weir_edge_t part[4], half = onnx_like(call, boxes, 0.5);
  for (int i = 0; i < 4; ++i) part[i] = pick(call, boxes, onnx_int(call, i), -1);
  weir_edge_t w = ADD(call, "Mul", part[2], half), h = ADD(call, "Mul", part[3], half);
  return ADD_WITH(call, "Pack", WEIR_ATTRS(weir_attr_int("axis", -1)), ADD(call, "Sub", part[1], h),
                  ADD(call, "Sub", part[0], w), ADD(call, "AddV2", part[1], h),
                  ADD(call, "AddV2", part[0], w));
}

// The boxes that one class of one image keeps, as rows {image, class, box}.
static weir_edge_t suppress(onnx_call_t* call, weir_edge_t boxes, weir_edge_t scores, int64_t image,
                            int64_t class, const weir_edge_t limits[3]) {
  weir_edge_t own = pick(call, boxes, onnx_int(call, image), 0);
  weir_edge_t score =
      pick(call, pick(call, scores, onnx_int(call, image), 0), onnx_int(call, class), 0);
  weir_edge_t kept = ADD(call, "NonMaxSuppressionV3", own, score, limits[0], limits[1], limits[2]);
  kept = onnx_expand(call, onnx_cast(call, kept, WEIR_DTYPE_INT64), 1);
  weir_edge_t start =
      ADD(call, "Tile", onnx_reshape(call, INTS(call, image, class), INTS(call, 1, 2)),
          JOIN(call, onnx_part(call, onnx_shape(call, kept), 0, 1), INTS(call, 1)));
  return onnx_join(call, (const weir_edge_t[]){start, kept}, 2, 1);
}

static void non_max_suppression(onnx_call_t* call) {
  enum { kMaxGroups = 1024 };
  weir_edge_t boxes = onnx_in(call, 0), scores = onnx_in(call, 1);
  int64_t images = onnx_dim(scores, 0), classes = onnx_dim(scores, 1);
  if (images < 0 || classes < 0 || images * classes > kMaxGroups) {
    onnx_refuse(call, "of more images and classes than %d, or of numbers that are not known",
                kMaxGroups);
    return;
  }
  const double kNone[] = {0, 0, -3.4028234663852886e38};
  weir_edge_t limits[3];
  for (int i = 0; i < 3; ++i) {
    weir_dtype_t dtype = i == 0 ? WEIR_DTYPE_INT32 : WEIR_DTYPE_FLOAT;
    limits[i] = onnx_has_in(call, 2 + i)
                    ? scalar(call, onnx_cast(call, onnx_in(call, 2 + i), dtype))
                    : onnx_number(call, dtype, kNone[i]);
  }
  if (onnx_attr_int(call, "center_point_box", 0)) boxes = corners(call, boxes);
  weir_edge_t* parts = weir_scope_alloc(call->scope, kMaxGroups + 1, sizeof(*parts));
  int count = 0;
  for (int64_t i = 0; parts && i < images; ++i) {
    for (int64_t k = 0; k < classes; ++k)
      parts[count++] = suppress(call, boxes, scores, i, k, limits);
  }
  if (count > 0) onnx_out(call, 0, onnx_join(call, parts, count, 0));
  else onnx_refuse(call, "of no images");
}

const onnx_row_t onnx_index_rows[] = {ONNX_OP("Compress", 9, compress),
                                      ONNX_OP("Gather", 1, gather),
                                      ONNX_OP("GatherElements", 11, gather_elements),
                                      ONNX_OP("GatherND", 11, gather_nd),
                                      ONNX_OP("NonMaxSuppression", 10, non_max_suppression),
                                      ONNX_OP("NonZero", 9, non_zero),
                                      ONNX_OP("OneHot", 9, one_hot),
                                      ONNX_OP("ReverseSequence", 10, reverse_sequence),
                                      ONNX_OP("Scatter", 9, scatter_elements),
                                      ONNX_OP("ScatterElements", 11, scatter_elements),
                                      ONNX_OP("ScatterND", 11, scatter_nd),
                                      ONNX_OP("Unique", 11, unique),
                                      ONNX_OP("Where", 9, where),
                                      {.op = NULL}};
