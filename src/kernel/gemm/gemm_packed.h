// gemm_packed.h — Float products by register tiles of our own: a block of C over packed panels.
//
// About as fast as OpenBLAS, faster for the narrow products of convolutions, with less memory
// (bench/gemm_bench.c); and it decides where sums round: an element is a chain of fused
// multiplications over |chain| products, and the chains join it one after the other. On 64-bit ARM
// the chains are TensorFlow's (weir_gemm_chain), and products equal to TensorFlow's bit for bit,
// but for a few elements at the edges of its blocks.
#ifndef WEIR_KERNEL_GEMM_GEMM_PACKED_H_
#define WEIR_KERNEL_GEMM_GEMM_PACKED_H_

#include "kernel/gemm/gemm_micro.h"

typedef struct weir_gemm_packed_t {
  bool is_a_transposed;  // |a| is k x m as stored
  bool is_b_transposed;  // |b| is n x k as stored
  int64_t m, n, k;       // > 0
  int64_t chain;
  const float* a;
  const float* b;
  float* c;
  int64_t lda, ldb, ldc;
  float alpha, beta;  // |c| is not read when beta is 0
} weir_gemm_packed_t;

// How many products of an element go into one chain, for a product of these sizes.
int64_t weir_gemm_chain(int64_t m, int64_t n, int64_t k);

// False, with C as it was, when memory runs out or the CPU has no tile for it.
bool weir_gemm_packed(const weir_gemm_packed_t* product);

// C = A * B, or C + A * B, where A's rows lie anywhere. Rows of B are in order of A's elements. A
// chain is a few runs, or a part of a long one; by the shape alone.
typedef struct weir_gemm_indirect_t {
  int64_t m, n;
  const float* const* row;  // m, then WEIR_MICRO_ROWS - 1 that may be read: copies of the last one
  weir_gemm_runs_t runs;    // of each row
  const float* b;
  float* c;
  int64_t ldb, ldc;
  bool adds;      // to C
  float* packed;  // WEIR_GEMM_PACKED_SIZE floats where elements lie far apart, or NULL
} weir_gemm_indirect_t;

enum { WEIR_GEMM_PACKED_SIZE = 192 * 200 };

// Whether elements so far apart had better be packed.
bool weir_gemm_is_far(int64_t step);
// The CPU must have a tile.
void weir_gemm_indirect(const weir_gemm_indirect_t* product);

#endif  // WEIR_KERNEL_GEMM_GEMM_PACKED_H_
