// staging.c — Widening to the type computed in and moving channels last, and back.
#include "kernel/move/staging.h"

#include "tensor/cast.h"

enum { BLOCK = 16 };  // a square of it in both matrices stays in the first-level cache

typedef struct transpose_t {
  size_t size;
  int64_t rows, columns;
  const char* src;
  char* dst;
} transpose_t;

// Swaps rows [begin, end), counted over all matrices, for columns. |size| is a constant where this
// is inlined.
WEIR_INLINE void transpose_block(const transpose_t* t, int64_t row, int64_t count, size_t size) {
  int64_t matrix = row / t->rows, r0 = row % t->rows;
  const char* src = t->src + (size_t)(matrix * t->rows * t->columns) * size;
  char* dst = t->dst + (size_t)(matrix * t->rows * t->columns) * size;
  for (int64_t c0 = 0; c0 < t->columns; c0 += BLOCK) {
    int64_t c1 = WEIR_MIN(c0 + BLOCK, t->columns);
    for (int64_t r = r0; r < r0 + count; ++r) {
      for (int64_t c = c0; c < c1; ++c) {
        memcpy(dst + (size_t)(c * t->rows + r) * size, src + (size_t)(r * t->columns + c) * size,
               size);
      }
    }
  }
}

static void transpose_rows(void* arg, int64_t begin, int64_t end) {
  const transpose_t* t = arg;
  for (int64_t row = begin; row < end;) {
    int64_t count = WEIR_MIN(WEIR_MIN(BLOCK, end - row), t->rows - row % t->rows);
    switch (t->size) {
      case 1: transpose_block(t, row, count, 1); break;
      case 2: transpose_block(t, row, count, 2); break;
      case 4: transpose_block(t, row, count, 4); break;
      case 8: transpose_block(t, row, count, 8); break;
      default: transpose_block(t, row, count, t->size); break;
    }
    row += count;
  }
}

void weir_transpose_batch(weir_pool_t* pool, size_t size, int64_t batch, int64_t rows,
                          int64_t columns, const void* src, void* dst) {
  transpose_t t = {.size = size, .rows = rows, .columns = columns, .src = src, .dst = dst};
  if (batch * rows * columns == 0) return;
  weir_pool_for(pool, batch * rows, (double)columns, transpose_rows, &t);
}

// ---- conversion ----
typedef struct cast_t {
  weir_dtype_t from, to;
  const char* src;
  char* dst;
} cast_t;

static void cast_range(void* arg, int64_t begin, int64_t end) {
  const cast_t* c = arg;
  weir_status_t* status =
      weir_cast_elements(c->to, c->dst + (size_t)begin * weir_dtype_size(c->to), c->from,
                         c->src + (size_t)begin * weir_dtype_size(c->from), end - begin);
  WEIR_CHECK(status == NULL);  // both types are plain
}

static void cast_all(weir_pool_t* pool, weir_dtype_t from, const void* src, weir_dtype_t to,
                     void* dst, int64_t count) {
  cast_t c = {.from = from, .to = to, .src = src, .dst = dst};
  if (count > 0) weir_pool_for(pool, count, 0.5, cast_range, &c);
}

static int64_t spatial_count(const weir_tensor_t* t) {
  int64_t count = 1;
  for (int i = 2; i < t->rank; ++i) count *= t->dims[i];
  return count;
}

static bool must_move(const weir_tensor_t* t, bool is_nchw) {
  return is_nchw && t->rank > 2 && t->dims[1] != 1 && spatial_count(t) != 1;
}

weir_status_t* weir_stage_input(weir_kernel_ctx_t* ctx, const weir_tensor_t* tensor, bool is_nchw,
                                weir_staged_t* out_staged) {
  weir_dtype_t dtype = weir_tensor_type(tensor), compute = weir_compute_type(dtype);
  weir_pool_t* pool = weir_kernel_pool(ctx);
  weir_tensor_t *wide = NULL, *moved = NULL;
  weir_status_t* status = NULL;
  const void* data = tensor->data;
  *out_staged = (weir_staged_t){.data = tensor->data, .scratch = NULL};
  if (compute != dtype) {
    status = weir_kernel_scratch(ctx, compute, tensor->count, &wide);
    if (status) goto done;
    cast_all(pool, dtype, data, compute, wide->data, tensor->count);
    data = wide->data;
    *out_staged = (weir_staged_t){.data = wide->data, .scratch = wide};
  }
  if (must_move(tensor, is_nchw)) {
    status = weir_kernel_scratch(ctx, compute, tensor->count, &moved);
    if (status) goto done;
    weir_transpose_batch(pool, weir_dtype_size(compute), tensor->dims[0], tensor->dims[1],
                         spatial_count(tensor), data, moved->data);
    weir_tensor_release(wide);
    wide = NULL;
    *out_staged = (weir_staged_t){.data = moved->data, .scratch = moved};
  }
  return NULL;
done:
  weir_tensor_release(wide);
  *out_staged = (weir_staged_t){.data = NULL, .scratch = NULL};
  return status;
}

weir_status_t* weir_stage_output(weir_kernel_ctx_t* ctx, weir_tensor_t* tensor, bool is_nchw,
                                 weir_staged_t* out_staged) {
  weir_dtype_t dtype = weir_tensor_type(tensor), compute = weir_compute_type(dtype);
  *out_staged = (weir_staged_t){.data = tensor->data, .scratch = NULL};
  if (compute == dtype && !must_move(tensor, is_nchw)) return NULL;
  WEIR_TRY(weir_kernel_scratch(ctx, compute, tensor->count, &out_staged->scratch));
  out_staged->data = out_staged->scratch->data;
  return NULL;
}

weir_status_t* weir_stage_finish(weir_kernel_ctx_t* ctx, weir_tensor_t* tensor, bool is_nchw,
                                 weir_staged_t* staged) {
  weir_dtype_t dtype = weir_tensor_type(tensor), compute = weir_compute_type(dtype);
  weir_pool_t* pool = weir_kernel_pool(ctx);
  weir_tensor_t* moved = NULL;
  if (!staged->scratch) return NULL;
  const void* data = staged->data;
  if (must_move(tensor, is_nchw)) {
    void* target = tensor->data;
    if (compute != dtype) {
      WEIR_TRY(weir_kernel_scratch(ctx, compute, tensor->count, &moved));
      target = moved->data;
    }
    weir_transpose_batch(pool, weir_dtype_size(compute), tensor->dims[0], spatial_count(tensor),
                         tensor->dims[1], data, target);
    data = target;
  }
  if (compute != dtype) cast_all(pool, compute, data, dtype, tensor->data, tensor->count);
  weir_tensor_release(moved);
  return NULL;
}

void weir_staged_release(weir_staged_t* staged) {
  weir_tensor_release(staged->scratch);
  *staged = (weir_staged_t){.data = NULL, .scratch = NULL};
}
