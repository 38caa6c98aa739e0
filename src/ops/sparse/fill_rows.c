// fill_rows.c — Elements sorted by row, and one more for each row without any.
#include "ops/sparse/fill_rows.h"

#include <string.h>

#include "kernel/elementwise/elementwise.h"

// Turns counts of the rows into places: |next|[r] is where the first element of row r goes. Returns
// the number of elements in the end.
static int64_t place_rows(int64_t* next, int64_t rows, bool* is_empty) {
  int64_t at = 0;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t n = next[r];
    is_empty[r] = n == 0;
    next[r] = at;
    at += n ? n : 1;
  }
  return at;
}

static weir_status_t* write_rows(weir_kernel_ctx_t* ctx, const weir_fill_rows_t* fill,
                                 int64_t* next, const bool* is_empty, int64_t total) {
  const weir_dtype_t dtype = weir_tensor_type(fill->values);
  const int64_t* in = fill->indices->data;
  weir_tensor_t* indices = NULL;
  weir_tensor_t* values = NULL;
  weir_tensor_t* map = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, fill->indices->rank, (const int64_t[]){total, fill->depth},
                              &indices));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &total, &values));
  WEIR_TRY(weir_kernel_output(ctx, 3, 1, &fill->count, &map));
  int64_t* out = indices->data;
  for (int64_t r = 0; r < fill->rows; ++r) {
    if (!is_empty[r]) continue;
    memset(out + next[r] * fill->depth, 0, sizeof(*out) * (size_t)fill->depth);
    out[next[r] * fill->depth] = r;
    WEIR_TRY(
        weir_elements_copy(dtype, weir_sparse_at(values, next[r]), fill->default_value->data, 1));
  }
  for (int64_t i = 0; i < fill->count; ++i) {
    int64_t to = next[in[i * fill->depth]]++;
    memcpy(out + to * fill->depth, in + i * fill->depth, sizeof(*out) * (size_t)fill->depth);
    WEIR_TRY(
        weir_elements_copy(dtype, weir_sparse_at(values, to), weir_sparse_at(fill->values, i), 1));
    WEIR_TENSOR_DATA(map, int64_t)[i] = to;
  }
  return NULL;
}

weir_status_t* weir_fill_rows(weir_kernel_ctx_t* ctx, const weir_fill_rows_t* fill) {
  weir_tensor_t* empty = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 2, 1, &fill->rows, &empty));
  int64_t* next = weir_calloc((size_t)fill->rows, sizeof(*next));
  if (!next) return weir_out_of_memory();
  const int64_t* in = fill->indices->data;
  for (int64_t i = 0; i < fill->count; ++i) ++next[in[i * fill->depth]];
  int64_t total = place_rows(next, fill->rows, empty->data);
  weir_status_t* status = write_rows(ctx, fill, next, empty->data, total);
  weir_free(next);
  return status;
}

// ---- the gradient ----

weir_status_t* weir_fill_rows_grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* map = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, &map));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  WEIR_TRY(weir_shape_set(ctx, 0, map));
  return weir_shape_set_scalar(ctx, 1);
}

static weir_status_t* sum_unused(weir_kernel_ctx_t* ctx, const weir_tensor_t* grad,
                                 const bool* is_used) {
  const weir_binary_fn_t add = weir_binary_find(WEIR_BINARY_ADD, weir_tensor_type(grad));
  weir_tensor_t* sum = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 1, 0, NULL, &sum));
  weir_move_zero(weir_tensor_type(sum), sum->data, 1);
  for (int64_t i = 0; i < grad->count; ++i) {
    if (!is_used[i]) add(sum->data, weir_sparse_at(grad, i), sum->data, 1, WEIR_SPAN_BOTH);
  }
  return NULL;
}

static weir_status_t* pick_used(weir_kernel_ctx_t* ctx, const weir_tensor_t* map,
                                const weir_tensor_t* grad, bool* is_used) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, map->dims, &out));
  for (int64_t i = 0; i < map->count; ++i) {
    int64_t from = WEIR_TENSOR_DATA(map, int64_t)[i];
    if (from < 0 || from >= grad->count) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Elements in reverse index must be in [0, %" PRId64 ") but got %" PRId64,
                         grad->count, from);
    }
    memcpy(weir_sparse_at(out, i), weir_sparse_at(grad, from),
           weir_dtype_size(weir_tensor_type(grad)));
    is_used[from] = true;
  }
  return NULL;
}

weir_status_t* weir_fill_rows_grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* map = weir_kernel_input(ctx, 0);
  const weir_tensor_t* grad = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (map->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "reverse_index_map must be a vector, saw: %s",
                       weir_tensor_shape_text(map, text));
  }
  if (grad->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "grad_values must be a vector, saw: %s",
                       weir_tensor_shape_text(grad, text));
  }
  bool* is_used = weir_calloc((size_t)grad->count, sizeof(*is_used));
  if (!is_used) return weir_out_of_memory();
  weir_status_t* status = pick_used(ctx, map, grad, is_used);
  if (!status) status = sum_unused(ctx, grad, is_used);
  weir_free(is_used);
  return status;
}
