// concat.c — SparseConcat: sparse tensors one after the other along a dimension, in order.
#include <stdlib.h>

#include "ops/sparse/sparse.h"

static weir_status_t* concat_shape(weir_shape_ctx_t* ctx) {
  const int n = (int)weir_attrs_int(weir_shape_attrs(ctx), "N");
  int64_t rows = 0, columns = -1;
  const weir_shape_t* shape = &weir_shape_unknown;
  for (int i = 0; i < n; ++i) {
    const weir_shape_t* indices = NULL;
    const weir_shape_t* values = NULL;
    const weir_shape_t* dims = NULL;
    int64_t count = -1;
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 2, &indices));
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, n + i), 1, &values));
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2 * n + i), 1, &dims));
    WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(indices, 0), weir_shape_dim(values, 0), &count));
    WEIR_TRY(weir_dim_join(ctx, columns, weir_shape_dim(indices, 1), &columns));
    WEIR_TRY(weir_shape_join(ctx, shape, dims, &shape));
    rows = rows < 0 || count < 0 ? -1 : rows + count;
  }
  WEIR_TRY(weir_shape_set_dims(ctx, 0, 2, (const int64_t[]){rows, columns}));
  WEIR_TRY(weir_shape_set_vector(ctx, 1, rows));
  return weir_shape_set(ctx, 2, shape);
}

static weir_status_t* check_each(const weir_kernel_ctx_t* ctx, int n) {
  static const char* const messages[] = {"Input indices should be a matrix",
                                         "Input values should be a vector",
                                         "Input shapes should be a vector"};
  char text[WEIR_SHAPE_TEXT_SIZE];
  for (int part = 0; part < 3; ++part) {
    for (int i = 0; i < n; ++i) {
      const weir_tensor_t* t = weir_kernel_input(ctx, part * n + i);
      if (t->rank == (part == 0 ? 2 : 1)) continue;
      return WEIR_STATUS(INVALID_ARGUMENT, "%s but received shape %s at position %d",
                         messages[part], weir_tensor_shape_text(t, text), i);
    }
  }
  for (int i = 0; i < n; ++i) {
    const weir_tensor_t* shape = weir_kernel_input(ctx, 2 * n + i);
    weir_status_t* status = weir_sparse_check_dims(shape->data, shape->count, NULL);
    if (!status) continue;
    weir_status_destroy(status);
    return WEIR_STATUS(INTERNAL, "Encountered overflow from large input shape.");
  }
  return NULL;
}

// The dimensions of the result, and which of them grows.
static weir_status_t* check_shapes(const weir_kernel_ctx_t* ctx, int n, int* out_axis,
                                   int64_t* dims) {
  const weir_tensor_t* first = weir_kernel_input(ctx, 2 * n);
  const int rank = (int)WEIR_MIN(first->count, WEIR_MAX_RANK);
  int64_t axis = weir_attrs_int(weir_kernel_attrs(ctx), "concat_dim");
  if (axis < -rank || axis >= rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Concat dimension must be in range [%d, %d), got %" PRId64,
                       -rank, rank, axis);
  }
  if (axis < 0) axis += rank;
  for (int d = 0; d < rank; ++d) dims[d] = WEIR_TENSOR_DATA(first, int64_t)[d];
  for (int i = 1; i < n; ++i) {
    const weir_tensor_t* shape = weir_kernel_input(ctx, 2 * n + i);
    if (shape->count != first->count) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Ranks of all input tensors must match: expected %" PRId64
                         " but got %" PRId64 " at position %d",
                         first->count, shape->count, i);
    }
    for (int d = 0; d < rank; ++d) {
      int64_t size = WEIR_TENSOR_DATA(shape, int64_t)[d];
      if (d == axis) {
        dims[d] = (int64_t)((uint64_t)dims[d] + (uint64_t)size);
      } else if (dims[d] != size) {
        return WEIR_STATUS(INVALID_ARGUMENT,
                           "Input shapes must match: expected %" PRId64
                           " for dimension %d but got %" PRId64 " at position %d",
                           dims[d], d, size, i);
      }
    }
  }
  *out_axis = (int)axis;
  return NULL;
}

// All rows, those of later inputs moved along the axis; where in the inputs each comes from.
typedef struct rows_t {
  int64_t* indices;
  const char** values;
  int64_t* order;
  int64_t count;
} rows_t;

static weir_status_t* collect(const weir_kernel_ctx_t* ctx, int n, int axis, int rank,
                              rows_t* rows) {
  rows->indices = weir_alloc_array((size_t)rows->count, sizeof(int64_t) * (size_t)rank);
  rows->values = weir_alloc_array((size_t)rows->count, sizeof(char*));
  rows->order = weir_alloc_array((size_t)rows->count, sizeof(int64_t));
  if (!rows->indices || !rows->values || !rows->order) return weir_out_of_memory();
  int64_t offset = 0, at = 0;
  for (int i = 0; i < n; ++i) {
    weir_sparse_t s;
    weir_sparse_get(weir_kernel_input(ctx, i), weir_kernel_input(ctx, n + i),
                    weir_kernel_input(ctx, 2 * n + i), &s);
    for (int64_t k = 0; k < s.count; ++k, ++at) {
      memcpy(rows->indices + at * rank, weir_sparse_row(&s, k), sizeof(int64_t) * (size_t)rank);
      rows->indices[at * rank + axis] += offset;
      rows->values[at] = weir_sparse_at(s.values, k);
    }
    offset += s.dims[axis];
  }
  return NULL;
}

static weir_status_t* write_rows(weir_kernel_ctx_t* ctx, const rows_t* rows, int rank) {
  weir_tensor_t* indices = NULL;
  weir_tensor_t* values = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (const int64_t[]){rows->count, rank}, &indices));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &rows->count, &values));
  for (int64_t i = 0; i < rows->count; ++i) {
    int64_t from = rows->order[i];
    memcpy(WEIR_TENSOR_DATA(indices, int64_t) + i * rank, rows->indices + from * rank,
           sizeof(int64_t) * (size_t)rank);
    WEIR_TRY(weir_elements_copy(weir_tensor_type(values), weir_sparse_at(values, i),
                                rows->values[from], 1));
  }
  return NULL;
}

static weir_status_t* concat_cpu(weir_kernel_ctx_t* ctx) {
  const int n = (int)weir_attrs_int(weir_kernel_attrs(ctx), "N");
  int axis = 0;
  int64_t dims[WEIR_MAX_RANK];
  rows_t rows = {0};
  WEIR_TRY(check_each(ctx, n));
  WEIR_TRY(check_shapes(ctx, n, &axis, dims));
  const int rank = (int)weir_kernel_input(ctx, 2 * n)->count;
  for (int i = 0; i < n; ++i) {
    weir_sparse_t s;
    weir_sparse_get(weir_kernel_input(ctx, i), weir_kernel_input(ctx, n + i),
                    weir_kernel_input(ctx, 2 * n + i), &s);
    WEIR_TRY(weir_sparse_check_parts(&s));
    rows.count += s.count;
  }
  WEIR_TRY(weir_sparse_check_dims(dims, rank, NULL));
  weir_status_t* status = collect(ctx, n, axis, rank, &rows);
  if (!status) {
    weir_sparse_t all = {.rows = rows.indices, .dims = dims, .count = rows.count, .rank = rank};
    status = weir_sparse_order(&all, weir_kernel_pool(ctx), rows.order);
  }
  if (!status) status = write_rows(ctx, &rows, rank);
  if (!status) status = weir_sparse_output_vector(ctx, 2, dims, rank);
  weir_free(rows.indices);
  weir_free(rows.values);
  weir_free(rows.order);
  return status;
}

const weir_op_module_t weir_ops_sparse_concat = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseConcat",
         .attrs = "concat_dim: int; N: int >= 2; T: type",
         .inputs = "indices: N * int64; values: N * T; shapes: N * int64",
         .outputs = "output_indices: int64; output_values: T; output_shape: int64",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Joins sparse tensors along a dimension.",
         .infer_shape = concat_shape,
         .kernels = WEIR_CPU_KERNEL(.types = SPARSE_ANY, .compute = concat_cpu)},
        {0}}};
