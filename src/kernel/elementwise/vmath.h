// vmath.h — Float functions the compiler can vectorise: no branches, no calls, no tables. The
// trigonometric ones are in vmath_trig.h, the error functions in vmath_erf.h.
//
// The inline forms are for loops of other kernels; the array forms are compiled for several
// instruction sets. All are within about 2 ULP of the exact result, subnormal and infinite values
// included; NaN in, NaN out. But exp, tanh and sigmoid, on which the losses of a recurrent network
// hang, are TensorFlow's, bit for bit where multiplications are fused: its polynomials with its
// coefficients, in its order, within 2, 6 and 6 ULP. Thread-safe.
#ifndef WEIR_KERNEL_ELEMENTWISE_VMATH_H_
#define WEIR_KERNEL_ELEMENTWISE_VMATH_H_

#include <math.h>

#include "kernel/simd.h"
#include "tensor/numeric.h"

// ---- array forms; |y| may be |x| ----
// weir_v<name> of every row of unary_ops.inc that has a vector form.
#define DECLARE_SCALAR(name)
#define DECLARE_VECTOR(name) void weir_v##name(const float* x, float* y, int64_t n);
#define FUNCTION(NAME, name, loops, form, ...) DECLARE_##form(name)
#include "kernel/elementwise/unary_ops.inc"
#undef DECLARE_SCALAR
#undef DECLARE_VECTOR
void weir_vexp_down(const float* x, float* y, int64_t n);  // exp where no |x| is above 0

// ---- inline forms ----

// Adding it to a float below 2^22 in magnitude rounds to an integer, which then stands in the low
// bits.
#define WEIR_ROUND_MAGIC_ 0x1.8p23f

// 2^n for n in [-126, 127].
WEIR_INLINE float weir_vm_pow2_(int32_t n) {
  return weir_float_from_bits((uint32_t)(n + 127) << 23);
}

// |x| 2^n where neither is subnormal.
WEIR_INLINE float weir_vm_scale_(float x, int32_t n) {
  return weir_float_from_bits(weir_float_bits(x) + ((uint32_t)n << 23));
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

// |a| where |is_a|, else |b|. By bits: gcc makes branches of ?:, then threads them, and what it
// vectorises after that is twice as long.
WEIR_INLINE float weir_vm_select_(bool is_a, float a, float b) {
  uint32_t mask = -(uint32_t)is_a;
  return weir_float_from_bits((weir_float_bits(a) & mask) | (weir_float_bits(b) & ~mask));
}

#if defined(__aarch64__)

// |x| in [low, high]; high for NaN.
WEIR_INLINE float weir_vm_clamp_(float x, float low, float high) {
  return __builtin_fmaxf(__builtin_fminf(x, high), low);
}

WEIR_INLINE float weir_vm_floor_(float x) { return __builtin_floorf(x); }

#else

WEIR_INLINE float weir_vm_clamp_(float x, float low, float high) {
  float y = weir_vm_select_(x < high, x, high);
  return weir_vm_select_(y > low, y, low);
}

// For |x| < 2^22.
WEIR_INLINE float weir_vm_floor_(float x) {
  float near = (x + WEIR_ROUND_MAGIC_) - WEIR_ROUND_MAGIC_;
  return near - weir_vm_select_(near > x, 1.0f, 0.0f);
}

#endif

// As weir_vm_split_, with the roundings of TensorFlow.
WEIR_INLINE int32_t weir_vm_split_tf_(float x, float* out_r) {
  float n = weir_vm_floor_(WEIR_FMAF(x, 0x1.715476p+0f, 0.5f));
  *out_r = WEIR_FMAF(n, 0x1.bd0106p-13f, WEIR_FMAF(n, -0x1.63p-1f, x));
  return (int32_t)n;
}

// exp(r) for |r| <= ln 2 / 2, as TensorFlow has it.
WEIR_INLINE float weir_vm_exp_tf_(float r) {
  float r2 = r * r;
  float odd = WEIR_FMAF(r2, 8.36894475e-03f, 1.66665182e-01f);
  float even = WEIR_FMAF(r2, 1.37449638e-03f, 4.16696519e-02f);
  even = WEIR_FMAF(r2, even, 4.99999881e-01f);
  return WEIR_FMAF(r2, WEIR_FMAF(r, odd, even), r + 1.0f);
}

// The functions of programs' inner loops come in two: the calm one for arguments up to its limit in
// magnitude, and the one for all, which gives the same bits there.
#define WEIR_EXP_CALM 87.0f
#define WEIR_TANH_CALM 8.0f
#define WEIR_SIGMOID_CALM 16.0f

WEIR_INLINE float weir_vm_exp_calm(float x) {
  float r;
  int32_t n = weir_vm_split_tf_(x, &r);
  return weir_vm_scale_(weir_vm_exp_tf_(r), n);
}

WEIR_INLINE float weir_vm_exp(float x) {
  float r;
  int32_t n = weir_vm_split_tf_(weir_vm_clamp_(x, -104.0f, 88.723f), &r);
  float p = weir_vm_exp_tf_(r);
  // In two steps: 2^n alone may overflow or be subnormal where the product is not.
  int32_t half = n >> 1;
  p = weir_vm_scale_(p, half) * weir_vm_pow2_(n - half);
  p = weir_vm_select_(x > 88.73f, INFINITY, p);
  return x == x ? p : x;
}

// weir_vm_exp of x <= 0, in fewer instructions: 2^(n + 64) is an exponent of its own.
WEIR_INLINE float weir_vm_exp_down(float x) {
  float r;
  int32_t n = weir_vm_split_tf_(WEIR_LARGER(-104.0f, x), &r);
  float p = weir_vm_scale_(weir_vm_exp_tf_(r), n + 64) * 0x1p-64f;
  return x == x ? p : x;
}

WEIR_INLINE float weir_vm_expm1(float x) {
  float r;
  int32_t n = weir_vm_split_(weir_vm_clamp_(x, -30.0f, 89.0f), &r);
  n = n < -126 ? -126 : n > 129 ? 129 : n;
  float q = WEIR_FMAF(weir_vm_exp_poly_(r), r * r, r);  // exp(r) - 1
  // 2^n (q + 1) - 1 at half scale, as 2^n itself may overflow.
  float scale = weir_vm_pow2_(n - 2);
  float y = 4.0f * WEIR_FMAF(q, scale, scale - 0.25f);
  y = weir_vm_select_(n == 0, q, y);
  return fabsf(x) > 0.0f ? y : x;  // NaN and either zero as they are
}

WEIR_INLINE float weir_vm_log(float x) {
  bool is_tiny = x < 0x1p-126f;
  float scaled = weir_vm_select_(is_tiny, x * 0x1p23f, x);
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
  y = weir_vm_select_(x < INFINITY, y, x);
  y = weir_vm_select_(x < 0.0f, NAN, y);
  return x == 0.0f ? -INFINITY : y;
}

WEIR_INLINE float weir_vm_log1p(float x) {
  float u = 1.0f + x;
  float y = weir_vm_log(u);
  // What rounding took from 1 + x, to first order.
  float lost = (x - (u - 1.0f)) / u;
  float small = x + x * x * (-0.5f);
  y = weir_vm_select_(u == 1.0f, small, y + lost);
  y = weir_vm_select_(x < INFINITY, y, x);
  return x == -1.0f ? -INFINITY : y;
}

WEIR_INLINE float weir_vm_tanh_calm(float x) {
  float x2 = x * x;
  float p = WEIR_FMAF(1.394553628e-08f, x2, 2.102733560e-05f);
  p = WEIR_FMAF(p, x2, 3.520756727e-03f);
  p = WEIR_FMAF(p, x2, 1.340216100e-01f);
  float q = WEIR_FMAF(8.015776984e-07f, x2, 3.326951409e-04f);
  q = WEIR_FMAF(q, x2, 2.597254514e-02f);
  q = WEIR_FMAF(q, x2, 4.673548340e-01f);
  q = WEIR_FMAF(q, x2, 1.0f);
  return WEIR_FMAF(x2 * x, p, x) / q;
}

WEIR_INLINE float weir_vm_tanh(float x) {
  float y = weir_vm_tanh_calm(weir_vm_clamp_(x, -8.01773357f, 8.01773357f));
  return x == x ? y : x;
}

// By the square of exp(x / 2), with a shorter polynomial than weir_vm_exp's.
WEIR_INLINE float weir_vm_sigmoid_calm(float x) {
  float r;
  int32_t n = weir_vm_split_tf_(0.5f * x, &r);
  float r2 = r * r;
  float odd = WEIR_FMAF(r2, 8.33471306e-03f, 1.66668773e-01f);
  float even = WEIR_FMAF(r2, 4.18986678e-02f, 4.99991417e-01f);
  float e = weir_vm_scale_(WEIR_FMAF(r2, WEIR_FMAF(r, odd, even), r + 1.0f), n);
  e *= e;
  return e / (1.0f + e);
}

WEIR_INLINE float weir_vm_sigmoid(float x) {
  float y = weir_vm_sigmoid_calm(weir_vm_clamp_(x, -104.0f, 16.6355324f));
  y = weir_vm_select_(x < -104.0f, 0.0f, y);
  return x == x ? y : x;
}

#endif  // WEIR_KERNEL_ELEMENTWISE_VMATH_H_
