// vmath_erf.h — The error function, its complement and their inverses, as vmath.h's functions.
// Approximations of least maximum relative error. Thread-safe.
#ifndef WEIR_KERNEL_ELEMENTWISE_VMATH_ERF_H_
#define WEIR_KERNEL_ELEMENTWISE_VMATH_ERF_H_

#include "kernel/elementwise/vmath.h"

// Both polynomials by pairs of terms: half as long a chain to wait for.
WEIR_INLINE float weir_vm_erf(float x) {
  float a = fabsf(x);
  float x2 = x * x;
  float x4 = x2 * x2;
  float p = WEIR_FMAF(-8.000661037e-04f, x2, 5.187392235e-03f);
  p = WEIR_FMAF(7.818752056e-05f, x4, p);
  p = WEIR_FMAF(p, x4, WEIR_FMAF(-2.685342170e-02f, x2, 1.128357947e-01f));
  p = WEIR_FMAF(p, x4, WEIR_FMAF(-3.761262596e-01f, x2, 1.283791661e-01f));
  // From 1 to where the result rounds to 1, the eighth root of erfc is nearly a line.
  float t = weir_vm_select_(a < 3.93f, a, 3.93f) - 1.0f;
  float t2 = t * t;
  float q = WEIR_FMAF(1.447156974e-04f, t, -1.547905151e-03f);
  q = WEIR_FMAF(q, t2, WEIR_FMAF(2.788685961e-03f, t, 1.865528524e-02f));
  q = WEIR_FMAF(q, t2, WEIR_FMAF(-4.044947028e-02f, t, -2.617791295e-01f));
  q = WEIR_FMAF(q, t, 7.935801744e-01f);
  q *= q;
  q *= q;
  float large = 1.0f - q * q;
  return weir_vm_select_(a >= 1.0f, copysignf(large, x), WEIR_FMAF(p, x, x));
}

// exp(-x^2) times a rational function, for |x|. In double: ten roundings of floats would show.
WEIR_INLINE float weir_vm_erfc(float x) {
  float a = weir_vm_clamp_(fabsf(x), 0.0f, 10.1f);  // beyond, less than any float
  double b = (double)a;
  double p = 3.276322232173e-02 * b + 2.290606167259e-01;
  p = p * b + 7.312727667920e-01;
  p = p * b + 1.238094569535e+00;
  p = p * b + 1.000000005691e+00;
  double q = 5.807059516188e-02 * b + 4.060259335027e-01;
  q = q * b + 1.324749906215e+00;
  q = q * b + 2.401543797732e+00;
  q = q * b + 2.366474310911e+00;
  q = q * b + 1.000000000000e+00;
  // The square in two parts, the first exact: a rounding of it would be one of the exponent.
  float high = weir_float_from_bits(weir_float_bits(a) & 0xfffff000u);
  float r;
  int32_t n = weir_vm_split_(-high * high, &r);
  r -= (a - high) * (a + high);
  float e = WEIR_FMAF(weir_vm_exp_poly_(r), r * r, r);  // exp(r) - 1
  float y = (float)((1.0 + (double)e) * p / q);
  int32_t half = n >> 1;
  y = y * weir_vm_pow2_(half) * weir_vm_pow2_(n - half);
  y = weir_vm_select_(x < 0.0f, 2.0f - y, y);
  return x == x ? y : x;
}

// erfinv(x) / x, given w = -log(1 - x^2) up to 16. In double, as are its users: the many roundings
// of a rational function would otherwise show.
WEIR_INLINE double weir_vm_erfinv_ratio_(double w) {
  double p = 2.316994687e-05 * w + 4.834105785e-04;
  p = p * w + 6.096908823e-03;
  p = p * w + 3.101518378e-02;
  p = p * w + 2.320134789e-01;
  double q = 1.291519879e-06 * w + 1.794011478e-04;
  q = q * w + 1.870542997e-03;
  q = q * w + 3.217544779e-02;
  q = q * w + 8.389472961e-02;
  q = q * w + 1.0;
  return w * p / q + 0.886226925452758;
}

// The same for w from 16 to 104.
WEIR_INLINE double weir_vm_erfinv_tail_ratio_(double w) {
  double s = sqrt(w);
  double p = -4.297700070e-04 * s + 3.098159283e-02;
  p = p * s + 1.280470848e+00;
  p = p * s - 1.329224706e+00;
  double q = -1.021843195e+00 * s - 2.811235189e+00;
  q = q * s + 1.0;
  return p / q + s;
}

WEIR_INLINE float weir_vm_erfinv(float x) {
  float a = fabsf(x);
  float w = -weir_vm_log((1.0f - a) * (1.0f + a));
  float y = (float)((double)x * weir_vm_erfinv_ratio_((double)w));
  return a == 1.0f ? x * INFINITY : y;
}

// sqrt(2) erfinv(2 p - 1), from the nearer tail: that of 2 p - 1 is rounded away.
WEIR_INLINE float weir_vm_ndtri(float p) {
  float tail = weir_vm_select_(p < 0.5f, p, 1.0f - p);
  double w = (double)-weir_vm_log(4.0f * tail * (1.0f - tail));
  double ratio = w > 16.0 ? weir_vm_erfinv_tail_ratio_(w) : weir_vm_erfinv_ratio_(w);
  float y = (float)(((double)p - 0.5) * 2.82842712474619 * ratio);
  return tail == 0.0f ? (p - 0.5f) * INFINITY : y;
}

#endif  // WEIR_KERNEL_ELEMENTWISE_VMATH_ERF_H_
