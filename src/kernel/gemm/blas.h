// blas.h — OpenBLAS, opened at run time: one binary serves machines with and without it, and nobody
// pays for loading it before the first product.
//
// The threaded build of OpenBLAS is the one wanted, held to one thread: our own pool owns the
// threads, and only that build may be called from several threads at once. (The serial build shares
// one table of buffers without a lock: concurrent calls give wrong products.)
#ifndef WEIR_KERNEL_GEMM_BLAS_H_
#define WEIR_KERNEL_GEMM_BLAS_H_

#include "base/base.h"

// As cblas.h numbers them.
enum { WEIR_BLAS_ROW_MAJOR = 101 };
typedef enum weir_blas_trans_t {
  WEIR_BLAS_NO_TRANS = 111,
  WEIR_BLAS_TRANS = 112,
  WEIR_BLAS_CONJ_TRANS = 113
} weir_blas_trans_t;

typedef struct weir_blas_t {
  void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a,
                int lda, const float* b, int ldb, float beta, float* c, int ldc);
  void (*dgemm)(int order, int ta, int tb, int m, int n, int k, double alpha, const double* a,
                int lda, const double* b, int ldb, double beta, double* c, int ldc);
  void (*cgemm)(int order, int ta, int tb, int m, int n, int k, const void* alpha, const void* a,
                int lda, const void* b, int ldb, const void* beta, void* c, int ldc);
  void (*zgemm)(int order, int ta, int tb, int m, int n, int k, const void* alpha, const void* a,
                int lda, const void* b, int ldb, const void* beta, void* c, int ldc);
  void (*sgemv)(int order, int trans, int m, int n, float alpha, const float* a, int lda,
                const float* x, int incx, float beta, float* y, int incy);
  void (*dgemv)(int order, int trans, int m, int n, double alpha, const double* a, int lda,
                const double* x, int incx, double beta, double* y, int incy);
} weir_blas_t;

// Thread-safe. NULL when the machine has no OpenBLAS that may be called from several threads.
const weir_blas_t* weir_blas(void);

#endif  // WEIR_KERNEL_GEMM_BLAS_H_
