// resize.c — Resize and Upsample of ONNX: one axis after another. Nearest elements are picked; all
// else is a product with a matrix, whose rows are what an element of the result is made of.
#include "onnx/import.h"

// One axis that is resized. Numbers are double scalars.
typedef struct axis_t {
  weir_edge_t in, out;      // sizes, int64 scalars
  weir_edge_t n, m;         // the same as numbers
  weir_edge_t scale, wide;  // wide: the size of the result before it was rounded
  weir_edge_t start, end;   // region of interest; none: all
} axis_t;

static weir_edge_t number(onnx_call_t* call, double value) {
  return onnx_number(call, WEIR_DTYPE_DOUBLE, value);
}
static weir_edge_t scalar(onnx_call_t* call, weir_edge_t x) {
  return onnx_reshape(call, x, onnx_ints(call, NULL, 0));
}
static weir_edge_t as_double(onnx_call_t* call, weir_edge_t x) {
  return onnx_cast(call, x, WEIR_DTYPE_DOUBLE);
}
static weir_edge_t element(onnx_call_t* call, weir_edge_t vector, int index) {
  return scalar(call, onnx_part(call, vector, index, index + 1));
}
static weir_edge_t add(onnx_call_t* call, weir_edge_t a, weir_edge_t b) {
  return ADD(call, "AddV2", a, b);
}
static weir_edge_t sub(onnx_call_t* call, weir_edge_t a, weir_edge_t b) {
  return ADD(call, "Sub", a, b);
}
static weir_edge_t mul(onnx_call_t* call, weir_edge_t a, weir_edge_t b) {
  return ADD(call, "Mul", a, b);
}
static weir_edge_t quotient(onnx_call_t* call, weir_edge_t a, weir_edge_t b) {
  return ADD(call, "RealDiv", a, b);
}
static weir_edge_t within(onnx_call_t* call, weir_edge_t x, weir_edge_t low, weir_edge_t high) {
  return ADD(call, "Minimum", ADD(call, "Maximum", x, low), high);
}

// ---- where elements of the result are in the input ----

static weir_edge_t half_pixel(onnx_call_t* call, const axis_t* axis, weir_edge_t at) {
  weir_edge_t half = number(call, 0.5);
  return sub(call, quotient(call, add(call, at, half), axis->scale), half);
}

static weir_edge_t cropped(onnx_call_t* call, const axis_t* axis, weir_edge_t at) {
  weir_edge_t one = number(call, 1), last = sub(call, axis->n, one);
  weir_edge_t length = mul(call, sub(call, axis->end, axis->start), last);
  weir_edge_t is_one = ADD(call, "Equal", axis->wide, one);
  weir_edge_t steps = ADD(call, "SelectV2", is_one, one, sub(call, axis->wide, one));
  weir_edge_t spread = quotient(call, mul(call, at, length), steps);
  weir_edge_t middle = mul(call, length, number(call, 0.5));
  return add(call, ADD(call, "SelectV2", is_one, middle, spread), mul(call, axis->start, last));
}

static weir_edge_t places(onnx_call_t* call, const axis_t* axis, weir_view_t mode) {
  weir_edge_t at =
      as_double(call, ADD(call, "Range", onnx_int(call, 0), axis->out, onnx_int(call, 1)));
  weir_edge_t one = number(call, 1), is_one = ADD(call, "Equal", axis->wide, one);
  if (weir_view_is(mode, "asymmetric")) return quotient(call, at, axis->scale);
  if (weir_view_is(mode, "tf_crop_and_resize")) return cropped(call, axis, at);
  if (weir_view_is(mode, "align_corners")) {
    weir_edge_t steps = ADD(call, "SelectV2", is_one, one, sub(call, axis->wide, one));
    return quotient(call, mul(call, at, sub(call, axis->n, one)), steps);
  }
  weir_edge_t x = half_pixel(call, axis, at);
  if (weir_view_is(mode, "pytorch_half_pixel"))
    return ADD(call, "SelectV2", is_one, number(call, -0.5), x);
  if (weir_view_is(mode, "half_pixel_symmetric")) {
    weir_edge_t rest = sub(call, one, quotient(call, axis->m, axis->wide));
    return add(call, x, mul(call, mul(call, axis->n, number(call, 0.5)), rest));
  }
  if (!weir_view_is(mode, "half_pixel"))
    onnx_refuse(call, "with coordinates by %.*s", WEIR_VIEW_ARG(mode));
  return x;
}

static weir_edge_t nearest(onnx_call_t* call, const axis_t* axis, weir_edge_t at) {
  bool is_old = call->version < 11;  // there was one way then
  weir_view_t mode =
      onnx_attr_string(call, "nearest_mode", is_old ? "floor" : "round_prefer_floor");
  weir_edge_t half = number(call, 0.5);
  if (weir_view_is(mode, "round_prefer_floor")) at = ADD(call, "Ceil", sub(call, at, half));
  else if (weir_view_is(mode, "round_prefer_ceil")) at = ADD(call, "Floor", add(call, at, half));
  else at = ADD(call, weir_view_is(mode, "ceil") ? "Ceil" : "Floor", at);
  at = within(call, at, number(call, 0), sub(call, axis->n, number(call, 1)));
  return onnx_cast(call, at, WEIR_DTYPE_INT64);
}

// ---- how much of each element of the input is in one of the result ----

// Keys' kernel: two cubics, over distances up to 1 and from 1 to 2.
static weir_edge_t cubic_of(onnx_call_t* call, weir_edge_t d) {
  double a = (double)onnx_attr_float(call, "cubic_coeff_a", -0.75f);
  weir_edge_t d2 = mul(call, d, d), d3 = mul(call, d2, d);
  weir_edge_t near = mul(call, d3, number(call, a + 2));
  near = add(call, sub(call, near, mul(call, d2, number(call, a + 3))), number(call, 1));
  weir_edge_t far = sub(call, mul(call, d3, number(call, a)), mul(call, d2, number(call, 5 * a)));
  far = sub(call, add(call, far, mul(call, d, number(call, 8 * a))), number(call, 4 * a));
  weir_edge_t zero = ADD(call, "ZerosLike", d);
  far = ADD(call, "SelectV2", ADD(call, "Less", d, number(call, 2)), far, zero);
  return ADD(call, "SelectV2", ADD(call, "LessEqual", d, number(call, 1)), near, far);
}
static weir_edge_t linear_of(onnx_call_t* call, weir_edge_t d) {
  return ADD(call, "Maximum", sub(call, number(call, 1), d), number(call, 0));
}

// The matrix {out, padded in} for elements at |at| of an input to which |margin| is added on both
// sides.
static weir_edge_t matrix(onnx_call_t* call, const axis_t* axis, weir_edge_t at, weir_edge_t margin,
                          bool is_cubic, bool is_smooth) {
  weir_edge_t one = number(call, 1), zero = number(call, 0);
  weir_edge_t from = ADD(call, "Range", ADD(call, "Neg", margin), add(call, axis->n, margin), one);
  weir_edge_t distance =
      ADD(call, "Abs", sub(call, onnx_expand(call, at, 1), onnx_expand(call, from, 0)));
  if (is_smooth) distance = mul(call, distance, ADD(call, "Minimum", axis->scale, one));
  weir_edge_t weights = is_cubic ? cubic_of(call, distance) : linear_of(call, distance);
  bool excludes = onnx_attr_int(call, "exclude_outside", 0) != 0;
  if (excludes) {
    weir_edge_t inside = ADD(call, "LogicalAnd", ADD(call, "GreaterEqual", from, zero),
                             ADD(call, "Less", from, axis->n));
    weights = mul(call, weights, as_double(call, inside));
  }
  if (!excludes && !is_smooth) return weights;
  return quotient(call, weights, onnx_reduce(call, "Sum", weights, INTS(call, 1), true));
}

static weir_edge_t interpolate(onnx_call_t* call, const axis_t* axis, weir_edge_t x, int index,
                               weir_edge_t at, bool is_cubic) {
  int rank = onnx_need_rank(call, x);
  int64_t perm[WEIR_MAX_RANK];
  bool is_smooth = onnx_attr_int(call, "antialias", 0) != 0;
  weir_edge_t margin = number(call, 3), last = sub(call, axis->n, number(call, 1));
  if (is_smooth) {
    weir_edge_t reach =
        quotient(call, number(call, 2), ADD(call, "Minimum", axis->scale, number(call, 1)));
    margin = add(call, ADD(call, "Ceil", reach), number(call, 1));
  }
  // Elements beyond the margin are as good as at its end.
  at = within(call, at, number(call, -1), axis->n);
  weir_edge_t from =
      ADD(call, "Range", ADD(call, "Neg", margin), add(call, axis->n, margin), number(call, 1));
  from = onnx_cast(call, within(call, from, number(call, 0), last), WEIR_DTYPE_INT64);
  for (int i = 0; i < rank; ++i) perm[i] = i == rank - 1 ? index : i == index ? rank - 1 : i;
  weir_edge_t weights = matrix(call, axis, at, margin, is_cubic, is_smooth);
  weir_edge_t wide =
      onnx_transpose(call, ADD(call, "GatherV2", x, from, onnx_int(call, index)), perm, rank);
  weir_edge_t shape = onnx_shape(call, wide), flat = INTS(call, -1);
  wide = onnx_reshape(call, wide, JOIN(call, flat, onnx_part(call, shape, -1, INT64_MAX)));
  weir_edge_t y = ADD_WITH(call, "MatMul", WEIR_ATTRS(weir_attr_bool("transpose_b", true)), wide,
                           onnx_cast(call, weights, onnx_dtype_of(x)));
  y = onnx_reshape(call, y,
                   JOIN(call, onnx_part(call, shape, 0, -1), onnx_expand(call, axis->out, 0)));
  return onnx_transpose(call, y, perm, rank);
}

// What lies outside of the input has a value of its own.
static weir_edge_t extrapolate(onnx_call_t* call, const axis_t* axis, weir_edge_t y, int index,
                               weir_edge_t at) {
  int rank = onnx_need_rank(call, y);
  int64_t shape[WEIR_MAX_RANK];
  for (int i = 0; i < rank; ++i) shape[i] = i == index ? -1 : 1;
  weir_edge_t last = sub(call, axis->n, number(call, 1));
  weir_edge_t is_out = ADD(call, "LogicalOr", ADD(call, "Less", at, number(call, 0)),
                           ADD(call, "Greater", at, last));
  is_out = onnx_reshape(call, is_out, onnx_ints(call, shape, rank));
  double value = (double)onnx_attr_float(call, "extrapolation_value", 0);
  return ADD(call, "SelectV2", is_out, onnx_like(call, y, value), y);
}

static weir_edge_t resize_axis(onnx_call_t* call, const axis_t* axis, weir_edge_t x, int index,
                               weir_view_t coordinates) {
  weir_view_t mode = onnx_attr_string(call, "mode", "nearest");
  weir_edge_t at = places(call, axis, coordinates), y;
  if (weir_view_is(mode, "nearest"))
    y = ADD(call, "GatherV2", x, nearest(call, axis, at), onnx_int(call, index));
  else y = interpolate(call, axis, x, index, at, weir_view_is(mode, "cubic"));
  if (weir_view_is(coordinates, "tf_crop_and_resize")) y = extrapolate(call, axis, y, index, at);
  return y;
}

// ---- sizes ----

typedef struct sizes_t {
  weir_edge_t scales, sizes, roi;  // vectors, one number an axis that is resized; none: not given
  int64_t axes[WEIR_MAX_RANK];
  int count;
} sizes_t;

static bool read_axes(onnx_call_t* call, int rank, sizes_t* s) {
  int count = 0;
  const int64_t* given = onnx_attr_ints(call, "axes", &count);
  s->count = given ? count : rank;
  for (int i = 0; i < s->count && i < WEIR_MAX_RANK; ++i) {
    s->axes[i] = given ? given[i] : i;
    if (s->axes[i] < 0) s->axes[i] += rank;
    if (s->axes[i] < 0 || s->axes[i] >= rank)
      onnx_fail(call, "has axis %lld of a value of rank %d", (long long)given[i], rank);
  }
  return !onnx_failed(call);
}

// The one scale by which all axes stay within the sizes, or cover them.
static weir_edge_t common_scale(onnx_call_t* call, weir_edge_t x, const sizes_t* s) {
  weir_view_t policy = onnx_attr_string(call, "keep_aspect_ratio_policy", "stretch");
  if (!s->sizes.node || weir_view_is(policy, "stretch")) return WEIR_NO_EDGE;
  weir_edge_t dims = ADD(call, "GatherV2", onnx_shape(call, x), onnx_ints(call, s->axes, s->count),
                         onnx_int(call, 0));
  weir_edge_t all = quotient(call, as_double(call, s->sizes), as_double(call, dims));
  return onnx_reduce(call, weir_view_is(policy, "not_larger") ? "Min" : "Max", all, INTS(call, 0),
                     false);
}

static axis_t axis_of(onnx_call_t* call, weir_edge_t x, const sizes_t* s, int index,
                      weir_edge_t common) {
  axis_t axis = {.in = element(call, onnx_shape(call, x), (int)s->axes[index])};
  axis.n = as_double(call, axis.in);
  if (common.node) {
    axis.scale = common;
    weir_edge_t rounded =
        ADD(call, "Floor", add(call, mul(call, axis.n, common), number(call, 0.5)));
    axis.out = onnx_cast(call, rounded, WEIR_DTYPE_INT64);
  } else if (s->sizes.node) {
    axis.out = onnx_cast(call, element(call, s->sizes, index), WEIR_DTYPE_INT64);
    axis.scale = quotient(call, as_double(call, axis.out), axis.n);
  } else {
    axis.scale = as_double(call, element(call, s->scales, index));
    axis.out = onnx_cast(call, ADD(call, "Floor", mul(call, axis.n, axis.scale)), WEIR_DTYPE_INT64);
  }
  axis.m = as_double(call, axis.out);
  axis.wide = mul(call, axis.n, axis.scale);
  if (s->roi.node) {
    axis.start = as_double(call, element(call, s->roi, index));
    axis.end = as_double(call, element(call, s->roi, s->count + index));
  }
  return axis;
}

// Whether an axis stays as it is, as far as that is known.
static bool stays(weir_edge_t x, const sizes_t* s, int index, bool crops) {
  const weir_tensor_t* scales = onnx_constant(s->scales);
  const weir_tensor_t* sizes = onnx_constant(s->sizes);
  if (crops) return false;
  if (scales && scales->dtype == WEIR_DTYPE_FLOAT && index < scales->count)
    return ((const float*)scales->data)[index] == 1;
  if (sizes && sizes->dtype == WEIR_DTYPE_INT64 && index < sizes->count)
    return ((const int64_t*)sizes->data)[index] == onnx_dim(x, (int)s->axes[index]);
  return false;
}

static bool is_given(weir_edge_t x) { return x.node && onnx_dim(x, 0) != 0; }

static void resize_by(onnx_call_t* call, const sizes_t* given, weir_view_t coordinates) {
  weir_edge_t x = onnx_in(call, 0);
  weir_dtype_t dtype = onnx_dtype_of(x);
  sizes_t s = *given;
  bool is_nearest = weir_view_is(onnx_attr_string(call, "mode", "nearest"), "nearest");
  bool crops = weir_view_is(coordinates, "tf_crop_and_resize");
  if (!read_axes(call, onnx_need_rank(call, x), &s)) return;
  if (!s.sizes.node && !s.scales.node) onnx_fail(call, "has neither scales nor sizes");
  if (crops && !s.roi.node) onnx_fail(call, "has no region of interest");
  if (onnx_failed(call)) return;
  bool is_wide = dtype == WEIR_DTYPE_FLOAT || dtype == WEIR_DTYPE_DOUBLE;
  weir_edge_t y = is_nearest || is_wide ? x : onnx_cast(call, x, WEIR_DTYPE_FLOAT);
  weir_edge_t common = common_scale(call, x, &s);
  for (int i = 0; i < s.count && !onnx_failed(call); ++i) {
    if (!common.node && stays(x, &s, i, crops)) continue;
    axis_t axis = axis_of(call, x, &s, i, common);
    y = resize_axis(call, &axis, y, (int)s.axes[i], coordinates);
  }
  if (weir_dtype_is_integer(dtype) && !is_nearest) y = ADD(call, "Round", y);
  onnx_out(call, 0, ADD(call, "Identity", onnx_cast(call, y, dtype)));
}

static void resize(onnx_call_t* call) {
  sizes_t s = {0};
  if (call->version < 11) {
    s.scales = onnx_in(call, 1);
    resize_by(call, &s, weir_view_of("asymmetric"));
    return;
  }
  if (is_given(onnx_in(call, 1))) s.roi = onnx_in(call, 1);
  if (is_given(onnx_in(call, 2))) s.scales = onnx_in(call, 2);
  if (is_given(onnx_in(call, 3))) s.sizes = onnx_in(call, 3);
  resize_by(call, &s, onnx_attr_string(call, "coordinate_transformation_mode", "half_pixel"));
}

static void upsample(onnx_call_t* call) {
  sizes_t s = {.scales = onnx_in(call, 1)};
  const onnx_attr_t* given = onnx_attr(call, "scales");
  if (given && given->floats) {
    weir_tensor_t* tensor = NULL;
    const int64_t count = given->count;
    weir_status_t* status =
        weir_tensor_create_from(WEIR_DTYPE_FLOAT, 1, &count, given->floats, &tensor);
    if (status) {
      weir_scope_fail(call->scope, status);
      return;
    }
    s.scales = onnx_const(call, tensor);
  }
  resize_by(call, &s, weir_view_of("asymmetric"));
}

const onnx_row_t onnx_resize_rows[] = {
    ONNX_OP("Resize", 10, resize), ONNX_OP("Upsample", 7, upsample), {.op = NULL}};
