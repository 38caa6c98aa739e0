// uniform_window.c — See uniform_window.h.
#include "ops/quantized/uniform_window.h"

#include "wire/wire.h"

// ---- dimension numbers ----

static weir_status_t* bad_numbers(void) {
  return WEIR_STATUS(INVALID_ARGUMENT, "Error parsing convolution dimension numbers.");
}

typedef struct numbers_t {
  int64_t heads[3][2];  // of lhs, rhs and output; rhs: output feature, input feature
  int64_t axes[3][WEIR_MAX_RANK];
  int count[3];
} numbers_t;

static bool add_axis(numbers_t* n, int which, int64_t value) {
  if (n->count[which] >= WEIR_MAX_RANK - 2) return false;
  n->axes[which][n->count[which]++] = value;
  return true;
}

// Fields 1 to 9: two heads and the axes, three times. The filter's input feature comes first.
static weir_status_t* parse_numbers(weir_view_t message, numbers_t* n) {
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field < 1 || r.field > 9) continue;
    const int which = (int)(r.field - 1) / 3, place = (int)(r.field - 1) % 3;
    if (place < 2 && r.type == WEIR_WIRE_VARINT) {
      n->heads[which][which == 1 ? 1 - place : place] = weir_wire_int(&r);
    } else if (place == 2) {
      weir_wire_packed_t packed = weir_wire_packed(&r, WEIR_WIRE_VARINT);
      uint64_t value;
      while (weir_wire_packed_next(&packed, &value))
        if (!add_axis(n, which, (int64_t)value)) return bad_numbers();
    }
  }
  weir_status_t* status = weir_wire_check(&r, "dimension_numbers");
  if (!status) return NULL;
  weir_status_destroy(status);
  return bad_numbers();
}

static weir_status_t* set_dims(const numbers_t* n, int which, int rank, int* dims) {
  if (n->count[which] != rank - 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Spatial dimensions size must be rank - 2. Given rank %d and spatial "
                       "dimensions size %d",
                       rank, n->count[which]);
  }
  bool seen[WEIR_MAX_RANK] = {false};
  for (int i = 0; i < rank; ++i) {
    const int64_t d = i < 2 ? n->heads[which][i] : n->axes[which][i - 2];
    if (d < 0 || d >= rank || seen[d]) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Each dimension number must be in region [0, rank). Given rank %d and "
                         "dimension number value %lld",
                         rank, (long long)d);
    }
    seen[d] = true;
    dims[i] = (int)d;
  }
  return NULL;
}

static weir_status_t* find_dims(weir_attrs_t attrs, int rank, uniform_window_t* w) {
  numbers_t n = {0};
  WEIR_TRY(parse_numbers(weir_attrs_string(attrs, "dimension_numbers"), &n));
  if (n.count[0] == 0) {
    for (int i = 0; i < rank; ++i) w->lhs[i] = w->rhs[i] = w->out[i] = i;
    return NULL;
  }
  WEIR_TRY(set_dims(&n, 0, rank, w->lhs));
  WEIR_TRY(set_dims(&n, 1, rank, w->rhs));
  return set_dims(&n, 2, rank, w->out);
}

// ---- rates and padding ----

static weir_status_t* read_rates(weir_attrs_t attrs, const char* name, int axes, int64_t* out) {
  const weir_attr_t* list = weir_attrs_list(attrs, name);
  for (int i = 0; i < axes; ++i) out[i] = 1;
  if (list->count == 0) return NULL;
  if (list->count != (size_t)axes)
    return WEIR_STATUS(INVALID_ARGUMENT, "Size of %s Attr must be dims - 2.", name);
  for (int i = 0; i < axes; ++i) {
    out[i] = list->u.ints[i];
    if (out[i] < 1 || out[i] > INT32_MAX)
      return WEIR_STATUS(INVALID_ARGUMENT, "All elements of %s must be >= 1. Given %lld", name,
                         (long long)out[i]);
  }
  return NULL;
}

weir_status_t* uniform_window_read(weir_attrs_t attrs, uniform_window_t* out) {
  const weir_view_t padding = weir_attrs_string(attrs, "padding");
  const bool is_explicit = weir_view_is(padding, "EXPLICIT");
  const size_t count = weir_attrs_list(attrs, "explicit_padding")->count;
  numbers_t n = {0};
  if (!is_explicit && !weir_view_is(padding, "SAME") && !weir_view_is(padding, "VALID")) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "padding Attr must be one of [EXPLICIT | SAME | VALID], but given: %.*s",
                       WEIR_VIEW_ARG(padding));
  }
  if (!is_explicit && count > 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "If padding Attr is not 'EXPLICIT', explicit_padding Attr must be empty. "
                       "Given padding %.*s and explicit_padding of size %zu",
                       WEIR_VIEW_ARG(padding), count);
  }
  *out = (uniform_window_t){.feature_groups = weir_attrs_int(attrs, "feature_group_count"),
                            .batch_groups = weir_attrs_int(attrs, "batch_group_count")};
  return parse_numbers(weir_attrs_string(attrs, "dimension_numbers"), &n);
}

static weir_status_t* dilate(int64_t size, int64_t rate, int64_t* out) {
  *out = 0;
  if (size <= 0) return NULL;
  if (__builtin_mul_overflow(size - 1, rate, out) || *out > INT64_MAX / 4)
    return WEIR_STATUS(INVALID_ARGUMENT, "A dilated dimension is too large");
  ++*out;
  return NULL;
}

static weir_status_t* read_padding(weir_attrs_t attrs, uniform_window_t* w) {
  const weir_attr_t* list = weir_attrs_list(attrs, "explicit_padding");
  if (!weir_view_is(weir_attrs_string(attrs, "padding"), "EXPLICIT")) return NULL;
  if (list->count != 2 * (size_t)w->axes) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Size of explicit_padding Attr must be 2 * (rank - 2). Given rank %d and "
                       "explicit_padding of size %zu",
                       w->axes + 2, list->count);
  }
  for (size_t i = 0; i < list->count; ++i) {
    const int64_t pad = list->u.ints[i];
    if (pad < 0 || pad > INT32_MAX) {
      return WEIR_STATUS(INVALID_ARGUMENT, "All explicit_padding elems must be >= 0, Given %lld",
                         (long long)pad);
    }
    (i % 2 ? w->after : w->before)[i / 2] = pad;
  }
  return NULL;
}

// The size of the result along axis |i|, and SAME padding.
static weir_status_t* fit_axis(weir_attrs_t attrs, uniform_window_t* w, int i, int64_t lhs,
                               int64_t rhs, int64_t* out) {
  int64_t in, filter;
  const int64_t stride = w->stride[i];
  WEIR_TRY(dilate(lhs, w->lhs_dilation[i], &in));
  WEIR_TRY(dilate(rhs, w->rhs_dilation[i], &filter));
  if (weir_view_is(weir_attrs_string(attrs, "padding"), "SAME")) {
    const int64_t size = (in + stride - 1) / stride;
    const int64_t total = WEIR_MAX((size - 1) * stride + filter - in, 0);
    w->before[i] = total / 2;
    w->after[i] = total - total / 2;
  }
  const int64_t places = in + w->before[i] + w->after[i] - filter + 1;
  *out = (places + stride - 1) / stride;
  if (*out >= 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Expected shape dimensions to be non-negative, got %lld",
                     (long long)*out);
}

static weir_status_t* not_divided(const char* words, int64_t a, const char* relation, int64_t b) {
  return WEIR_STATUS(INVALID_ARGUMENT, "%s %lld %s %lld", words, (long long)a, relation,
                     (long long)b);
}

static weir_status_t* check_groups(const uniform_window_t* w, const int64_t* lhs,
                                   const int64_t* rhs) {
  const int64_t in = lhs[w->lhs[1]], batch = lhs[w->lhs[0]], f = w->feature_groups;
  const int64_t of_in = rhs[w->rhs[1]], of_out = rhs[w->rhs[0]], b = w->batch_groups;
  if (f <= 0)
    return not_divided("feature_group_count must be a positive integer, given:", f, "of", in);
  if (in % f)
    return not_divided("feature_group_count must divide lhs feature dimension size, but", f,
                       "does not divide", in);
  if (of_in <= 0 || in % of_in)
    return not_divided("rhs input feature dimension must divide lhs feature dimension size, but",
                       of_in, "does not divide", in);
  if (in / f != of_in)
    return not_divided(
        "lhs feature dimension size divided by feature_group_count must equal the "
        "rhs input feature dimension size, but",
        in / f, "!=", of_in);
  if (of_out % f)
    return not_divided("rhs output dimension size must be a multiple of feature_group_count, but",
                       of_out, "is not a multiple of", f);
  if (b <= 0)
    return not_divided("batch_group_count Attr must be a positive integer. Given:", b, "of", batch);
  if (batch % b)
    return not_divided("batch_group_count must divide lhs batch dimension size, but", b,
                       "does not divide", batch);
  if (of_out % b)
    return not_divided("rhs output dimension size must be a multiple of batch_group_count, but",
                       of_out, "is not a multiple of", b);
  return NULL;
}

weir_status_t* uniform_window_fit(weir_attrs_t attrs, uniform_window_t* w, int lhs_rank,
                                  const int64_t* lhs, int rhs_rank, const int64_t* rhs,
                                  int64_t* out_dims) {
  if (lhs_rank != rhs_rank) {
    char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "lhs and rhs must have same dims. Given lhs and rhs of shapes: %s %s",
                       weir_shape_text(lhs_rank, lhs, a), weir_shape_text(rhs_rank, rhs, b));
  }
  if (lhs_rank <= 2)
    return WEIR_STATUS(INVALID_ARGUMENT, "lhs and rhs shape dims must be at least 3. Given: %d",
                       lhs_rank);
  w->axes = lhs_rank - 2;
  WEIR_TRY(read_rates(attrs, "window_strides", w->axes, w->stride));
  WEIR_TRY(read_rates(attrs, "lhs_dilation", w->axes, w->lhs_dilation));
  WEIR_TRY(read_rates(attrs, "rhs_dilation", w->axes, w->rhs_dilation));
  WEIR_TRY(find_dims(attrs, lhs_rank, w));
  WEIR_TRY(check_groups(w, lhs, rhs));
  WEIR_TRY(read_padding(attrs, w));
  out_dims[w->out[0]] = lhs[w->lhs[0]] / w->batch_groups;
  out_dims[w->out[1]] = rhs[w->rhs[0]];
  for (int i = 0; i < w->axes; ++i)
    WEIR_TRY(
        fit_axis(attrs, w, i, lhs[w->lhs[i + 2]], rhs[w->rhs[i + 2]], &out_dims[w->out[i + 2]]));
  return NULL;
}
