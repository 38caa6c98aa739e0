// nd_index.h — Rows of an index matrix as places in a tensor: what GatherNd and the ScatterNd
// family share.
#ifndef WEIR_OPS_ARRAY_ND_INDEX_H_
#define WEIR_OPS_ARRAY_ND_INDEX_H_

#include <stdio.h>

#include "ops/array/common.h"

typedef struct nd_index_t {
  const weir_tensor_t* indices;
  int depth;  // the last dimension of |indices|: how many leading dimensions of the tensor it picks
              // from
  int64_t count;  // rows of |indices|
  int64_t slice;  // elements of what one row picks
  int rank;       // of the tensor
  const int64_t* dims;
} nd_index_t;

// REQUIRES: indices of rank >= 1 whose last dimension is at most |rank|.
static inline nd_index_t nd_index_make(const weir_tensor_t* indices, int rank,
                                       const int64_t* dims) {
  nd_index_t nd = {.indices = indices,
                   .depth = (int)indices->dims[indices->rank - 1],
                   .count = 1,
                   .slice = 1,
                   .rank = rank,
                   .dims = dims};
  for (int i = 0; i + 1 < indices->rank; ++i) nd.count *= indices->dims[i];
  for (int i = nd.depth; i < rank; ++i) nd.slice *= dims[i];
  return nd;
}

// The number of the slice that row |i| picks; -1 when it is out of range.
static inline int64_t nd_index_at(const nd_index_t* nd, int64_t i) {
  int64_t at = 0;
  for (int k = 0; k < nd->depth; ++k) {
    int64_t index = weir_move_int_at(nd->indices, i * nd->depth + k);
    if (index < 0 || index >= nd->dims[k]) return -1;
    at = at * nd->dims[k] + index;
  }
  return at;
}

// "indices[1] = [0, 3]", for messages.
static inline const char* nd_index_text(const nd_index_t* nd, int64_t i,
                                        char buffer[WEIR_SHAPE_TEXT_SIZE]) {
  char place[WEIR_SHAPE_TEXT_SIZE];
  int64_t index[WEIR_MAX_RANK];
  int rank = nd->indices->rank - 1;
  int64_t rest = i;
  for (int k = rank - 1; k >= 0; --k) {
    index[k] = rest % nd->indices->dims[k];
    rest /= nd->indices->dims[k];
  }
  place[0] = 0;
  if (rank > 0) weir_shape_text(rank, index, place);
  size_t size = (size_t)snprintf(buffer, WEIR_SHAPE_TEXT_SIZE, "indices%.100s = [", place);
  for (int k = 0; k < nd->depth && size < WEIR_SHAPE_TEXT_SIZE - 32; ++k) {
    long long value = (long long)weir_move_int_at(nd->indices, i * nd->depth + k);
    size += (size_t)snprintf(buffer + size, WEIR_SHAPE_TEXT_SIZE - size, "%s%lld", k ? ", " : "",
                             value);
  }
  snprintf(buffer + size, WEIR_SHAPE_TEXT_SIZE - size, "]");
  return buffer;
}

// What the attribute bad_indices_policy says: an error (the default on a CPU), or leaving bad rows
// out.
static inline weir_status_t* nd_index_policy(weir_attrs_t attrs, bool* out_ignore) {
  weir_view_t policy = weir_attrs_string(attrs, "bad_indices_policy");
  *out_ignore = weir_view_is(policy, "IGNORE");
  if (*out_ignore || policy.size == 0 || weir_view_is(policy, "DEFAULT") ||
      weir_view_is(policy, "ERROR"))
    return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Unknown bad indices handling attribute: %.*s",
                     WEIR_VIEW_ARG(policy));
}

#endif  // WEIR_OPS_ARRAY_ND_INDEX_H_
