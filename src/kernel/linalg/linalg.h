// linalg.h — Factorisations and triangular systems of single row-major matrices: float, double,
// complex64, complex128, and half where a function says so. Thread-safe.
#ifndef WEIR_KERNEL_LINALG_LINALG_H_
#define WEIR_KERNEL_LINALG_LINALG_H_

#include "base/base.h"
#include "weir/dtype.h"

// The lower factor |l| of the Hermitian |a|, both n x n: a = l * l^H. Reads the lower triangle of
// |a| alone. When |a| is not positive definite, all of the lower triangle is NaN, or zero
// for complex types (as in TensorFlow).
void weir_cholesky(weir_dtype_t dtype, int64_t n, const void* a, void* l);
// The gradient of a loss by |a| from that by its factor |l|: symmetric. Real types; |scratch| holds
// n x n elements.
void weir_cholesky_grad(weir_dtype_t dtype, int64_t n, const void* l, const void* dl, void* da,
                        void* scratch);

typedef struct weir_triangle_t {
  const void* data;  // n x n, of which one triangle is read
  int64_t n;
  bool is_lower;
  bool is_adjoint;  // solve with the conjugate transpose
} weir_triangle_t;
// Solves op(a) * x = b for the n x m matrix |x|, which may be |b|. A zero on the diagonal gives
// infinities and NaNs.
void weir_triangular_solve(weir_dtype_t dtype, const weir_triangle_t* a, int64_t m, const void* b,
                           void* x);

// a = q * r for the m x n matrix |a| by Householder reflections. |q| has m columns when |is_full|,
// else min(m, n); |r| has as many rows. Half is computed as float. |scratch| holds
// weir_qr_scratch_count elements of float where the type is half, of the type itself otherwise.
typedef struct weir_qr_t {
  int64_t m;
  int64_t n;
  bool is_full;
  const void* a;
  void* q;
  void* r;
  void* scratch;
} weir_qr_t;
int64_t weir_qr_scratch_count(int64_t m, int64_t n);
void weir_qr(weir_dtype_t dtype, const weir_qr_t* job);

#endif  // WEIR_KERNEL_LINALG_LINALG_H_
