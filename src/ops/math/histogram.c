// histogram.c — HistogramFixedWidth: how many numbers fall into each of some equal intervals.
#include <math.h>

#include "op/kernel.h"
#include "op/shape_ctx.h"

// |value| - |low| in the type of both, as TensorFlow computes it.
static double distance(const weir_tensor_t* values, int64_t i, const weir_tensor_t* range) {
  switch (weir_tensor_type(values)) {
    case WEIR_DTYPE_FLOAT:
      return (double)(WEIR_TENSOR_DATA(values, float)[i] - WEIR_TENSOR_DATA(range, float)[0]);
    case WEIR_DTYPE_DOUBLE:
      return WEIR_TENSOR_DATA(values, double)[i] - WEIR_TENSOR_DATA(range, double)[0];
    default: return (double)(weir_tensor_int_at(values, i) - weir_tensor_int_at(range, 0));
  }
}

static weir_status_t* check_inputs(const weir_tensor_t* range, const weir_tensor_t* nbins) {
  if (range->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "value_range should be a vector.");
  if (range->count != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "value_range should be a vector of 2 elements.");
  }
  if (nbins->rank != 0) return WEIR_STATUS(INVALID_ARGUMENT, "nbins should be a scalar.");
  if (!(distance(range, 1, range) > 0)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "value_range should satisfy value_range[0] < value_range[1]");
  }
  if (weir_tensor_int_at(nbins, 0) > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "nbins should be a positive number, but got '%lld'",
                     (long long)weir_tensor_int_at(nbins, 0));
}

static weir_status_t* histogram_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* values = weir_kernel_input(ctx, 0);
  const weir_tensor_t* range = weir_kernel_input(ctx, 1);
  WEIR_TRY(check_inputs(range, weir_kernel_input(ctx, 2)));
  const int64_t nbins = weir_tensor_int_at(weir_kernel_input(ctx, 2), 0);
  const double step = distance(range, 1, range) / (double)nbins;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, &nbins, &out));
  const bool is_long = weir_tensor_type(out) == WEIR_DTYPE_INT64;
  memset(out->data, 0, (size_t)nbins * weir_dtype_size(weir_tensor_type(out)));
  for (int64_t i = 0; i < values->count; ++i) {
    const double place = distance(values, i, range) / step;
    if (isnan(place)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Histogram values must not contain NaN");
    }
    const int64_t bin = place <= 0 ? 0 : place >= (double)nbins ? nbins - 1 : (int64_t)place;
    if (is_long) {
      ++WEIR_TENSOR_DATA(out, int64_t)[bin];
    } else {
      ++WEIR_TENSOR_DATA(out, int32_t)[bin];
    }
  }
  return NULL;
}

static weir_status_t* histogram_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* range = weir_shape_input(ctx, 1);
  const weir_tensor_t* nbins = weir_shape_value(ctx, 2);
  int64_t joined = 2;
  WEIR_TRY(weir_shape_with_rank(ctx, range, 1, NULL));
  if (range->rank == 1) WEIR_TRY(weir_dim_join(ctx, range->dims[0], 2, &joined));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 0, NULL));
  if (!nbins) return weir_shape_set_vector(ctx, 0, -1);
  const int64_t count = weir_tensor_int_at(nbins, 0);
  if (count > 0) return weir_shape_set_vector(ctx, 0, count);
  return WEIR_STATUS(INVALID_ARGUMENT, "Requires nbins > 0: %lld", (long long)count);
}

const weir_op_module_t weir_ops_math_histogram = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "HistogramFixedWidth",
         .attrs = "T: {int32, int64, float, double}; dtype: {int32, int64} = DT_INT32",
         .inputs = "values: T; value_range: T; nbins: int32",
         .outputs = "out: dtype",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Counts numbers in equal intervals",
         .infer_shape = histogram_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = histogram_cpu)},
        {0}}};
