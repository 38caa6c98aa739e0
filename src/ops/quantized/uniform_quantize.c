// uniform_quantize.c — UniformQuantize, UniformDequantize, UniformRequantize,
// UniformQuantizedClipByValue: element by element, with scales and zero points for all or along an
// axis.
#include "ops/quantized/uniform.h"

typedef struct state_t {
  int32_t axis, out_axis;  // -1: one scale for all
  int32_t low, high;       // of the result
} state_t;

static weir_status_t* read_axis(weir_attrs_t attrs, const char* name, int32_t* out) {
  WEIR_TRY(uniform_attr(attrs, name, out));
  if (*out >= -1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be >= -1, given: %d", name, *out);
}

static weir_status_t* quantize_init(const weir_kernel_init_t* init, void* state) {
  state_t* self = state;
  const weir_attrs_t attrs = init->node->attrs;
  WEIR_TRY(uniform_attr(attrs, "quantization_min_val", &self->low));
  WEIR_TRY(uniform_attr(attrs, "quantization_max_val", &self->high));
  return read_axis(attrs, "quantization_axis", &self->axis);
}

static weir_status_t* clip_init(const weir_kernel_init_t* init, void* state) {
  return uniform_attr(init->node->attrs, "quantization_axis", &((state_t*)state)->axis);
}

static weir_status_t* requantize_init(const weir_kernel_init_t* init, void* state) {
  state_t* self = state;
  const weir_attrs_t attrs = init->node->attrs;
  WEIR_TRY(uniform_attr(attrs, "output_quantization_min_val", &self->low));
  WEIR_TRY(uniform_attr(attrs, "output_quantization_max_val", &self->high));
  WEIR_TRY(read_axis(attrs, "input_quantization_axis", &self->axis));
  WEIR_TRY(read_axis(attrs, "output_quantization_axis", &self->out_axis));
  if (self->axis < 0 || self->out_axis < 0 || self->axis == self->out_axis) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "If input and output is both per-axis quantized, the quantization axis must "
                     "be same.");
}

// ---- elements ----

// Elements around an axis, and what is done to those of one index along it.
typedef struct job_t {
  int64_t slices, inner;
  const weir_tensor_t *x, *scales, *zeros, *low_bounds, *high_bounds, *out_zeros;
  const uniform_factor_t* factors;
  int32_t low, high;
  weir_tensor_t* y;
  void (*run)(const struct job_t* job, int64_t slice, int64_t begin, int64_t end);
} job_t;

static void run_range(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  while (begin < end) {
    const int64_t row = begin / job->inner;
    const int64_t stop = WEIR_MIN(end, (row + 1) * job->inner);
    job->run(job, row % job->slices, begin, stop);
    begin = stop;
  }
}

static void run_all(weir_kernel_ctx_t* ctx, job_t* job, int64_t axis) {
  const weir_tensor_t* x = job->x;
  job->slices = axis < 0 ? 1 : x->dims[axis];
  job->inner = axis < 0 ? x->count : 1;
  for (int64_t i = axis + 1; i < x->rank && axis >= 0; ++i) job->inner *= x->dims[i];
  weir_pool_for(weir_kernel_pool(ctx), x->count, 1.5, run_range, job);
}

WEIR_INLINE int32_t element(const weir_tensor_t* t, int64_t i) {
  switch (weir_tensor_type(t)) {
    case WEIR_DTYPE_QINT8: return WEIR_TENSOR_DATA(t, int8_t)[i];
    case WEIR_DTYPE_QUINT8: return WEIR_TENSOR_DATA(t, uint8_t)[i];
    default: return uniform_through_float(WEIR_TENSOR_DATA(t, int32_t)[i]);
  }
}

WEIR_INLINE void set_element(weir_tensor_t* t, int64_t i, int32_t value) {
  if (weir_tensor_type(t) == WEIR_DTYPE_QINT32) {
    WEIR_TENSOR_DATA(t, int32_t)[i] = value;
  } else {
    WEIR_TENSOR_DATA(t, uint8_t)[i] = (uint8_t)value;
  }
}

// Numbers beyond int32 become its ends, NaN 0; the zero point is added modulo 2^32.
static void quantize_slice(const job_t* job, int64_t slice, int64_t begin, int64_t end) {
  const float inverse = 1.0f / uniform_scale(job->scales, slice);
  const int32_t zero = uniform_zero(job->zeros, slice);
  for (int64_t i = begin; i < end; ++i) {
    const float v = floorf(WEIR_TENSOR_DATA(job->x, float)[i] * inverse + 0.5f);
    const int64_t whole = v != v          ? 0
                          : v <= -0x1p31f ? INT32_MIN
                          : v >= 0x1p31f  ? INT32_MAX
                                          : (int64_t)v;
    const int32_t moved = uniform_wrap(whole + zero);
    const int32_t capped = moved < job->high ? moved : job->high;
    set_element(job->y, i, capped > job->low ? capped : job->low);
  }
}

static void dequantize_slice(const job_t* job, int64_t slice, int64_t begin, int64_t end) {
  const float scale = uniform_scale(job->scales, slice);
  const int32_t zero = uniform_zero(job->zeros, slice);
  for (int64_t i = begin; i < end; ++i) {
    const int32_t moved = uniform_wrap((int64_t)element(job->x, i) - zero);
    WEIR_TENSOR_DATA(job->y, float)[i] = (float)moved * scale;
  }
}

static void requantize_slice(const job_t* job, int64_t slice, int64_t begin, int64_t end) {
  const int32_t zero = uniform_zero(job->zeros, slice);
  const int32_t out_zero = uniform_zero(job->out_zeros, slice);
  for (int64_t i = begin; i < end; ++i) {
    const int32_t moved = uniform_wrap((int64_t)element(job->x, i) - zero);
    set_element(job->y, i,
                uniform_apply(job->factors[slice], moved, out_zero, job->low, job->high));
  }
}

static void clip_slice(const job_t* job, int64_t slice, int64_t begin, int64_t end) {
  const int32_t low = uniform_zero(job->low_bounds, slice);
  const int32_t high = uniform_zero(job->high_bounds, slice);
  for (int64_t i = begin; i < end; ++i) {
    const int32_t v = WEIR_TENSOR_DATA(job->x, int32_t)[i];
    const int32_t raised = v > low ? v : low;
    set_element(job->y, i, raised < high ? raised : high);
  }
}

// ---- kernels ----

static weir_status_t* convert(weir_kernel_ctx_t* ctx, job_t* job) {
  const state_t* self = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  job->x = in;
  job->scales = weir_kernel_input(ctx, 1);
  job->zeros = weir_kernel_input(ctx, 2);
  job->low = self->low;
  job->high = self->high;
  WEIR_TRY(uniform_check(in->rank, in->dims, job->scales, job->zeros, self->axis));
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &job->y));
  run_all(ctx, job, self->axis);
  return NULL;
}

static weir_status_t* quantize_cpu(weir_kernel_ctx_t* ctx) {
  job_t job = {.run = quantize_slice};
  return convert(ctx, &job);
}

static weir_status_t* dequantize_cpu(weir_kernel_ctx_t* ctx) {
  job_t job = {.run = dequantize_slice};
  return convert(ctx, &job);
}

static weir_status_t* run_requantize(weir_kernel_ctx_t* ctx, job_t* job, int64_t axis,
                                     uniform_factor_t* factors) {
  const weir_tensor_t *in = job->x, *out_scales = weir_kernel_input(ctx, 3);
  const int64_t count = axis < 0 ? 1 : in->dims[axis];
  for (int64_t i = 0; i < count; ++i) {
    const double scale =
        (double)uniform_scale(job->scales, i) / (double)uniform_scale(out_scales, i);
    WEIR_TRY(uniform_find_factor(scale, &factors[i]));
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &job->y));
  job->factors = factors;
  run_all(ctx, job, axis);
  return NULL;
}

static weir_status_t* requantize_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* self = ctx->state;
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *out_scales = weir_kernel_input(ctx, 3);
  job_t job = {.x = in,
               .scales = weir_kernel_input(ctx, 1),
               .zeros = weir_kernel_input(ctx, 2),
               .out_zeros = weir_kernel_input(ctx, 4),
               .low = self->low,
               .high = self->high,
               .run = requantize_slice};
  WEIR_TRY(uniform_check(in->rank, in->dims, job.scales, job.zeros, self->axis));
  WEIR_TRY(uniform_check(in->rank, in->dims, out_scales, job.out_zeros, self->out_axis));
  if (!uniform_are_positive(job.scales) || !uniform_are_positive(out_scales)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input/output scales elements must be all positive.");
  }
  const int64_t axis = WEIR_MAX(self->axis, self->out_axis);
  const int64_t count = axis < 0 ? 1 : in->dims[axis];
  uniform_factor_t* factors = weir_alloc_array((size_t)WEIR_MAX(count, 1), sizeof(*factors));
  if (!factors) return weir_out_of_memory();
  weir_status_t* status = run_requantize(ctx, &job, axis, factors);
  weir_free(factors);
  return status;
}

static weir_status_t* clip_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* self = ctx->state;
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *scales = weir_kernel_input(ctx, 3);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  job_t job = {.x = in,
               .low_bounds = weir_kernel_input(ctx, 1),
               .high_bounds = weir_kernel_input(ctx, 2),
               .run = clip_slice};
  WEIR_TRY(uniform_check(in->rank, in->dims, scales, weir_kernel_input(ctx, 4), self->axis));
  for (int i = 1; i < 3; ++i) {
    const weir_tensor_t* bound = weir_kernel_input(ctx, i);
    const char* name = i == 1 ? "min" : "max";
    if (weir_tensor_same_shape(bound, scales)) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input %s shape must be same as scales/zero_points. Given %s of shape %s "
                       "and scales/zero_points of shape %s",
                       name, name, weir_tensor_shape_text(bound, a),
                       weir_tensor_shape_text(scales, b));
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &job.y));
  run_all(ctx, &job, self->axis);
  return NULL;
}

#define SCALES "scales: float; zero_points: int32"
#define RANGE(PREFIX)                                                                \
  PREFIX "quantization_axis: int = -1; " PREFIX "quantization_min_val: int; " PREFIX \
         "quantization_max_val: int"
#define KERNEL(TYPES, INIT, COMPUTE)                                    \
  WEIR_CPU_KERNEL(.types = TYPES, .compute = (COMPUTE), .init = (INIT), \
                  .state_size = sizeof(state_t))

const weir_op_module_t weir_ops_quantized_uniform_quantize = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "UniformQuantize",
         .summary = "Floats as numbers of a scale and a zero point",
         .attrs = "Tin: {float}; Tout: {qint8, quint8, qint32}; " RANGE(""),
         .inputs = "input: Tin; " SCALES,
         .outputs = "output: Tout",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = KERNEL(NULL, quantize_init, quantize_cpu)},
        {.name = "UniformDequantize",
         .summary = "The floats that numbers of a scale and a zero point stand for",
         .attrs = "Tin: {qint8, quint8, qint32}; Tout: {float}; " RANGE(""),
         .inputs = "input: Tin; " SCALES,
         .outputs = "output: Tout",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = KERNEL(NULL, quantize_init, dequantize_cpu)},
        {.name = "UniformRequantize",
         .summary = "Numbers of one scale and zero point as those of others",
         .attrs =
             "Tin: {qint8, qint32}; Tout: {qint8, qint32}; " RANGE("input_") "; " RANGE("output_"),
         .inputs = "input: Tin; input_scales: float; input_zero_points: int32; output_scales: "
                   "float; output_zero_points: int32",
         .outputs = "output: Tout",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = KERNEL("Tout: qint8", requantize_init, requantize_cpu)},
        {.name = "UniformQuantizedClipByValue",
         .summary = "Quantised elements brought into a range",
         .attrs = "T: {qint32}; " RANGE(""),
         .inputs = "operand: T; min: T; max: T; " SCALES,
         .outputs = "output: T",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = KERNEL(NULL, clip_init, clip_cpu)},
        {0}}};
