// special.h — Special functions that libm lacks, in double precision. Thread-safe.
#ifndef WEIR_KERNEL_ELEMENTWISE_SPECIAL_H_
#define WEIR_KERNEL_ELEMENTWISE_SPECIAL_H_

#include "tensor/numeric.h"

double weir_lgamma(double x);          // as lgamma, without its global sign
double weir_digamma(double x);         // NaN at zero and the negative integers
double weir_ndtri(double p);           // inverse of the normal distribution; NaN outside [0, 1]
double weir_erfinv(double x);          // NaN outside [-1, 1]
double weir_zeta(double x, double q);  // Hurwitz zeta: NaN for x < 1, infinite at x = 1
double weir_polygamma(double n, double x);   // NaN unless n is an integer >= 0
double weir_bessel_ie(int order, double x);  // exp(-|x|) I(x), the modified Bessel function

weir_complex64_t weir_cexpm1_complex64(weir_complex64_t z);
weir_complex128_t weir_cexpm1_complex128(weir_complex128_t z);
weir_complex64_t weir_clog1p_complex64(weir_complex64_t z);
weir_complex128_t weir_clog1p_complex128(weir_complex128_t z);

#endif  // WEIR_KERNEL_ELEMENTWISE_SPECIAL_H_
