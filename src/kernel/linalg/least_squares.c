// least_squares.c — Least squares by normal equations or singular values, tridiagonal and banded
// systems by elimination.
#include "kernel/linalg/least_squares.h"

#include <float.h>
#include <math.h>

#include "kernel/gemm/gemm.h"
#include "kernel/linalg/linalg.h"
#include "kernel/linalg/spectral.h"

#define BODY "kernel/linalg/least_squares.inc"
#include "kernel/linalg/each_type.inc"

int64_t weir_least_squares_scratch_count(const weir_least_squares_t* job) {
  const int64_t m = job->m, n = job->n, p = WEIR_MIN(m, n);
  if (job->is_fast) return 2 * p * p + p * job->k;
  return p + (m + n) * p + p * job->k + weir_svd_scratch_count(m, n, false);
}

bool weir_least_squares(weir_dtype_t dtype, const weir_least_squares_t* job) {
  if (job->is_fast) {
    switch (dtype) {
      case WEIR_DTYPE_FLOAT: return normal_float(job);
      case WEIR_DTYPE_DOUBLE: return normal_double(job);
      case WEIR_DTYPE_COMPLEX64: return normal_complex64(job);
      default: return normal_complex128(job);
    }
  }
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: shortest_float(job); break;
    case WEIR_DTYPE_DOUBLE: shortest_double(job); break;
    case WEIR_DTYPE_COMPLEX64: shortest_complex64(job); break;
    default: shortest_complex128(job); break;
  }
  return true;
}

void weir_tridiagonal_solve(weir_dtype_t dtype, const weir_tridiagonal_t* job) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: tridiagonal_solve_float(job); return;
    case WEIR_DTYPE_DOUBLE: tridiagonal_solve_double(job); return;
    case WEIR_DTYPE_COMPLEX64: tridiagonal_solve_complex64(job); return;
    default: tridiagonal_solve_complex128(job); return;
  }
}

void weir_tridiagonal_product(weir_dtype_t dtype, const weir_tridiagonal_product_t* job) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: tridiagonal_product_float(job); return;
    case WEIR_DTYPE_DOUBLE: tridiagonal_product_double(job); return;
    case WEIR_DTYPE_COMPLEX64: tridiagonal_product_complex64(job); return;
    default: tridiagonal_product_complex128(job); return;
  }
}

bool weir_banded_solve(weir_dtype_t dtype, const weir_banded_t* job) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: return banded_solve_float(job);
    case WEIR_DTYPE_DOUBLE: return banded_solve_double(job);
    case WEIR_DTYPE_COMPLEX64: return banded_solve_complex64(job);
    default: return banded_solve_complex128(job);
  }
}
