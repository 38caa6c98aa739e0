// svd.c — Singular values by one-sided Jacobi rotations of the triangular factor: small values come
// out as precisely as large ones, and vectors are orthogonal whatever the values are.
#include <float.h>
#include <math.h>

#include "base/interrupt.h"
#include "kernel/gemm/gemm.h"
#include "kernel/linalg/linalg.h"
#include "kernel/linalg/spectral.h"

enum { MAX_SWEEPS = 60, LANES = 8 };

#define BODY "kernel/linalg/svd.inc"
#include "kernel/linalg/each_type.inc"

int64_t weir_svd_scratch_count(int64_t m, int64_t n, bool is_full) {
  const int64_t rows = WEIR_MAX(m, n), columns = WEIR_MIN(m, n), q = is_full ? rows : columns;
  // The scaled matrix, q, r, two square ones, the values, and what the QR factorisation works with.
  return rows * columns + rows * q + q * columns + 2 * columns * columns + columns +
         rows * columns + columns + rows;
}

void weir_svd(weir_dtype_t dtype, const weir_svd_t* job) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: svd_float(job); return;
    case WEIR_DTYPE_DOUBLE: svd_double(job); return;
    case WEIR_DTYPE_COMPLEX64: svd_complex64(job); return;
    default: svd_complex128(job); return;
  }
}
