// requantize.c — See requantize.h.
#include "kernel/quantized/requantize.h"

// What converting gives where it is defined; NaN: 0.
static int64_t to_int64(double x) {
  if (isnan(x)) return 0;
  return (int64_t)(x < -0x1p62 ? -0x1p62 : x > 0x1p62 ? 0x1p62 : x);
}

// value = ((x * scale >> 32) + offset) >> 16
typedef struct fixed_t {
  int64_t scale, offset;
} fixed_t;

static fixed_t fixed_point(const weir_requantize_t* r) {
  const float in_range = r->in_max - r->in_min, out_range = r->out_max - r->out_min;
  const int64_t half = 1 << 15;
  if (out_range == 0) return (fixed_t){.scale = 0, .offset = half};
  const float per_step = (float)(255.0 / (double)out_range);
  const float middle = (float)((double)(r->in_min + r->in_max) / 2.0);
  const int64_t zero = to_int64((double)(middle * per_step * 65536.0f));
  const int64_t low = to_int64(65536.0 * ((double)r->out_min * 255.0) / (double)out_range);
  return (fixed_t){.scale = to_int64(255.0 * 65536.0 * (double)in_range / (double)out_range),
                   .offset = zero - low + half};
}

typedef struct job_t {
  fixed_t fixed;
  weir_dequantize_t from;
  weir_quantize_t to;
  const int32_t* x;
  void* y;
  int64_t channels;
  const float* factors;
  float low, high;
} job_t;

// Products may wrap, as they do in TensorFlow.
static void to_uint8(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  const uint64_t scale = (uint64_t)job->fixed.scale;
  const int64_t offset = job->fixed.offset;
  uint8_t* y = job->y;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t product = (int64_t)((uint64_t)(int64_t)job->x[i] * scale);
    const int64_t v = ((product >> 32) + offset) >> 16;
    y[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
  }
}

static void to_int8(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  const weir_dequantize_t from = job->from;
  const weir_quantize_t to = job->to;
  int8_t* y = job->y;
  for (int64_t i = begin; i < end; ++i) {
    const float v = roundf((from.base + (float)job->x[i] * from.scale) * to.scale) - to.shift;
    y[i] = (int8_t)(v > -128.0f ? v < 127.0f ? v : 127.0f : v != v ? 0 : -128.0f);
  }
}

void weir_requantize(weir_pool_t* pool, const weir_requantize_t* args, const int32_t* x, void* y,
                     int64_t count) {
  job_t job = {.x = x, .y = y};
  if (args->out == WEIR_DTYPE_QUINT8) {
    job.fixed = fixed_point(args);
    weir_pool_for(pool, count, 0.7, to_uint8, &job);
  } else {
    job.from = weir_dequantize_in(WEIR_DTYPE_QINT32, args->in_min, args->in_max);
    job.to = weir_quantize_in(args->out, args->out_min, args->out_max);
    weir_pool_for(pool, count, 1, to_int8, &job);
  }
}

static void scale_rows(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  for (int64_t row = begin; row < end; ++row) {
    const int32_t* x = job->x + row * job->channels;
    uint8_t* y = (uint8_t*)job->y + row * job->channels;
    for (int64_t c = 0; c < job->channels; ++c) {
      float v = (float)x[c] * job->factors[c];
      v = v > job->low ? v : job->low;
      y[c] = (uint8_t)(int32_t)rintf(v < job->high ? v : job->high);
    }
  }
}

void weir_requantize_channels(weir_pool_t* pool, weir_dtype_t out, int64_t rows, int64_t channels,
                              const float* factors, const int32_t* x, void* y) {
  job_t job = {.x = x,
               .y = y,
               .channels = channels,
               .factors = factors,
               .low = (float)weir_quantized_lowest(out),
               .high = (float)weir_quantized_highest(out)};
  weir_pool_for(pool, rows, (double)channels, scale_rows, &job);
}

void weir_int32_extremes(const int32_t* x, int64_t count, int64_t stride, int32_t* out_min,
                         int32_t* out_max) {
  int32_t min = INT32_MAX, max = INT32_MIN;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t v = x[i * stride];
    min = v < min ? v : min;
    max = v > max ? v : max;
  }
  *out_min = min;
  *out_max = max;
}
