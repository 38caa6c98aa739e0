// range.c — Range and LinSpace: numbers at equal distances.
#include <math.h>

#include "ops/array/common.h"
#include "tensor/cast.h"
#include "tensor/numeric.h"

// ---- Range ----

#define TOO_MANY "Requires ((limit - start) / delta) <= 9223372036854775807"

static weir_status_t* check_scalars(weir_shape_ctx_t* ctx) {
  static const char* const names[] = {"start", "limit", "delta"};
  for (int i = 0; i < 3; ++i) {
    weir_status_t* status = weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL);
    if (status) return weir_status_prefix(status, "for '%s': ", names[i]);
  }
  return NULL;
}

static weir_status_t* check_direction(double start, double limit, double delta) {
  if (delta == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Requires delta != 0: 0");
  if (!(delta > 0 ? start <= limit : start >= limit)) {  // not a number is no limit either
    return WEIR_STATUS(INVALID_ARGUMENT, "Requires start %s limit when delta %s 0: %g/%g",
                       delta > 0 ? "<=" : ">=", delta > 0 ? ">" : "<", start, limit);
  }
  return NULL;
}

static weir_status_t* int_count(int64_t start, int64_t limit, int64_t delta, int64_t* out_count) {
  if (delta == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Requires delta != 0: 0");
  if (delta > 0 ? start > limit : start < limit) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Requires start %s limit when delta %s 0: %lld/%lld",
                       delta > 0 ? "<=" : ">=", delta > 0 ? ">" : "<", (long long)start,
                       (long long)limit);
  }
  uint64_t distance =
      delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
  uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
  uint64_t count = distance / step + (distance % step != 0);
  if (count > INT64_MAX) return WEIR_STATUS(INVALID_ARGUMENT, TOO_MANY);
  *out_count = (int64_t)count;
  return NULL;
}

// Rounds to the type the arithmetic is done in.
static double round_to(weir_dtype_t dtype, double x) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: return (double)(float)x;
    case WEIR_DTYPE_HALF: return (double)weir_half_to_float(weir_half_from_float((float)x));
    case WEIR_DTYPE_BFLOAT16:
      return (double)weir_bfloat16_to_float(weir_bfloat16_from_float((float)x));
    default: return x;
  }
}

static weir_status_t* float_count(weir_dtype_t dtype, double start, double limit, double delta,
                                  int64_t* out_count) {
  WEIR_TRY(check_direction(start, limit, delta));
  double distance = round_to(dtype, limit - start);
  double count = ceil(fabs(round_to(dtype, distance / delta)));
  if (!(count < 0x1p63)) return WEIR_STATUS(INVALID_ARGUMENT, TOO_MANY);
  *out_count = (int64_t)count;
  return NULL;
}

static weir_status_t* range_count(weir_dtype_t dtype, const weir_tensor_t* const* args,
                                  int64_t* out_count) {
  if (array_is_index_type(dtype)) {
    return int_count(weir_tensor_int_at(args[0], 0), weir_tensor_int_at(args[1], 0),
                     weir_tensor_int_at(args[2], 0), out_count);
  }
  double values[3] = {0, 0, 0};
  for (int i = 0; i < 3; ++i) {
    if (!weir_element_to_double(dtype, args[i]->data, &values[i])) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Range of type %s", weir_dtype_name(dtype));
    }
  }
  return float_count(dtype, values[0], values[1], values[2], out_count);
}

static weir_status_t* range_shape(weir_shape_ctx_t* ctx) {
  const weir_tensor_t* args[3] = {weir_shape_value(ctx, 0), weir_shape_value(ctx, 1),
                                  weir_shape_value(ctx, 2)};
  weir_dtype_t dtype = weir_attrs_type(weir_shape_attrs(ctx), "Tidx");
  int64_t count = -1;
  WEIR_TRY(check_scalars(ctx));
  bool has_all = args[0] && args[1] && args[2];
  if (has_all && (array_is_index_type(dtype) || weir_dtype_is_floating(dtype))) {
    WEIR_TRY(range_count(dtype, args, &count));
  }
  return weir_shape_set_vector(ctx, 0, count);
}

typedef struct range_job_t {
  weir_tensor_t* out;
  double start, delta;
  int64_t int_start, int_delta;
} range_job_t;

static void range_fill(void* arg, int64_t begin, int64_t end) {
  const range_job_t* job = arg;
  const weir_dtype_t dtype = weir_tensor_type(job->out);
  for (int64_t i = begin; i < end; ++i) {
    switch (dtype) {
      case WEIR_DTYPE_INT32:
        ((int32_t*)job->out->data)[i] = (int32_t)(job->int_start + i * job->int_delta);
        break;
      case WEIR_DTYPE_INT64:
        ((int64_t*)job->out->data)[i] = job->int_start + i * job->int_delta;
        break;
      case WEIR_DTYPE_FLOAT:
        ((float*)job->out->data)[i] = (float)job->start + (float)i * (float)job->delta;
        break;
      case WEIR_DTYPE_DOUBLE:
        ((double*)job->out->data)[i] = job->start + (double)i * job->delta;
        break;
      default: {
        double step = round_to(dtype, round_to(dtype, (double)i) * job->delta);
        float value = (float)round_to(dtype, job->start + step);
        if (dtype == WEIR_DTYPE_HALF)
          ((weir_half_t*)job->out->data)[i] = weir_half_from_float(value);
        if (dtype == WEIR_DTYPE_BFLOAT16)
          ((weir_bfloat16_t*)job->out->data)[i] = weir_bfloat16_from_float(value);
        break;
      }
    }
  }
}

static weir_status_t* check_scalar_input(const weir_tensor_t* t, const char* name) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->count == 1 && t->rank <= 1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar, not shape %s", name,
                     weir_tensor_shape_text(t, text));
}

static weir_status_t* range_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* args[3] = {weir_kernel_input(ctx, 0), weir_kernel_input(ctx, 1),
                                  weir_kernel_input(ctx, 2)};
  const weir_dtype_t dtype = weir_tensor_type(args[0]);
  int64_t count = 0;
  WEIR_TRY(check_scalar_input(args[0], "start"));
  WEIR_TRY(check_scalar_input(args[1], "limit"));
  WEIR_TRY(check_scalar_input(args[2], "delta"));
  WEIR_TRY(range_count(dtype, args, &count));
  range_job_t job = {.out = NULL};
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, &count, &job.out));
  if (array_is_index_type(dtype)) {
    job.int_start = weir_tensor_int_at(args[0], 0);
    job.int_delta = weir_tensor_int_at(args[2], 0);
  } else {
    (void)weir_element_to_double(dtype, args[0]->data, &job.start);
    (void)weir_element_to_double(dtype, args[2]->data, &job.delta);
  }
  range_fill(&job, 0, count);
  return NULL;
}

// ---- LinSpace ----

static weir_status_t* lin_space_shape(weir_shape_ctx_t* ctx) {
  array_ints_t num;
  for (int i = 0; i < 3; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  array_input_ints(ctx, 2, &num);
  if (!num.is_exact || num.count != 1) return weir_shape_set_vector(ctx, 0, -1);
  if (num.values[0] <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Requires num > 0: %lld", (long long)num.values[0]);
  }
  return weir_shape_set_vector(ctx, 0, num.values[0]);
}

static void lin_space_float(float* y, float start, float stop, int64_t num) {
  float step = (stop - start) / (float)(num - 1);
  for (int64_t i = 0; i < num - 1; ++i) y[i] = start + step * (float)i;
  y[num - 1] = num == 1 ? start : stop;
}

static void lin_space_double(double* y, double start, double stop, int64_t num) {
  double step = (stop - start) / (double)(num - 1);
  for (int64_t i = 0; i < num - 1; ++i) y[i] = start + step * (double)i;
  y[num - 1] = num == 1 ? start : stop;
}

static weir_status_t* check_rank0_input(const weir_tensor_t* t, const char* name) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->rank == 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar, not shape %s", name,
                     weir_tensor_shape_text(t, text));
}

static weir_status_t* lin_space_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* start = weir_kernel_input(ctx, 0);
  const weir_tensor_t* stop = weir_kernel_input(ctx, 1);
  const weir_tensor_t* num_input = weir_kernel_input(ctx, 2);
  WEIR_TRY(check_rank0_input(start, "start"));
  WEIR_TRY(check_rank0_input(stop, "stop"));
  WEIR_TRY(check_rank0_input(num_input, "num"));
  int64_t num = weir_tensor_int_at(num_input, 0);
  if (num <= 0) return WEIR_STATUS(INVALID_ARGUMENT, "Requires num > 0: %lld", (long long)num);
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, &num, &out));
  if (out->dtype == WEIR_DTYPE_FLOAT) {
    lin_space_float(out->data, *(const float*)start->data, *(const float*)stop->data, num);
  } else {
    lin_space_double(out->data, *(const double*)start->data, *(const double*)stop->data, num);
  }
  return NULL;
}

const weir_op_module_t weir_ops_array_range = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Range",
         .attrs = "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, "
                  "uint32, uint64} = DT_INT32",
         .inputs = "start: Tidx; limit: Tidx; delta: Tidx",
         .outputs = "output: Tidx",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Returns the numbers from start to limit in steps of delta.",
         .infer_shape = range_shape,
         .kernels =
             WEIR_PORTABLE_KERNEL(.types = "Tidx: bfloat16, half, float, double, int32, int64",
                                  .compute = range_cpu, .host_inputs = "start, limit, delta",
                                  .host_outputs = "output")},
        {.name = "LinSpace",
         .attrs = "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = DT_INT32",
         .inputs = "start: T; stop: T; num: Tidx",
         .outputs = "output: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Returns num numbers at equal distances from start to stop.",
         .infer_shape = lin_space_shape,
         .kernels =
             WEIR_PORTABLE_KERNEL(.types = "T: float, double", .compute = lin_space_cpu,
                                  .host_inputs = "start, stop, num", .host_outputs = "output")},
        {0}}};
