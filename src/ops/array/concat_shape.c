// concat_shape.c — See concat_shape.h.
#include "ops/array/concat_shape.h"

#include "ops/array/common.h"

weir_concat_inputs_t weir_concat_inputs(const weir_node_def_t* node, int count) {
  const size_t size = strlen(node->op_name);
  const bool is_v2 = size > 2 && strcmp(node->op_name + size - 2, "V2") == 0;
  return (weir_concat_inputs_t){.axis = is_v2 ? count : 0, .first = is_v2 ? 0 : 1, .count = count};
}

// Vectors joined: how graphs build shapes.
static weir_status_t* concat_value(weir_shape_ctx_t* ctx, weir_concat_inputs_t in) {
  int64_t values[WEIR_MAX_RANK];
  int count = 0;
  if (!array_is_index_type(weir_dtype_base(ctx->node->input_types[in.first]))) return NULL;
  for (int i = 0; i < in.count; ++i) {
    array_ints_t ints;
    array_input_ints(ctx, in.first + i, &ints);
    int64_t size = weir_shape_dim(weir_shape_input(ctx, in.first + i), 0);
    if (size < 0 || (ints.is_known && ints.count != size) || count + size > WEIR_MAX_RANK)
      return NULL;
    for (int k = 0; k < size; ++k) values[count++] = ints.is_known ? ints.values[k] : -1;
  }
  return array_set_value(ctx, 0, count, values);
}

// Without the axis only the rank is known.
static weir_status_t* concat_unknown_axis(weir_shape_ctx_t* ctx, weir_concat_inputs_t in) {
  int rank = -1;
  for (int i = 0; i < in.count; ++i) {
    int r = weir_shape_input(ctx, in.first + i)->rank;
    if (r < 0) continue;
    if (rank >= 0 && r != rank) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be rank %d but is rank %d", rank, r);
    }
    rank = r;
  }
  if (rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  if (rank == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Can't concatenate scalars (use tf.stack instead)");
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i < rank; ++i) dims[i] = -1;
  return weir_shape_set_dims(ctx, 0, rank, dims);
}

static weir_status_t* concat_axis(weir_shape_ctx_t* ctx, int64_t value, int rank, int* out_axis) {
  (void)ctx;
  if (rank == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Can't concatenate scalars (use tf.stack instead)");
  if (value < -rank || value >= rank) {
    uint64_t needed = value < 0 ? -(uint64_t)value : (uint64_t)value + 1;
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be at least rank %llu but is rank %d",
                       (unsigned long long)needed, rank);
  }
  *out_axis = (int)(value < 0 ? value + rank : value);
  return NULL;
}

weir_status_t* weir_concat_shape(weir_shape_ctx_t* ctx, weir_concat_inputs_t in) {
  array_ints_t ints;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, in.axis), 0, NULL));
  array_input_ints(ctx, in.axis, &ints);
  if (!ints.is_exact || ints.count != 1) return concat_unknown_axis(ctx, in);
  int64_t dims[WEIR_MAX_RANK];
  int rank = -1, axis = 0;
  int64_t total = 0;
  for (int i = 0; i < in.count; ++i) {
    const weir_shape_t* s = weir_shape_input(ctx, in.first + i);
    if (s->rank < 0) {
      total = -1;
      continue;
    }
    if (rank < 0) {
      rank = s->rank;
      WEIR_TRY(concat_axis(ctx, ints.values[0], rank, &axis));
      for (int k = 0; k < rank; ++k) dims[k] = -1;
    } else if (s->rank != rank) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be rank %d but is rank %d", rank, s->rank);
    }
    for (int k = 0; k < rank; ++k) {
      if (k != axis) WEIR_TRY(weir_dim_join(ctx, dims[k], s->dims[k], &dims[k]));
    }
    total = total < 0 || s->dims[axis] < 0 ? -1 : total + s->dims[axis];
  }
  if (rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  dims[axis] = total;
  WEIR_TRY(weir_shape_set_dims(ctx, 0, rank, dims));
  return rank == 1 ? concat_value(ctx, in) : NULL;
}
