// instance_norm.c — QuantizedInstanceNorm: each channel of each quantised image normalised by its
// own mean and variance.
#include "kernel/quantized/range.h"
#include "ops/quantized/common.h"

static weir_status_t* norm_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &in));
  WEIR_TRY(weir_shape_set(ctx, 0, weir_shape_input(ctx, 0)));
  return quantized_bounds_shape(ctx, 1, 2);
}

typedef struct state_t {
  bool has_range;
  float min, max;  // of the result, where given
  float epsilon, separation;
} state_t;

static weir_status_t* norm_init(const weir_kernel_init_t* init, void* state) {
  const weir_attrs_t attrs = init->node->attrs;
  state_t* self = state;
  *self = (state_t){.has_range = weir_attrs_bool(attrs, "output_range_given"),
                    .min = weir_attrs_float(attrs, "given_y_min"),
                    .max = weir_attrs_float(attrs, "given_y_max"),
                    .epsilon = weir_attrs_float(attrs, "variance_epsilon"),
                    .separation = weir_attrs_float(attrs, "min_separation")};
  if (!self->has_range || self->min < self->max) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "given_y_min must be less than given_y_max : %g >= %g",
                     (double)self->min, (double)self->max);
}

// What a channel of an image has: normed(x) = scale * (x - mean) * inverse.
typedef struct channel_t {
  float mean, inverse;
  uint8_t low, high;
} channel_t;

typedef struct job_t {
  int64_t pixels, depth;
  float scale, epsilon;
  channel_t* channels;  // images * depth of them
  weir_quantize_t to;
  const uint8_t* x;
  uint8_t* y;
} job_t;

WEIR_INLINE float normed(const job_t* job, const channel_t* c, uint8_t x) {
  return job->scale * ((float)x - c->mean) * c->inverse;
}

static void find_channels(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    const uint8_t* x = job->x + i / job->depth * job->pixels * job->depth + i % job->depth;
    int64_t sum = 0;
    double squares = 0;
    channel_t c = {.low = 255};
    for (int64_t p = 0; p < job->pixels; ++p) {
      const uint8_t v = x[p * job->depth];
      sum += v;
      c.low = v < c.low ? v : c.low;
      c.high = v > c.high ? v : c.high;
    }
    c.mean = (float)((double)sum / (double)job->pixels);
    for (int64_t p = 0; p < job->pixels; ++p) {
      const float d = job->scale * ((float)x[p * job->depth] - c.mean);
      squares += (double)(d * d);
    }
    c.inverse = 1.0f / sqrtf((float)(squares / (double)job->pixels) + job->epsilon);
    job->channels[i] = c;
  }
}

static void run_pixels(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  for (int64_t p = begin; p < end; ++p) {
    const channel_t* channels = job->channels + p / job->pixels * job->depth;
    for (int64_t c = 0; c < job->depth; ++c) {
      const int64_t i = p * job->depth + c;
      const float v = roundf(normed(job, &channels[c], job->x[i]) * job->to.scale) - job->to.shift;
      job->y[i] = (uint8_t)(v > 0 ? v < 255 ? v : 255 : 0);
    }
  }
}

// The range of all that is normed: a scale that is positive keeps the order.
static void find_range(const state_t* self, const job_t* job, int64_t count, float* min,
                       float* max) {
  *min = self->has_range ? self->min : INFINITY;
  *max = self->has_range ? self->max : -INFINITY;
  for (int64_t i = 0; i < count && !self->has_range; ++i) {
    const float low = normed(job, &job->channels[i], job->channels[i].low);
    const float high = normed(job, &job->channels[i], job->channels[i].high);
    *min = i == 0 || low < *min ? low : *min;
    *max = i == 0 || high > *max ? high : *max;
  }
  if (*max - *min < self->separation) *max = *min + self->separation;
}

static weir_status_t* norm_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* self = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  float low = 0, high = 0, min = 0, max = 0;
  weir_tensor_t* out = NULL;
  WEIR_TRY(quantized_scalar(ctx, 1, "x_min", &low));
  WEIR_TRY(quantized_scalar(ctx, 2, "x_max", &high));
  if (!(low < high)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input_min must be less than input_max : %g >= %g",
                       (double)low, (double)high);
  }
  if (in->rank != 4) return WEIR_STATUS(INVALID_ARGUMENT, "x must be 4-dimensional");
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  const int64_t count = in->count > 0 ? in->dims[0] * in->dims[3] : 0;
  job_t job = {.pixels = in->dims[1] * in->dims[2],
               .depth = in->dims[3],
               .scale = (high - low) / 255.0f,
               .epsilon = self->epsilon,
               .channels = weir_alloc_array((size_t)count + 1, sizeof(channel_t)),
               .x = in->data,
               .y = out->data};
  if (!job.channels) return weir_out_of_memory();
  weir_pool_t* pool = weir_kernel_pool(ctx);
  weir_pool_for(pool, count, 3.0 * (double)job.pixels, find_channels, &job);
  find_range(self, &job, count, &min, &max);
  job.to = weir_quantize_in(WEIR_DTYPE_QUINT8, min, max);
  weir_pool_for(pool, in->count / WEIR_MAX(job.depth, 1), 2.0 * (double)job.depth, run_pixels,
                &job);
  weir_free(job.channels);
  return quantized_set_bounds(ctx, min, max);
}

const weir_op_module_t weir_ops_quantized_instance_norm = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "QuantizedInstanceNorm",
         .summary = "Each channel of each quantised image normalised by its mean and variance",
         .attrs = "T: quantizedtype; output_range_given: bool = false; given_y_min: float = 0.0; "
                  "given_y_max: float = 0.0; variance_epsilon: float = 0.00001; min_separation: "
                  "float = 0.001",
         .inputs = "x: T; x_min: float; x_max: float",
         .outputs = "y: T; y_min: float; y_max: float",
         .infer_shape = norm_shape,
         .kernels = WEIR_CPU_KERNEL(.types = "T: quint8", .compute = norm_cpu, .init = norm_init,
                                    .state_size = sizeof(state_t))},
        {0}}};
