// csr_convert.c — SparseTensorToCSRSparseMatrix, DenseToCSRSparseMatrix, CSRSparseMatrixToDense,
// CSRSparseMatrixToSparseTensor, CSRSparseMatrixComponents, SparseMatrixNNZ: sparse matrices from
// and to other forms.
#include <stdio.h>

#include "ops/math/common.h"
#include "ops/sparse/csr.h"

// Entries sorted by batch and row become a matrix: rows are counted, columns stay as they are.
static void fill_structure(const int64_t* rows, int64_t count, weir_csr_t* out) {
  memset(out->batch_starts, 0, sizeof(int32_t) * (size_t)(out->batches + 1));
  memset(out->row_starts, 0, sizeof(int32_t) * (size_t)(out->batches * (out->rows + 1)));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t* row = rows + i * out->rank;
    int64_t batch = out->rank == 3 ? row[0] : 0;
    ++out->batch_starts[batch + 1];
    ++out->row_starts[batch * (out->rows + 1) + row[out->rank - 2] + 1];
    out->column_indices[i] = (int32_t)row[out->rank - 1];
  }
  for (int64_t b = 0; b < out->batches; ++b) {
    int32_t* starts = out->row_starts + b * (out->rows + 1);
    out->batch_starts[b + 1] += out->batch_starts[b];
    for (int64_t r = 0; r < out->rows; ++r) starts[r + 1] += starts[r];
  }
}

// ---- from sparse tensors ----

static weir_status_t* from_sparse_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_sparse_shape_check(ctx, 0));
  return weir_shape_set_scalar(ctx, 0);
}

static weir_status_t* from_sparse_cpu(weir_kernel_ctx_t* ctx) {
  weir_sparse_t s;
  weir_csr_t out;
  weir_parcel_t* parcel = NULL;
  WEIR_TRY(weir_sparse_read(ctx, 0, &s));
  WEIR_TRY(weir_sparse_check_bounds(&s));
  if (s.rank != 2 && s.rank != 3) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "SparseTensor must have rank 2 or 3; but indices has rank: %d", s.rank);
  }
  WEIR_TRY(weir_sparse_check_dims(s.dims, s.rank, NULL));
  WEIR_TRY(weir_csr_create(weir_tensor_type(s.values), s.rank, s.dims, s.count, &parcel, &out));
  fill_structure(s.rows, s.count, &out);
  if (s.count > 0) {
    memcpy(out.values->data, s.values->data,
           (size_t)s.count * weir_dtype_size(weir_tensor_type(s.values)));
  }
  return weir_csr_output(ctx, 0, parcel);
}

static weir_edge_t to_sparse(weir_grad_ctx_t* g, weir_edge_t matrix, weir_dtype_t dtype) {
  return weir_grad_node_with(g, "CSRSparseMatrixToSparseTensor", WEIR_EDGES(matrix),
                             WEIR_ATTRS(weir_attr_type("type", dtype)));
}

static weir_status_t* from_sparse_grad(weir_grad_ctx_t* g) {
  weir_edge_t parts = to_sparse(g, weir_grad_dy(g, 0), weir_attrs_type(weir_grad_attrs(g), "T"));
  return weir_grad_set(g, 1, weir_build_output(parts, 1));
}

// ---- from dense tensors ----

static weir_status_t* from_dense_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* dense = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_at_least(ctx, dense, 2));
  WEIR_TRY(weir_shape_at_most(ctx, dense, 3));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 2, NULL));
  return weir_shape_set_scalar(ctx, 0);
}

static weir_status_t* check_dense(const weir_tensor_t* dense, const weir_tensor_t* indices) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (dense->rank != 2 && dense->rank != 3) {
    return WEIR_STATUS(INVALID_ARGUMENT, "params must have rank == 2 or 3; but saw shape: %s",
                       weir_tensor_shape_text(dense, text));
  }
  if (indices->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "indices must be a matrix, but saw shape: %s",
                       weir_tensor_shape_text(indices, text));
  }
  if (indices->dims[1] != dense->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "indices.shape[1] must be equal to the rank of params, but saw: %" PRId64
                       " vs. %d",
                       indices->dims[1], dense->rank);
  }
  return NULL;
}

static weir_status_t* place_of(const weir_kernel_ctx_t* ctx, const weir_tensor_t* dense,
                               const weir_tensor_t* indices, int64_t i, int64_t* out_place) {
  const int64_t* row = WEIR_TENSOR_DATA(indices, int64_t) + i * dense->rank;
  int64_t place = 0;
  for (int d = 0; d < dense->rank; ++d) {
    if (row[d] < 0 || row[d] >= dense->dims[d]) {
      char text[WEIR_SHAPE_TEXT_SIZE], at[WEIR_SHAPE_TEXT_SIZE];
      size_t used = 0;
      for (int k = 0; k < dense->rank; ++k)
        used += (size_t)snprintf(at + used, sizeof(at) - used, "%s%" PRId64, k ? ", " : "", row[k]);
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "indices[%" PRId64
                         "] = [%s] does not index into param shape %s, node name: "
                         "%s",
                         i, at, weir_tensor_shape_text(dense, text), ctx->node->name);
    }
    place = place * dense->dims[d] + row[d];
  }
  *out_place = place;
  return NULL;
}

static weir_status_t* from_dense_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* dense = weir_kernel_input(ctx, 0);
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  const weir_dtype_t dtype = weir_tensor_type(dense);
  weir_csr_t out;
  weir_parcel_t* parcel = NULL;
  WEIR_TRY(check_dense(dense, indices));
  const int64_t count = indices->dims[0];
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = 0;
    WEIR_TRY(place_of(ctx, dense, indices, i, &place));
  }
  WEIR_TRY(weir_csr_create(dtype, dense->rank, dense->dims, count, &parcel, &out));
  fill_structure(indices->data, count, &out);
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = 0;
    weir_status_destroy(place_of(ctx, dense, indices, i, &place));  // checked above
    memcpy(weir_sparse_at(out.values, i), weir_sparse_at(dense, place), weir_dtype_size(dtype));
  }
  return weir_csr_output(ctx, 0, parcel);
}

static weir_status_t* from_dense_grad(weir_grad_ctx_t* g) {
  weir_dtype_t dtype = weir_attrs_type(weir_grad_attrs(g), "T");
  return weir_grad_set(
      g, 0,
      weir_grad_node_with(g, "CSRSparseMatrixToDense", WEIR_EDGES(weir_grad_dy(g, 0)),
                          WEIR_ATTRS(weir_attr_type("type", dtype))));
}

// ---- to dense tensors ----

static weir_status_t* to_dense_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  return weir_shape_set(ctx, 0, &weir_shape_unknown);
}

static weir_status_t* to_dense_cpu(weir_kernel_ctx_t* ctx) {
  const weir_dtype_t want = weir_attrs_type(weir_kernel_attrs(ctx), "type");
  weir_csr_t m;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_csr_read(ctx, 0, &m));
  if (m.dtype != want) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Asked for a CSRSparseMatrix of type %s but saw dtype: %s",
                       weir_dtype_name(want), weir_dtype_name(m.dtype));
  }
  const size_t size = weir_dtype_size(m.dtype);
  WEIR_TRY(weir_kernel_output(ctx, 0, m.rank, m.dims, &out));
  weir_move_zero(m.dtype, out->data, out->count);
  for (int64_t b = 0; b < m.batches; ++b) {
    const int32_t* starts = weir_csr_row_starts(&m, b);
    for (int64_t r = 0; r < m.rows; ++r) {
      for (int64_t e = m.batch_starts[b] + starts[r]; e < m.batch_starts[b] + starts[r + 1]; ++e) {
        int64_t place = (b * m.rows + r) * m.columns + m.column_indices[e];
        memcpy(weir_sparse_at(out, place), weir_sparse_at(m.values, e), size);
      }
    }
  }
  return NULL;
}

static weir_status_t* to_dense_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t parts = to_sparse(g, weir_grad_input(g, 0), weir_grad_dtype(g, dy));
  weir_edge_t values = node2(g, "GatherNd", dy, parts);
  return weir_grad_set(
      g, 0, node3(g, "SparseTensorToCSRSparseMatrix", parts, values, weir_build_output(parts, 2)));
}

// ---- to sparse tensors ----

static weir_status_t* to_sparse_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  return weir_sparse_shape_set(ctx, 0, -1, -1);
}

static weir_status_t* to_sparse_cpu(weir_kernel_ctx_t* ctx) {
  const weir_dtype_t want = weir_attrs_type(weir_kernel_attrs(ctx), "type");
  weir_csr_t m;
  weir_tensor_t* indices = NULL;
  WEIR_TRY(weir_csr_read(ctx, 0, &m));
  if (m.dtype != want) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected a CSRSparseMatrix of type %s but saw type: %s",
                       weir_dtype_name(want), weir_dtype_name(m.dtype));
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (const int64_t[]){m.values->count, m.rank}, &indices));
  for (int64_t b = 0; b < m.batches; ++b) {
    const int32_t* starts = weir_csr_row_starts(&m, b);
    for (int64_t r = 0; r < m.rows; ++r) {
      for (int64_t e = m.batch_starts[b] + starts[r]; e < m.batch_starts[b] + starts[r + 1]; ++e) {
        int64_t* row = WEIR_TENSOR_DATA(indices, int64_t) + e * m.rank;
        row[0] = b;  // overwritten where there is no batch
        row[m.rank - 2] = r;
        row[m.rank - 1] = m.column_indices[e];
      }
    }
  }
  weir_kernel_set(ctx, 1, weir_tensor_retain(m.values));
  return weir_sparse_output_vector(ctx, 2, m.dims, m.rank);
}

static weir_status_t* to_sparse_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0,
                       node3(g, "SparseTensorToCSRSparseMatrix", weir_grad_output(g, 0),
                             weir_grad_dy(g, 1), weir_grad_output(g, 2)));
}

// ---- parts ----

static weir_status_t* components_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  for (int i = 0; i < 3; ++i) WEIR_TRY(weir_shape_set_vector(ctx, i, -1));
  return NULL;
}

static weir_status_t* components_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* index = weir_kernel_input(ctx, 1);
  weir_csr_t m;
  weir_tensor_t* out[3];
  WEIR_TRY(weir_csr_read(ctx, 0, &m));
  if (index->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "index should be a scalar, but saw: a tensor of shape %s",
                       weir_tensor_shape_text(index, text));
  }
  const int64_t batch = WEIR_TENSOR_DATA(index, int32_t)[0];
  if (batch < 0 || batch >= m.batches) {
    return WEIR_STATUS(INVALID_ARGUMENT, "index (%" PRId64 ") not in [0, %" PRId64 ")", batch,
                       m.batches);
  }
  if (m.dtype != ctx->node->output_types[2]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "dtype of csr_sparse_matrix is not equal to 'type': %s vs. %s",
                       weir_dtype_name(m.dtype), weir_dtype_name(ctx->node->output_types[2]));
  }
  const int64_t starts = m.rows + 1, count = weir_csr_count(&m, batch);
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, &starts, &out[0]));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &count, &out[1]));
  WEIR_TRY(weir_kernel_output(ctx, 2, 1, &count, &out[2]));
  memcpy(out[0]->data, weir_csr_row_starts(&m, batch), sizeof(int32_t) * (size_t)starts);
  if (count == 0) return NULL;
  memcpy(out[1]->data, m.column_indices + m.batch_starts[batch], sizeof(int32_t) * (size_t)count);
  memcpy(out[2]->data, weir_sparse_at(m.values, m.batch_starts[batch]),
         weir_dtype_size(m.dtype) * (size_t)count);
  return NULL;
}

static weir_status_t* nnz_cpu(weir_kernel_ctx_t* ctx) {
  weir_csr_t m;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_csr_read(ctx, 0, &m));
  WEIR_TRY(weir_kernel_output(ctx, 0, m.rank - 2, m.dims, &out));
  for (int64_t b = 0; b < m.batches; ++b)
    WEIR_TENSOR_DATA(out, int32_t)[b] = (int32_t)weir_csr_count(&m, b);
  return NULL;
}

const weir_op_module_t weir_ops_sparse_csr_convert = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseTensorToCSRSparseMatrix",
         .attrs = "T: " CSR_TYPES,
         .inputs = "indices: int64; values: T; dense_shape: int64",
         .outputs = "sparse_matrix: variant",
         .summary = "A sparse matrix in compressed rows from a sparse tensor.",
         .infer_shape = from_sparse_shape,
         .build_grad = from_sparse_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = from_sparse_cpu)},
        {.name = "DenseToCSRSparseMatrix",
         .attrs = "T: " CSR_TYPES,
         .inputs = "dense_input: T; indices: int64",
         .outputs = "sparse_output: variant",
         .summary = "A sparse matrix of some elements of a dense one.",
         .infer_shape = from_dense_shape,
         .build_grad = from_dense_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = from_dense_cpu)},
        {.name = "CSRSparseMatrixToDense",
         .attrs = "type: " CSR_TYPES,
         .inputs = "sparse_input: variant",
         .outputs = "dense_output: type",
         .summary = "A dense matrix from a sparse one.",
         .infer_shape = to_dense_shape,
         .build_grad = to_dense_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = to_dense_cpu)},
        {.name = "CSRSparseMatrixToSparseTensor",
         .attrs = "type: " CSR_TYPES,
         .inputs = "sparse_matrix: variant",
         .outputs = "indices: int64; values: type; dense_shape: int64",
         .flags = WEIR_OP_VIEW,
         .summary = "A sparse tensor from a sparse matrix.",
         .infer_shape = to_sparse_shape,
         .build_grad = to_sparse_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = to_sparse_cpu)},
        {.name = "CSRSparseMatrixComponents",
         .attrs = "type: " CSR_TYPES,
         .inputs = "csr_sparse_matrix: variant; index: int32",
         .outputs = "row_ptrs: int32; col_inds: int32; values: type",
         .summary = "Row starts, columns and values of one matrix of a batch.",
         .infer_shape = components_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = components_cpu)},
        {.name = "SparseMatrixNNZ",
         .inputs = "sparse_matrix: variant",
         .outputs = "nnz: int32",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "The number of entries of each matrix.",
         .infer_shape = to_dense_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = nnz_cpu)},
        {0}}};
