// union.h — The rows of two sparse tensors of one shape, merged: for sums and extremes.
#ifndef WEIR_OPS_SPARSE_UNION_H_
#define WEIR_OPS_SPARSE_UNION_H_

#include "ops/sparse/sparse.h"

// A row of the union: where it is in each operand; -1: it is not.
typedef struct weir_sparse_pair_t {
  int64_t a;
  int64_t b;
} weir_sparse_pair_t;

// INVALID_ARGUMENT unless both have the same dimensions.
WEIR_MUST_USE weir_status_t* weir_sparse_check_same_shape(const weir_sparse_t* a,
                                                          const weir_sparse_t* b);
// Merges two tensors whose rows are in order; |pairs| has room for all rows. Returns their number.
int64_t weir_sparse_union(const weir_sparse_t* a, const weir_sparse_t* b,
                          weir_sparse_pair_t* pairs);
// Output 0 is the indices of |pairs|.
WEIR_MUST_USE weir_status_t* weir_sparse_write_union(weir_kernel_ctx_t* ctx, const weir_sparse_t* a,
                                                     const weir_sparse_t* b,
                                                     const weir_sparse_pair_t* pairs,
                                                     int64_t count);

#endif  // WEIR_OPS_SPARSE_UNION_H_
