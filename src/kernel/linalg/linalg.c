// linalg.c — Cholesky and QR factorisations, triangular solves: type-generic bodies of linalg.inc
// and the gradient of Cholesky on top of them.
#include "kernel/linalg/linalg.h"

#include <float.h>
#include <math.h>

#include "base/interrupt.h"
#include "tensor/numeric.h"

#define SAME(a) (a)

#define SUFFIX float
#define T float
#define R float
#define REAL SAME
#define CONJ SAME
#define SQRT sqrtf
#define NO_FACTOR NAN
#include "kernel/linalg/linalg.inc"

#define SUFFIX double
#define T double
#define R double
#define REAL SAME
#define CONJ SAME
#define SQRT sqrt
#define NO_FACTOR NAN
#include "kernel/linalg/linalg.inc"

#define SUFFIX complex64
#define T weir_complex64_t
#define R float
#define REAL crealf
#define CONJ conjf
#define SQRT sqrtf
#define NO_FACTOR 0
#include "kernel/linalg/linalg.inc"

#define SUFFIX complex128
#define T weir_complex128_t
#define R double
#define REAL creal
#define CONJ conj
#define SQRT sqrt
#define NO_FACTOR 0
#include "kernel/linalg/linalg.inc"

void weir_cholesky(weir_dtype_t dtype, int64_t n, const void* a, void* l) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: cholesky_float(n, a, l); return;
    case WEIR_DTYPE_DOUBLE: cholesky_double(n, a, l); return;
    case WEIR_DTYPE_COMPLEX64: cholesky_complex64(n, a, l); return;
    default: cholesky_complex128(n, a, l); return;
  }
}

void weir_triangular_solve(weir_dtype_t dtype, const weir_triangle_t* a, int64_t m, const void* b,
                           void* x) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: triangular_solve_float(a, m, b, x); return;
    case WEIR_DTYPE_DOUBLE: triangular_solve_double(a, m, b, x); return;
    case WEIR_DTYPE_COMPLEX64: triangular_solve_complex64(a, m, b, x); return;
    default: triangular_solve_complex128(a, m, b, x); return;
  }
}

// Reads and writes elements of float and double alike: the gradient is no hot path.
static double get(weir_dtype_t dtype, const void* data, int64_t i) {
  return dtype == WEIR_DTYPE_FLOAT ? (double)((const float*)data)[i] : ((const double*)data)[i];
}
static void set(weir_dtype_t dtype, void* data, int64_t i, double value) {
  if (dtype == WEIR_DTYPE_FLOAT) {
    ((float*)data)[i] = (float)value;
  } else {
    ((double*)data)[i] = value;
  }
}

// out = the lower triangle of l^T * dl, its diagonal halved.
static void halved_product(weir_dtype_t dtype, int64_t n, const void* l, const void* dl,
                           void* out) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t k = i; j <= i && k < n; ++k) {
        sum += get(dtype, l, k * n + i) * get(dtype, dl, k * n + j);
      }
      set(dtype, out, i * n + j, i == j ? sum / 2 : sum);
    }
  }
}

static void transpose(weir_dtype_t dtype, int64_t n, void* a) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) {
      double upper = get(dtype, a, i * n + j);
      set(dtype, a, i * n + j, get(dtype, a, j * n + i));
      set(dtype, a, j * n + i, upper);
    }
  }
}

// da = sym(l^-T * p * l^-1), where p is the halved product.
void weir_cholesky_grad(weir_dtype_t dtype, int64_t n, const void* l, const void* dl, void* da,
                        void* scratch) {
  const weir_triangle_t factor = {.data = l, .n = n, .is_lower = true, .is_adjoint = true};
  halved_product(dtype, n, l, dl, scratch);
  weir_triangular_solve(dtype, &factor, n, scratch, scratch);  // l^-T p
  transpose(dtype, n, scratch);
  weir_triangular_solve(dtype, &factor, n, scratch,
                        scratch);  // l^-T (l^-T p)^T, the transpose of what is wanted
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = get(dtype, scratch, i * n + j) + get(dtype, scratch, j * n + i);
      set(dtype, da, i * n + j, sum / 2);
    }
  }
}

int64_t weir_qr_scratch_count(int64_t m, int64_t n) {
  int64_t larger = WEIR_MAX(m, n), smaller = WEIR_MIN(m, n);
  // Half has the matrix, q and r in float here as well.
  return m * n + smaller + larger + m * n + m * m + larger * n;
}

#define HALF_TINY 6.103515625e-05f

static void qr_half(const weir_qr_t* job) {
  const int64_t m = job->m, n = job->n, rows = job->is_full ? m : WEIR_MIN(m, n);
  float* a = (float*)job->scratch + m * n + WEIR_MIN(m, n) + WEIR_MAX(m, n);
  float* q = a + m * n;
  float* r = q + m * rows;
  const weir_half_t* source = job->a;
  for (int64_t i = 0; i < m * n; ++i) a[i] = weir_half_to_float(source[i]);
  qr_float(job, a, q, r, job->scratch, HALF_TINY);
  for (int64_t i = 0; i < m * rows; ++i) ((weir_half_t*)job->q)[i] = weir_half_from_float(q[i]);
  for (int64_t i = 0; i < rows * n; ++i) ((weir_half_t*)job->r)[i] = weir_half_from_float(r[i]);
}

void weir_qr(weir_dtype_t dtype, const weir_qr_t* job) {
  switch (dtype) {
    case WEIR_DTYPE_HALF: qr_half(job); return;
    case WEIR_DTYPE_FLOAT: qr_float(job, job->a, job->q, job->r, job->scratch, FLT_MIN); return;
    case WEIR_DTYPE_DOUBLE: qr_double(job, job->a, job->q, job->r, job->scratch, DBL_MIN); return;
    case WEIR_DTYPE_COMPLEX64:
      qr_complex64(job, job->a, job->q, job->r, job->scratch, FLT_MIN);
      return;
    default: qr_complex128(job, job->a, job->q, job->r, job->scratch, DBL_MIN); return;
  }
}
