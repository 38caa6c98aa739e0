// integrals.c — Functions that are integrals: Dawson's, the exponential one, Fresnel's, the
// dilogarithm; and the modified Bessel functions of the second kind.
#include <float.h>
#include <math.h>

#include "kernel/elementwise/special.h"

#define PI 3.14159265358979323846
#define EULER 0.57721566490153286061

// Sums of positive terms near 0, an asymptotic series far from it.
double weir_dawsn(double x) {
  const double a = fabs(x), square = x * x;
  if (a < 6.5) {
    double term = x, sum = x;  // of the integral of exp(t^2): x^(2k + 1) / (k! (2k + 1))
    for (int k = 1; fabs(term) > fabs(sum) * (DBL_EPSILON / 4); ++k) {
      term *= square / k;
      sum += term / (2 * k + 1);
    }
    return exp(-square) * sum;
  }
  double term = 1, sum = 1;
  for (int k = 1; k < 40 && fabs(term) > DBL_EPSILON / 4; ++k) {
    term *= (2 * k - 1) / (2 * square);
    sum += term;
  }
  return sum / (2 * x);
}

double weir_expint(double x) {
  if (!(x >= 0) || isinf(x)) return NAN;
  if (x == 0) return -INFINITY;
  double term = 1, sum = 0;
  if (x < 40) {
    for (int k = 1; k < 200; ++k) {
      term *= x / k;
      sum += term / k;
      if (term < sum * DBL_EPSILON) break;
    }
    return EULER + log(x) + sum;
  }
  sum = 1;
  for (int k = 1; k < x && term > DBL_EPSILON / 4; ++k) {
    term *= k / x;
    sum += term;
  }
  return exp(x) / x * sum;
}

// ---- Fresnel's integrals ----

// C + i S = sum (i pi x^2 / 2)^k x / (k! (2k + 1)).
static weir_complex128_t fresnel_near(double x) {
  const double t = PI / 2 * x * x;
  double part[2] = {x, 0}, term = x;
  for (int k = 1; k < 100; ++k) {
    term *= t / k;
    part[k & 1] += (k & 2 ? -1 : 1) * term / (2 * k + 1);
    if (term < DBL_MIN || (k > t && term < DBL_EPSILON * 1e-3)) break;
  }
  return __builtin_complex(part[0], part[1]);
}

// (1 + i) / 2 (1 - e^(-z^2) z w) with z = sqrt(pi) / 2 (1 - i) x and w by a continued fraction,
// from the back.
static weir_complex128_t fresnel_far(double x) {
  const double t = PI / 2 * x * x;
  // 2 z^2 = -2 i t
  weir_complex128_t f = 0;
  for (int k = 60; k >= 1; --k) {
    f = (2.0 * k - 1) * (2.0 * k) / (__builtin_complex(4.0 * k + 1, -2 * t) - f);
  }
  const weir_complex128_t w = 1 / (__builtin_complex(1.0, -2 * t) - f);
  // 2 z / sqrt(pi) = (1 - i) x; e^(-z^2) = e^(i t), with the angle reduced by hand: x^2 / 4 turns.
  const double turn = fmod(x * x, 4) * (PI / 2);
  const weir_complex128_t erfc =
      __builtin_complex(cos(turn), sin(turn)) * __builtin_complex(x, -x) * w;
  return __builtin_complex(0.5, 0.5) * (1 - erfc);
}

static weir_complex128_t fresnel(double x) {
  const double a = fabs(x);
  if (a != a) return __builtin_complex(x, x);
  if (a > 1e8) return __builtin_complex(copysign(0.5, x), copysign(0.5, x));
  const weir_complex128_t y = a < 2 ? fresnel_near(a) : fresnel_far(a);
  return x < 0 ? -y : y;
}

double weir_fresnel_cos(double x) { return creal(fresnel(x)); }
double weir_fresnel_sin(double x) { return cimag(fresnel(x)); }

// ---- the dilogarithm ----

// sum y^k / k^2, for |y| up to 2/3.
static double dilogarithm_series(double y) {
  double power = y, sum = y;
  for (int k = 2; k < 120 && fabs(power) > DBL_EPSILON * 1e-3; ++k) {
    power *= y;
    sum += power / ((double)k * k);
  }
  return sum;
}

// Li2(1 - x), by the identities that bring the argument near 0.
double weir_spence(double x) {
  if (!(x >= 0) || isinf(x)) return NAN;
  if (x == 0) return PI * PI / 6;
  if (x < 0.5) return PI * PI / 6 - log(x) * log1p(-x) - dilogarithm_series(x);
  if (x <= 1.5) return dilogarithm_series(1 - x);
  const double l = x <= 3 ? log(x) : log(x - 1);
  if (x <= 3) return -dilogarithm_series((x - 1) / x) - 0.5 * l * l;
  return -PI * PI / 6 - 0.5 * l * l - dilogarithm_series(1 / (1 - x));
}

// ---- modified Bessel functions of the second kind, times e^x ----

// By the power series, of which the logarithm is one factor.
static double bessel_k_near(int order, double x) {
  const double square = 0.25 * x * x, logarithm = log(0.5 * x);
  double term = 1, psi = -EULER, sum = 0;
  if (order == 0) {
    for (int k = 0; k < 30; ++k) {
      sum += term * (psi - logarithm);
      psi += 1.0 / (k + 1);
      term *= square / ((k + 1.0) * (k + 1.0));
    }
    return exp(x) * sum;
  }
  for (int k = 0; k < 30; ++k) {  // psi(k + 1) + psi(k + 2)
    sum += term * (logarithm - psi - 0.5 / (k + 1));
    psi += 1.0 / (k + 1);
    term *= square / ((k + 1.0) * (k + 2.0));
  }
  return exp(x) * (1 / x + 0.5 * x * sum);
}

// The integral of exp(x - x cosh t) cosh(order t) by the trapezoidal rule, whose error falls
// exponentially with the step, as the function is analytic and vanishes at both ends.
static double bessel_k_middle(int order, double x) {
  const double step = fmin(0.22, 0.65 / sqrt(x));
  double sum = 0.5;
  for (int k = 1; k < 200; ++k) {
    const double t = k * step, half = sinh(0.5 * t);
    const double value = exp(-2 * x * half * half) * (order == 0 ? 1 : cosh(t));
    sum += value;
    if (value < sum * 1e-18) break;
  }
  return step * sum;
}

static double bessel_k_far(int order, double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 60 && fabs(term) > 1e-17; ++k) {
    const int odd = 2 * k - 1;
    term *= (4 * order * order - odd * odd) / (8 * x * k);
    sum += term;
  }
  return sqrt(PI / (2 * x)) * sum;
}

double weir_bessel_ke(int order, double x) {
  if (x <= 0) return INFINITY;  // as in TensorFlow, also where it is not defined
  if (x <= 1) return bessel_k_near(order, x);
  return x <= 30 ? bessel_k_middle(order, x) : bessel_k_far(order, x);
}

double weir_bessel_k(int order, double x) {
  return isinf(x) && x > 0 ? 0 : weir_bessel_ke(order, x) * exp(-x);
}

double weir_bessel_j(int order, double x) { return isinf(x) ? NAN : order == 0 ? j0(x) : j1(x); }
double weir_bessel_y(int order, double x) {
  if (x <= 0) return -INFINITY;  // as in TensorFlow, also where it is not defined
  return isinf(x) ? NAN : order == 0 ? y0(x) : y1(x);
}
