// count.c — RaggedCountSparseOutput, RaggedBincount: how often each number occurs in each row of a
// ragged tensor.
#include "ops/sparse/count_rows.h"

// The row of each value, by |splits|; -1 before the first one.
static weir_status_t* read_rows(const weir_tensor_t* splits, int64_t count, int64_t** out_rows) {
  const int64_t* at = splits->data;
  int64_t* rows = weir_alloc_array((size_t)count, sizeof(*rows));
  if (!rows) return weir_out_of_memory();
  int64_t row = 0;
  for (int64_t i = 0; i < count; ++i) {
    while (row + 2 < splits->count && i >= at[row + 1]) ++row;
    rows[i] = row;
  }
  *out_rows = rows;
  return NULL;
}

static weir_status_t* check_ends(const weir_tensor_t* splits, const weir_tensor_t* values) {
  const int64_t* at = splits->data;
  if (at[0] != 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Splits must start with 0, not with %" PRId64, at[0]);
  if (at[splits->count - 1] != values->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Splits must end with the number of values, got %" PRId64
                       " instead of %" PRId64,
                       at[splits->count - 1], values->count);
  }
  return NULL;
}

static weir_status_t* count_shape(weir_shape_ctx_t* ctx) {
  const bool is_vector = weir_shape_input(ctx, 1)->rank == 1;
  return weir_sparse_shape_set(ctx, 0, -1, is_vector ? 2 : -1);
}

static weir_status_t* count_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* splits = weir_kernel_input(ctx, 0);
  const weir_tensor_t* values = weir_kernel_input(ctx, 1);
  const weir_tensor_t* weights = weir_kernel_input(ctx, 2);
  int64_t* rows = NULL;
  if (weights->count > 0 && !weir_tensor_same_shape(weights, values)) {
    char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Weights and values must have the same shape. Weight shape: %s; values shape: %s",
        weir_tensor_shape_text(weights, x), weir_tensor_shape_text(values, y));
  }
  if (splits->count < 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Must provide at least 2 elements for the splits argument");
  }
  WEIR_TRY(check_ends(splits, values));
  WEIR_TRY(read_rows(splits, values->count, &rows));
  weir_status_t* status = weir_count_to_sparse(
      ctx, &(weir_count_rows_t){
               .values = values, .weights = weights, .rows = rows, .row_count = splits->count - 1});
  weir_free(rows);
  return status;
}

static weir_status_t* bincount_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set(ctx, 0, &weir_shape_unknown);
}

static weir_status_t* bincount_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* splits = weir_kernel_input(ctx, 0);
  const weir_tensor_t* values = weir_kernel_input(ctx, 1);
  const weir_tensor_t* weights = weir_kernel_input(ctx, 3);
  int64_t size = 0;
  int64_t* rows = NULL;
  WEIR_TRY(weir_count_size(weir_kernel_input(ctx, 2), &size));
  if (splits->count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Splits must be non-empty");
  WEIR_TRY(check_ends(splits, values));
  const bool is_binary = weir_attrs_bool(weir_kernel_attrs(ctx), "binary_output");
  if (weights->count > 0 && weights->count < values->count && !is_binary) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "There must be as many weights (%" PRId64 ") as values (%" PRId64 ")",
                       weights->count, values->count);
  }
  WEIR_TRY(read_rows(splits, values->count, &rows));
  weir_status_t* status = weir_count_to_bins(
      ctx,
      &(weir_count_rows_t){
          .values = values, .weights = weights, .rows = rows, .row_count = splits->count - 1},
      size);
  weir_free(rows);
  return status;
}

const weir_op_module_t weir_ops_ragged_count = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RaggedCountSparseOutput",
         .attrs = "T: {int32, int64}; minlength: int >= -1 = -1; maxlength: int >= -1 = -1; "
                  "binary_output: bool; output_type: {int32, int64, float, double}",
         .inputs = "splits: int64; values: T; weights: output_type",
         .outputs = "output_indices: int64; output_values: output_type; output_dense_shape: int64",
         .summary = "How often each number occurs in each row, as a sparse tensor",
         .infer_shape = count_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = count_cpu)},
        {.name = "RaggedBincount",
         .attrs = "Tidx: {int32, int64}; T: {int32, int64, float, double}; binary_output: bool = "
                  "false",
         .inputs = "splits: int64; values: Tidx; size: Tidx; weights: T",
         .outputs = "output: T",
         .summary = "How often each number below size occurs in each row",
         .infer_shape = bincount_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = bincount_cpu, .host_inputs = "size")},
        {0}}};
