// fill_empty_rows.c — RaggedFillEmptyRows and its gradient: every row gets an element.
#include "ops/sparse/fill_rows.h"

static weir_status_t* fill_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* ids = NULL;
  const weir_shape_t* values = NULL;
  int64_t count = -1;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, &ids));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &values));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 0, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 3), 0, NULL));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(ids, 0), weir_shape_dim(values, 0), &count));
  WEIR_TRY(weir_shape_set_vector(ctx, 0, -1));
  WEIR_TRY(weir_shape_set_vector(ctx, 1, -1));
  const weir_tensor_t* rows = weir_shape_value(ctx, 2);
  int64_t row_count = rows ? WEIR_TENSOR_DATA(rows, int64_t)[0] : -1;
  WEIR_TRY(weir_shape_set_vector(ctx, 2, WEIR_MAX(row_count, -1)));
  return weir_shape_set_vector(ctx, 3, count);
}

static weir_status_t* check_inputs(const weir_kernel_ctx_t* ctx) {
  static const struct {
    const char* name;
    int rank;
  } wanted[] = {{"value_rowids", 1}, {"values", 1}, {"nrows", 0}, {"default_value", 0}};
  char text[WEIR_SHAPE_TEXT_SIZE];
  for (int i = 0; i < 4; ++i) {
    const weir_tensor_t* in = weir_kernel_input(ctx, i);
    if (in->rank == wanted[i].rank) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a %s, saw: %s", wanted[i].name,
                       wanted[i].rank ? "vector" : "scalar", weir_tensor_shape_text(in, text));
  }
  if (weir_kernel_input(ctx, 0)->count != weir_kernel_input(ctx, 1)->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The length of `values` (%" PRId64
                       ") must match the first dimension of `value_rowids` (%" PRId64 ").",
                       weir_kernel_input(ctx, 1)->count, weir_kernel_input(ctx, 0)->count);
  }
  return NULL;
}

static weir_status_t* check_rows(const weir_tensor_t* ids, int64_t rows) {
  if (rows == 0 && ids->count > 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = "
                       "%" PRId64,
                       ids->count);
  }
  WEIR_TRY(weir_sparse_check_dims(&rows, 1, NULL));
  for (int64_t i = 0; i < ids->count; ++i) {
    int64_t row = WEIR_TENSOR_DATA(ids, int64_t)[i];
    if (row >= 0 && row < rows) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "indices(%" PRId64 ", 0) is invalid: %" PRId64 " >= %" PRId64, i, row, rows);
  }
  return NULL;
}

static weir_status_t* fill_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_inputs(ctx));
  const weir_tensor_t* ids = weir_kernel_input(ctx, 0);
  const int64_t rows = WEIR_TENSOR_DATA(weir_kernel_input(ctx, 2), int64_t)[0];
  WEIR_TRY(check_rows(ids, rows));
  return weir_fill_rows(ctx, &(weir_fill_rows_t){.indices = ids,
                                                 .values = weir_kernel_input(ctx, 1),
                                                 .default_value = weir_kernel_input(ctx, 3),
                                                 .depth = 1,
                                                 .count = ids->count,
                                                 .rows = rows});
}

static weir_status_t* fill_grad(weir_grad_ctx_t* g) {
  weir_edge_t both = weir_grad_node(g, "RaggedFillEmptyRowsGrad",
                                    WEIR_EDGES(weir_grad_output(g, 3), weir_grad_dy(g, 1)));
  WEIR_TRY(weir_grad_set(g, 1, both));
  return weir_grad_set(g, 3, weir_build_output(both, 1));
}

const weir_op_module_t weir_ops_ragged_fill_empty_rows = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RaggedFillEmptyRows",
         .attrs = "T: type",
         .inputs = "value_rowids: int64; values: T; nrows: int64; default_value: T",
         .outputs = "output_value_rowids: int64; output_values: T; empty_row_indicator: bool; "
                    "reverse_index_map: int64",
         .summary = "Gives every row of a ragged tensor that has no element a default one.",
         .infer_shape = fill_shape,
         .build_grad = fill_grad,
         .kernels = WEIR_CPU_KERNEL(.types = SPARSE_ANY, .compute = fill_cpu)},
        {.name = "RaggedFillEmptyRowsGrad",
         .attrs = "T: type",
         .inputs = "reverse_index_map: int64; grad_values: T",
         .outputs = "d_values: T; d_default_value: T",
         .summary = "The gradients of RaggedFillEmptyRows.",
         .infer_shape = weir_fill_rows_grad_shape,
         .kernels = WEIR_CPU_KERNEL(.types = SPARSE_NUMBER, .compute = weir_fill_rows_grad_cpu)},
        {0}}};
