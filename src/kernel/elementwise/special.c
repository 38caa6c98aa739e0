// special.c — Gamma functions and their kin by recurrence and asymptotic series, Bessel functions
// by power and asymptotic series, inverse error functions by rational guess and Newton's
// correction.
#include "kernel/elementwise/special.h"

#include <math.h>

#define PI 3.14159265358979323846

#define SPECIAL
#include "kernel/elementwise/gamma.inc"

double weir_lgamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

// Starting value for the lower tail, p <= 1/2: the rational approximation 26.2.23 of Abramowitz and
// Stegun.
static double ndtri_guess(double p) {
  double t = sqrt(-2 * log(p));
  double numerator = 2.515517 + t * (0.802853 + t * 0.010328);
  double denominator = 1 + t * (1.432788 + t * (0.189269 + t * 0.001308));
  return numerator / denominator - t;
}

double weir_ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0) return -INFINITY;
  if (p == 1) return INFINITY;
  bool is_upper = p > 0.5;
  double tail = is_upper ? 1 - p : p;
  double x = ndtri_guess(tail);
  // Halley's steps on Phi(x) = tail; three take the guess's 4.5e-4 below rounding.
  for (int i = 0; i < 3; ++i) {
    double error = 0.5 * erfc(-x * M_SQRT1_2) - tail;
    double step = error * sqrt(2 * PI) * exp(0.5 * x * x);
    x -= step / (1 + 0.5 * x * step);
  }
  return is_upper ? -x : x;
}

double weir_erfinv(double x) {
  double a = fabs(x);
  if (!(a <= 1)) return NAN;
  if (a == 1) return copysign(INFINITY, x);
  // erfinv(x) = ndtri((1 + x) / 2) / sqrt 2; near zero by the series, which keeps relative
  // accuracy.
  double y = a < 0.25 ? a * 0.886226925452758 * (1 + a * a * 0.261799387799149)
                      : weir_ndtri(0.5 * (1 - a)) * -M_SQRT1_2;
  for (int i = 0; i < 3; ++i) {
    double error = a < 0.5 ? erf(y) - a : (1 - a) - erfc(y);
    double step = error / (M_2_SQRTPI * exp(-y * y));
    y -= step / (1 + y * step);
  }
  return copysign(y, x);
}

// (x/2)^order sum (x^2/4)^k / (k! (k + order)!): no term is negative, so nothing cancels.
static double bessel_near(int order, double x) {
  double term = order == 0 ? 1 : 0.5 * x;
  double sum = term;
  for (int k = 1; term > sum * 1e-17; ++k) {
    term *= 0.25 * x * x / (k * (k + order));
    sum += term;
  }
  return exp(-x) * sum;
}

// 1 / sqrt(2 pi x) times Hankel's series, which diverges in the end, but beyond x = 30 not before
// its terms are below rounding.
static double bessel_far(int order, double x) {
  double term = 1;
  double sum = 1;
  for (int k = 1; fabs(term) > 1e-17; ++k) {
    int odd = 2 * k - 1;
    term *= (odd * odd - 4 * order * order) / (8 * x * k);
    sum += term;
  }
  return sum / sqrt(2 * PI * x);
}

double weir_bessel_ie(int order, double x) {
  double a = fabs(x);
  double y = a > 30 ? bessel_far(order, a) : bessel_near(order, a);
  return order == 1 && x < 0 ? -y : y;
}

weir_complex128_t weir_cexpm1_complex128(weir_complex128_t z) {
  double x = creal(z);
  double y = cimag(z);
  if (y == 0) return __builtin_complex(expm1(x), y);
  double s = sin(0.5 * y);  // cos(y) - 1 = -2 sin^2(y/2), without cancellation
  return __builtin_complex(expm1(x) * cos(y) - 2 * s * s, exp(x) * sin(y));
}
weir_complex64_t weir_cexpm1_complex64(weir_complex64_t z) {
  return (weir_complex64_t)weir_cexpm1_complex128((weir_complex128_t)z);
}

weir_complex128_t weir_clog1p_complex128(weir_complex128_t z) {
  double x = creal(z);
  double y = cimag(z);
  if (hypot(x, y) > 0.5) return clog(1 + z);
  return __builtin_complex(0.5 * log1p(x * (2 + x) + y * y), atan2(y, 1 + x));
}
weir_complex64_t weir_clog1p_complex64(weir_complex64_t z) {
  return (weir_complex64_t)weir_clog1p_complex128((weir_complex128_t)z);
}
