// product.h — Products of complex numbers by the formula alone. What C's own does besides for
// infinite factors keeps loops from being vectorised.
#ifndef WEIR_KERNEL_LINALG_PRODUCT_H_
#define WEIR_KERNEL_LINALG_PRODUCT_H_

#include "tensor/numeric.h"

WEIR_INLINE weir_complex64_t weir_product_complex64_(weir_complex64_t a, weir_complex64_t b) {
  const float p = crealf(a), q = cimagf(a), r = crealf(b), s = cimagf(b);
  return __builtin_complex(p * r - q * s, p * s + q * r);
}
WEIR_INLINE weir_complex128_t weir_product_complex128_(weir_complex128_t a, weir_complex128_t b) {
  const double p = creal(a), q = cimag(a), r = creal(b), s = cimag(b);
  return __builtin_complex(p * r - q * s, p * s + q * r);
}

#endif  // WEIR_KERNEL_LINALG_PRODUCT_H_
