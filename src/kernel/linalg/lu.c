// lu.c — Elimination in blocks: what is right of a block of columns is updated by one product.
#include "kernel/linalg/lu.h"

#include <float.h>
#include <math.h>

#include "base/interrupt.h"
#include "kernel/gemm/gemm.h"

enum { BLOCK = 48 };

#define BODY "kernel/linalg/lu.inc"
#include "kernel/linalg/each_type.inc"

int weir_lu(weir_dtype_t dtype, weir_pool_t* pool, int64_t n, void* a, int64_t* order) {
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: return lu_float(pool, n, a, order);
    case WEIR_DTYPE_DOUBLE: return lu_double(pool, n, a, order);
    case WEIR_DTYPE_COMPLEX64: return lu_complex64(pool, n, a, order);
    default: return lu_complex128(pool, n, a, order);
  }
}

bool weir_lu_is_regular(weir_dtype_t dtype, int64_t n, const void* lu) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: return is_regular_float(n, lu);
    case WEIR_DTYPE_DOUBLE: return is_regular_double(n, lu);
    case WEIR_DTYPE_COMPLEX64: return is_regular_complex64(n, lu);
    default: return is_regular_complex128(n, lu);
  }
}

void weir_lu_solve(weir_dtype_t dtype, weir_pool_t* pool, int64_t n, const void* lu,
                   const int64_t* order, int64_t m, const void* b, void* x) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: lu_solve_float(pool, n, lu, order, m, b, x); return;
    case WEIR_DTYPE_DOUBLE: lu_solve_double(pool, n, lu, order, m, b, x); return;
    case WEIR_DTYPE_COMPLEX64: lu_solve_complex64(pool, n, lu, order, m, b, x); return;
    default: lu_solve_complex128(pool, n, lu, order, m, b, x); return;
  }
}

void weir_lu_determinant(weir_dtype_t dtype, int64_t n, const void* lu, int sign, void* out_sign,
                         double* out_log) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: determinant_float(n, lu, sign, out_sign, out_log); return;
    case WEIR_DTYPE_DOUBLE: determinant_double(n, lu, sign, out_sign, out_log); return;
    case WEIR_DTYPE_COMPLEX64: determinant_complex64(n, lu, sign, out_sign, out_log); return;
    default: determinant_complex128(n, lu, sign, out_sign, out_log); return;
  }
}

void weir_adjoint(weir_dtype_t dtype, int64_t m, int64_t n, const void* a, void* out) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: adjoint_float(m, n, a, out); return;
    case WEIR_DTYPE_DOUBLE: adjoint_double(m, n, a, out); return;
    case WEIR_DTYPE_COMPLEX64: adjoint_complex64(m, n, a, out); return;
    default: adjoint_complex128(m, n, a, out); return;
  }
}
