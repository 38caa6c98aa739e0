// pool2d.c — Two-dimensional pooling: vector loops over the channels of each window.
#include "kernel/pool/pool2d.h"

#include <float.h>

#include "base/alloc.h"
#include "kernel/simd.h"

typedef struct job_t {
  const weir_pool2d_t* pool;
  const void* in;
  const void* top;  // what the forward pooling gave
  const void* grad;
  void* out;
  int64_t* argmax;
  atomic_bool is_out_of_memory;
} job_t;

// The part of a window that lies within the image.
typedef struct span_t {
  int64_t image;
  int64_t top, bottom, left, right;
} span_t;

// |row| counts output rows over all images.
static inline span_t span_at(const weir_pool2d_t* p, int64_t row, int64_t ow) {
  span_t s;
  s.image = row / p->out_h;
  int64_t top = (row - s.image * p->out_h) * p->stride_h - p->pad_top;
  int64_t left = ow * p->stride_w - p->pad_left;
  s.bottom = WEIR_MIN(top + p->window_h, p->in_h);
  s.right = WEIR_MIN(left + p->window_w, p->in_w);
  s.top = WEIR_MIN(WEIR_MAX(top, 0), s.bottom);
  s.left = WEIR_MIN(WEIR_MAX(left, 0), s.right);
  return s;
}

// Windows of 2 x 2 that share no pixel.
static bool has_separate_quads(const weir_pool2d_t* p) {
  return p->window_h == 2 && p->window_w == 2 && p->stride_h >= 2 && p->stride_w >= 2;
}

static inline bool is_quad(span_t s) { return s.bottom - s.top == 2 && s.right - s.left == 2; }

// Windows side by side, all whole, are all of the image.
static bool is_tiled(const weir_pool2d_t* p) {
  return p->stride_h == p->window_h && p->stride_w == p->window_w && p->pad_top == 0 &&
         p->pad_left == 0 && p->out_h * p->stride_h == p->in_h && p->out_w * p->stride_w == p->in_w;
}

// Room for where the maxima of one pixel are, and for themselves; an even number, so that both are
// aligned.
static void* row_alloc(job_t* job, size_t element) {
  size_t channels = (size_t)(job->pool->channels + job->pool->channels % 2);
  void* memory = weir_alloc_array(channels, element + sizeof(int32_t));
  if (!memory) atomic_store(&job->is_out_of_memory, true);
  return memory;
}

#define IS_NAN(x) ((x) != (x))
#define SUM(x, y) ((x) + (y))
#define T float
#define NAME(x) x##_float
#define LOWEST -FLT_MAX
#include "kernel/pool/pool2d_max.inc"
#define T double
#define NAME(x) x##_double
#define LOWEST -DBL_MAX
#include "kernel/pool/pool2d_max.inc"
#undef IS_NAN
#undef SUM
#define IS_NAN(x) false
#define SUM(x, y) ((uint64_t)(x) + (uint64_t)(y))  // integers wrap
#define T int32_t
#define NAME(x) x##_int32
#define LOWEST INT32_MIN
#include "kernel/pool/pool2d_max.inc"
#define T int64_t
#define NAME(x) x##_int64
#define LOWEST INT64_MIN
#include "kernel/pool/pool2d_max.inc"
#define T uint32_t
#define NAME(x) x##_uint32
#define LOWEST 0
#include "kernel/pool/pool2d_max.inc"
#define T uint64_t
#define NAME(x) x##_uint64
#define LOWEST 0
#include "kernel/pool/pool2d_max.inc"
#define T int16_t
#define NAME(x) x##_int16
#define LOWEST INT16_MIN
#include "kernel/pool/pool2d_max.inc"
#define T uint16_t
#define NAME(x) x##_uint16
#define LOWEST 0
#include "kernel/pool/pool2d_max.inc"
#define T int8_t
#define NAME(x) x##_int8
#define LOWEST INT8_MIN
#include "kernel/pool/pool2d_max.inc"
#define T uint8_t
#define NAME(x) x##_uint8
#define LOWEST 0
#include "kernel/pool/pool2d_max.inc"
#undef IS_NAN
#undef SUM
#define T float
#define NAME(x) x##_float
#include "kernel/pool/pool2d_avg.inc"
#define T double
#define NAME(x) x##_double
#include "kernel/pool/pool2d_avg.inc"

typedef struct type_t {
  weir_range_fn_t max, argmax, grad, grad_grad;
} type_t;

static const type_t* type_of(weir_dtype_t dtype) {
#define ROW(DTYPE, t) \
  [WEIR_DTYPE_##DTYPE] = { max_rows_##t, argmax_rows_##t, grad_images_##t, grad_grad_rows_##t }
  static const type_t types[WEIR_DTYPE_COUNT] = {
      ROW(FLOAT, float),   ROW(DOUBLE, double), ROW(INT32, int32), ROW(INT64, int64),
      ROW(UINT32, uint32), ROW(UINT64, uint64), ROW(INT16, int16), ROW(UINT16, uint16),
      ROW(INT8, int8),     ROW(UINT8, uint8)};
#undef ROW
  WEIR_CHECK(types[dtype].max);
  return &types[dtype];
}

static double row_cost_ns(const weir_pool2d_t* p) {
  return 0.25 * (double)(p->out_w * p->channels) * (double)(p->window_h * p->window_w);
}

static void for_rows(weir_pool_t* pool, const weir_pool2d_t* p, weir_range_fn_t fn, job_t* job) {
  if (p->batch * p->out_h * p->out_w * p->channels == 0) return;
  weir_pool_for(pool, p->batch * p->out_h, row_cost_ns(p), fn, job);
}

static void for_images(weir_pool_t* pool, const weir_pool2d_t* p, weir_range_fn_t fn, job_t* job) {
  if (p->batch * p->in_h * p->in_w * p->channels == 0) return;
  weir_pool_for(pool, p->batch, 2 * row_cost_ns(p) * (double)p->out_h, fn, job);
}

void weir_max_pool2d(weir_pool_t* pool, weir_dtype_t dtype, const weir_pool2d_t* p, const void* in,
                     void* out) {
  job_t job = {.pool = p, .in = in, .out = out};
  for_rows(pool, p, type_of(dtype)->max, &job);
}

weir_status_t* weir_max_pool2d_argmax(weir_pool_t* pool, weir_dtype_t dtype, const weir_pool2d_t* p,
                                      const void* in, void* out, int64_t* argmax) {
  job_t job = {.pool = p, .in = in, .out = out, .argmax = argmax};
  for_rows(pool, p, type_of(dtype)->argmax, &job);
  return atomic_load(&job.is_out_of_memory) ? weir_out_of_memory() : NULL;
}

weir_status_t* weir_max_pool2d_grad(weir_pool_t* pool, weir_dtype_t dtype, const weir_pool2d_t* p,
                                    const void* in, const void* dy, void* dx) {
  job_t job = {.pool = p, .in = in, .grad = dy, .out = dx};
  for_images(pool, p, type_of(dtype)->grad, &job);
  return atomic_load(&job.is_out_of_memory) ? weir_out_of_memory() : NULL;
}

void weir_max_pool2d_grad_grad(weir_pool_t* pool, weir_dtype_t dtype, const weir_pool2d_t* p,
                               const void* in, const void* out, const void* grad, void* ddy) {
  job_t job = {.pool = p, .in = in, .top = out, .grad = grad, .out = ddy};
  for_rows(pool, p, type_of(dtype)->grad_grad, &job);
}

void weir_avg_pool2d(weir_pool_t* pool, weir_dtype_t dtype, const weir_pool2d_t* p, const void* in,
                     void* out) {
  job_t job = {.pool = p, .in = in, .out = out};
  for_rows(pool, p, dtype == WEIR_DTYPE_DOUBLE ? avg_rows_double : avg_rows_float, &job);
}

void weir_avg_pool2d_grad(weir_pool_t* pool, weir_dtype_t dtype, const weir_pool2d_t* p,
                          const void* dy, void* dx) {
  job_t job = {.pool = p, .grad = dy, .out = dx};
  for_images(pool, p, dtype == WEIR_DTYPE_DOUBLE ? avg_grad_images_double : avg_grad_images_float,
             &job);
}
