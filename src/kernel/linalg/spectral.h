// spectral.h — Singular values, and eigenvalues of self-adjoint matrices: float, double, complex64
// and complex128, row-major. Thread-safe.
#ifndef WEIR_KERNEL_LINALG_SPECTRAL_H_
#define WEIR_KERNEL_LINALG_SPECTRAL_H_

#include "base/base.h"
#include "weir/dtype.h"

// a = u * diag(s) * v^H for the m x n matrix |a|, with the p = min(m, n) values of |s| falling.
typedef struct weir_svd_t {
  int64_t m;
  int64_t n;
  bool is_full;  // u is m x m and v n x n; else m x p and n x p
  const void* a;
  void* s;  // of the type of |a|
  void* u;  // NULL: values only
  void* v;
  void* scratch;  // weir_svd_scratch_count elements
} weir_svd_t;
int64_t weir_svd_scratch_count(int64_t m, int64_t n, bool is_full);
// Of what is not finite all results are NaN, or zero for complex types (as in TensorFlow).
void weir_svd(weir_dtype_t dtype, const weir_svd_t* job);

// a = v * diag(e) * v^H for the n x n matrix |a|, of which the lower triangle is read; the values
// |e|, of the type of |a|, rise. |v| may be NULL: values only. False when |a| holds a NaN.
// |scratch| has weir_eigh_scratch_count elements.
int64_t weir_eigh_scratch_count(int64_t n);
bool weir_eigh(weir_dtype_t dtype, int64_t n, const void* a, void* e, void* v, void* scratch);

#endif  // WEIR_KERNEL_LINALG_SPECTRAL_H_
