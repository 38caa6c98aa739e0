// shape.c — Ops of ONNX that make values, and give them other shapes.
#include <stdlib.h>

#include "onnx/import.h"

// ---- values ----

static void identity(onnx_call_t* call) {
  onnx_out(call, 0, ADD(call, "Identity", onnx_in(call, 0)));
}

static weir_tensor_t* floats_of(onnx_call_t* call, const onnx_attr_t* attr) {
  weir_tensor_t* tensor = NULL;
  bool is_list = attr->type == ONNX_ATTR_FLOATS;
  int64_t count = attr->count;
  weir_status_t* status = weir_tensor_create_from(WEIR_DTYPE_FLOAT, is_list, &count,
                                                  is_list ? attr->floats : &attr->f, &tensor);
  if (status) weir_scope_fail(call->scope, status);
  return tensor;
}
static weir_tensor_t* strings_of(onnx_call_t* call, const weir_view_t* items, int count,
                                 bool is_list) {
  weir_tensor_t* tensor = NULL;
  int64_t dim = count;
  weir_status_t* status = weir_tensor_create(WEIR_DTYPE_STRING, is_list, &dim, &tensor);
  for (int i = 0; i < count && !status; ++i)
    status = weir_tensor_set_string(tensor, i, items[i].data, items[i].size);
  if (status) weir_scope_fail(call->scope, status);
  return tensor;
}

// The tensor that an attribute stands for, as Constant has it; NULL when the attribute is absent.
static weir_tensor_t* tensor_of(onnx_call_t* call, const char* name) {
  const onnx_attr_t* attr = onnx_attr(call, name);
  weir_tensor_t* tensor = NULL;
  if (!attr) return NULL;
  weir_status_t* status = onnx_tensor_parse(attr->tensor, &call->importer->files, &tensor);
  if (status) weir_scope_fail(call->scope, status);
  return tensor;
}

static void constant(onnx_call_t* call) {
  const onnx_attr_t* attr = call->attr_count > 0 ? &call->attrs[0] : NULL;
  for (int i = 0; i < call->attr_count; ++i) {
    if (weir_view_starts_with(call->attrs[i].name, "value")) attr = &call->attrs[i];
  }
  onnx_attr_type_t type = attr ? attr->type : ONNX_ATTR_NONE;
  switch (type) {
    case ONNX_ATTR_INT: onnx_out(call, 0, onnx_int(call, attr->i)); return;
    case ONNX_ATTR_INTS: onnx_out(call, 0, onnx_ints(call, attr->ints, attr->count)); return;
    case ONNX_ATTR_FLOAT:
    case ONNX_ATTR_FLOATS: onnx_out(call, 0, onnx_const(call, floats_of(call, attr))); return;
    case ONNX_ATTR_STRING:
      onnx_out(call, 0, onnx_const(call, strings_of(call, &attr->s, 1, false)));
      return;
    case ONNX_ATTR_STRINGS:
      onnx_out(call, 0,
               onnx_const(call, strings_of(call, attr->strings.items, attr->strings.count, true)));
      return;
    case ONNX_ATTR_TENSOR: onnx_out(call, 0, onnx_const(call, tensor_of(call, "value"))); return;
    default: onnx_refuse(call, "without a value that is dense");
  }
}

static void constant_of_shape(onnx_call_t* call) {
  weir_tensor_t* tensor = tensor_of(call, "value");
  weir_edge_t value = tensor ? onnx_const(call, tensor) : onnx_number(call, WEIR_DTYPE_FLOAT, 0);
  value = onnx_reshape(call, value, onnx_ints(call, NULL, 0));
  onnx_out(call, 0, ADD(call, "Fill", onnx_in(call, 0), value));
}

static weir_edge_t scalar(onnx_call_t* call, weir_edge_t x) {
  return onnx_rank(x) == 0 ? x : onnx_reshape(call, x, onnx_ints(call, NULL, 0));
}
static void range(onnx_call_t* call) {
  weir_edge_t limits[3];
  weir_dtype_t dtype = onnx_dtype_of(onnx_in(call, 0));
  weir_dtype_t wide = dtype == WEIR_DTYPE_INT16 ? WEIR_DTYPE_INT32 : dtype;
  bool is_half = dtype == WEIR_DTYPE_HALF || dtype == WEIR_DTYPE_BFLOAT16;
  if (is_half) wide = WEIR_DTYPE_FLOAT;
  for (int i = 0; i < 3; ++i) limits[i] = onnx_cast(call, scalar(call, onnx_in(call, i)), wide);
  onnx_out(call, 0, onnx_cast(call, ADD(call, "Range", limits[0], limits[1], limits[2]), dtype));
}

// The numbers of a dimension along |axis| of |rank| axes.
static weir_edge_t numbers(onnx_call_t* call, weir_edge_t size, bool is_column) {
  weir_edge_t all = ADD(call, "Range", onnx_int(call, 0), scalar(call, size), onnx_int(call, 1));
  return onnx_expand(call, all, is_column ? 1 : 0);
}
// How far each element of the last two dimensions is to the right of the diagonal.
static weir_edge_t diagonals(onnx_call_t* call, weir_edge_t x) {
  weir_edge_t shape = onnx_shape(call, x);
  weir_edge_t rows = numbers(call, onnx_part(call, shape, -2, -1), true);
  weir_edge_t columns = numbers(call, onnx_part(call, shape, -1, INT64_MAX), false);
  return ADD(call, "Sub", columns, rows);
}
static void eye_like(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  weir_dtype_t dtype = onnx_dtype(onnx_attr_int(call, "dtype", onnx_type_of(onnx_dtype_of(x))));
  weir_edge_t is_on =
      ADD(call, "Equal", diagonals(call, x), onnx_int(call, onnx_attr_int(call, "k", 0)));
  onnx_out(call, 0, onnx_cast(call, is_on, dtype));
}
static void tri_lu(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  weir_edge_t k = onnx_has_in(call, 1) ? scalar(call, onnx_in(call, 1)) : onnx_int(call, 0);
  bool is_upper = onnx_attr_int(call, "upper", 1) != 0;
  weir_edge_t keeps = ADD(call, is_upper ? "GreaterEqual" : "LessEqual", diagonals(call, x), k);
  onnx_out(call, 0, ADD(call, "SelectV2", keeps, x, ADD(call, "ZerosLike", x)));
}

static void shape(onnx_call_t* call) {
  weir_edge_t all = onnx_shape(call, onnx_in(call, 0));
  const onnx_attr_t* end = onnx_attr(call, "end");
  int64_t start = onnx_attr_int(call, "start", 0);
  if (!end && start == 0) onnx_out(call, 0, ADD(call, "Identity", all));
  else onnx_out(call, 0, onnx_part(call, all, start, end ? end->i : INT64_MAX));
}
static void size(onnx_call_t* call) {
  onnx_out(call, 0,
           ADD_WITH(call, "Size", WEIR_ATTRS(weir_attr_type("out_type", WEIR_DTYPE_INT64)),
                    onnx_in(call, 0)));
}

// ---- other shapes, the same elements ----

// 0 stands for the dimension of the input, unless allowzero is set.
static void reshape(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), shape = onnx_in(call, 1);
  const int64_t* values = NULL;
  int count = 0;
  bool has_zero = true;
  if (onnx_constant_ints(call, shape, &values, &count)) {
    has_zero = false;
    for (int i = 0; i < count; ++i) has_zero |= values[i] == 0;
  }
  if (has_zero && !onnx_attr_int(call, "allowzero", 0)) {
    weir_edge_t length = onnx_shape(call, shape);
    weir_edge_t own = JOIN(call, onnx_shape(call, x), ADD(call, "Fill", length, onnx_int(call, 1)));
    own = ADD(call, "Slice", own, INTS(call, 0), length);
    shape = ADD(call, "SelectV2", ADD(call, "Equal", shape, onnx_int(call, 0)), own, shape);
  }
  onnx_out(call, 0, onnx_reshape(call, x, shape));
}

static void flatten(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), dims = onnx_shape(call, x);
  int64_t axis = onnx_attr_int(call, "axis", 1);
  if (axis < 0) axis += onnx_need_rank(call, x);
  weir_edge_t first = INTS(call, 0);
  weir_edge_t rows = onnx_reduce(call, "Prod", onnx_part(call, dims, 0, axis), first, true);
  weir_edge_t columns =
      onnx_reduce(call, "Prod", onnx_part(call, dims, axis, INT64_MAX), first, true);
  onnx_out(call, 0, onnx_reshape(call, x, JOIN(call, rows, columns)));
}

static int compare(const void* a, const void* b) {
  int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return x < y ? -1 : x > y;
}

// The axes that an attribute or a constant input gives, none negative, in order; false when they
// are not known before a model runs.
static bool known_axes(onnx_call_t* call, int rank, int64_t axes[WEIR_MAX_RANK], int* out_count) {
  int count = 0;
  const int64_t* given = onnx_attr_ints(call, "axes", &count);
  if (!given && !onnx_constant_ints(call, onnx_in(call, 1), &given, &count)) return false;
  if (count > WEIR_MAX_RANK) return false;
  if (rank < 0) rank = count;  // for Unsqueeze |rank| is that of the result
  for (int i = 0; i < count; ++i) {
    axes[i] = given[i] < 0 ? given[i] + rank : given[i];
    if (axes[i] < 0 || axes[i] >= rank) {
      onnx_fail(call, "has axis %lld beside a rank of %d", (long long)given[i], rank);
      return true;
    }
  }
  qsort(axes, (size_t)count, sizeof(*axes), compare);
  *out_count = count;
  return true;
}

static weir_edge_t count_to(onnx_call_t* call, weir_edge_t limit) {
  return ADD(call, "Range", onnx_int(call, 0), limit, onnx_int(call, 1));
}
// The axes of a value of |rank| axes that are not among |axes|.
static weir_edge_t other_axes(onnx_call_t* call, weir_edge_t rank, weir_edge_t axes) {
  weir_edge_t all = count_to(call, rank);
  return ADD_WITH(call, "ListDiff", WEIR_ATTRS(weir_attr_type("out_idx", WEIR_DTYPE_INT64)), all,
                  ADD(call, "FloorMod", axes, rank));
}

static void squeeze(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  int64_t axes[WEIR_MAX_RANK];
  int count = 0;
  bool has_axes = onnx_attr(call, "axes") || onnx_has_in(call, 1);
  if (!has_axes) {
    onnx_out(call, 0, ADD(call, "Squeeze", x));
  } else if (known_axes(call, onnx_rank(x) < 0 ? WEIR_MAX_RANK : onnx_rank(x), axes, &count)) {
    if (count == 0) onnx_out(call, 0, ADD(call, "Identity", x));
    else
      onnx_out(call, 0,
               ADD_WITH(call, "Squeeze",
                        WEIR_ATTRS(weir_attr_ints("squeeze_dims", axes, (size_t)count)), x));
  } else {
    weir_edge_t rank = onnx_cast(call, ADD(call, "Rank", x), WEIR_DTYPE_INT64);
    weir_edge_t kept = other_axes(call, rank, onnx_in(call, 1));
    onnx_out(
        call, 0,
        onnx_reshape(call, x, ADD(call, "GatherV2", onnx_shape(call, x), kept, onnx_int(call, 0))));
  }
}

static void unsqueeze(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), given = onnx_in(call, 1);
  bool is_one = onnx_rank(given) == 0;  // bodies of functions have scalars there
  int64_t axes[WEIR_MAX_RANK];
  int count = 0;
  const int64_t* listed = onnx_attr_ints(call, "axes", &count);
  int added = listed ? count : is_one ? 1 : (int)onnx_dim(given, 0);
  int rank = onnx_rank(x);
  if (rank >= 0 && added >= 0 && known_axes(call, rank + added, axes, &count)) {
    for (int i = 0; i < count; ++i) x = onnx_expand(call, x, axes[i]);
    onnx_out(call, 0, count ? x : ADD(call, "Identity", x));
    return;
  }
  if (listed) given = onnx_ints(call, listed, count);
  else if (is_one) given = onnx_reshape(call, given, INTS(call, 1));
  weir_edge_t shape = onnx_shape(call, x);
  weir_edge_t out_rank =
      scalar(call, ADD(call, "AddV2", onnx_shape(call, shape), onnx_shape(call, given)));
  weir_edge_t kept = other_axes(call, out_rank, given);
  weir_edge_t ones = ADD(call, "Fill", onnx_expand(call, out_rank, 0), onnx_int(call, 1));
  onnx_out(call, 0,
           onnx_reshape(call, x,
                        ADD(call, "TensorScatterUpdate", ones, onnx_expand(call, kept, 1), shape)));
}

static void transpose(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  int count = 0;
  const int64_t* perm = onnx_attr_ints(call, "perm", &count);
  int64_t reversed[WEIR_MAX_RANK];
  int rank = perm ? count : onnx_need_rank(call, x);
  for (int i = 0; i < rank && !perm; ++i) reversed[i] = rank - 1 - i;
  onnx_out(call, 0, onnx_transpose(call, x, perm ? perm : reversed, rank));
}

static void expand(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  weir_edge_t shape = ADD(call, "BroadcastArgs", onnx_shape(call, x), onnx_in(call, 1));
  onnx_out(call, 0, ADD(call, "BroadcastTo", x, shape));
}
static void tile(onnx_call_t* call) {
  onnx_out(call, 0, ADD(call, "Tile", onnx_in(call, 0), onnx_in(call, 1)));
}

static void concat(onnx_call_t* call) {
  int64_t axis = onnx_attr_int(call, "axis", 0);
  weir_edge_t all = onnx_join(call, call->inputs, call->input_count, axis);
  onnx_out(call, 0, call->input_count == 1 ? ADD(call, "Identity", all) : all);
}

// Sizes come as an attribute, as an input, or as a number of equal parts, the last maybe smaller.
static void split(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), sizes = onnx_in(call, 1);
  int count = 0, parts = call->output_count;
  const int64_t* given = onnx_attr_ints(call, "split", &count);
  int64_t axis = onnx_attr_int(call, "axis", 0);
  if (axis < 0) axis += onnx_need_rank(call, x);
  if (given) sizes = onnx_ints(call, given, count);
  if (!sizes.node) {
    weir_edge_t n = onnx_int(call, parts),
                dim = onnx_part(call, onnx_shape(call, x), axis, axis + 1);
    weir_edge_t each = ADD(call, "FloorDiv", ADD(call, "AddV2", dim, onnx_int(call, parts - 1)), n);
    weir_edge_t begins = ADD(call, "Mul", count_to(call, n), each);
    weir_edge_t left = ADD(call, "Maximum", ADD(call, "Sub", dim, begins), onnx_int(call, 0));
    sizes = ADD(call, "Minimum", left, each);
  }
  weir_edge_t first = ADD_WITH(call, "SplitV", WEIR_ATTRS(weir_attr_int("num_split", parts)), x,
                               sizes, onnx_number(call, WEIR_DTYPE_INT32, (double)axis));
  for (int i = 0; i < parts; ++i) onnx_out(call, i, onnx_output(first, i));
}

// ---- slices ----

// Element |index| of |vector|, which may be none: then |otherwise|, as a vector of one.
static weir_edge_t element(onnx_call_t* call, weir_edge_t vector, int index, int64_t otherwise) {
  if (!vector.node) return INTS(call, otherwise);
  return onnx_part(call, onnx_cast(call, vector, WEIR_DTYPE_INT64), index, index + 1);
}

// Slices along axes that are known: masks stand for all others.
static weir_edge_t slice_known(onnx_call_t* call, weir_edge_t x, weir_edge_t starts,
                               weir_edge_t ends, const int64_t* axes, int count,
                               weir_edge_t steps) {
  weir_edge_t begin[WEIR_MAX_RANK], end[WEIR_MAX_RANK], step[WEIR_MAX_RANK];
  int64_t mask = 0;
  int rank = onnx_need_rank(call, x);
  if (rank > 62) onnx_refuse(call, "of a value of rank %d", rank);
  for (int i = 0; i < rank && !onnx_failed(call); ++i) {
    int at = -1;
    for (int k = 0; k < count; ++k) {
      if ((axes[k] < 0 ? axes[k] + rank : axes[k]) == i) at = k;
    }
    if (at < 0) mask |= (int64_t)1 << i;
    begin[i] = at < 0 ? INTS(call, 0) : element(call, starts, at, 0);
    end[i] = at < 0 ? INTS(call, 0) : element(call, ends, at, 0);
    step[i] = at < 0 ? INTS(call, 1) : element(call, steps, at, 1);
  }
  if (rank == 0 || onnx_failed(call)) return x;
  weir_attrs_t attrs =
      WEIR_ATTRS(weir_attr_int("begin_mask", mask), weir_attr_int("end_mask", mask));
  return ADD_WITH(call, "StridedSlice", attrs, x, onnx_join(call, begin, rank, 0),
                  onnx_join(call, end, rank, 0), onnx_join(call, step, rank, 0));
}

static void slice(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), starts = onnx_in(call, 1), ends = onnx_in(call, 2);
  weir_edge_t axes = onnx_in(call, 3), steps = onnx_in(call, 4);
  int64_t all[WEIR_MAX_RANK];
  const int64_t* known = NULL;
  int count = 0;
  if (onnx_attr(call, "starts")) {  // up to opset 9
    const int64_t* given = onnx_attr_ints(call, "starts", &count);
    starts = onnx_ints(call, given, count);
    given = onnx_attr_ints(call, "ends", &count);
    ends = onnx_ints(call, given, count);
    known = onnx_attr_ints(call, "axes", &count);
  }
  for (int i = 0; i < WEIR_MAX_RANK; ++i) all[i] = i;
  if (!known && !axes.node) {
    known = all;
    count = (int)onnx_dim(starts, 0);
  }
  if (!known) (void)onnx_constant_ints(call, axes, &known, &count);
  if (known && count >= 0) {
    onnx_out(call, 0, slice_known(call, x, starts, ends, known, count, steps));
    return;
  }
  weir_edge_t dims = onnx_shape(call, x), length = onnx_shape(call, dims);
  if (!axes.node) axes = count_to(call, scalar(call, onnx_shape(call, starts)));
  axes =
      onnx_expand(call, ADD(call, "FloorMod", onnx_cast(call, axes, WEIR_DTYPE_INT64), length), 1);
  weir_edge_t ones = ADD(call, "Fill", length, onnx_int(call, 1));
  weir_edge_t step = ones;
  weir_edge_t begin = ADD(call, "TensorScatterUpdate", ADD(call, "ZerosLike", dims), axes,
                          onnx_cast(call, starts, WEIR_DTYPE_INT64));
  weir_edge_t end =
      ADD(call, "TensorScatterUpdate", dims, axes, onnx_cast(call, ends, WEIR_DTYPE_INT64));
  if (steps.node)
    step = ADD(call, "TensorScatterUpdate", ones, axes, onnx_cast(call, steps, WEIR_DTYPE_INT64));
  onnx_out(call, 0, ADD(call, "StridedSlice", x, begin, end, step));
}

// ---- padding ----

// As rows {before, after}, one an axis of |x|.
static weir_edge_t paddings_of(onnx_call_t* call, weir_edge_t x) {
  int count = 0;
  const int64_t* given = onnx_attr_ints(call, "pads", &count);
  weir_edge_t pads = given ? onnx_ints(call, given, count) : onnx_in(call, 1);
  int64_t swap[] = {1, 0};
  pads = onnx_transpose(call, onnx_reshape(call, pads, INTS(call, 2, -1)), swap, 2);
  pads = onnx_cast(call, pads, WEIR_DTYPE_INT64);
  if (!onnx_has_in(call, 3)) return pads;
  weir_edge_t length = onnx_shape(call, onnx_shape(call, x));
  weir_edge_t axes =
      ADD(call, "FloorMod", onnx_cast(call, onnx_in(call, 3), WEIR_DTYPE_INT64), length);
  weir_edge_t none = ADD(call, "Fill", JOIN(call, length, INTS(call, 2)), onnx_int(call, 0));
  return ADD(call, "TensorScatterUpdate", none, onnx_expand(call, axes, 1), pads);
}

// Where along an axis of size |n| the elements of the padded one come from.
static weir_edge_t source_of(onnx_call_t* call, weir_view_t mode, weir_edge_t at, weir_edge_t n) {
  weir_edge_t one = onnx_int(call, 1);
  if (weir_view_is(mode, "wrap")) return ADD(call, "FloorMod", at, n);
  if (weir_view_is(mode, "edge")) {
    weir_edge_t low = ADD(call, "Maximum", at, onnx_int(call, 0));
    return ADD(call, "Minimum", low, ADD(call, "Sub", n, one));
  }
  weir_edge_t last = ADD(call, "Sub", n, one);  // reflect: there and back again
  weir_edge_t period = ADD(call, "Maximum", ADD(call, "AddV2", last, last), one);
  weir_edge_t phase = ADD(call, "FloorMod", at, period);
  return ADD(call, "Minimum", phase, ADD(call, "Sub", period, phase));
}

static weir_edge_t pad_from_inside(onnx_call_t* call, weir_edge_t x, weir_edge_t pads,
                                   weir_view_t mode) {
  int rank = onnx_need_rank(call, x);
  for (int i = 0; i < rank && !onnx_failed(call); ++i) {
    weir_edge_t row = onnx_squeeze(call, onnx_part(call, pads, i, i + 1), 0);
    weir_edge_t n = scalar(call, onnx_part(call, onnx_shape(call, x), i, i + 1));
    weir_edge_t before = scalar(call, onnx_part(call, row, 0, 1));
    weir_edge_t after = scalar(call, onnx_part(call, row, 1, 2));
    weir_edge_t at = ADD(call, "Range", ADD(call, "Neg", before), ADD(call, "AddV2", n, after),
                         onnx_int(call, 1));
    x = ADD(call, "GatherV2", x, source_of(call, mode, at, n), onnx_int(call, i));
  }
  return x;
}

// What is negative is cut off.
static void pad(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), pads = paddings_of(call, x);
  weir_view_t mode = onnx_attr_string(call, "mode", "constant");
  if (!weir_view_is(mode, "constant")) {
    onnx_out(call, 0, pad_from_inside(call, x, pads, mode));
    return;
  }
  weir_edge_t zero = onnx_int(call, 0);
  weir_edge_t value = onnx_in(call, 2);
  if (!value.node) {
    double otherwise = (double)onnx_attr_float(call, "value", 0);
    value = onnx_dtype_of(x) == WEIR_DTYPE_BOOL ? onnx_bool(call, otherwise != 0)
                                                : onnx_like(call, x, otherwise);
  }
  weir_edge_t cut = ADD(call, "Minimum", pads, zero);
  weir_edge_t padded = ADD(call, "PadV2", x, ADD(call, "Maximum", pads, zero), scalar(call, value));
  weir_edge_t last = INTS(call, -1),
              begin = ADD(call, "Neg",
                          ADD(call, "GatherV2", cut, onnx_int(call, 0), onnx_int(call, 1)));
  weir_edge_t length =
      ADD(call, "AddV2", onnx_shape(call, padded), onnx_reduce(call, "Sum", cut, last, false));
  const int64_t* known = NULL;
  int count = 0;
  int listed = 0;
  const int64_t* given = onnx_attr_ints(call, "pads", &listed);
  if (!given && onnx_constant_ints(call, onnx_in(call, 1), &known, &count)) {
    given = known;
    listed = count;
  }
  bool cuts = !given;
  for (int i = 0; given && i < listed; ++i) cuts |= given[i] < 0;
  onnx_out(call, 0, cuts ? ADD(call, "Slice", padded, begin, length) : padded);
}

static void center_crop_pad(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), target = onnx_in(call, 1), dims = onnx_shape(call, x);
  int count = 0;
  const int64_t* axes = onnx_attr_ints(call, "axes", &count);
  if (axes) {
    weir_edge_t at = ADD(call, "FloorMod", onnx_ints(call, axes, count), onnx_shape(call, dims));
    target = ADD(call, "TensorScatterUpdate", dims, onnx_expand(call, at, 1), target);
  }
  weir_edge_t zero = onnx_int(call, 0), two = onnx_int(call, 2);
  weir_edge_t less = ADD(call, "Maximum", ADD(call, "Sub", dims, target), zero);
  weir_edge_t more = ADD(call, "Maximum", ADD(call, "Sub", target, dims), zero);
  weir_edge_t cut =
      ADD(call, "Slice", x, ADD(call, "FloorDiv", less, two), ADD(call, "Minimum", dims, target));
  weir_edge_t before = ADD(call, "FloorDiv", more, two), after = ADD(call, "Sub", more, before);
  weir_edge_t pads = ADD_WITH(call, "Pack", WEIR_ATTRS(weir_attr_int("axis", 1)), before, after);
  onnx_out(call, 0, ADD(call, "Pad", cut, pads));
}

// ---- blocks of space as channels ----

static void depth_to_space(onnx_call_t* call) {
  static const int64_t kDepthFirst[] = {0, 3, 4, 1, 5, 2}, kColumnFirst[] = {0, 1, 4, 2, 5, 3};
  weir_edge_t x = onnx_in(call, 0), dims = onnx_shape(call, x);
  bool is_dcr = weir_view_is(onnx_attr_string(call, "mode", "DCR"), "DCR");
  weir_edge_t block = INTS(call, onnx_attr_int(call, "blocksize", 1));
  weir_edge_t batch = onnx_part(call, dims, 0, 1), space = onnx_part(call, dims, 2, 4);
  weir_edge_t depth =
      ADD(call, "FloorDiv", onnx_part(call, dims, 1, 2), ADD(call, "Mul", block, block));
  weir_edge_t split = is_dcr ? JOIN(call, batch, block, block, depth, space)
                             : JOIN(call, batch, depth, block, block, space);
  weir_edge_t y =
      onnx_transpose(call, onnx_reshape(call, x, split), is_dcr ? kDepthFirst : kColumnFirst, 6);
  onnx_out(call, 0,
           onnx_reshape(call, y, JOIN(call, batch, depth, ADD(call, "Mul", space, block))));
}
static void space_to_depth(onnx_call_t* call) {
  static const int64_t kDepthFirst[] = {0, 3, 5, 1, 2, 4}, kColumnFirst[] = {0, 1, 3, 5, 2, 4};
  weir_edge_t x = onnx_in(call, 0), dims = onnx_shape(call, x);
  bool is_dcr = weir_view_is(onnx_attr_string(call, "mode", "DCR"), "DCR");
  weir_edge_t block = INTS(call, onnx_attr_int(call, "blocksize", 1));
  weir_edge_t start = onnx_part(call, dims, 0, 2);
  weir_edge_t space = ADD(call, "FloorDiv", onnx_part(call, dims, 2, 4), block);
  weir_edge_t rows = onnx_part(call, space, 0, 1), columns = onnx_part(call, space, 1, 2);
  weir_edge_t y = onnx_reshape(call, x, JOIN(call, start, rows, block, columns, block));
  y = onnx_transpose(call, y, is_dcr ? kDepthFirst : kColumnFirst, 6);
  weir_edge_t depth = ADD(call, "Mul", onnx_part(call, dims, 1, 2), ADD(call, "Mul", block, block));
  onnx_out(call, 0, onnx_reshape(call, y, JOIN(call, onnx_part(call, dims, 0, 1), depth, space)));
}

const onnx_row_t onnx_shape_rows[] = {ONNX_OP("CenterCropPad", 18, center_crop_pad),
                                      ONNX_OP("Concat", 4, concat),
                                      ONNX_OP("Constant", 1, constant),
                                      ONNX_OP("ConstantOfShape", 9, constant_of_shape),
                                      ONNX_OP("DepthToSpace", 1, depth_to_space),
                                      ONNX_OP("Expand", 8, expand),
                                      ONNX_OP("EyeLike", 9, eye_like),
                                      ONNX_OP("Flatten", 1, flatten),
                                      ONNX_OP("Identity", 1, identity),
                                      ONNX_OP("Pad", 2, pad),
                                      ONNX_OP("Range", 11, range),
                                      ONNX_OP("Reshape", 5, reshape),
                                      ONNX_OP("Shape", 1, shape),
                                      ONNX_OP("Size", 1, size),
                                      ONNX_OP("Slice", 1, slice),
                                      ONNX_OP("SpaceToDepth", 1, space_to_depth),
                                      ONNX_OP("Split", 2, split),
                                      ONNX_OP("Squeeze", 1, squeeze),
                                      ONNX_OP("Tile", 6, tile),
                                      ONNX_OP("Transpose", 1, transpose),
                                      ONNX_OP("Trilu", 14, tri_lu),
                                      ONNX_OP("Unsqueeze", 1, unsqueeze),
                                      {.op = NULL}};
