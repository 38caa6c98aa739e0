// gemm_neon.h — Float products on 64-bit ARM: a block of C by a register tile of our own.
//
// As fast as OpenBLAS there, with less memory, and it decides where sums round: an element is a
// chain of fused multiplications over |chain| products, and the chains join it one after the other.
// With the chains of TensorFlow (weir_gemm_neon_chain) products are equal to TensorFlow's bit for
// bit, but for a few elements at the edges of its blocks.
#ifndef WEIR_KERNEL_GEMM_NEON_H_
#define WEIR_KERNEL_GEMM_NEON_H_

#include "base/base.h"

typedef struct weir_gemm_neon_t {
  bool is_a_transposed;  // |a| is k x m as stored
  bool is_b_transposed;  // |b| is n x k as stored
  int64_t m, n, k;       // > 0
  int64_t chain;
  const float* a;
  const float* b;
  float* c;
  int64_t lda, ldb, ldc;
  float alpha, beta;  // |c| is not read when beta is 0
} weir_gemm_neon_t;

// How many products of an element TensorFlow sums up in one chain, for a product of these sizes.
int64_t weir_gemm_neon_chain(int64_t m, int64_t n, int64_t k);

// False, with C as it was, when memory runs out.
bool weir_gemm_neon(const weir_gemm_neon_t* product);

#endif  // WEIR_KERNEL_GEMM_NEON_H_
