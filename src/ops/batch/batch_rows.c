// batch_rows.c — Rows of several tensors as one.
#include "ops/batch/batch_rows.h"

#include "kernel/move/move.h"

static weir_status_t* mismatch(const char* what, const weir_tensor_t* first,
                               const weir_tensor_t* part, int64_t i) {
  char first_text[WEIR_SHAPE_TEXT_SIZE], text[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "%s should match: shape[0] = %s vs. shape[%lld] = %s", what,
                     weir_tensor_shape_text(first, first_text), (long long)i,
                     weir_tensor_shape_text(part, text));
}

static weir_status_t* check_part(const weir_tensor_t* first, const weir_tensor_t* part, int64_t i) {
  if (part->rank == 0) return WEIR_STATUS(INVALID_ARGUMENT, "A scalar cannot be part of a batch");
  if (part->rank != first->rank) {
    return mismatch("Ranks of all input tensors", first, part, i);
  }
  for (int axis = 1; axis < first->rank; ++axis) {
    if (part->dims[axis] != first->dims[axis]) {
      return mismatch("Dimensions of inputs", first, part, i);
    }
  }
  if (weir_tensor_type(part) == weir_tensor_type(first)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Types of inputs should match: %s vs. %s",
                     weir_dtype_name(weir_tensor_type(first)),
                     weir_dtype_name(weir_tensor_type(part)));
}

static weir_status_t* fill(weir_pool_t* pool, weir_tensor_t* const* parts, int64_t count,
                           int64_t padding, weir_tensor_t* out) {
  const weir_dtype_t dtype = weir_tensor_type(out);
  const size_t size = weir_dtype_size(dtype);
  const int64_t row = out->dims[0] > 0 ? out->count / out->dims[0] : 0;
  char* to = out->data;
  for (int64_t i = 0; i < count; ++i) {
    if (parts[i]->count == 0) continue;
    WEIR_TRY(weir_move_copy(pool, dtype, parts[i]->data, to, parts[i]->count));
    to += (size_t)parts[i]->count * size;
  }
  for (int64_t i = 0; i < padding && row > 0; ++i, to += (size_t)row * size) {
    WEIR_TRY(weir_move_copy(pool, dtype, parts[0]->data, to, row));
  }
  return NULL;
}

weir_status_t* weir_batch_rows_join(weir_pool_t* pool, weir_tensor_t* const* parts, int64_t count,
                                    int64_t padding, weir_tensor_t** out_rows) {
  int64_t dims[WEIR_MAX_RANK];
  int64_t rows = padding;
  weir_tensor_t* out = NULL;
  for (int64_t i = 0; i < count; ++i) {
    WEIR_TRY(check_part(parts[0], parts[i], i));
    if (rows > INT64_MAX - parts[i]->dims[0]) {
      return WEIR_STATUS(INVALID_ARGUMENT, "A batch of more than 2^63 rows");
    }
    rows += parts[i]->dims[0];
  }
  if (padding > 0 && parts[0]->dims[0] == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Cannot use an empty tensor with zero rows as padding when batching.");
  }
  for (int axis = 0; axis < parts[0]->rank; ++axis) dims[axis] = parts[0]->dims[axis];
  dims[0] = rows;
  WEIR_TRY(weir_tensor_create(weir_tensor_type(parts[0]), parts[0]->rank, dims, &out));
  weir_status_t* status = fill(pool, parts, count, padding, out);
  if (status) {
    weir_tensor_release(out);
    return status;
  }
  *out_rows = out;
  return NULL;
}
