// batch.c — Sparse tensors cut into rows and put together again.
#include "ops/sparse/batch.h"

#include <string.h>

weir_status_t* weir_sparse_check_ranks(const weir_sparse_t* s) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  const struct {
    const weir_tensor_t* tensor;
    const char* message;
    int rank;
  } parts[] = {{s->indices, "Input indices should be a matrix", 2},
               {s->values, "Input values should be a vector", 1},
               {s->shape, "Input shape should be a vector", 1}};
  for (int i = 0; i < 3; ++i) {
    if (parts[i].tensor->rank == parts[i].rank) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s but received shape %s", parts[i].message,
                       weir_tensor_shape_text(parts[i].tensor, text));
  }
  return NULL;
}

weir_status_t* weir_sparse_cut_row(const weir_sparse_t* s, int64_t begin, int64_t end,
                                   weir_tensor_t** parts) {
  const int64_t rank = s->rank - 1, count = end - begin;
  const weir_dtype_t dtype = weir_tensor_type(s->values);
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_INT64, 2, (const int64_t[]){count, rank}, &parts[0]));
  WEIR_TRY(weir_tensor_create(dtype, 1, &count, &parts[1]));
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_INT64, 1, &rank, &parts[2]));
  for (int64_t i = 0; i < count; ++i) {
    memcpy(WEIR_TENSOR_DATA(parts[0], int64_t) + i * rank, weir_sparse_row(s, begin + i) + 1,
           sizeof(int64_t) * (size_t)rank);
  }
  memcpy(parts[2]->data, s->dims + 1, sizeof(int64_t) * (size_t)rank);
  return weir_elements_copy(dtype, parts[1]->data, weir_sparse_at(s->values, begin), count);
}

weir_status_t* weir_sparse_read_rows(const weir_kernel_ctx_t* ctx, weir_sparse_t* s) {
  weir_sparse_get(weir_kernel_input(ctx, 0), weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2),
                  s);
  WEIR_TRY(weir_sparse_check_ranks(s));
  WEIR_TRY(weir_sparse_check_dims(s->dims, s->shape->count, NULL));
  if (s->shape->count < 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Rank of input SparseTensor should be > 1, but saw rank: %" PRId64,
                       s->shape->count);
  }
  WEIR_TRY(weir_sparse_check_parts(s));
  return weir_sparse_check_order(s);
}

// Joins happen in the order of the tensors, each of which is in the order it came in.
static weir_status_t* check_part(weir_tensor_t* const* parts, int64_t i, int rank) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  const weir_tensor_t* indices = parts[0];
  const weir_tensor_t* values = parts[1];
  const weir_tensor_t* shape = parts[2];
  if (indices->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected serialized_sparse[%" PRId64
                       ", 0] to represent an index matrix but received shape %s",
                       i, weir_tensor_shape_text(indices, text));
  }
  if (values->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected serialized_sparse[%" PRId64
                       ", 1] to represent a values vector but received shape %s",
                       i, weir_tensor_shape_text(values, text));
  }
  if (shape->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected serialized_sparse[%" PRId64
                       ", 1] to be a shape vector but its shape is %s",
                       i, weir_tensor_shape_text(shape, text));
  }
  if (weir_tensor_type(indices) != WEIR_DTYPE_INT64 || weir_tensor_type(shape) != WEIR_DTYPE_INT64)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "SparseTensor[%" PRId64 "].indices and shape must be of int64", i);
  if (indices->dims[0] != values->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected row counts of SparseTensor[%" PRId64
                       "].indices and SparseTensor[%" PRId64
                       "].values to match but they do not: %" PRId64 " vs. %" PRId64,
                       i, i, indices->dims[0], values->count);
  }
  if (indices->dims[1] != shape->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected column counts of SparseTensor[%" PRId64
                       "].indices to match size of SparseTensor[%" PRId64
                       "].shape but they do not: %" PRId64 " vs. %" PRId64,
                       i, i, indices->dims[1], shape->count);
  }
  if (rank >= 0 && shape->count != rank) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Inconsistent shape across SparseTensors: rank prior to SparseTensor[%" PRId64
        "] was: %d but rank of SparseTensor[%" PRId64 "] is: %" PRId64,
        i, rank, i, shape->count);
  }
  return weir_sparse_check_dims(shape->data, shape->count, NULL);
}

static weir_status_t* check_type(weir_dtype_t want, const weir_tensor_t* values, int64_t i) {
  if (weir_tensor_type(values) == want) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Requested SparseTensor of type %s but SparseTensor[%" PRId64
                     "].values.dtype() == %s",
                     weir_dtype_name(want), i, weir_dtype_name(weir_tensor_type(values)));
}

// Checks all tensors, of |most| dimensions; their number of elements, and the largest size of each
// dimension.
static weir_status_t* measure(weir_dtype_t dtype, weir_tensor_t* const* parts, int64_t count,
                              int most, int64_t* out_total, int* out_rank, int64_t* dims) {
  int rank = -1;
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    const weir_tensor_t* shape = parts[3 * i + 2];
    WEIR_TRY(check_type(dtype, parts[3 * i + 1], i));
    WEIR_TRY(check_part(parts + 3 * i, i, rank));
    if (shape->count > most)
      return WEIR_STATUS(INVALID_ARGUMENT, "SparseTensor[%" PRId64 "] has too many dimensions", i);
    if (rank < 0) memset(dims, 0, sizeof(int64_t) * (size_t)shape->count);
    rank = (int)shape->count;
    for (int d = 0; d < rank; ++d) dims[d] = WEIR_MAX(dims[d], WEIR_TENSOR_DATA(shape, int64_t)[d]);
    total += parts[3 * i]->dims[0];
  }
  *out_rank = rank;
  *out_total = total;
  return NULL;
}

static weir_status_t* write_part(weir_tensor_t* const* part, int64_t number, int batch_rank,
                                 const int64_t* batch, weir_tensor_t* indices,
                                 weir_tensor_t* values, int64_t at) {
  const int64_t rank = part[2]->count, width = batch_rank + rank;
  int64_t place[WEIR_MAX_RANK];
  for (int d = batch_rank - 1; d >= 0; --d) {
    place[d] = number % batch[d];
    number /= batch[d];
  }
  for (int64_t i = 0; i < part[0]->dims[0]; ++i) {
    int64_t* row = WEIR_TENSOR_DATA(indices, int64_t) + (at + i) * width;
    memcpy(row, place, sizeof(int64_t) * (size_t)batch_rank);
    memcpy(row + batch_rank, WEIR_TENSOR_DATA(part[0], int64_t) + i * rank,
           sizeof(int64_t) * (size_t)rank);
  }
  return weir_elements_copy(weir_tensor_type(values), weir_sparse_at(values, at), part[1]->data,
                            part[1]->count);
}

weir_status_t* weir_sparse_join(weir_kernel_ctx_t* ctx, weir_tensor_t* const* parts, int64_t count,
                                int batch_rank, const int64_t* batch) {
  int64_t dims[WEIR_MAX_RANK];
  int64_t total = 0, at = 0;
  int rank = 0;
  weir_tensor_t* indices = NULL;
  weir_tensor_t* values = NULL;
  WEIR_TRY(measure(ctx->node->output_types[1], parts, count, WEIR_MAX_RANK - batch_rank, &total,
                   &rank, dims + batch_rank));
  memcpy(dims, batch, sizeof(int64_t) * (size_t)batch_rank);
  WEIR_TRY(weir_sparse_check_dims(dims, batch_rank + rank, NULL));
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (const int64_t[]){total, batch_rank + rank}, &indices));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &total, &values));
  for (int64_t i = 0; i < count; ++i) {
    WEIR_TRY(write_part(parts + 3 * i, i, batch_rank, batch, indices, values, at));
    at += parts[3 * i]->dims[0];
  }
  return weir_sparse_output_vector(ctx, 2, dims, batch_rank + rank);
}
