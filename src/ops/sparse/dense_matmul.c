// dense_matmul.c — SparseTensorDenseMatMul: the product of a sparse and a dense matrix.
#include "kernel/sparse/csr_product.h"
#include "ops/math/common.h"
#include "ops/sparse/sparse.h"

static weir_status_t* dense_matmul_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = NULL;
  const weir_shape_t* b = NULL;
  const int adjoint_a = weir_attrs_bool(weir_shape_attrs(ctx), "adjoint_a");
  const int adjoint_b = weir_attrs_bool(weir_shape_attrs(ctx), "adjoint_b");
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, NULL));
  WEIR_TRY(weir_shape_from_value(ctx, 2, &a));
  WEIR_TRY(weir_shape_with_rank(ctx, a, 2, &a));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 3), 2, &b));
  int64_t inner = -1;
  WEIR_TRY(
      weir_dim_join(ctx, weir_shape_dim(a, 1 - adjoint_a), weir_shape_dim(b, adjoint_b), &inner));
  return weir_shape_set_dims(
      ctx, 0, 2, (const int64_t[]){weir_shape_dim(a, adjoint_a), weir_shape_dim(b, 1 - adjoint_b)});
}

static weir_status_t* check_inputs(const weir_tensor_t* indices, const weir_tensor_t* values,
                                   const weir_tensor_t* shape, const weir_tensor_t* b) {
  if (b->rank != 2) return WEIR_STATUS(INVALID_ARGUMENT, "Tensor 'b' is not a matrix");
  if (shape->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "Tensor 'a_shape' is not a vector");
  if (shape->count != 2)
    return WEIR_STATUS(INVALID_ARGUMENT, "Tensor 'a_shape' must have 2 elements");
  if (values->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "Tensor 'a_values' is not a vector");
  if (indices->rank != 2)
    return WEIR_STATUS(INVALID_ARGUMENT, "Tensor 'a_indices' is not a matrix");
  if (indices->dims[0] != values->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of rows of a_indices does not match number of entries in a_values");
  }
  if (indices->dims[1] != shape->count) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Number of columns of a_indices does not match number of entries in a_shape");
  }
  return NULL;
}

// The entries' rows and columns, of the adjoint matrix where |adjoint| is 1.
static weir_status_t* read_entries(const weir_tensor_t* indices, int adjoint, int64_t row_count,
                                   int64_t column_count, int64_t* rows, int64_t* columns) {
  for (int64_t i = 0; i < indices->dims[0]; ++i) {
    rows[i] = weir_tensor_int_at(indices, 2 * i + adjoint);
    columns[i] = weir_tensor_int_at(indices, 2 * i + 1 - adjoint);
    if (columns[i] < 0 || columns[i] >= column_count) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "k (%" PRId64 ") from index[%" PRId64 ",%d] out of bounds (>=%" PRId64 ")",
                         columns[i], i, 1 - adjoint, column_count);
    }
    if (rows[i] < 0 || rows[i] >= row_count) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "m (%" PRId64 ") from index[%" PRId64 ",%d] out of bounds (>=%" PRId64 ")",
                         rows[i], i, adjoint, row_count);
    }
  }
  return NULL;
}

// The adjoint of |b| in scratch memory.
static weir_status_t* adjoint_of(weir_kernel_ctx_t* ctx, const weir_tensor_t* b,
                                 weir_tensor_t** out) {
  const weir_dtype_t dtype = weir_tensor_type(b);
  WEIR_TRY(weir_kernel_scratch(ctx, dtype, b->count, out));
  weir_move_dim_t box[] = {{b->dims[0], b->dims[1], 1}, {b->dims[1], 1, b->dims[0]}};
  WEIR_TRY(weir_move_box(weir_kernel_pool(ctx), dtype, 2, box, b->data, (*out)->data));
  weir_unary_fn_t conj =
      weir_dtype_is_complex(dtype) ? weir_unary_find(WEIR_UNARY_CONJ, dtype) : NULL;
  if (conj) conj((*out)->data, (*out)->data, b->count);
  return NULL;
}

// Sorts the entries by row, and multiplies. |work| has room for 4 numbers an entry and the starts.
static weir_status_t* multiply(weir_kernel_ctx_t* ctx, const weir_tensor_t* b, int64_t width,
                               int64_t row_count, int64_t column_count, int64_t* work) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 0);
  const weir_tensor_t* values = weir_kernel_input(ctx, 1);
  const bool adjoint = weir_attrs_bool(weir_kernel_attrs(ctx), "adjoint_a");
  const int64_t count = values->count;
  int64_t* rows = work;
  int64_t* columns = rows + count;
  int64_t* order = columns + count;
  int64_t* sorted = order + count;
  int64_t* starts = sorted + count;
  weir_tensor_t* c = NULL;
  WEIR_TRY(read_entries(indices, adjoint, row_count, column_count, rows, columns));
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (const int64_t[]){row_count, width}, &c));
  bool is_sorted = true;
  for (int64_t i = 1; i < count && is_sorted; ++i) is_sorted = rows[i - 1] <= rows[i];
  if (is_sorted) {
    weir_csr_count_rows(rows, count, row_count, starts);
  } else {
    weir_csr_group(rows, count, row_count, starts, order);
    for (int64_t i = 0; i < count; ++i) sorted[i] = columns[order[i]];
  }
  return weir_csr_multiply(weir_kernel_pool(ctx),
                           &(weir_csr_product_t){.dtype = weir_tensor_type(values),
                                                 .conjugates = adjoint,
                                                 .rows = row_count,
                                                 .width = width,
                                                 .starts = starts,
                                                 .columns = is_sorted ? columns : sorted,
                                                 .places = is_sorted ? NULL : order,
                                                 .values = values->data,
                                                 .b = b->data,
                                                 .c = c->data});
}

static weir_status_t* dense_matmul_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* values = weir_kernel_input(ctx, 1);
  const weir_tensor_t* shape = weir_kernel_input(ctx, 2);
  const weir_tensor_t* b = weir_kernel_input(ctx, 3);
  const int adjoint_a = weir_attrs_bool(weir_kernel_attrs(ctx), "adjoint_a");
  const int adjoint_b = weir_attrs_bool(weir_kernel_attrs(ctx), "adjoint_b");
  WEIR_TRY(check_inputs(weir_kernel_input(ctx, 0), values, shape, b));
  const int64_t* dims = shape->data;
  const int64_t rows = dims[adjoint_a], inner = dims[1 - adjoint_a], width = b->dims[1 - adjoint_b];
  if (inner != b->dims[adjoint_b]) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Cannot multiply A and B because inner dimension does not match: %" PRId64
                       " vs. %" PRId64 ".  Did you forget a transpose?  Dimensions of A: [%" PRId64
                       ", %" PRId64 ").  Dimensions of B: %s",
                       inner, b->dims[adjoint_b], dims[0], dims[1],
                       weir_tensor_shape_text(b, text));
  }
  WEIR_TRY(weir_sparse_check_dims((const int64_t[]){rows, width}, 2, NULL));
  weir_tensor_t *flipped = NULL, *nothing = NULL;
  if (rows == 0 || width == 0)  // indices are not looked at
    return weir_kernel_output(ctx, 0, 2, (const int64_t[]){rows, width}, &nothing);
  int64_t* work = weir_alloc_array((size_t)values->count * 4 + (size_t)rows + 1, sizeof(*work));
  weir_status_t* status = work ? NULL : weir_out_of_memory();
  if (!status && adjoint_b) status = adjoint_of(ctx, b, &flipped);
  if (!status) status = multiply(ctx, flipped ? flipped : b, width, rows, inner, work);
  weir_tensor_release(flipped);
  weir_free(work);
  return status;
}

// ---- gradient ----

// Column |i| of the indices.
static weir_edge_t index_column(weir_grad_ctx_t* g, int i) {
  return node3(g, "GatherV2", weir_grad_input(g, 0), weir_build_int32(g->builder, i),
               weir_build_int32(g->builder, 1));
}

// da[e] = dc[row] . conj(b[column]), for every entry; conjugated of an adjoint matrix.
static weir_edge_t values_grad(weir_grad_ctx_t* g, weir_edge_t dy, bool adjoint_a, bool adjoint_b) {
  weir_edge_t b = weir_grad_input(g, 3);
  weir_edge_t zero = weir_build_int32(g->builder, 0);
  if (adjoint_b)
    b = node2(g, "Transpose", b, weir_build_int32s(g->builder, (const int32_t[]){1, 0}, 2));
  else b = weir_grad_conj(g, b);
  weir_edge_t left = node3(g, "GatherV2", dy, index_column(g, adjoint_a ? 1 : 0), zero);
  weir_edge_t right = node3(g, "GatherV2", b, index_column(g, adjoint_a ? 0 : 1), zero);
  weir_edge_t sum = weir_grad_node(
      g, "Sum", WEIR_EDGES(weir_grad_mul(g, left, right), weir_build_int32(g->builder, 1)));
  return adjoint_a ? weir_grad_conj(g, sum) : sum;
}

static weir_status_t* dense_matmul_grad(weir_grad_ctx_t* g) {
  const bool adjoint_a = weir_attrs_bool(weir_grad_attrs(g), "adjoint_a");
  const bool adjoint_b = weir_attrs_bool(weir_grad_attrs(g), "adjoint_b");
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t db = weir_grad_node_with(
      g, "SparseTensorDenseMatMul",
      WEIR_EDGES(weir_grad_input(g, 0), weir_grad_input(g, 1), weir_grad_input(g, 2), dy),
      WEIR_ATTRS(weir_attr_bool("adjoint_a", !adjoint_a)));
  if (adjoint_b) {
    db = node2(g, "Transpose", weir_grad_conj(g, db),
               weir_build_int32s(g->builder, (const int32_t[]){1, 0}, 2));
  }
  WEIR_TRY(weir_grad_set(g, 3, db));
  return weir_grad_set(g, 1, values_grad(g, dy, adjoint_a, adjoint_b));
}

const weir_op_module_t weir_ops_sparse_dense_matmul = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseTensorDenseMatMul",
         .attrs = "T: type; Tindices: {int32, int64} = DT_INT64; adjoint_a: bool = false; "
                  "adjoint_b: bool = false",
         .inputs = "a_indices: Tindices; a_values: T; a_shape: int64; b: T",
         .outputs = "product: T",
         .summary = "The product of a sparse and a dense matrix.",
         .infer_shape = dense_matmul_shape,
         .build_grad = dense_matmul_grad,
         .kernels =
             WEIR_CPU_KERNEL(.types =
                                 "T: float, double, half, bfloat16, int32, complex64, complex128",
                             .compute = dense_matmul_cpu)},
        {0}}};
