// least_squares.h — Systems with more or fewer equations than unknowns, and tridiagonal and banded
// ones: float, double, complex64 and complex128, row-major. Thread-safe.
#ifndef WEIR_KERNEL_LINALG_LEAST_SQUARES_H_
#define WEIR_KERNEL_LINALG_LEAST_SQUARES_H_

#include "base/thread.h"
#include "weir/dtype.h"

// The n x k matrix |x| that makes |a x - b|^2 + regularizer |x|^2 least, for the m x n matrix |a|.
typedef struct weir_least_squares_t {
  int64_t m;
  int64_t n;
  int64_t k;
  bool is_fast;  // by the normal equations; else by singular values, without |regularizer|
  double regularizer;
  const void* a;
  const void* b;
  void* x;
  void* scratch;  // weir_least_squares_scratch_count elements
  weir_pool_t* pool;
} weir_least_squares_t;
int64_t weir_least_squares_scratch_count(const weir_least_squares_t* job);
// False where the normal equations have no Cholesky factor.
bool weir_least_squares(weir_dtype_t dtype, const weir_least_squares_t* job);

// The n x k matrix |x|, with a x = b, for tridiagonal |a|: three rows of |diagonals|, the elements
// above the diagonal (the last is not read), on it, and below it (the first is not read). |scratch|
// holds 4 n elements. |perturbs|: a pivot that is 0 becomes a small number.
typedef struct weir_tridiagonal_t {
  int64_t n;
  int64_t k;
  bool pivots;  // exchanges rows
  bool perturbs;
  const void* diagonals;
  const void* b;
  void* x;
  void* scratch;
} weir_tridiagonal_t;
void weir_tridiagonal_solve(weir_dtype_t dtype, const weir_tridiagonal_t* job);

// y = a x for three diagonals of which each is a row of n elements.
typedef struct weir_tridiagonal_product_t {
  int64_t n;
  int64_t k;
  const void* above;
  const void* main;
  const void* below;
  const void* x;
  void* y;
} weir_tridiagonal_product_t;
void weir_tridiagonal_product(weir_dtype_t dtype, const weir_tridiagonal_product_t* job);

// op(a) x = b for a triangular matrix whose |bands| diagonals are rows of |a|: of a lower one the
// main diagonal comes first, of an upper one last; an element stands in the column of its row.
// False where the main diagonal holds a zero or NaN.
typedef struct weir_banded_t {
  int64_t n;
  int64_t k;
  int64_t bands;
  bool is_lower;
  bool is_adjoint;
  const void* a;
  const void* b;
  void* x;
} weir_banded_t;
bool weir_banded_solve(weir_dtype_t dtype, const weir_banded_t* job);

#endif  // WEIR_KERNEL_LINALG_LEAST_SQUARES_H_
