// vmath.h — Float functions the compiler can vectorise: no branches, no calls, no tables.
//
// The inline forms are for loops of other kernels; the array forms are compiled for several
// instruction sets. All are within about 2 ULP of the exact result, subnormal and infinite values
// included; NaN in, NaN out. Thread-safe.
#ifndef WEIR_KERNEL_VMATH_H_
#define WEIR_KERNEL_VMATH_H_

#include <math.h>

#include "kernel/simd.h"
#include "tensor/numeric.h"

// ---- array forms; |y| may be |x| ----
void weir_vexp(const float* x, float* y, int64_t n);
void weir_vlog(const float* x, float* y, int64_t n);
void weir_vtanh(const float* x, float* y, int64_t n);
void weir_vsigmoid(const float* x, float* y, int64_t n);
void weir_vsin(const float* x, float* y, int64_t n);
void weir_vcos(const float* x, float* y, int64_t n);
void weir_verf(const float* x, float* y, int64_t n);

// ---- inline forms ----

// Adding it to a float below 2^22 in magnitude rounds to an integer, which then stands in the low
// bits.
#define WEIR_ROUND_MAGIC_ 0x1.8p23f

// 2^n for n in [-126, 127].
WEIR_INLINE float weir_vm_pow2_(int32_t n) {
  return weir_float_from_bits((uint32_t)(n + 127) << 23);
}

// Splits |x| = n ln 2 + r, |r| <= ln 2 / 2.
WEIR_INLINE int32_t weir_vm_split_(float x, float* out_r) {
  float shifted = WEIR_FMAF(x, 0x1.715476p+0f, WEIR_ROUND_MAGIC_);
  float n = shifted - WEIR_ROUND_MAGIC_;
  // ln 2 in two parts, the first short enough for exact products.
  *out_r = WEIR_FMAF(n, -0x1.7f7d1cp-20f, WEIR_FMAF(n, -0x1.62e4p-1f, x));
  return (int32_t)(weir_float_bits(shifted) - weir_float_bits(WEIR_ROUND_MAGIC_));
}

// (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2.
WEIR_INLINE float weir_vm_exp_poly_(float r) {
  float p = WEIR_FMAF(1.395171725e-03f, r, 8.369598410e-03f);
  p = WEIR_FMAF(p, r, 4.166618728e-02f);
  p = WEIR_FMAF(p, r, 1.666651289e-01f);
  return WEIR_FMAF(p, r, 5.000000101e-01f);
}

WEIR_INLINE float weir_vm_exp(float x) {
  float clamped = x > 89.0f ? 89.0f : x;
  clamped = clamped < -104.0f ? -104.0f : clamped;
  float r;
  int32_t n = weir_vm_split_(clamped, &r);
  float p = WEIR_FMAF(weir_vm_exp_poly_(r), r * r, r) + 1.0f;
  // In two steps: 2^n alone may overflow or be subnormal where the product is not. The bounds
  // matter for NaN only.
  int32_t half = n >> 1;
  int32_t rest = n - half;
  half = half < -126 ? -126 : half > 127 ? 127 : half;
  rest = rest < -126 ? -126 : rest > 127 ? 127 : rest;
  return p * weir_vm_pow2_(half) * weir_vm_pow2_(rest);
}

WEIR_INLINE float weir_vm_expm1(float x) {
  float clamped = x > 89.0f ? 89.0f : x;
  clamped = clamped < -30.0f ? -30.0f : clamped;
  float r;
  int32_t n = weir_vm_split_(clamped, &r);
  n = n < -126 ? -126 : n > 129 ? 129 : n;
  float q = WEIR_FMAF(weir_vm_exp_poly_(r), r * r, r);  // exp(r) - 1
  // 2^n (q + 1) - 1 at half scale, as 2^n itself may overflow.
  float scale = weir_vm_pow2_(n - 2);
  float y = 4.0f * WEIR_FMAF(q, scale, scale - 0.25f);
  return n == 0 ? q : y;
}

WEIR_INLINE float weir_vm_log(float x) {
  bool is_tiny = x < 0x1p-126f;
  float scaled = is_tiny ? x * 0x1p23f : x;
  uint32_t bits = weir_float_bits(scaled);
  // Exponent such that the mantissa lies in [sqrt(1/2), sqrt(2)).
  int32_t e = (int32_t)(bits - 0x3f3504f3u) >> 23;
  float f = weir_float_from_bits(bits - ((uint32_t)e << 23)) - 1.0f;
  float n = (float)(is_tiny ? e - 23 : e);
  float f2 = f * f;
  float p = WEIR_FMAF(6.746601339e-02f, f, -1.167564131e-01f);
  p = WEIR_FMAF(p, f, 1.188817460e-01f);
  p = WEIR_FMAF(p, f, -1.240559142e-01f);
  p = WEIR_FMAF(p, f, 1.421955091e-01f);
  p = WEIR_FMAF(p, f, -1.666799567e-01f);
  p = WEIR_FMAF(p, f, 2.000211873e-01f);
  p = WEIR_FMAF(p, f, -2.500000960e-01f);
  p = WEIR_FMAF(p, f, 3.333331260e-01f);
  p = p * f2 * f;
  p = WEIR_FMAF(n, 0x1.7f7d1cp-20f, p);
  p = WEIR_FMAF(-0.5f, f2, p);
  float y = WEIR_FMAF(n, 0x1.62e4p-1f, f + p);
  y = x < INFINITY ? y : x;
  y = x < 0.0f ? NAN : y;
  return x == 0.0f ? -INFINITY : y;
}

WEIR_INLINE float weir_vm_log1p(float x) {
  float u = 1.0f + x;
  float y = weir_vm_log(u);
  // What rounding took from 1 + x, to first order.
  float lost = (x - (u - 1.0f)) / u;
  float small = x + x * x * (-0.5f);
  y = u == 1.0f ? small : y + lost;
  y = x < INFINITY ? y : x;
  return x == -1.0f ? -INFINITY : y;
}

WEIR_INLINE float weir_vm_tanh(float x) {
  float a = fabsf(x);
  float x2 = x * x;
  float p = WEIR_FMAF(-5.704978375e-03f, x2, 2.063907874e-02f);
  p = WEIR_FMAF(p, x2, -5.373971216e-02f);
  p = WEIR_FMAF(p, x2, 1.333144216e-01f);
  p = WEIR_FMAF(p, x2, -3.333328194e-01f);
  float small = WEIR_FMAF(p * x2, x, x);
  float large = 1.0f - 2.0f / (weir_vm_exp(2.0f * a) + 1.0f);
  return a < 0.625f ? small : copysignf(large, x);
}

WEIR_INLINE float weir_vm_sigmoid(float x) {
  float e = weir_vm_exp(-fabsf(x));
  float numerator = x < 0.0f ? e : 1.0f;
  return numerator / (1.0f + e);
}

WEIR_INLINE float weir_vm_erf(float x) {
  float a = fabsf(x);
  float x2 = x * x;
  float p = WEIR_FMAF(7.853854289e-05f, x2, -8.010191400e-04f);
  p = WEIR_FMAF(p, x2, 5.188327418e-03f);
  p = WEIR_FMAF(p, x2, -2.685381178e-02f);
  p = WEIR_FMAF(p, x2, 1.128358514e-01f);
  p = WEIR_FMAF(p, x2, -3.761262582e-01f);
  p = WEIR_FMAF(p, x2, 1.128379166e+00f);
  float clamped = a > 4.1f ? 4.1f : a;
  float t = 1.0f / (1.0f + 0.5f * clamped);
  float q = WEIR_FMAF(1.116648524e-01f, t, -4.398606700e-01f);
  q = WEIR_FMAF(q, t, 5.087785625e-01f);
  q = WEIR_FMAF(q, t, -5.125951922e-02f);
  q = WEIR_FMAF(q, t, 3.177886272e-01f);
  q = WEIR_FMAF(q, t, 2.699550583e-01f);
  q = WEIR_FMAF(q, t, 2.829721588e-01f);
  q = WEIR_FMAF(q, t, 2.085159961e-06f);
  float large = 1.0f - q * weir_vm_exp(-clamped * clamped);
  return a < 1.0f ? p * x : copysignf(large, x);
}

#endif  // WEIR_KERNEL_VMATH_H_
