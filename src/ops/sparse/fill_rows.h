// fill_rows.h — Rows that have no element get one: shared by SparseFillEmptyRows and
// RaggedFillEmptyRows, whose gradients are the same.
#ifndef WEIR_OPS_SPARSE_FILL_ROWS_H_
#define WEIR_OPS_SPARSE_FILL_ROWS_H_

#include "ops/sparse/sparse.h"

// Elements and the row of each, stride |depth| apart; new ones are |default_value|, at index 0 of
// the other dimensions.
typedef struct weir_fill_rows_t {
  const weir_tensor_t* indices;  // of int64: the row comes first
  const weir_tensor_t* values;
  const weir_tensor_t* default_value;
  int64_t depth;
  int64_t count;
  int64_t rows;
} weir_fill_rows_t;

// Writes outputs 0 to 3: indices, values, which rows were empty, and where each element went.
WEIR_MUST_USE weir_status_t* weir_fill_rows(weir_kernel_ctx_t* ctx, const weir_fill_rows_t* fill);
weir_status_t* weir_fill_rows_grad_cpu(weir_kernel_ctx_t* ctx);
weir_status_t* weir_fill_rows_grad_shape(weir_shape_ctx_t* ctx);

#endif  // WEIR_OPS_SPARSE_FILL_ROWS_H_
