// numeric.h — Inline conversions between float and the narrow formats, for kernels.
//
// Narrowing rounds to nearest, ties to even. A NaN stays a quiet NaN of the same sign.
#ifndef WEIR_TENSOR_NUMERIC_H_
#define WEIR_TENSOR_NUMERIC_H_

#include <complex.h>

#include "base/base.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

// Elements as they lie in memory. Structs, so that no arithmetic is done on the bits by mistake.
typedef struct weir_half_t {
  uint16_t bits;
} weir_half_t;
typedef struct weir_bfloat16_t {
  uint16_t bits;
} weir_bfloat16_t;
typedef struct weir_float8_e5m2_t {
  uint8_t bits;
} weir_float8_e5m2_t;
typedef struct weir_float8_e4m3fn_t {
  uint8_t bits;
} weir_float8_e4m3fn_t;
typedef float _Complex weir_complex64_t;
typedef double _Complex weir_complex128_t;

WEIR_INLINE uint32_t weir_float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}
WEIR_INLINE float weir_float_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// ---- formats with |exponent_size| and |mantissa_size| bits under a sign; constants fold ----

// The magnitude of |value| rounded to the format; what exceeds its finite range comes out larger
// than any finite pattern. |value| is not NaN.
WEIR_INLINE uint32_t weir_narrow_magnitude_(float value, int exponent_size, int mantissa_size) {
  const int bias = (1 << (exponent_size - 1)) - 1;
  const int shift = 23 - mantissa_size;
  uint32_t magnitude = weir_float_bits(value) & 0x7fffffffu;
  if (magnitude < (uint32_t)(128 - bias) << 23) {
    // Subnormal in the format: adding 2^k, whose last place is the format's smallest step, makes
    // the FPU round.
    uint32_t step = (uint32_t)(127 + 24 - bias - mantissa_size) << 23;
    return weir_float_bits(weir_float_from_bits(magnitude) + weir_float_from_bits(step)) - step;
  }
  uint32_t rounding = (1u << (shift - 1)) - 1 + (magnitude >> shift & 1);
  return ((magnitude + rounding) >> shift) - ((uint32_t)(127 - bias) << mantissa_size);
}

// The value of the pattern |magnitude|, infinities and NaNs apart.
WEIR_INLINE float weir_widen_magnitude_(uint32_t magnitude, int exponent_size, int mantissa_size) {
  const int bias = (1 << (exponent_size - 1)) - 1;
  if (magnitude >> mantissa_size == 0) {
    float step = weir_float_from_bits((uint32_t)(128 - bias - mantissa_size) << 23);
    return (float)magnitude * step;
  }
  return weir_float_from_bits((magnitude << (23 - mantissa_size)) + ((uint32_t)(127 - bias) << 23));
}

WEIR_INLINE float weir_with_sign_(float magnitude, uint32_t sign) {
  return weir_float_from_bits(weir_float_bits(magnitude) | sign << 31);
}

// ---- half: IEEE binary16 ----

WEIR_INLINE weir_half_t weir_half_from_float_soft(float value) {
  uint32_t sign = weir_float_bits(value) >> 31 << 15;
  if (value != value) return (weir_half_t){(uint16_t)(sign | 0x7e00u)};
  uint32_t magnitude = weir_narrow_magnitude_(value, 5, 10);
  return (weir_half_t){(uint16_t)(sign | WEIR_MIN(magnitude, 0x7c00u))};
}

WEIR_INLINE float weir_half_to_float_soft(weir_half_t half) {
  uint32_t magnitude = half.bits & 0x7fffu;
  uint32_t sign = (uint32_t)half.bits >> 15;
  if (magnitude >= 0x7c00u) {
    uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0;
    return weir_float_from_bits(sign << 31 | 0x7f800000u | (magnitude & 0x3ffu) << 13 | quiet);
  }
  return weir_with_sign_(weir_widen_magnitude_(magnitude, 5, 10), sign);
}

#if defined(__aarch64__)
WEIR_INLINE weir_half_t weir_half_from_float(float value) {
  __fp16 narrow = (__fp16)value;
  weir_half_t half;
  memcpy(&half, &narrow, sizeof(half));
  return half;
}
WEIR_INLINE float weir_half_to_float(weir_half_t half) {
  __fp16 narrow;
  memcpy(&narrow, &half, sizeof(narrow));
  return (float)narrow;
}
#elif defined(__F16C__)
WEIR_INLINE weir_half_t weir_half_from_float(float value) {
  return (weir_half_t){(uint16_t)_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT)};
}
WEIR_INLINE float weir_half_to_float(weir_half_t half) { return _cvtsh_ss(half.bits); }
#else
WEIR_INLINE weir_half_t weir_half_from_float(float value) {
  return weir_half_from_float_soft(value);
}
WEIR_INLINE float weir_half_to_float(weir_half_t half) { return weir_half_to_float_soft(half); }
#endif

// ---- bfloat16: the upper half of a float ----

WEIR_INLINE weir_bfloat16_t weir_bfloat16_from_float(float value) {
  uint32_t bits = weir_float_bits(value);
  uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  uint32_t quiet_nan = bits >> 31 << 15 | 0x7fc0u;
  return (weir_bfloat16_t){(uint16_t)(value != value ? quiet_nan : rounded)};
}
WEIR_INLINE float weir_bfloat16_to_float(weir_bfloat16_t narrow) {
  return weir_float_from_bits((uint32_t)narrow.bits << 16);
}

// ---- float8_e5m2: a half with two bits of mantissa ----

WEIR_INLINE weir_float8_e5m2_t weir_float8_e5m2_from_float(float value) {
  uint32_t sign = weir_float_bits(value) >> 31 << 7;
  if (value != value) return (weir_float8_e5m2_t){(uint8_t)(sign | 0x7eu)};
  uint32_t magnitude = weir_narrow_magnitude_(value, 5, 2);
  return (weir_float8_e5m2_t){(uint8_t)(sign | WEIR_MIN(magnitude, 0x7cu))};
}
WEIR_INLINE float weir_float8_e5m2_to_float(weir_float8_e5m2_t narrow) {
  return weir_half_to_float((weir_half_t){(uint16_t)((unsigned)narrow.bits << 8)});
}

// ---- float8_e4m3fn: finite only; the one NaN is all ones, and what is too large becomes it ----

WEIR_INLINE weir_float8_e4m3fn_t weir_float8_e4m3fn_from_float(float value) {
  uint32_t sign = weir_float_bits(value) >> 31 << 7;
  if (value != value) return (weir_float8_e4m3fn_t){(uint8_t)(sign | 0x7fu)};
  uint32_t magnitude = weir_narrow_magnitude_(value, 4, 3);
  return (weir_float8_e4m3fn_t){(uint8_t)(sign | WEIR_MIN(magnitude, 0x7fu))};
}
WEIR_INLINE float weir_float8_e4m3fn_to_float(weir_float8_e4m3fn_t narrow) {
  uint32_t magnitude = narrow.bits & 0x7fu;
  uint32_t sign = (uint32_t)narrow.bits >> 7;
  if (magnitude == 0x7fu) return weir_float_from_bits(sign << 31 | 0x7fc00000u);
  return weir_with_sign_(weir_widen_magnitude_(magnitude, 4, 3), sign);
}

// ---- int4 and uint4: one byte an element, of which the low four bits count ----

WEIR_INLINE int8_t weir_int4_wrap(int8_t value) {
  return (int8_t)((((unsigned)value & 15u) ^ 8u) - 8u);
}
WEIR_INLINE uint8_t weir_uint4_wrap(uint8_t value) { return value & 15u; }

#endif  // WEIR_TENSOR_NUMERIC_H_
