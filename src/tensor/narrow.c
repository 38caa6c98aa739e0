// narrow.c — Conversions of the formats that are stored and passed on, but that no kernel computes
// in.
#include "tensor/narrow.h"

#include <math.h>

const weir_narrow_t weir_float8_e4m3fnuz = {
    .bits = 8, .mantissa_bits = 3, .bias = 8, .has_nan = true};
const weir_narrow_t weir_float8_e4m3b11fnuz = {
    .bits = 8, .mantissa_bits = 3, .bias = 11, .has_nan = true};
const weir_narrow_t weir_float8_e5m2fnuz = {
    .bits = 8, .mantissa_bits = 2, .bias = 16, .has_nan = true};
const weir_narrow_t weir_float4_e2m1fn = {.bits = 4, .mantissa_bits = 1, .bias = 1};

// The code of a finite, positive number, were the exponent not limited above: steps are as wide as
// those of its power of two, and a mantissa that is rounded up carries into the exponent.
static int64_t magnitude_code(const weir_narrow_t* format, float value) {
  int exponent = 0;
  frexpf(value, &exponent);  // value = m * 2^exponent, m in [0.5, 1)
  exponent = WEIR_MAX(exponent - 1, 1 - format->bias);
  int64_t steps = (int64_t)rintf(ldexpf(value, format->mantissa_bits - exponent));
  return ((int64_t)(exponent + format->bias - 1) << format->mantissa_bits) + steps;
}

uint8_t weir_narrow_from_float(const weir_narrow_t* format, float value) {
  const unsigned sign_bit = 1u << (format->bits - 1);
  unsigned sign = signbit(value) ? sign_bit : 0;
  if (isnan(value)) return (uint8_t)(format->has_nan ? sign_bit : sign_bit ^ sign);
  int64_t code = isinf(value) ? sign_bit : value == 0 ? 0 : magnitude_code(format, fabsf(value));
  if (code >= sign_bit) return (uint8_t)(format->has_nan ? sign_bit : sign | (sign_bit - 1));
  if (code == 0 && format->has_nan) return 0;
  return (uint8_t)(sign | (unsigned)code);
}

float weir_narrow_to_float(const weir_narrow_t* format, uint8_t code) {
  const unsigned sign_bit = 1u << (format->bits - 1);
  unsigned magnitude = code & (sign_bit - 1);
  if ((code & sign_bit) && !magnitude && format->has_nan) return NAN;
  int exponent = (int)(magnitude >> format->mantissa_bits);
  int mantissa = (int)(magnitude & ((1u << format->mantissa_bits) - 1));
  if (exponent > 0) mantissa += 1 << format->mantissa_bits;
  int scale = WEIR_MAX(exponent, 1) - format->bias - format->mantissa_bits;
  float value = ldexpf((float)mantissa, scale);
  return code & sign_bit ? -value : value;
}
