// gemm_micro.h — The innermost loop of a float product: a tile of C whose sums stay in registers.
// One for each instruction set.
#ifndef WEIR_KERNEL_GEMM_GEMM_MICRO_H_
#define WEIR_KERNEL_GEMM_GEMM_MICRO_H_

#include "base/base.h"

enum { WEIR_MICRO_ROWS = 8, WEIR_MICRO_WIDTH = 32 };  // at most

// Where the elements of a row of A lie, from the row's pointer on: runs of equal length, one after
// the other. Element k of run r is row[offset[r] + k * step].
typedef struct weir_gemm_runs_t {
  const int64_t* offset;
  int64_t count, length;  // > 0
  int64_t step;
} weir_gemm_runs_t;

typedef struct weir_gemm_micro_t {
  int rows, width;        // of the tile
  int narrowest;          // products of fewer columns are better off elsewhere
  bool prefers_adjacent;  // elements far apart are better brought together (a step of 1) first
  // C = beta * C + alpha * A * panel, on a whole tile. The panel has a row of |width| for each
  // element of a row of A, and one more, which may be read. Fused multiplications, in that order.
  // |c| is not read when beta is 0.
  void (*run)(const float* const* row, const weir_gemm_runs_t* runs, const float* panel,
              float alpha, float beta, float* c, int64_t ldc);
} weir_gemm_micro_t;

// The best one for this CPU; NULL: none. Thread-safe.
const weir_gemm_micro_t* weir_gemm_micro(void);

#endif  // WEIR_KERNEL_GEMM_GEMM_MICRO_H_
