// random_draw.c — Gamma and Poisson draws by rejection.
#include "kernel/random/random_draw.h"

#include <float.h>

#include "kernel/elementwise/special.h"
#include "tensor/cast.h"
#include "tensor/numeric.h"

// Pairs of doubles from the generator, handed out last one first.
typedef struct pairs_t {
  double values[2];
  int left;
} pairs_t;

static double next_uniform(weir_philox_t* philox, pairs_t* pairs) {
  if (pairs->left == 0) {
    uint32_t words[4];
    weir_philox_next(philox, words);
    pairs->values[0] = weir_random_to_double(words[0], words[1]);
    pairs->values[1] = weir_random_to_double(words[2], words[3]);
    pairs->left = 2;
  }
  return pairs->values[--pairs->left];
}

static double next_normal(weir_philox_t* philox, pairs_t* pairs) {
  if (pairs->left == 0) {
    weir_random_fill(NULL,
                     &(weir_random_spec_t){.kind = WEIR_RANDOM_NORMAL, .dtype = WEIR_DTYPE_DOUBLE},
                     *philox, pairs->values, 2);
    weir_philox_skip(philox, 1);
    pairs->left = 2;
  }
  return pairs->values[--pairs->left];
}

static void store(const weir_draw_t* draw, int64_t at, double value) {
  switch (draw->dtype) {
    case WEIR_DTYPE_DOUBLE: ((double*)draw->out)[at] = value; return;
    case WEIR_DTYPE_FLOAT: ((float*)draw->out)[at] = (float)value; return;
    case WEIR_DTYPE_HALF:
      ((weir_half_t*)draw->out)[at] = weir_half_from_float((float)value);
      return;
    case WEIR_DTYPE_BFLOAT16:
      ((weir_bfloat16_t*)draw->out)[at] = weir_bfloat16_from_float((float)value);
      return;
    case WEIR_DTYPE_INT32: ((int32_t*)draw->out)[at] = (int32_t)value; return;
    default: ((int64_t*)draw->out)[at] = (int64_t)value; return;
  }
}

// What one draw needs to know of its parameter.
typedef double (*draw_fn_t)(const weir_draw_t* draw, double parameter, weir_philox_t* philox);
typedef struct draw_job_t {
  const weir_draw_t* draw;
  draw_fn_t fn;
} draw_job_t;

static void draw_range(void* arg, int64_t begin, int64_t end) {
  const draw_job_t* job = arg;
  const weir_draw_t* draw = job->draw;
  const size_t size = weir_dtype_size(draw->parameter_type);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t which = i / draw->samples, sample = i % draw->samples;
    double parameter = 0;
    weir_element_to_double(draw->parameter_type,
                           (const char*)draw->parameters + (size_t)which * size, &parameter);
    weir_philox_t philox = draw->philox;
    weir_philox_skip(&philox, (uint64_t)i * WEIR_RANDOM_GROUPS_PER_OUTPUT);
    store(draw, sample * draw->count + which, job->fn(draw, parameter, &philox));
  }
}

static void draw_all(weir_pool_t* pool, const weir_draw_t* draw, draw_fn_t fn, double cost) {
  draw_job_t job = {.draw = draw, .fn = fn};
  weir_pool_for(pool, draw->count * draw->samples, cost, draw_range, &job);
}

// Marsaglia and Tsang's method. Shapes below 1 are drawn one higher and scaled down by a power of
// a uniform number.
static double draw_gamma(const weir_draw_t* draw, double alpha, weir_philox_t* philox) {
  (void)draw;
  pairs_t uniform = {{0}, 0}, normal = {{0}, 0};
  if (isnan(alpha)) return alpha;  // nothing would ever be accepted
  if (alpha == 1) return -log1p(-next_uniform(philox, &uniform));
  const bool is_small = alpha < 1;
  const double d = alpha + (is_small ? 2.0 / 3 : -1.0 / 3);
  const double c = 1.0 / 3 / sqrt(d);
  if (!(d > 0)) return NAN;  // a shape below -2/3: TensorFlow never returns from such
  for (;;) {
    const double x = next_normal(philox, &normal);
    double v = WEIR_MUL_ADD(c, x, 1.0);
    if (v <= 0) continue;
    v = v * v * v;
    const double u = next_uniform(philox, &uniform);
    if (u < WEIR_MUL_ADD(-0.0331 * (x * x), x * x, 1.0) ||
        log(u) < WEIR_MUL_ADD(0.5 * x, x, d * (1 - v + log(v)))) {
      const double result = d * v;
      return is_small ? result * pow(next_uniform(philox, &uniform), 1 / alpha) : result;
    }
  }
}

void weir_random_gamma(weir_pool_t* pool, const weir_draw_t* draw) {
  draw_all(pool, draw, draw_gamma, 150.0);
}

static double largest(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_HALF: return 65504.0;
    case WEIR_DTYPE_FLOAT: return (double)FLT_MAX;
    case WEIR_DTYPE_DOUBLE: return DBL_MAX;
    case WEIR_DTYPE_INT32: return (double)INT32_MAX;
    default: return (double)INT64_MAX;
  }
}

// Knuth's method: as many uniform numbers as their product stays above exp(-rate).
static double draw_few(double rate, weir_philox_t* philox, double limit) {
  pairs_t uniform = {{0}, 0};
  const double floor_product = exp(-rate);
  double product = 1;
  for (double x = 0;; x += 1) {
    product = product * next_uniform(philox, &uniform);
    if (product <= floor_product && x <= limit) return x;
  }
}

// Hörmann's transformed rejection.
static double draw_many(double rate, weir_philox_t* philox, double limit) {
  pairs_t uniform = {{0}, 0};
  const double log_rate = log(rate);
  const double b = WEIR_MUL_ADD(2.53, sqrt(rate), 0.931);
  const double a = WEIR_MUL_ADD(0.02483, b, -0.059);
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  for (;;) {
    const double u = next_uniform(philox, &uniform) - 0.5;
    const double v = next_uniform(philox, &uniform);
    const double shifted = 0.5 - fabs(u);
    const double k = floor(WEIR_MUL_ADD(2 * a / shifted + b, u, rate) + 0.43);
    if (k > limit) continue;
    if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (shifted < 0.013 && v > shifted)) continue;
    const double s = log(v * inverse_alpha / (a / (shifted * shifted) + b));
    const double t = WEIR_MUL_ADD(k, log_rate, -rate) - weir_lgamma(k + 1);
    if (s <= t) return k;
  }
}

static double draw_poisson(const weir_draw_t* draw, double rate, weir_philox_t* philox) {
  const double limit = largest(draw->dtype);
  if (rate < 10) return draw_few(rate, philox, limit);
  if (isinf(rate)) {  // integers have no infinity: zero, as in TensorFlow
    return weir_dtype_is_integer(draw->dtype) ? 0 : rate;
  }
  return draw_many(rate, philox, limit);
}

void weir_random_poisson(weir_pool_t* pool, const weir_draw_t* draw) {
  draw_all(pool, draw, draw_poisson, 200.0);
}
