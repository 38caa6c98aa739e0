// sparse.c — Checks and order of the rows of sparse tensors.
#include "ops/sparse/sparse.h"

#include <stdio.h>
#include <string.h>

#include "base/string.h"
#include "kernel/sparse/sort.h"

void weir_sparse_get(const weir_tensor_t* indices, const weir_tensor_t* values,
                     const weir_tensor_t* shape, weir_sparse_t* out) {
  *out = (weir_sparse_t){.indices = indices,
                         .values = values,
                         .shape = shape,
                         .rows = indices->data,
                         .dims = shape->data,
                         .count = indices->rank > 0 ? indices->dims[0] : 0,
                         .rank = indices->rank > 1 ? (int)indices->dims[1] : 1};
}

weir_status_t* weir_sparse_read(const weir_kernel_ctx_t* ctx, int first, weir_sparse_t* out) {
  weir_sparse_get(weir_kernel_input(ctx, first), weir_kernel_input(ctx, first + 1),
                  weir_kernel_input(ctx, first + 2), out);
  return weir_sparse_check(out);
}

// Arrays of indices have room for as many as a tensor may have dimensions.
static weir_status_t* check_rank(int64_t rank) {
  if (rank <= WEIR_MAX_RANK) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Too many dimensions in tensor: %" PRId64, rank);
}

weir_status_t* weir_sparse_check(const weir_sparse_t* s) {
  const struct {
    const weir_tensor_t* tensor;
    const char* name;
    int rank;
  } parts[] = {{s->indices, "indices", 2}, {s->values, "values", 1}, {s->shape, "shape", 1}};
  for (int i = 0; i < 3; ++i) {
    if (parts[i].tensor->rank == parts[i].rank) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Sparse %s must be rank %d but is rank %d", parts[i].name,
                       parts[i].rank, parts[i].tensor->rank);
  }
  if (s->count != s->values->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of elements in indices (%" PRId64 ") and values (%" PRId64
                       ") do not match",
                       s->count, s->values->count);
  }
  if (s->indices->dims[1] != s->shape->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Index rank (%" PRId64 ") and shape rank (%" PRId64 ") do not match",
                       s->indices->dims[1], s->shape->count);
  }
  return check_rank(s->shape->count);
}

weir_status_t* weir_sparse_check_parts(const weir_sparse_t* s) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (s->values->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "vals must be a vec, but got: %s",
                       weir_tensor_shape_text(s->values, text));
  }
  if (s->count != s->values->count) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "indices and values rows (indexing dimension) must match. (indices = %" PRId64
        ", values = %" PRId64 ")",
        s->count, s->values->count);
  }
  if (s->indices->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "indices must be a matrix, but got: %s",
                       weir_tensor_shape_text(s->indices, text));
  }
  if (s->indices->dims[1] != s->shape->count)
    return WEIR_STATUS(INVALID_ARGUMENT, "Order length must be SparseTensor rank.");
  return check_rank(s->shape->count);
}

static bool row_is_within(const weir_sparse_t* s, int64_t i) {
  const int64_t* row = weir_sparse_row(s, i);
  for (int d = 0; d < s->rank; ++d) {
    if (row[d] < 0 || row[d] >= s->dims[d]) return false;
  }
  return true;
}

bool weir_sparse_is_within(const weir_sparse_t* s) {
  for (int64_t i = 0; i < s->count; ++i) {
    if (!row_is_within(s, i)) return false;
  }
  return true;
}

weir_status_t* weir_sparse_check_bounds(const weir_sparse_t* s) {
  for (int64_t i = 0; i < s->count; ++i) {
    if (row_is_within(s, i)) continue;
    weir_strbuf_t text = {0};
    for (int d = 0; d < s->rank; ++d)
      weir_strbuf_printf(&text, "%s%" PRId64, d ? ", " : "", weir_sparse_row(s, i)[d]);
    weir_status_t* status = weir_strbuf_finish(&text);
    if (!status) {
      status = WEIR_STATUS(INVALID_ARGUMENT,
                           "Sparse index tuple indices[%" PRId64 ", :] = [%s] is out of bounds", i,
                           text.data ? text.data : "");
    }
    weir_strbuf_free(&text);
    return status;
  }
  return NULL;
}

weir_status_t* weir_sparse_check_order(const weir_sparse_t* s) {
  char row[WEIR_SHAPE_TEXT_SIZE], dims[WEIR_SHAPE_TEXT_SIZE];
  for (int64_t i = 0; i < s->count; ++i) {
    if (!row_is_within(s, i)) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "indices[%" PRId64 "] = %s is out of bounds: need 0 <= index < %s", i,
                         weir_shape_text(s->rank, weir_sparse_row(s, i), row),
                         weir_shape_text(s->rank, s->dims, dims));
    }
    int order =
        i == 0 ? -1
               : weir_sparse_compare(weir_sparse_row(s, i - 1), weir_sparse_row(s, i), s->rank);
    if (order < 0) continue;
    return WEIR_STATUS(
        INVALID_ARGUMENT, "indices[%" PRId64 "] = %s is %s", i,
        weir_shape_text(s->rank, weir_sparse_row(s, i), row),
        order == 0 ? "repeated" : "out of order. Many sparse ops require sorted indices.");
  }
  return NULL;
}

weir_status_t* weir_sparse_check_dims(const int64_t* dims, int64_t rank, int64_t* out_product) {
  int64_t product = 1;
  WEIR_TRY(check_rank(rank));
  for (int64_t d = 0; d < rank; ++d) {
    if (dims[d] < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Expected shape dimensions to be non-negative, got %" PRId64, dims[d]);
    }
    if (product > 0 && dims[d] > INT64_MAX / product) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Encountered overflow when multiplying %" PRId64 " with %" PRId64
                         ", result: -1",
                         product, dims[d]);
    }
    product *= dims[d];
  }
  if (out_product) *out_product = product;
  return NULL;
}

// ---- order ----

// A row as one number that orders as the row does, where such numbers are small enough: each
// dimension counts from its least index on.
typedef struct key_plan_t {
  int64_t least[WEIR_MAX_RANK];
  uint64_t span[WEIR_MAX_RANK];
} key_plan_t;

static bool plan_keys(const weir_sparse_t* s, const int* by, int by_count, key_plan_t* plan) {
  uint64_t product = 1;
  for (int k = 0; k < by_count; ++k) {
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int64_t i = 0; i < s->count; ++i) {
      int64_t index = weir_sparse_row(s, i)[by[k]];
      least = WEIR_MIN(least, index);
      most = WEIR_MAX(most, index);
    }
    plan->least[k] = least;
    plan->span[k] = (uint64_t)most - (uint64_t)least + 1;
    if (plan->span[k] == 0 || plan->span[k] > UINT64_MAX / product) return false;
    product *= plan->span[k];
  }
  return true;
}

static uint64_t key_of(const weir_sparse_t* s, int64_t i, const int* by, int by_count,
                       const key_plan_t* plan) {
  uint64_t key = 0;
  for (int k = 0; k < by_count; ++k)
    key = key * plan->span[k] + ((uint64_t)weir_sparse_row(s, i)[by[k]] - (uint64_t)plan->least[k]);
  return key;
}

weir_status_t* weir_sparse_order_by(const weir_sparse_t* s, weir_pool_t* pool, const int* by,
                                    int by_count, int64_t* order) {
  for (int64_t i = 0; i < s->count; ++i) order[i] = i;
  if (s->count < 2 || by_count == 0) return NULL;
  key_plan_t plan;
  uint64_t* keys = weir_alloc_array((size_t)s->count, sizeof(*keys));
  if (!keys) return weir_out_of_memory();
  weir_status_t* status = NULL;
  if (plan_keys(s, by, by_count, &plan)) {
    for (int64_t i = 0; i < s->count; ++i) keys[i] = key_of(s, i, by, by_count, &plan);
    status = weir_sort_keys(pool, keys, order, s->count);
  } else {  // dimension by dimension, the least important one first
    for (int k = by_count - 1; k >= 0 && !status; --k) {
      for (int64_t i = 0; i < s->count; ++i)
        keys[i] = (uint64_t)weir_sparse_row(s, order[i])[by[k]] ^ (uint64_t)1 << 63;
      status = weir_sort_keys(pool, keys, order, s->count);
    }
  }
  weir_free(keys);
  return status;
}

weir_status_t* weir_sparse_order(const weir_sparse_t* s, weir_pool_t* pool, int64_t* order) {
  int by[WEIR_MAX_RANK];
  for (int d = 0; d < s->rank; ++d) by[d] = d;
  return weir_sparse_order_by(s, pool, by, s->rank, order);
}

// ---- outputs ----

weir_status_t* weir_sparse_gather(weir_kernel_ctx_t* ctx, int i, const weir_tensor_t* src,
                                  const int64_t* order, int64_t count) {
  int64_t dims[WEIR_MAX_RANK];
  int64_t inner = 1;
  weir_tensor_t* out = NULL;
  memcpy(dims, src->dims, sizeof(int64_t) * src->rank);
  dims[0] = count;
  for (int d = 1; d < src->rank; ++d) inner *= dims[d];
  WEIR_TRY(weir_kernel_output(ctx, i, src->rank, dims, &out));
  for (int64_t k = 0; k < count; ++k) {
    WEIR_TRY(weir_elements_copy(weir_tensor_type(src), weir_sparse_at(out, k * inner),
                                weir_sparse_at(src, order[k] * inner), inner));
  }
  return NULL;
}

weir_status_t* weir_sparse_output_vector(weir_kernel_ctx_t* ctx, int i, const int64_t* values,
                                         int64_t count) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, i, 1, &count, &out));
  if (count > 0) memcpy(out->data, values, (size_t)count * sizeof(int64_t));
  return NULL;
}

const char* weir_sparse_dims_text(const int64_t* dims, int64_t rank,
                                  char text[WEIR_SHAPE_TEXT_SIZE]) {
  size_t at = 0;
  text[0] = 0;
  for (int64_t d = 0; d < rank && at + 24 < WEIR_SHAPE_TEXT_SIZE; ++d) {
    at +=
        (size_t)snprintf(text + at, WEIR_SHAPE_TEXT_SIZE - at, "%s%" PRId64, d ? " " : "", dims[d]);
  }
  return text;
}

// ---- shape functions ----

weir_status_t* weir_sparse_shape_check(weir_shape_ctx_t* ctx, int first) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, first), 2, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, first + 1), 1, NULL));
  return weir_shape_with_rank(ctx, weir_shape_input(ctx, first + 2), 1, NULL);
}

weir_status_t* weir_sparse_shape_validate(weir_shape_ctx_t* ctx, int first) {
  WEIR_TRY(weir_sparse_shape_check(ctx, first));
  const weir_shape_t* indices = weir_shape_input(ctx, first);
  int64_t rows = weir_shape_dim(indices, 0);
  int64_t count = weir_shape_dim(weir_shape_input(ctx, first + 1), 0);
  int64_t columns = indices->rank == 2 ? indices->dims[1] : -1;
  int64_t rank = weir_shape_dim(weir_shape_input(ctx, first + 2), 0);
  if (rows >= 0 && count >= 0 && rows != count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of elements in index (%" PRId64 ") and values (%" PRId64
                       ") do not match.",
                       rows, count);
  }
  if (columns >= 0 && rank >= 0 && columns != rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Index rank (%" PRId64 ") and shape rank (%" PRId64 ") do not match.",
                       columns, rank);
  }
  return NULL;
}

int64_t weir_sparse_shape_elements(const weir_shape_t* shape) {
  if (!weir_shape_is_full(shape)) return -1;
  int64_t product = 1;
  for (int d = 0; d < shape->rank; ++d) product *= shape->dims[d];
  return product;
}

weir_status_t* weir_sparse_shape_set(weir_shape_ctx_t* ctx, int first, int64_t count,
                                     int64_t rank) {
  WEIR_TRY(weir_shape_set_dims(ctx, first, 2, (const int64_t[]){count, rank}));
  WEIR_TRY(weir_shape_set_vector(ctx, first + 1, count));
  return weir_shape_set_vector(ctx, first + 2, rank);
}
