// lu.h — Systems of linear equations by elimination with row pivoting: float, double, complex64 and
// complex128, row-major. Thread-safe. |pool| may be NULL: one thread.
#ifndef WEIR_KERNEL_LINALG_LU_H_
#define WEIR_KERNEL_LINALG_LU_H_

#include "base/thread.h"
#include "weir/dtype.h"

// Replaces the n x n matrix |a| by its factors: below the diagonal l, whose diagonal is one, the
// rest u. Row i of l * u is row order[i] of |a|. Returns 1 or -1, the sign of that permutation. A
// column without a pivot is passed over: a zero stays on the diagonal of u.
int weir_lu(weir_dtype_t dtype, weir_pool_t* pool, int64_t n, void* a, int64_t* order);
// Whether no element of u's diagonal is zero or NaN.
bool weir_lu_is_regular(weir_dtype_t dtype, int64_t n, const void* lu);
// The n x m matrix |x|, which is not |b|, with a * x = b.
void weir_lu_solve(weir_dtype_t dtype, weir_pool_t* pool, int64_t n, const void* lu,
                   const int64_t* order, int64_t m, const void* b, void* x);

// The determinant of what was factored, as a number of modulus 1, or 0, and the logarithm of its
// modulus; |sign| that of the permutation.
void weir_lu_determinant(weir_dtype_t dtype, int64_t n, const void* lu, int sign, void* out_sign,
                         double* out_log);

// The conjugate transpose of the m x n matrix |a|, which is not |out|.
void weir_adjoint(weir_dtype_t dtype, int64_t m, int64_t n, const void* a, void* out);

#endif  // WEIR_KERNEL_LINALG_LU_H_
