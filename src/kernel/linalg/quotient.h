// quotient.h — Division of complex numbers whose squares may overflow: files of this folder are
// compiled for the plain formula (-fcx-limited-range).
#ifndef WEIR_KERNEL_LINALG_QUOTIENT_H_
#define WEIR_KERNEL_LINALG_QUOTIENT_H_

#include <math.h>

#include "tensor/numeric.h"

// Both scaled by a power of two so that the divisor is about 1.
WEIR_INLINE weir_complex128_t weir_complex_quotient_(weir_complex128_t a, weir_complex128_t b) {
  const double size = fmax(fabs(creal(b)), fabs(cimag(b)));
  if (!(size > 0 && size < INFINITY)) return a / b;
  const int exponent = -ilogb(size);
  const double c = scalbn(creal(b), exponent), d = scalbn(cimag(b), exponent);
  const double norm = c * c + d * d, x = creal(a), y = cimag(a);
  return __builtin_complex(scalbn((x * c + y * d) / norm, exponent),
                           scalbn((y * c - x * d) / norm, exponent));
}

#endif  // WEIR_KERNEL_LINALG_QUOTIENT_H_
