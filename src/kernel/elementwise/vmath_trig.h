// vmath_trig.h — Trigonometric and hyperbolic functions and their inverses, as vmath.h's functions.
// Thread-safe.
#ifndef WEIR_KERNEL_ELEMENTWISE_VMATH_TRIG_H_
#define WEIR_KERNEL_ELEMENTWISE_VMATH_TRIG_H_

#include "kernel/elementwise/vmath.h"

#define WEIR_HALF_PI_ 0x1.921fb6p+0f
#define WEIR_HALF_PI_LOW_ -0x1.777a5cp-25f

// |x|, negated where bit 31 of |signs| is set.
WEIR_INLINE float weir_vm_flip_(float x, uint32_t signs) {
  return weir_float_from_bits(weir_float_bits(x) ^ (signs & 0x80000000u));
}

// ---- circular functions of |x| up to WEIR_TRIG_LIMIT ----
// Beyond it, the products of the reduction are not exact.
#define WEIR_TRIG_LIMIT 12800.0f

// Splits |x| = n pi/2 + r, |r| <= pi/4; n modulo 2^22.
WEIR_INLINE uint32_t weir_vm_turns_(float x, float* out_r) {
  float a = fabsf(x);
  float shifted = WEIR_FMAF(a, 0x1.45f306p-1f, WEIR_ROUND_MAGIC_);
  float n = shifted - WEIR_ROUND_MAGIC_;
  // pi/2 in four parts; the first three are short enough for exact products.
  float r = WEIR_FMAF(n, -0x1.92p+0f, a);
  r = WEIR_FMAF(n, -0x1.fb4p-12f, r);
  r = WEIR_FMAF(n, -0x1.444p-24f, r);
  *out_r = WEIR_FMAF(n, -0x1.68c234p-39f, r);
  return weir_float_bits(shifted);
}

// sin(|x| + quadrant pi/2), negated where bit 31 of |signs| is set.
WEIR_INLINE float weir_vm_wave_(float x, uint32_t quadrant, uint32_t signs) {
  float r;
  quadrant += weir_vm_turns_(x, &r);
  float r2 = r * r;
  float s = WEIR_FMAF(2.717366608e-06f, r2, -1.983923265e-04f);
  s = WEIR_FMAF(s, r2, 8.333329056e-03f);
  s = WEIR_FMAF(s, r2, -1.666666664e-01f);
  s = WEIR_FMAF(s * r2, r, r);
  float c = WEIR_FMAF(2.442567968e-05f, r2, -1.388725147e-03f);
  c = WEIR_FMAF(c, r2, 4.166664437e-02f);
  c = WEIR_FMAF(c * r2, r2, WEIR_FMAF(-0.5f, r2, 1.0f));
  return weir_vm_flip_(weir_vm_select_(quadrant & 1u, c, s), quadrant << 30 ^ signs);
}

WEIR_INLINE float weir_vm_sin(float x) { return weir_vm_wave_(x, 0, weir_float_bits(x)); }

WEIR_INLINE float weir_vm_cos(float x) { return weir_vm_wave_(x, 1, 0); }

// In double: where it is a reciprocal, the roundings of r and of the polynomial would add up.
WEIR_INLINE float weir_vm_tan(float x) {
  const double magic = 0x1.8p52;
  double a = fabs((double)x);
  double shifted = a * 0x1.45f306dc9c883p-1 + magic;
  double n = shifted - magic;
  // pi/2 in two parts; the first has 33 bits, so that its product with n is exact.
  double r = (a - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34;
  double r2 = r * r;
  double p = 4.373375792e-03 * r2 + 9.712608880e-05;
  p = p * r2 + 1.082810946e-02;
  p = p * r2 + 2.128604054e-02;
  p = p * r2 + 5.405892804e-02;
  p = p * r2 + 1.333267540e-01;
  p = p * r2 + 3.333334923e-01;
  double t = p * r2 * r + r;
  uint64_t quadrant;
  memcpy(&quadrant, &shifted, sizeof(quadrant));
  return weir_vm_flip_((float)(quadrant & 1u ? -1.0 / t : t), weir_float_bits(x));
}

// ---- their inverses ----

// The angle of the point (x, y), both >= 0: by symmetry about the diagonal atan of [0, 1].
WEIR_INLINE float weir_vm_angle_(float y, float x) {
  bool is_steep = y > x;
  float z = weir_vm_select_(is_steep, x, y) / weir_vm_select_(is_steep, y, x);
  float z2 = z * z;
  float z4 = z2 * z2;
  float p = WEIR_FMAF(2.919722814e-03f, z2, -1.636413299e-02f);
  p = WEIR_FMAF(p, z4, WEIR_FMAF(4.320585728e-02f, z2, -7.551723719e-02f));
  p = WEIR_FMAF(p, z4, WEIR_FMAF(1.066578552e-01f, z2, -1.421100348e-01f));
  p = WEIR_FMAF(p, z4, WEIR_FMAF(1.999376714e-01f, z2, -3.333315253e-01f));
  float r = WEIR_FMAF(p * z2, z, z);
  return weir_vm_select_(is_steep, WEIR_HALF_PI_ - r, r);
}

WEIR_INLINE float weir_vm_atan(float x) { return copysignf(weir_vm_angle_(fabsf(x), 1.0f), x); }

WEIR_INLINE float weir_vm_atan2(float y, float x) {
  float a = fabsf(y);
  float b = fabsf(x);
  // Neither 0 / 0 nor infinity / infinity is a number.
  bool is_equal = a == b;
  a = weir_vm_select_(is_equal, a > 0.0f ? 1.0f : 0.0f, a);
  b = weir_vm_select_(is_equal, 1.0f, b);
  float r = weir_vm_angle_(a, b);
  r = weir_vm_select_(weir_float_bits(x) >> 31, 2.0f * WEIR_HALF_PI_ - r, r);
  return copysignf(r, y);
}

// asin(s) - s, given z = s^2 up to 1/4.
WEIR_INLINE float weir_vm_asin_rest_(float s, float z) {
  float p = WEIR_FMAF(4.215701297e-02f, z, 2.418550290e-02f);
  p = WEIR_FMAF(p, z, 4.546901956e-02f);
  p = WEIR_FMAF(p, z, 7.495310158e-02f);
  p = WEIR_FMAF(p, z, 1.666675210e-01f);
  return p * z * s;
}

// Beyond 1/2 by asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
WEIR_INLINE float weir_vm_asin(float x) {
  float a = fabsf(x);
  bool is_large = a > 0.5f;
  float z = weir_vm_select_(is_large, 0.5f - 0.5f * a, a * a);
  float s = weir_vm_select_(is_large, sqrtf(z), a);
  float rest = weir_vm_asin_rest_(s, z);
  float large = WEIR_FMAF(-2.0f, s, WEIR_HALF_PI_) - WEIR_FMAF(2.0f, rest, -WEIR_HALF_PI_LOW_);
  return copysignf(weir_vm_select_(is_large, large, s + rest), x);
}

WEIR_INLINE float weir_vm_acos(float x) {
  float a = fabsf(x);
  bool is_large = a > 0.5f;
  float z = weir_vm_select_(is_large, 0.5f - 0.5f * a, a * a);
  float s = weir_vm_select_(is_large, sqrtf(z), a);
  float r = copysignf(s + weir_vm_asin_rest_(s, z), x);
  float base = weir_vm_select_(x < 0.0f, 2.0f * WEIR_HALF_PI_, 0.0f);
  return weir_vm_select_(is_large, WEIR_FMAF(2.0f, r, base), WEIR_HALF_PI_ - r);
}

// ---- hyperbolic functions ----

// exp(a) / 2 for a >= 0, where exp(a) alone may overflow; infinite from 89.5.
WEIR_INLINE float weir_vm_half_exp_(float a) {
  float r;
  int32_t n = weir_vm_split_(weir_vm_clamp_(a, 0.0f, 89.5f), &r);
  float q = WEIR_FMAF(weir_vm_exp_poly_(r), r * r, r);  // exp(r) - 1
  float scale = weir_vm_pow2_(n - 2);
  return 2.0f * WEIR_FMAF(q, scale, scale);
}

WEIR_INLINE float weir_vm_sinh(float x) {
  float a = fabsf(x);
  float a2 = a * a;
  float p = WEIR_FMAF(2.782213187e-06f, a2, 1.984289556e-04f);
  p = WEIR_FMAF(p, a2, 8.333310485e-03f);
  p = WEIR_FMAF(p, a2, 1.666666716e-01f);
  float small = WEIR_FMAF(p * a2, a, a);
  float e = weir_vm_half_exp_(a);
  float y = copysignf(weir_vm_select_(a < 1.0f, small, e - 0.25f / e), x);
  return x == x ? y : x;
}

WEIR_INLINE float weir_vm_cosh(float x) {
  float e = weir_vm_half_exp_(fabsf(x));
  float y = e + 0.25f / e;
  return x == x ? y : x;
}

WEIR_INLINE float weir_vm_atanh(float x) {
  float a = fabsf(x);
  float a2 = a * a;
  float p = WEIR_FMAF(1.763785034e-01f, a2, 5.160436034e-02f);
  p = WEIR_FMAF(p, a2, 1.181638613e-01f);
  p = WEIR_FMAF(p, a2, 1.422378570e-01f);
  p = WEIR_FMAF(p, a2, 2.000245303e-01f);
  p = WEIR_FMAF(p, a2, 3.333330154e-01f);
  float small = WEIR_FMAF(p * a2, a, a);
  float large = 0.5f * weir_vm_log((1.0f + a) / (1.0f - a));
  return copysignf(weir_vm_select_(a < 0.5f, small, large), x);
}

#endif  // WEIR_KERNEL_ELEMENTWISE_VMATH_TRIG_H_
