// incomplete.c — Incomplete gamma and beta functions by series and continued fractions, and the
// derivative of gamma draws.
#include <float.h>
#include <math.h>

#include "kernel/elementwise/special.h"

enum { MAX_TERMS = 5000 };

// x^a e^-x / gamma(a).
static double gamma_factor(double a, double x) { return exp(a * log(x) - x - weir_lgamma(a)); }

// P(a, x) by its power series, for x up to about a.
static double lower_gamma(double a, double x) {
  double term = 1 / a, sum = term;
  for (int k = 1; k < MAX_TERMS && term > sum * (DBL_EPSILON / 4); ++k) {
    term *= x / (a + k);
    sum += term;
  }
  return gamma_factor(a, x) * sum;
}

// The value of b0 + a1 / (b1 + a2 / (b2 + ...)) so far, by Lentz's method, which goes from the
// front.
typedef struct fraction_t {
  double value, c, d;
} fraction_t;

static double not_zero(double x) { return x == 0 ? DBL_MIN : x; }

// Takes a and b of the next level; returns whether the value still changes.
static bool next_level(fraction_t* f, double a, double b) {
  f->d = 1 / not_zero(b + a * f->d);
  f->c = not_zero(b + a / f->c);
  const double change = f->c * f->d;
  f->value *= change;
  return fabs(change - 1) > DBL_EPSILON;
}

// Q(a, x) by its continued fraction, for x from about a on.
static double upper_gamma(double a, double x) {
  fraction_t f = {.value = not_zero(x + 1 - a), .c = not_zero(x + 1 - a), .d = 0};
  for (int k = 1; k < MAX_TERMS && next_level(&f, k * (a - k), x + 1 - a + 2 * k); ++k) {
  }
  return gamma_factor(a, x) / f.value;
}

double weir_igamma(double a, double x) {
  if (x == 0) return 0;
  if (!(a > 0) || !(x >= 0)) return NAN;
  if (isinf(a)) return 0;
  if (isinf(x)) return 1;
  return x > 1 && x > a ? 1 - upper_gamma(a, x) : lower_gamma(a, x);
}

double weir_igammac(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return NAN;
  if (isinf(x)) return 0;
  if (isinf(a) || x == 0) return 1;
  return x > 1 && x > a ? upper_gamma(a, x) : 1 - lower_gamma(a, x);
}

// ---- its derivative by a, over the density: -(dP(a, x)/da) / p(a, x) ----

// Terms that are summed up at most: what TensorFlow allows, for the sake of equal results where
// more would be needed.
#define MAX_TERMS_FLOAT 200
#define MAX_TERMS_DOUBLE 500

// By the series of the lower incomplete gamma function: terms c and their sum, each with its
// derivative by a.
static double derivative_series(double a, double x, int max_terms) {
  double r = a, c = 1, sum = 1, dc = 0, dsum = 0;
  for (int i = 0; i < max_terms; ++i) {
    r += 1;
    const double term = x / r;
    dc = term * dc - x / (r * r) * c;
    dsum += dc;
    c *= term;
    sum += c;
    if (fabs(dc) <= DBL_EPSILON / 2 * fabs(dsum)) break;
  }
  return -(dsum + sum * (log(x) - weir_digamma(a + 1))) * x / a;
}

// A numerator or denominator of the continued fraction: the last two convergents and their
// derivatives by a.
typedef struct convergent_t {
  double before, last;
  double d_before, d_last;
} convergent_t;

static void convergent_next(convergent_t* p, double z, double y, double c) {
  const double next = p->last * z - p->before * y * c;
  const double d_next = p->d_last * z - p->last - p->d_before * y * c + p->before * c;
  *p = (convergent_t){.before = p->last, .last = next, .d_before = p->d_last, .d_last = d_next};
}

static void convergent_scale(convergent_t* p, double factor) {
  p->before *= factor;
  p->last *= factor;
  p->d_before *= factor;
  p->d_last *= factor;
}

// By the continued fraction of the upper one.
static double derivative_fraction(double a, double x, int max_terms) {
  double y = 1 - a, z = x + y + 1;
  convergent_t p = {.before = 1, .last = x + 1, .d_before = 0, .d_last = 0};
  convergent_t q = {.before = x, .last = z * x, .d_before = 0, .d_last = -x};
  double value = p.last / q.last, slope = (p.d_last - value * q.d_last) / q.last;
  for (int i = 1; i <= max_terms; ++i) {
    y += 1;
    z += 2;
    convergent_next(&p, z, y, (double)i);
    convergent_next(&q, z, y, (double)i);
    if (q.last != 0) {
      const double before = slope;
      value = p.last / q.last;
      slope = (p.d_last - value * q.d_last) / q.last;
      if (fabs(slope - before) <= DBL_EPSILON / 2) break;
    }
    if (fabs(p.last) > 0x1p52) {
      convergent_scale(&p, 0x1p-52);
      convergent_scale(&q, 0x1p-52);
    }
  }
  return (slope + value * (log(x) - weir_digamma(a))) * x;
}

#define MAX_LOG_FLOAT 88.72283905206835
#define MAX_LOG_DOUBLE 709.782712893383973096

double weir_gamma_sample_derivative(double alpha, double sample, bool is_float) {
  if (sample == 0) return 0;
  if (isnan(alpha) || isnan(sample) || sample < 0 || alpha <= 0) return NAN;
  const double log_density = alpha * log(sample) - sample - weir_lgamma(alpha);
  if (!(log_density >= -(is_float ? MAX_LOG_FLOAT : MAX_LOG_DOUBLE))) return 0;
  const int max_terms = is_float ? MAX_TERMS_FLOAT : MAX_TERMS_DOUBLE;
  return sample > 1 && sample > alpha ? derivative_fraction(alpha, sample, max_terms)
                                      : derivative_series(alpha, sample, max_terms);
}

double weir_igamma_grad_a(double a, double x, bool is_float) {
  if (x == 0) return 0;
  if (!(a > 0) || !(x >= 0)) return NAN;
  if (isinf(a) || isinf(x)) return 0;
  return -weir_gamma_sample_derivative(a, x, is_float) * gamma_factor(a, x) / x;
}

// ---- the regularised beta function ----

// The part beside x^a (1 - x)^b / (a B(a, b)), for x below about a / (a + b).
static double beta_fraction(double a, double b, double x) {
  fraction_t f = {.value = 1, .c = 1, .d = 0};
  bool changes = next_level(&f, -(a + b) * x / (a + 1), 1);
  for (int k = 1; k < MAX_TERMS && changes; ++k) {
    changes = next_level(&f, k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k)), 1);
    changes |= next_level(&f, -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1)), 1);
  }
  return 1 / f.value;
}

double weir_betainc(double a, double b, double x) {
  if (!(a > 0) || !(b > 0) || !(x >= 0 && x <= 1)) return a != a && (x == 0 || x == 1) ? x : NAN;
  if (x == 0 || x == 1) return x;
  if (isinf(a) || isinf(b)) return NAN;
  const double factor =
      exp(a * log(x) + b * log1p(-x) + weir_lgamma(a + b) - weir_lgamma(a) - weir_lgamma(b));
  if (x * (a + b + 2) < a + 1) return factor * beta_fraction(a, b, x) / a;
  return 1 - factor * beta_fraction(b, a, 1 - x) / b;
}
