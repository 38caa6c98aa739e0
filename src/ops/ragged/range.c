// range.c — RaggedRange: a row of numbers from start to limit for each triple.
#include <math.h>

#include "ops/ragged/ragged.h"

static weir_status_t* range_shape(weir_shape_ctx_t* ctx) {
  int64_t rows = -1;
  bool is_vector = false;
  for (int i = 0; i < 3; ++i) {
    const weir_shape_t* in = weir_shape_input(ctx, i);
    WEIR_TRY(weir_shape_at_most(ctx, in, 1));
    if (in->rank != 1) continue;
    is_vector = true;
    WEIR_TRY(weir_dim_join(ctx, rows, in->dims[0], &rows));
  }
  bool is_known = true;
  for (int i = 0; i < 3; ++i) is_known = is_known && weir_shape_input(ctx, i)->rank >= 0;
  if (!is_vector && is_known) rows = 1;
  WEIR_TRY(weir_shape_set_vector(ctx, 0, rows < 0 ? -1 : rows + 1));
  return weir_shape_set_vector(ctx, 1, -1);
}

// A triple of one of the four types, each kept whole.
typedef struct triple_t {
  int64_t i[3];
  double f[3];
} triple_t;

static triple_t triple_at(const weir_kernel_ctx_t* ctx, int64_t row) {
  triple_t t;
  for (int k = 0; k < 3; ++k) {
    const weir_tensor_t* in = weir_kernel_input(ctx, k);
    int64_t at = in->rank == 0 ? 0 : row;
    switch (weir_tensor_type(in)) {
      case WEIR_DTYPE_FLOAT: t.f[k] = WEIR_TENSOR_DATA(in, float)[at]; break;
      case WEIR_DTYPE_DOUBLE: t.f[k] = WEIR_TENSOR_DATA(in, double)[at]; break;
      default: t.i[k] = weir_tensor_int_at(in, at); break;
    }
  }
  return t;
}

static weir_status_t* too_large(int64_t most) {
  return WEIR_STATUS(INVALID_ARGUMENT, "Requires ((limit - start) / delta) <= %" PRId64, most);
}

static weir_status_t* int_size(const triple_t* t, int64_t* out_size) {
  const int64_t start = t->i[0], limit = t->i[1], delta = t->i[2];
  if (delta == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Requires delta != 0");
  *out_size = 0;
  if (delta > 0 ? start >= limit : start <= limit) return NULL;
  uint64_t distance =
      delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
  uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
  *out_size = (int64_t)WEIR_MIN((distance - 1) / step + 1, (uint64_t)INT64_MAX);
  return NULL;
}

static weir_status_t* float_size(const triple_t* t, bool is_float, int64_t most,
                                 int64_t* out_size) {
  const double start = t->f[0], limit = t->f[1], delta = t->f[2];
  if (delta == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Requires delta != 0");
  *out_size = 0;
  if (delta > 0 ? start >= limit : start <= limit) return NULL;
  double size = is_float ? ceilf(fabsf(((float)limit - (float)start) / (float)delta))
                         : ceil(fabs((limit - start) / delta));
  // The largest double below 2^63. A NaN is too large, too.
  *out_size = size <= 9223372036854774784.0 ? (int64_t)size : INT64_MAX;
  return *out_size < INT64_MAX ? NULL : too_large(most);
}

// |most| is the largest number of splits.
static weir_status_t* size_of(weir_dtype_t dtype, const triple_t* t, int64_t most,
                              int64_t* out_size) {
  if (dtype == WEIR_DTYPE_FLOAT || dtype == WEIR_DTYPE_DOUBLE)
    WEIR_TRY(float_size(t, dtype == WEIR_DTYPE_FLOAT, most, out_size));
  else WEIR_TRY(int_size(t, out_size));
  return *out_size <= most ? NULL : too_large(most);
}

// Each number is the one before and delta, as in TensorFlow: floating sums round.
static void write_row(weir_tensor_t* out, int64_t at, int64_t size, const triple_t* t) {
  switch (weir_tensor_type(out)) {
    case WEIR_DTYPE_FLOAT: {
      float x = (float)t->f[0];
      for (int64_t i = 0; i < size; ++i, x += (float)t->f[2])
        WEIR_TENSOR_DATA(out, float)[at + i] = x;
      break;
    }
    case WEIR_DTYPE_DOUBLE: {
      double x = t->f[0];
      for (int64_t i = 0; i < size; ++i, x += t->f[2]) WEIR_TENSOR_DATA(out, double)[at + i] = x;
      break;
    }
    default:
      for (int64_t i = 0; i < size; ++i)
        weir_move_set_int(out, at + i,
                          (int64_t)((uint64_t)t->i[0] + (uint64_t)i * (uint64_t)t->i[2]));
  }
}

static weir_status_t* read_rows(const weir_kernel_ctx_t* ctx, int64_t* out_rows) {
  static const char* const names[] = {"starts", "limits", "deltas"};
  int64_t rows = -1;
  for (int i = 0; i < 3; ++i) {
    if (weir_kernel_input(ctx, i)->rank > 1)
      return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar or vector", names[i]);
  }
  for (int i = 0; i < 3; ++i) {
    const weir_tensor_t* in = weir_kernel_input(ctx, i);
    if (in->rank == 0) continue;
    if (rows >= 0 && in->count != rows) {
      return WEIR_STATUS(INVALID_ARGUMENT, "starts, limits, and deltas must have the same shape");
    }
    rows = in->count;
  }
  *out_rows = rows < 0 ? 1 : rows;
  return NULL;
}

static weir_status_t* range_cpu(weir_kernel_ctx_t* ctx) {
  const weir_dtype_t dtype = weir_tensor_type(weir_kernel_input(ctx, 0));
  int64_t rows = 0;
  weir_tensor_t* splits = NULL;
  weir_tensor_t* values = NULL;
  WEIR_TRY(read_rows(ctx, &rows));
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, (const int64_t[]){rows + 1}, &splits));
  const int64_t most = weir_tensor_type(splits) == WEIR_DTYPE_INT32 ? INT32_MAX : INT64_MAX;
  int64_t total = 0;
  weir_move_set_int(splits, 0, 0);
  for (int64_t r = 0; r < rows; ++r) {
    const triple_t t = triple_at(ctx, r);
    int64_t size = 0;
    WEIR_TRY(size_of(dtype, &t, most, &size));
    if (size > most - total) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "The total range size overflowed. Consider using int64 "
                         "instead of int32 for row_splits_dtype.");
    }
    total += size;
    weir_move_set_int(splits, r + 1, total);
  }
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &total, &values));
  for (int64_t r = 0; r < rows; ++r) {
    const triple_t t = triple_at(ctx, r);
    int64_t at = weir_tensor_int_at(splits, r);
    write_row(values, at, weir_tensor_int_at(splits, r + 1) - at, &t);
  }
  return NULL;
}

const weir_op_module_t weir_ops_ragged_range = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RaggedRange",
         .attrs =
             "T: {bfloat16, float, double, int32, int64} = DT_INT32; Tsplits: {int32, int64} = "
             "DT_INT64",
         .inputs = "starts: T; limits: T; deltas: T",
         .outputs = "rt_nested_splits: Tsplits; rt_dense_values: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Rows of numbers from starts to limits in steps of deltas.",
         .infer_shape = range_shape,
         .kernels =
             WEIR_CPU_KERNEL(.types = "T: float, double, int32, int64", .compute = range_cpu)},
        {0}}};
