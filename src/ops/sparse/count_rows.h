// count_rows.h — How often each number occurs in each row, or the sum of its weights: what the
// counting ops of dense, sparse and ragged tensors share.
#ifndef WEIR_OPS_SPARSE_COUNT_ROWS_H_
#define WEIR_OPS_SPARSE_COUNT_ROWS_H_

#include "ops/sparse/sparse.h"

typedef struct weir_count_rows_t {
  const weir_tensor_t* values;   // int32 or int64
  const weir_tensor_t* weights;  // as many, or none: 1 each
  const int64_t* rows;           // the row of each value; NULL: |width| values a row
  int64_t width;
  int64_t row_count;
  bool is_vector;  // one row, and results have no dimension for it
} weir_count_rows_t;

// Outputs 0 to 2 are a sparse tensor of the counts, under attributes minlength, maxlength and
// binary_output.
WEIR_MUST_USE weir_status_t* weir_count_to_sparse(weir_kernel_ctx_t* ctx,
                                                  const weir_count_rows_t* count);
// Output 0 is a dense tensor of the counts of values below |size|, under binary_output.
WEIR_MUST_USE weir_status_t* weir_count_to_bins(weir_kernel_ctx_t* ctx,
                                                const weir_count_rows_t* count, int64_t size);
// The value of input |i|, a scalar that says how many bins there are.
WEIR_MUST_USE weir_status_t* weir_count_size(const weir_tensor_t* size, int64_t* out_size);

#endif  // WEIR_OPS_SPARSE_COUNT_ROWS_H_
