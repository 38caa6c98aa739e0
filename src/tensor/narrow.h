// narrow.h — Conversions of the formats that are stored and passed on, but that no kernel computes
// in: floats of 8 and 4 bits without infinities, integers of 2 bits. One byte an element each.
//
// Narrowing rounds to nearest, ties to even.
#ifndef WEIR_TENSOR_NARROW_H_
#define WEIR_TENSOR_NARROW_H_

#include "base/base.h"

// A float format: sign, exponent, mantissa. All exponents are of numbers.
typedef struct weir_narrow_t {
  int bits;           // in all
  int mantissa_bits;  //
  int bias;           // of the exponent
  bool has_nan;       // the code that would be -0: also for what is too large. Without: the largest
} weir_narrow_t;

extern const weir_narrow_t weir_float8_e4m3fnuz;
extern const weir_narrow_t weir_float8_e4m3b11fnuz;
extern const weir_narrow_t weir_float8_e5m2fnuz;
extern const weir_narrow_t weir_float4_e2m1fn;  // a NaN becomes 0 of the other sign

uint8_t weir_narrow_from_float(const weir_narrow_t* format, float value);
float weir_narrow_to_float(const weir_narrow_t* format, uint8_t code);

#endif  // WEIR_TENSOR_NARROW_H_
