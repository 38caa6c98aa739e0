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
double weir_bessel_ke(int order, double x);  // exp(x) K(x), of the second kind
double weir_bessel_k(int order, double x);
double weir_bessel_j(int order, double x);
double weir_bessel_y(int order, double x);

// ---- integrals ----
double weir_dawsn(double x);        // exp(-x^2) times that of exp(t^2) from 0 to x
double weir_expint(double x);       // of exp(t) / t from minus infinity to x; NaN below 0
double weir_fresnel_cos(double x);  // of cos(pi t^2 / 2) from 0 to x
double weir_fresnel_sin(double x);
double weir_spence(double x);  // of log(t) / (1 - t) from 1 to x; NaN below 0

// ---- incomplete gamma and beta functions ----
double weir_igamma(double a, double x);   // P(a, x); NaN unless a > 0 and x >= 0
double weir_igammac(double a, double x);  // Q(a, x) = 1 - P(a, x)
// The derivative of P by a. |is_float|: as precise as that, with TensorFlow's number of terms.
double weir_igamma_grad_a(double a, double x, bool is_float);
double weir_betainc(double a, double b, double x);  // the regularised one
// How a draw of gamma's changes with its shape, for the same random state. Zero where the density
// is so small that float (|is_float|) or double cannot hold it, as in TensorFlow.
double weir_gamma_sample_derivative(double alpha, double sample, bool is_float);

weir_complex64_t weir_cexpm1_complex64(weir_complex64_t z);
weir_complex128_t weir_cexpm1_complex128(weir_complex128_t z);
weir_complex64_t weir_clog1p_complex64(weir_complex64_t z);
weir_complex128_t weir_clog1p_complex128(weir_complex128_t z);

#endif  // WEIR_KERNEL_ELEMENTWISE_SPECIAL_H_
