// union.c — The rows of two sparse tensors, merged.
#include "ops/sparse/union.h"

#include <string.h>

weir_status_t* weir_sparse_check_same_shape(const weir_sparse_t* a, const weir_sparse_t* b) {
  char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
  if (a->shape->count != b->shape->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Operands do not have the same ranks; got shapes: %s and %s",
                       weir_sparse_dims_text(a->dims, a->shape->count, x),
                       weir_sparse_dims_text(b->dims, b->shape->count, y));
  }
  for (int d = 0; d < a->rank; ++d) {
    if (a->dims[d] == b->dims[d]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Operands' shapes do not match: got %" PRId64 " and %" PRId64
                       " for dimension %d",
                       a->dims[d], b->dims[d], d);
  }
  return NULL;
}

int64_t weir_sparse_union(const weir_sparse_t* a, const weir_sparse_t* b,
                          weir_sparse_pair_t* pairs) {
  int64_t i = 0, j = 0, count = 0;
  while (i < a->count || j < b->count) {
    int order = i == a->count ? 1
                : j == b->count
                    ? -1
                    : weir_sparse_compare(weir_sparse_row(a, i), weir_sparse_row(b, j), a->rank);
    pairs[count++] = (weir_sparse_pair_t){.a = order <= 0 ? i : -1, .b = order >= 0 ? j : -1};
    i += order <= 0;
    j += order >= 0;
  }
  return count;
}

weir_status_t* weir_sparse_write_union(weir_kernel_ctx_t* ctx, const weir_sparse_t* a,
                                       const weir_sparse_t* b, const weir_sparse_pair_t* pairs,
                                       int64_t count) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (const int64_t[]){count, a->rank}, &out));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t* row =
        pairs[i].a >= 0 ? weir_sparse_row(a, pairs[i].a) : weir_sparse_row(b, pairs[i].b);
    memcpy(WEIR_TENSOR_DATA(out, int64_t) + i * a->rank, row, sizeof(int64_t) * (size_t)a->rank);
  }
  return NULL;
}
