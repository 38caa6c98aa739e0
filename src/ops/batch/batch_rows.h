// batch_rows.h — Rows of several tensors as one, for ops that put steps together.
#ifndef WEIR_OPS_BATCH_BATCH_ROWS_H_
#define WEIR_OPS_BATCH_BATCH_ROWS_H_

#include "base/thread.h"
#include "tensor/tensor.h"

// Creates the rows of all |parts|, |count| > 0 of rank 1 or more, one after the other, then
// |padding| times the first row of the first. INVALID_ARGUMENT unless they agree in type and in all
// dimensions but the first.
WEIR_MUST_USE weir_status_t* weir_batch_rows_join(weir_pool_t* pool, weir_tensor_t* const* parts,
                                                  int64_t count, int64_t padding,
                                                  weir_tensor_t** out_rows);

#endif  // WEIR_OPS_BATCH_BATCH_ROWS_H_
