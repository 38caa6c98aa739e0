// csr.h — Sparse matrices in compressed rows, one or a batch of them, as an element of a variant
// tensor: TensorFlow's CSRSparseMatrix.
#ifndef WEIR_OPS_SPARSE_CSR_H_
#define WEIR_OPS_SPARSE_CSR_H_

#include "ops/sparse/sparse.h"
#include "tensor/parcel.h"

#define CSR_TYPES "{float, double, complex64, complex128}"
#define CSR_KERNEL_TYPES ": float, double, complex64, complex128"

extern const weir_variant_type_t weir_csr_type;

// A matrix; everything is borrowed from the object.
typedef struct weir_csr_t {
  weir_dtype_t dtype;
  int rank;  // 2, or 3 with a batch
  int64_t dims[3];
  int64_t batches;  // 1 where there is no batch
  int64_t rows;
  int64_t columns;
  int32_t* batch_starts;    // batches + 1, in entries
  int32_t* row_starts;      // rows + 1 for each of the batch, counted within it
  int32_t* column_indices;  // of the entries
  weir_tensor_t* values;    // of the entries
} weir_csr_t;

WEIR_INLINE const int32_t* weir_csr_row_starts(const weir_csr_t* m, int64_t batch) {
  return m->row_starts + batch * (m->rows + 1);
}
WEIR_INLINE int64_t weir_csr_count(const weir_csr_t* m, int64_t batch) {
  return m->batch_starts[batch + 1] - m->batch_starts[batch];
}

// The matrix in input |i|. INVALID_ARGUMENT when it is something else.
WEIR_MUST_USE weir_status_t* weir_csr_read(const weir_kernel_ctx_t* ctx, int i, weir_csr_t* out);
WEIR_MUST_USE weir_status_t* weir_csr_check_square(const weir_csr_t* m);
// Creates a matrix of |rank| dimensions with |count| entries, which the caller sets.
WEIR_MUST_USE weir_status_t* weir_csr_create(weir_dtype_t dtype, int rank, const int64_t* dims,
                                             int64_t count, weir_parcel_t** out_parcel,
                                             weir_csr_t* out);
// Makes |take_parcel| output |i|, a scalar.
WEIR_MUST_USE weir_status_t* weir_csr_output(weir_kernel_ctx_t* ctx, int i,
                                             weir_parcel_t* take_parcel);
// Creates the transposed matrix, conjugated where |conjugates|.
WEIR_MUST_USE weir_status_t* weir_csr_transpose(const weir_csr_t* m, bool conjugates,
                                                weir_parcel_t** out_parcel, weir_csr_t* out);

// Gradients (csr_grad.c) of SparseMatrixMatMul and SparseMatrixSparseMatMul.
weir_status_t* weir_csr_matmul_grad(weir_grad_ctx_t* g);
weir_status_t* weir_csr_sparse_matmul_grad(weir_grad_ctx_t* g);

#endif  // WEIR_OPS_SPARSE_CSR_H_
