// schur.h — Complex matrices of double precision by their triangular form: eigenvalues and vectors,
// square roots, logarithms; and exponentials. Row-major. Thread-safe.
#ifndef WEIR_KERNEL_LINALG_SCHUR_H_
#define WEIR_KERNEL_LINALG_SCHUR_H_

#include "tensor/numeric.h"
#include "weir/dtype.h"

// a = q * t * q^H: |a|, n x n, becomes the upper triangular t; |q|, unless NULL, the unitary q.
// False where |a| is not finite, or does not converge.
bool weir_schur(int64_t n, weir_complex128_t* a, weir_complex128_t* q);

// The eigenvalues of |a|, which is overwritten, and, unless |v| is NULL, vectors of length 1, the
// columns of |v|. |scratch| holds n * n elements. False as weir_schur.
bool weir_eig(int64_t n, weir_complex128_t* a, weir_complex128_t* e, weir_complex128_t* v,
              weir_complex128_t* scratch);

// The principal square root of |a|, and its logarithm, in its place. |scratch| holds 4 * n * n
// elements. Where there is none, all of it is NaN. |real_epsilon|, unless 0, says that |a| is a
// real matrix of that precision: then also where the root is none.
void weir_matrix_sqrt(int64_t n, double real_epsilon, weir_complex128_t* a,
                      weir_complex128_t* scratch);
void weir_matrix_log(int64_t n, weir_complex128_t* a, weir_complex128_t* scratch);
// The exponential. |scratch| holds 6 * n * n elements, |order| n.
void weir_matrix_exp(int64_t n, weir_complex128_t* a, weir_complex128_t* scratch, int64_t* order);

// Numbers of another type, float, double or complex, as complex128 and back: real types lose the
// imaginary parts.
void weir_widen(weir_dtype_t dtype, int64_t count, const void* source, weir_complex128_t* out);
void weir_narrow(weir_dtype_t dtype, int64_t count, const weir_complex128_t* source, void* out);

#endif  // WEIR_KERNEL_LINALG_SCHUR_H_
