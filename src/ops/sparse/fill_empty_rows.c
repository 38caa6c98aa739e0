// fill_empty_rows.c — SparseFillEmptyRows and its gradient: every row gets an element.
#include "ops/sparse/fill_rows.h"

static weir_status_t* fill_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* indices = NULL;
  const weir_shape_t* values = NULL;
  const weir_shape_t* shape = NULL;
  const weir_shape_t* dense = NULL;
  int64_t unused = -1;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &indices));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &values));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, &shape));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 3), 0, NULL));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(indices, 0), weir_shape_dim(values, 0), &unused));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(indices, 1), weir_shape_dim(shape, 0), &unused));
  if (weir_shape_dim(shape, 0) == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "dense_shape must not be empty");
  WEIR_TRY(weir_shape_from_value(ctx, 2, &dense));
  WEIR_TRY(weir_shape_set_dims(ctx, 0, 2, (const int64_t[]){-1, weir_shape_dim(indices, 1)}));
  WEIR_TRY(weir_shape_set_vector(ctx, 1, -1));
  WEIR_TRY(weir_shape_set_vector(ctx, 2, dense->rank > 0 ? dense->dims[0] : -1));
  return weir_shape_set_vector(ctx, 3, weir_shape_dim(indices, 0));
}

static weir_status_t* check_inputs(const weir_sparse_t* s, const weir_tensor_t* default_value) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (s->shape->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "dense_shape must be a vector, saw: %s",
                       weir_tensor_shape_text(s->shape, text));
  }
  if (s->indices->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "indices must be a matrix, saw: %s",
                       weir_tensor_shape_text(s->indices, text));
  }
  if (s->values->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "values must be a vector, saw: %s",
                       weir_tensor_shape_text(s->values, text));
  }
  if (s->count != s->values->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The length of `values` (%" PRId64
                       ") must match the first dimension of `indices` (%" PRId64 ").",
                       s->values->count, s->count);
  }
  if (s->indices->dims[1] != s->shape->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The length of `dense_shape` (%" PRId64
                       ") must match the second dimension of `indices` (%" PRId64 ").",
                       s->shape->count, s->indices->dims[1]);
  }
  if (default_value->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "default_value must be a scalar, saw: %s",
                       weir_tensor_shape_text(default_value, text));
  }
  if (s->shape->count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Dense shape cannot be empty.");
  return NULL;
}

static weir_status_t* check_rows(const weir_sparse_t* s) {
  if (s->dims[0] == 0 && s->count > 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = "
                       "%" PRId64,
                       s->count);
  }
  WEIR_TRY(weir_sparse_check_dims(s->dims, 1, NULL));
  for (int64_t i = 0; i < s->count; ++i) {
    int64_t row = weir_sparse_row(s, i)[0];
    if (row >= 0 && row < s->dims[0]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "indices(%" PRId64 ", 0) is invalid: %" PRId64 " >= %" PRId64, i, row,
                       s->dims[0]);
  }
  return NULL;
}

static weir_status_t* fill_cpu(weir_kernel_ctx_t* ctx) {
  weir_sparse_t s;
  weir_sparse_get(weir_kernel_input(ctx, 0), weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2),
                  &s);
  WEIR_TRY(check_inputs(&s, weir_kernel_input(ctx, 3)));
  WEIR_TRY(check_rows(&s));
  return weir_fill_rows(ctx, &(weir_fill_rows_t){.indices = s.indices,
                                                 .values = s.values,
                                                 .default_value = weir_kernel_input(ctx, 3),
                                                 .depth = s.rank,
                                                 .count = s.count,
                                                 .rows = s.dims[0]});
}

static weir_status_t* fill_grad(weir_grad_ctx_t* g) {
  weir_edge_t both = weir_grad_node(g, "SparseFillEmptyRowsGrad",
                                    WEIR_EDGES(weir_grad_output(g, 3), weir_grad_dy(g, 1)));
  WEIR_TRY(weir_grad_set(g, 1, both));
  return weir_grad_set(g, 3, weir_build_output(both, 1));
}

const weir_op_module_t weir_ops_sparse_fill_empty_rows = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseFillEmptyRows",
         .attrs = "T: type",
         .inputs = "indices: int64; values: T; dense_shape: int64; default_value: T",
         .outputs = "output_indices: int64; output_values: T; empty_row_indicator: bool; "
                    "reverse_index_map: int64",
         .summary = "Gives every row of a sparse tensor that has no element a default one.",
         .infer_shape = fill_shape,
         .build_grad = fill_grad,
         .kernels = WEIR_CPU_KERNEL(.types = SPARSE_ANY, .compute = fill_cpu)},
        {.name = "SparseFillEmptyRowsGrad",
         .attrs = "T: type",
         .inputs = "reverse_index_map: int64; grad_values: T",
         .outputs = "d_values: T; d_default_value: T",
         .summary = "The gradients of SparseFillEmptyRows.",
         .infer_shape = weir_fill_rows_grad_shape,
         .kernels = WEIR_CPU_KERNEL(.types = SPARSE_NUMBER, .compute = weir_fill_rows_grad_cpu)},
        {0}}};
