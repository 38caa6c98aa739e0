// gemm_micro.h — The innermost loop of a float product: a tile of C whose sums stay in registers.
// One for each instruction set.
#ifndef WEIR_KERNEL_GEMM_MICRO_H_
#define WEIR_KERNEL_GEMM_MICRO_H_

#include "base/base.h"

enum { WEIR_MICRO_ROWS = 8, WEIR_MICRO_WIDTH = 32 };  // at most

typedef struct weir_gemm_micro_t {
  int rows, width;     // of the tile
  int narrowest;       // products of fewer columns are better off elsewhere
  bool takes_columns;  // |step| below may be other than 1
  // C = beta * C + alpha * A * panel, on a whole tile. Element k of row i of A is a[i][k * step];
  // the panel has |depth| rows of |width|, and one more, which may be read. Fused multiplications,
  // in order of k. |c| is not read when beta is 0.
  void (*run)(const float* const* a, int64_t step, const float* panel, int64_t depth, float alpha,
              float beta, float* c, int64_t ldc);
} weir_gemm_micro_t;

// The best one for this CPU; NULL: none. Thread-safe.
const weir_gemm_micro_t* weir_gemm_micro(void);

#endif  // WEIR_KERNEL_GEMM_MICRO_H_
