// pool3d.c — Three-dimensional pooling: vector loops over the channels of each window.
#include "kernel/pool/pool3d.h"

#include <float.h>
#include <string.h>

#include "kernel/simd.h"

typedef struct job_t {
  const weir_pool3d_t* p;
  const float *in, *top, *grad;  // |top|: what the forward pooling gave
  float* out;
} job_t;

// The part of a window that lies within the volume.
typedef struct span_t {
  int64_t begin[3], end[3];
} span_t;

static void span_axis(const weir_pool3d_t* p, int axis, int64_t at, span_t* s) {
  int64_t begin = at * p->stride[axis] - p->pad[axis];
  s->end[axis] = WEIR_MIN(begin + p->window[axis], p->in[axis]);
  s->begin[axis] = WEIR_MIN(WEIR_MAX(begin, 0), s->end[axis]);
}

// The same as TensorFlow's gradients have it, who count a window that begins before a volume which
// is shorter than the window as if it began at 0.
static void grad_span_axis(const weir_pool3d_t* p, int axis, int64_t at, span_t* s) {
  int64_t begin = at * p->stride[axis], size = p->window[axis];
  if (begin < p->pad[axis]) {
    size += begin - p->pad[axis];
    begin = 0;
  } else {
    begin -= p->pad[axis];
  }
  if (begin + p->window[axis] > p->in[axis]) size = WEIR_MIN(p->in[axis] - begin, p->window[axis]);
  s->begin[axis] = begin;
  s->end[axis] = begin + WEIR_MAX(size, 0);
}

static int64_t span_count(const span_t* s) {
  return (s->end[0] - s->begin[0]) * (s->end[1] - s->begin[1]) * (s->end[2] - s->begin[2]);
}

// Walks over the pixels of a span: |at| is the offset of the pixel within a volume.
#define FOR_SPAN(p, s, at)                                                          \
  for (int64_t d_ = (s).begin[0]; d_ < (s).end[0]; ++d_)                            \
    for (int64_t h_ = (s).begin[1]; h_ < (s).end[1]; ++h_)                          \
      for (int64_t w_ = (s).begin[2],                                               \
                   at = ((d_ * (p)->in[1] + h_) * (p)->in[2] + w_) * (p)->channels; \
           w_ < (s).end[2]; ++w_, at += (p)->channels)

static int64_t volume(const weir_pool3d_t* p) {
  return p->in[0] * p->in[1] * p->in[2] * p->channels;
}

// |row| counts rows of the output over all planes of all volumes.
static int64_t row_span(const weir_pool3d_t* p, int64_t row, span_t* s) {
  int64_t plane = row / p->out[1];
  span_axis(p, 1, row % p->out[1], s);
  span_axis(p, 0, plane % p->out[0], s);
  return plane / p->out[0];
}

// A NaN wins and stays, as in TensorFlow; padding is the lowest finite number there.
WEIR_CLONES static void max_window(const weir_pool3d_t* p, const float* x, span_t s,
                                   float* restrict best) {
  const int64_t channels = p->channels;
  bool is_padded = false;
  for (int axis = 0; axis < 3; ++axis)
    is_padded = is_padded || s.end[axis] - s.begin[axis] < p->window[axis];
  for (int64_t c = 0; c < channels; ++c) best[c] = is_padded ? -FLT_MAX : -INFINITY;
  FOR_SPAN(p, s, at) {
    const float* restrict pixel = x + at;
    for (int64_t c = 0; c < channels; ++c)
      best[c] = pixel[c] > best[c] || pixel[c] != pixel[c] ? pixel[c] : best[c];
  }
}

static void max_rows(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  const weir_pool3d_t* p = job->p;
  span_t s;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = job->in + row_span(p, row, &s) * volume(p);
    for (int64_t w = 0; w < p->out[2]; ++w) {
      span_axis(p, 2, w, &s);
      max_window(p, x, s, job->out + (row * p->out[2] + w) * p->channels);
    }
  }
}

WEIR_CLONES static void avg_window(const weir_pool3d_t* p, const float* x, span_t s,
                                   float* restrict sum) {
  const int64_t channels = p->channels;
  const float count = (float)span_count(&s);
  memset(sum, 0, (size_t)channels * sizeof(*sum));
  FOR_SPAN(p, s, at) {
    const float* restrict pixel = x + at;
    for (int64_t c = 0; c < channels; ++c) sum[c] += pixel[c];
  }
  for (int64_t c = 0; count > 0 && c < channels; ++c) sum[c] /= count;
}

static void avg_rows(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  const weir_pool3d_t* p = job->p;
  span_t s;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = job->in + row_span(p, row, &s) * volume(p);
    for (int64_t w = 0; w < p->out[2]; ++w) {
      span_axis(p, 2, w, &s);
      avg_window(p, x, s, job->out + (row * p->out[2] + w) * p->channels);
    }
  }
}

// ---- gradients: one task owns whole volumes ----

WEIR_CLONES static void max_grad_window(const job_t* job, span_t s, int64_t from, int64_t to) {
  const weir_pool3d_t* p = job->p;
  const float* restrict top = job->top + from, * restrict dy = job->grad + from;
  FOR_SPAN(p, s, at) {
    const float* restrict x = job->in + to + at;
    float* restrict dx = job->out + to + at;
    for (int64_t c = 0; c < p->channels; ++c) dx[c] += x[c] == top[c] ? dy[c] : 0;
  }
}

WEIR_CLONES static void avg_grad_window(const job_t* job, span_t s, int64_t from, int64_t to) {
  const weir_pool3d_t* p = job->p;
  const float* restrict dy = job->grad + from;
  const float count = (float)span_count(&s);
  FOR_SPAN(p, s, at) {
    float* restrict dx = job->out + to + at;
    for (int64_t c = 0; c < p->channels; ++c) dx[c] += dy[c] / count;
  }
}

static inline void grad_volumes(const job_t* job, int64_t begin, int64_t end,
                                void (*window)(const job_t*, span_t, int64_t, int64_t)) {
  const weir_pool3d_t* p = job->p;
  const int64_t size = volume(p);
  int64_t from = begin * p->out[0] * p->out[1] * p->out[2] * p->channels;
  memset(job->out + begin * size, 0, (size_t)((end - begin) * size) * sizeof(float));
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t d = 0; d < p->out[0]; ++d) {
      for (int64_t h = 0; h < p->out[1]; ++h) {
        for (int64_t w = 0; w < p->out[2]; ++w, from += p->channels) {
          span_t s;
          grad_span_axis(p, 0, d, &s);
          grad_span_axis(p, 1, h, &s);
          grad_span_axis(p, 2, w, &s);
          window(job, s, from, i * size);
        }
      }
    }
  }
}

static void max_grad_volumes(void* arg, int64_t begin, int64_t end) {
  grad_volumes(arg, begin, end, max_grad_window);
}

static void avg_grad_volumes(void* arg, int64_t begin, int64_t end) {
  grad_volumes(arg, begin, end, avg_grad_window);
}

static float grad_grad_at(const job_t* job, span_t s, int64_t base, float wanted) {
  FOR_SPAN(job->p, s, at) {
    if (job->in[base + at] == wanted) return job->grad[base + at];
  }
  return 0;
}

static void grad_grad_rows(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  const weir_pool3d_t* p = job->p;
  span_t s;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t base = row_span(p, row, &s) * volume(p);
    for (int64_t w = 0; w < p->out[2]; ++w) {
      const int64_t to = (row * p->out[2] + w) * p->channels;
      span_axis(p, 2, w, &s);
      for (int64_t c = 0; c < p->channels; ++c)
        job->out[to + c] = grad_grad_at(job, s, base + c, job->top[to + c]);
    }
  }
}

// ---- entry points ----

static double row_cost_ns(const weir_pool3d_t* p) {
  return 0.25 * (double)(p->out[2] * p->channels) * (double)p->window[0] *
         (double)(p->window[1] * p->window[2]);
}

static void for_rows(weir_pool_t* pool, const weir_pool3d_t* p, weir_range_fn_t fn, job_t* job) {
  if (p->batch * p->out[0] * p->out[1] * p->out[2] * p->channels == 0) return;
  weir_pool_for(pool, p->batch * p->out[0] * p->out[1], row_cost_ns(p), fn, job);
}

static void for_volumes(weir_pool_t* pool, const weir_pool3d_t* p, weir_range_fn_t fn, job_t* job) {
  if (p->batch * volume(p) == 0) return;
  weir_pool_for(pool, p->batch, 2 * row_cost_ns(p) * (double)(p->out[0] * p->out[1]), fn, job);
}

void weir_max_pool3d(weir_pool_t* pool, const weir_pool3d_t* p, const float* in, float* out) {
  for_rows(pool, p, max_rows, &(job_t){.p = p, .in = in, .out = out});
}

void weir_avg_pool3d(weir_pool_t* pool, const weir_pool3d_t* p, const float* in, float* out) {
  for_rows(pool, p, avg_rows, &(job_t){.p = p, .in = in, .out = out});
}

void weir_max_pool3d_grad(weir_pool_t* pool, const weir_pool3d_t* p, const float* in,
                          const float* out, const float* dy, float* dx) {
  for_volumes(pool, p, max_grad_volumes,
              &(job_t){.p = p, .in = in, .top = out, .grad = dy, .out = dx});
}

void weir_max_pool3d_grad_grad(weir_pool_t* pool, const weir_pool3d_t* p, const float* in,
                               const float* out, const float* grad, float* ddy) {
  for_rows(pool, p, grad_grad_rows,
           &(job_t){.p = p, .in = in, .top = out, .grad = grad, .out = ddy});
}

void weir_avg_pool3d_grad(weir_pool_t* pool, const weir_pool3d_t* p, const float* dy, float* dx) {
  for_volumes(pool, p, avg_grad_volumes, &(job_t){.p = p, .grad = dy, .out = dx});
}
