// batch.h — Sparse tensors cut into rows and put together again: for serialisation and for maps of
// tensors.
#ifndef WEIR_OPS_SPARSE_BATCH_H_
#define WEIR_OPS_SPARSE_BATCH_H_

#include "ops/sparse/sparse.h"

// "Input indices should be a matrix but received shape [3]".
WEIR_MUST_USE weir_status_t* weir_sparse_check_ranks(const weir_sparse_t* s);
// Reads and checks three inputs whose rows shall be cut.
WEIR_MUST_USE weir_status_t* weir_sparse_read_rows(const weir_kernel_ctx_t* ctx, weir_sparse_t* s);
// Creates indices, values and shape of elements [begin, end), which are in one row, without it.
// |parts| are NULL before; those that were made are the caller's, also on failure.
WEIR_MUST_USE weir_status_t* weir_sparse_cut_row(const weir_sparse_t* s, int64_t begin, int64_t end,
                                                 weir_tensor_t** parts);

// Outputs 0 to 2 are the |count| tensors |parts| (indices, values, shape of each) under
// |batch_rank| more dimensions, |batch|. Every tensor is as large as the largest of them.
WEIR_MUST_USE weir_status_t* weir_sparse_join(weir_kernel_ctx_t* ctx, weir_tensor_t* const* parts,
                                              int64_t count, int batch_rank, const int64_t* batch);

#endif  // WEIR_OPS_SPARSE_BATCH_H_
