// fake_quant.c — See fake_quant.h.
#include "kernel/quantized/fake_quant.h"

#include <math.h>

#include "base/base.h"

weir_fake_range_t weir_fake_range(float min, float max, int first, int last) {
  const float from = (float)first, to = (float)last;
  weir_fake_range_t r = {.is_empty = min == 0 && max == 0};
  if (r.is_empty) return r;
  r.step = (max - min) / (to - from);
  r.inverse = (to - from) / (max - min);
  const float zero = from - min / r.step;
  const float nudged = zero < from ? from : zero > to ? to : roundf(zero);
  r.low = (from - nudged) * r.step;
  r.high = (to - nudged) * r.step;
  r.zero = floorf(-r.low * r.inverse + 0.5f);
  return r;
}

typedef struct job_t {
  const weir_fake_quant_t* quant;
  const float* x;
  float* y;
  const float* dy;
  float *dmin, *dmax;
} job_t;

// NaN stays.
WEIR_INLINE float clamped(const weir_fake_range_t* r, float x) {
  x = x > r->high ? r->high : x;
  return (x < r->low ? r->low : x) - r->low;
}

WEIR_INLINE float by_inverse(const weir_fake_range_t* r, float x) {
  return floorf(clamped(r, x) * r->inverse - r->zero + 0.5f) * r->step;
}

WEIR_INLINE float by_division(const weir_fake_range_t* r, float x) {
  return floorf(clamped(r, x) / r->step - r->zero + 0.5f) * r->step;
}

static void quant_flat(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  const weir_fake_range_t r = job->quant->ranges[0];
  const float* x = job->x;
  float* y = job->y;
  if (r.is_empty) {
    for (int64_t i = begin; i < end; ++i) y[i] = 0;
  } else if (job->quant->divides) {
    for (int64_t i = begin; i < end; ++i) y[i] = by_division(&r, x[i]);
  } else {
    for (int64_t i = begin; i < end; ++i) y[i] = by_inverse(&r, x[i]);
  }
}

static void quant_rows(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  const int64_t channels = job->quant->channels;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = job->x + row * channels;
    float* y = job->y + row * channels;
    for (int64_t c = 0; c < channels; ++c) {
      const weir_fake_range_t* r = &job->quant->ranges[c];
      y[c] = r->is_empty ? 0 : by_inverse(r, x[c]);
    }
  }
}

void weir_fake_quant(weir_pool_t* pool, const weir_fake_quant_t* quant, const float* x, float* y) {
  job_t job = {.quant = quant, .x = x, .y = y};
  if (quant->channels == 1) {
    weir_pool_for(pool, quant->rows, 1, quant_flat, &job);
  } else {
    weir_pool_for(pool, quant->rows, 3.0 * (double)quant->channels, quant_rows, &job);
  }
}

// A gradient that does not pass is multiplied by 0: what is not finite becomes NaN.
static void grad_flat(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  const weir_fake_range_t r = job->quant->ranges[0];
  for (int64_t i = begin; i < end; ++i) {
    const float x = job->x[i];
    job->y[i] = job->dy[i] * (x >= r.low && x <= r.high ? 1.0f : 0.0f);
  }
}

static void grad_rows(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  const int64_t channels = job->quant->channels;
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t c = 0; c < channels; ++c) {
      const weir_fake_range_t* r = &job->quant->ranges[c];
      const int64_t i = row * channels + c;
      const float x = job->x[i];
      const bool passes = r->is_empty || (x >= r->low && x <= r->high);
      job->y[i] = job->dy[i] * (passes ? 1.0f : 0.0f);
    }
  }
}

// The sums of one channel. In double: the result does not depend on their order by much.
static void sum_channels(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  const int64_t channels = job->quant->channels;
  for (int64_t c = begin; c < end; ++c) {
    const weir_fake_range_t* r = &job->quant->ranges[c];
    double below = 0, above = 0;
    for (int64_t i = c; i < job->quant->rows * channels && !r->is_empty; i += channels) {
      below += (double)(job->dy[i] * (job->x[i] < r->low ? 1.0f : 0.0f));
      above += (double)(job->dy[i] * (job->x[i] > r->high ? 1.0f : 0.0f));
    }
    job->dmin[c] = (float)below;
    job->dmax[c] = (float)above;
  }
}

void weir_fake_quant_grad(weir_pool_t* pool, const weir_fake_quant_t* quant, const float* dy,
                          const float* x, float* dx, float* dmin, float* dmax) {
  job_t job = {.quant = quant, .x = x, .y = dx, .dy = dy, .dmin = dmin, .dmax = dmax};
  if (dmin) weir_pool_for(pool, quant->channels, 2.0 * (double)quant->rows, sum_channels, &job);
  if (quant->channels == 1 && !quant->ranges[0].is_empty) {
    weir_pool_for(pool, quant->rows, 0.5, grad_flat, &job);
  } else {
    weir_pool_for(pool, quant->rows, 2.0 * (double)quant->channels, grad_rows, &job);
  }
}
