// fractional.c — Fractional pooling: the sequences, and loops over windows.
#include "kernel/pool/fractional.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernel/random/random.h"

// ---- sequences ----

// Starts that are ceil(alpha * (i + u)) of one random u: sizes differ by 1 at most.
static void draw_pseudo_random(weir_philox_t* philox, int64_t in, int64_t out, int64_t* starts) {
  const double alpha = (double)in / (double)out;
  const int64_t k = in / out;
  const double most =
      fmin((double)(k + 2) / alpha - 1, (double)(in + 1 - k) / alpha - (double)(out - 1));
  weir_random_words_t words = weir_random_words(*philox);
  const double u = weir_random_double(&words) * most;
  weir_philox_skip(philox, 1);
  for (int64_t i = 1; i < out; ++i) {
    const int64_t start = (int64_t)ceil(alpha * ((double)i + u)) - 1;
    starts[i] = WEIR_MIN(start, in - (out - i));  // whatever rounding does, no window is empty
  }
}

// Sizes of which the right number is larger by 1, in random order.
static void draw_random(weir_philox_t* philox, int64_t in, int64_t out, int64_t* starts) {
  int64_t* sizes = starts + 1;
  for (int64_t i = 0; i < out; ++i) sizes[i] = in / out + (i < in % out);
  weir_random_words_t words = weir_random_words(*philox);
  for (int64_t i = 0; i + 1 < out; ++i) {
    int64_t other = i + weir_random_word(&words) % (uint32_t)(out - i);
    int64_t size = sizes[i];
    sizes[i] = sizes[other];
    sizes[other] = size;
  }
  weir_philox_skip(philox, (uint64_t)(out + 3) / 4);
  for (int64_t i = 1; i < out; ++i) sizes[i] += sizes[i - 1];
}

void weir_fractional_draw(weir_philox_t* philox, int64_t in, int64_t out, bool is_pseudo_random,
                          int64_t* starts) {
  if (is_pseudo_random) draw_pseudo_random(philox, in, out, starts);
  else draw_random(philox, in, out, starts);
  starts[0] = 0;
  starts[out] = in;
}

// ---- windows ----

typedef struct job_t {
  const weir_fractional_t* f;
  const void* in;
  void* out;
} job_t;

typedef struct span_t {
  int64_t image, top, bottom, left, right;
} span_t;

// |row| counts rows of the output over all images.
static void find_span(const weir_fractional_t* f, int64_t row, int64_t ow, span_t* s) {
  s->image = row / f->out_h;
  weir_fractional_span(f, f->rows, row % f->out_h, f->in_h, &s->top, &s->bottom);
  weir_fractional_span(f, f->columns, ow, f->in_w, &s->left, &s->right);
}

// Walks over the pixels of a span: |at| is the offset of the pixel.
#define FOR_SPAN(f, s, at)                                                             \
  for (int64_t h_ = (s).top; h_ < (s).bottom; ++h_)                                    \
    for (int64_t w_ = (s).left,                                                        \
                 at = (((s).image * (f)->in_h + h_) * (f)->in_w + w_) * (f)->channels; \
         w_ < (s).right; ++w_, at += (f)->channels)

#define SUM(x, y) ((x) + (y))
#define T float
#define NAME(x) x##_float
#define LOWEST -FLT_MAX
#define CONVERT(x) (float)(x)
#include "kernel/pool/fractional.inc"
#define T double
#define NAME(x) x##_double
#define LOWEST -DBL_MAX
#define CONVERT(x) (x)
#include "kernel/pool/fractional.inc"
#undef SUM
#define SUM(x, y) ((uint64_t)(x) + (uint64_t)(y))  // integers wrap
#define T int32_t
#define NAME(x) x##_int32
#define LOWEST INT32_MIN
// What is out of range is the nearest number that is in it.
#define CONVERT(x) (int32_t) fmax(fmin(x, INT32_MAX), INT32_MIN)
#include "kernel/pool/fractional.inc"
#define T int64_t
#define NAME(x) x##_int64
#define LOWEST INT64_MIN
#define CONVERT(x) ((x) >= 0x1p63 ? INT64_MAX : (x) <= -0x1p63 ? INT64_MIN : (int64_t)(x))
#include "kernel/pool/fractional.inc"
#undef SUM

typedef struct type_t {
  weir_range_fn_t max, avg;
  bool (*argmax)(const weir_fractional_t* f, const void* in, const void* out, int64_t* argmax);
  void (*scatter)(const int64_t* argmax, int64_t count, const void* dy, void* dx);
  void (*spread)(const void* dy, int64_t from, int64_t channels, double count, double* to);
  void (*convert)(const double* sums, int64_t count, void* dx);
} type_t;

static const type_t* type_of(weir_dtype_t dtype) {
#define ROW(DTYPE, t)      \
  [WEIR_DTYPE_##DTYPE] = { \
    max_rows_##t,          \
    avg_rows_##t,          \
    argmax_##t,            \
    scatter_##t,           \
    spread_##t,            \
    convert_##t            \
  }
  static const type_t types[WEIR_DTYPE_COUNT] = {ROW(FLOAT, float), ROW(DOUBLE, double),
                                                 ROW(INT32, int32), ROW(INT64, int64)};
#undef ROW
  WEIR_CHECK(types[dtype].max);
  return &types[dtype];
}

static void for_rows(weir_pool_t* pool, const weir_fractional_t* f, weir_range_fn_t fn,
                     const void* in, void* out) {
  job_t job = {.f = f, .in = in, .out = out};
  if (f->batch * f->out_h == 0) return;
  double cost = 0.5 * (double)(f->in_w * f->channels) * (double)f->in_h / (double)f->out_h;
  weir_pool_for(pool, f->batch * f->out_h, cost, fn, &job);
}

void weir_fractional_max(weir_pool_t* pool, weir_dtype_t dtype, const weir_fractional_t* f,
                         const void* in, void* out) {
  for_rows(pool, f, type_of(dtype)->max, in, out);
}

void weir_fractional_avg(weir_pool_t* pool, weir_dtype_t dtype, const weir_fractional_t* f,
                         const void* in, void* out) {
  for_rows(pool, f, type_of(dtype)->avg, in, out);
}

bool weir_fractional_argmax(weir_dtype_t dtype, const weir_fractional_t* f, const void* in,
                            const void* out, int64_t* argmax) {
  return type_of(dtype)->argmax(f, in, out, argmax);
}

void weir_fractional_scatter(weir_dtype_t dtype, const int64_t* argmax, int64_t count,
                             const void* dy, void* dx) {
  type_of(dtype)->scatter(argmax, count, dy, dx);
}

void weir_fractional_spread(weir_dtype_t dtype, const weir_fractional_t* f, int64_t batch,
                            int64_t channels, const void* dy, double* sums) {
  const type_t* type = type_of(dtype);
  span_t s;
  for (int64_t row = 0; row < batch * f->out_h; ++row) {
    for (int64_t ow = 0; ow < f->out_w; ++ow) {
      find_span(f, row, ow, &s);
      const double count = (double)(s.bottom - s.top) * (double)(s.right - s.left);
      FOR_SPAN(f, s, at) {
        type->spread(dy, (row * f->out_w + ow) * channels, channels, count, sums + at);
      }
    }
  }
}

void weir_fractional_convert(weir_dtype_t dtype, const double* sums, int64_t count, void* dx) {
  type_of(dtype)->convert(sums, count, dx);
}
