// gemm.h — Matrix products, C = alpha * op(A) * op(B) + beta * C, on row-major matrices.
// Thread-safe.
//
// Float products have tiles of our own (gemm_packed.h) where the CPU has NEON or AVX-512. For the
// rest a BLAS does the work where the build has one (WEIR_HAVE_BLAS), else blocked loops.
// Work is split into blocks whose sizes depend on m, n and k alone, so the result does not depend
// on the number of threads. |pool| may be NULL: one thread.
#ifndef WEIR_KERNEL_GEMM_GEMM_H_
#define WEIR_KERNEL_GEMM_GEMM_H_

#include "base/thread.h"
#include "tensor/numeric.h"
#include "weir/dtype.h"

typedef enum weir_trans_t {
  WEIR_NO_TRANS = 0,
  WEIR_TRANS = 1,
  WEIR_CONJ_TRANS = 2,  // the same as TRANS for real types
} weir_trans_t;

// op(A) is m x k, op(B) k x n, C m x n; lda, ldb, ldc are row strides in elements as stored. |c| is
// not read when beta is 0.
void weir_gemm(weir_pool_t* pool, weir_trans_t trans_a, weir_trans_t trans_b, int64_t m, int64_t n,
               int64_t k, float alpha, const float* a, int64_t lda, const float* b, int64_t ldb,
               float beta, float* c, int64_t ldc);
void weir_gemm_double(weir_pool_t* pool, weir_trans_t trans_a, weir_trans_t trans_b, int64_t m,
                      int64_t n, int64_t k, double alpha, const double* a, int64_t lda,
                      const double* b, int64_t ldb, double beta, double* c, int64_t ldc);
void weir_gemm_complex64(weir_pool_t* pool, weir_trans_t trans_a, weir_trans_t trans_b, int64_t m,
                         int64_t n, int64_t k, weir_complex64_t alpha, const weir_complex64_t* a,
                         int64_t lda, const weir_complex64_t* b, int64_t ldb, weir_complex64_t beta,
                         weir_complex64_t* c, int64_t ldc);
void weir_gemm_complex128(weir_pool_t* pool, weir_trans_t trans_a, weir_trans_t trans_b, int64_t m,
                          int64_t n, int64_t k, weir_complex128_t alpha, const weir_complex128_t* a,
                          int64_t lda, const weir_complex128_t* b, int64_t ldb,
                          weir_complex128_t beta, weir_complex128_t* c, int64_t ldc);

// C = op(A) * op(B) for any number type: the four above, half and bfloat16 through float, integers
// modulo their width (8-bit ones into int32 when dtype_c says so). RESOURCE_EXHAUSTED, or
// UNIMPLEMENTED for a combination of types without code.
typedef struct weir_gemm_args_t {
  weir_dtype_t dtype_a;
  weir_dtype_t dtype_b;
  weir_dtype_t dtype_c;
  weir_trans_t trans_a;
  weir_trans_t trans_b;
  int64_t m;
  int64_t n;
  int64_t k;
  const void* a;  // rows are contiguous: the strides are the row lengths as stored
  const void* b;
  void* c;
} weir_gemm_args_t;
WEIR_MUST_USE weir_status_t* weir_gemm_any(weir_pool_t* pool, const weir_gemm_args_t* args);

#endif  // WEIR_KERNEL_GEMM_GEMM_H_
