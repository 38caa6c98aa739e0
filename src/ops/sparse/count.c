// count.c — DenseCountSparseOutput, SparseCountSparseOutput, SparseBincount: how often each number
// occurs in a tensor or in each of its rows.
#include "ops/sparse/count_rows.h"

#define COUNT_ATTRS                                                           \
  "T: {int32, int64}; minlength: int >= -1 = -1; maxlength: int >= -1 = -1; " \
  "binary_output: bool; output_type: {int32, int64, float, double}"
#define COUNT_OUTPUTS "output_indices: int64; output_values: output_type; output_dense_shape: int64"

// ---- dense ----

static weir_status_t* dense_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* values = weir_shape_input(ctx, 0);
  const weir_shape_t* weights = weir_shape_input(ctx, 1);
  bool is_given = !(weights->rank == 1 && weights->dims[0] <= 0);
  for (int d = 0; d < weights->rank; ++d) is_given = is_given && weights->dims[d] != 0;
  if (weights->rank >= 0 && is_given) WEIR_TRY(weir_shape_join(ctx, weights, values, &values));
  return weir_sparse_shape_set(ctx, 0, -1, values->rank);
}

static weir_status_t* dense_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* values = weir_kernel_input(ctx, 0);
  const weir_tensor_t* weights = weir_kernel_input(ctx, 1);
  char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
  if (values->rank != 1 && values->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input must be a 1 or 2-dimensional tensor. Got: %s",
                       weir_tensor_shape_text(values, x));
  }
  if (weights->count > 0 && !weir_tensor_same_shape(values, weights)) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Weights and data must have the same shape. Weight shape: %s; data shape: %s",
        weir_tensor_shape_text(weights, x), weir_tensor_shape_text(values, y));
  }
  const bool is_vector = values->rank == 1;
  const int64_t rows = is_vector ? 1 : values->dims[0];
  if (rows == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid input: Shapes dimension cannot be 0.");
  return weir_count_to_sparse(ctx, &(weir_count_rows_t){.values = values,
                                                        .weights = weights,
                                                        .width = values->dims[values->rank - 1],
                                                        .row_count = rows,
                                                        .is_vector = is_vector});
}

// ---- sparse ----

static weir_status_t* sparse_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* indices = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &indices));
  const int64_t rank = weir_shape_dim(indices, 1);
  return weir_sparse_shape_set(ctx, 0, -1, WEIR_MIN(rank, 2));  // rows and values at most
}

static weir_status_t* check_sparse(const weir_sparse_t* s, const weir_tensor_t* weights) {
  char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
  if (s->indices->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input indices must be a 2-dimensional tensor. Got: %s",
                       weir_tensor_shape_text(s->indices, x));
  }
  if (s->values->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input values must be a vector. Got: %s",
                       weir_tensor_shape_text(s->values, x));
  }
  if (s->shape->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input shape must be a vector. Got: %s",
                       weir_tensor_shape_text(s->shape, x));
  }
  if (s->count != s->values->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of values must match first dimension of indices.Got %" PRId64
                       " values, indices shape: %s",
                       s->values->count, weir_tensor_shape_text(s->indices, x));
  }
  if (s->indices->dims[1] != s->shape->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of dimensions must match second dimension of indices.Got %" PRId64
                       " dimensions, indices shape: %s",
                       s->shape->count, weir_tensor_shape_text(s->indices, x));
  }
  if (s->shape->count == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "The shape argument requires at least one element.");
  if (weights->count > 0 && !weir_tensor_same_shape(weights, s->values)) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Weights and values must have the same shape. Weight shape: %s; values shape: %s",
        weir_tensor_shape_text(weights, x), weir_tensor_shape_text(s->values, y));
  }
  return NULL;
}

static weir_status_t* check_indices(const weir_sparse_t* s) {
  char dims[WEIR_SHAPE_TEXT_SIZE];
  for (int64_t i = 0; i < s->count * s->rank; ++i) {
    int d = (int)(i % s->rank);
    if (s->rows[i] >= 0 && s->rows[i] < s->dims[d]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid index value at %" PRId64 ": dimension %d has value %" PRId64
                       " which is not in [0, %" PRId64
                       ") (as given by dense shape Tensor<type: int64 shape: [%d] values: %s>",
                       i / s->rank, d, s->rows[i], s->dims[d], s->rank,
                       weir_sparse_dims_text(s->dims, s->rank, dims));
  }
  return NULL;
}

// The rows that the first index of each element says, for |count|; released by the caller.
static weir_status_t* read_rows(const weir_sparse_t* s, int64_t** out_rows) {
  *out_rows = NULL;
  if (s->rank == 1) return NULL;
  int64_t* rows = weir_alloc_array((size_t)s->count, sizeof(*rows));
  if (!rows) return weir_out_of_memory();
  for (int64_t i = 0; i < s->count; ++i) rows[i] = weir_sparse_row(s, i)[0];
  *out_rows = rows;
  return NULL;
}

static weir_status_t* sparse_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* weights = weir_kernel_input(ctx, 3);
  weir_sparse_t s;
  int64_t* rows = NULL;
  weir_sparse_get(weir_kernel_input(ctx, 0), weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2),
                  &s);
  WEIR_TRY(check_sparse(&s, weights));
  const int64_t row_count = s.rank == 1 ? 1 : s.dims[0];
  if (row_count <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Cannot allocate %" PRId64 " batches, is the dense shape too wide?",
                       row_count);
  }
  WEIR_TRY(check_indices(&s));
  WEIR_TRY(read_rows(&s, &rows));
  weir_status_t* status = weir_count_to_sparse(ctx, &(weir_count_rows_t){.values = s.values,
                                                                         .weights = weights,
                                                                         .rows = rows,
                                                                         .row_count = row_count,
                                                                         .is_vector = s.rank == 1});
  weir_free(rows);
  return status;
}

// ---- SparseBincount ----

static weir_status_t* bincount_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 3), 0, NULL));
  const weir_tensor_t* size_value = weir_shape_value(ctx, 3);
  const weir_shape_t* shape = NULL;
  int64_t size = -1;
  if (size_value) WEIR_TRY(weir_count_size(size_value, &size));
  WEIR_TRY(weir_shape_from_value(ctx, 2, &shape));
  if (shape->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  if (shape->rank == 1) return weir_shape_set_vector(ctx, 0, size);
  if (shape->rank == 2)
    return weir_shape_set_dims(ctx, 0, 2, (const int64_t[]){shape->dims[0], size});
  return WEIR_STATUS(INVALID_ARGUMENT, "Input must be less than rank 2");
}

static weir_status_t* bincount_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* weights = weir_kernel_input(ctx, 4);
  weir_sparse_t s;
  int64_t size = 0;
  int64_t* rows = NULL;
  WEIR_TRY(weir_count_size(weir_kernel_input(ctx, 3), &size));
  WEIR_TRY(weir_sparse_read(ctx, 0, &s));
  WEIR_TRY(weir_sparse_check_bounds(&s));
  if (s.rank == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Input must not be a scalar");
  if (weights->count > 0 && weights->count != s.count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input indices and weights must have the same size, got %" PRId64
                       " and %" PRId64,
                       s.count, weights->count);
  }
  WEIR_TRY(weir_sparse_check_dims(s.dims, 1, NULL));
  WEIR_TRY(read_rows(&s, &rows));
  weir_status_t* status =
      weir_count_to_bins(ctx,
                         &(weir_count_rows_t){.values = s.values,
                                              .weights = weights,
                                              .rows = rows,
                                              .row_count = s.rank == 1 ? 1 : s.dims[0],
                                              .is_vector = s.rank == 1},
                         size);
  weir_free(rows);
  return status;
}

const weir_op_module_t weir_ops_sparse_count = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DenseCountSparseOutput",
         .attrs = COUNT_ATTRS,
         .inputs = "values: T; weights: output_type",
         .outputs = COUNT_OUTPUTS,
         .summary = "How often each number occurs in each row, as a sparse tensor",
         .infer_shape = dense_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = dense_cpu)},
        {.name = "SparseCountSparseOutput",
         .attrs = COUNT_ATTRS,
         .inputs = "indices: int64; values: T; dense_shape: int64; weights: output_type",
         .outputs = COUNT_OUTPUTS,
         .summary =
             "How often each number occurs in each row of a sparse tensor, as a sparse tensor",
         .infer_shape = sparse_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = sparse_cpu)},
        {.name = "SparseBincount",
         .attrs = "Tidx: {int32, int64}; T: {int32, int64, float, double}; binary_output: bool = "
                  "false",
         .inputs = "indices: int64; values: Tidx; dense_shape: int64; size: Tidx; weights: T",
         .outputs = "output: T",
         .summary = "How often each number below size occurs in a sparse tensor or its rows",
         .infer_shape = bincount_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = bincount_cpu, .host_inputs = "size")},
        {0}}};
