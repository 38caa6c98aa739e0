// shape_ctx.c — What shape functions are made of: results, checks, merging, broadcasting.
#include "op/shape_ctx.h"

#include <inttypes.h>

#include "base/string.h"

// ---- results ----

weir_status_t* weir_shape_set(weir_shape_ctx_t* ctx, int output, const weir_shape_t* shape) {
  if (!shape) return weir_out_of_memory();
  if (output < 0 || output >= ctx->node->output_count) {
    return WEIR_STATUS(INTERNAL, "Node '%s' has no output %d to know the shape of", ctx->node->name,
                       output);
  }
  ctx->output_shapes[output] = shape;
  return NULL;
}

weir_status_t* weir_shape_set_dims(weir_shape_ctx_t* ctx, int output, int rank,
                                   const int64_t* dims) {
  return weir_shape_set(ctx, output, weir_shape_make(ctx->arena, rank, dims));
}

weir_status_t* weir_shape_set_scalar(weir_shape_ctx_t* ctx, int output) {
  return weir_shape_set(ctx, output, &weir_shape_scalar);
}

weir_status_t* weir_shape_set_vector(weir_shape_ctx_t* ctx, int output, int64_t size) {
  return weir_shape_set_dims(ctx, output, 1, &size);
}

weir_status_t* weir_shape_set_handle(weir_shape_ctx_t* ctx, int output, weir_dtype_t dtype,
                                     const weir_shape_t* shape) {
  if (!ctx->output_handles) return NULL;
  weir_handle_info_t* info = weir_arena_alloc(ctx->arena, sizeof(*info));
  if (!info) return weir_out_of_memory();
  *info = (weir_handle_info_t){.dtype = dtype, .shape = shape ? shape : &weir_shape_unknown};
  ctx->output_handles[output] = info;
  return NULL;
}

// ---- checks ----

static const weir_shape_t* unknown_of_rank(weir_shape_ctx_t* ctx, int rank) {
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i < rank; ++i) dims[i] = -1;
  return weir_shape_make(ctx->arena, rank, dims);
}

weir_status_t* weir_shape_with_rank(weir_shape_ctx_t* ctx, const weir_shape_t* shape, int rank,
                                    const weir_shape_t** out_shape) {
  const weir_shape_t* result = shape;
  if (shape->rank < 0 && out_shape) {
    if (rank > WEIR_MAX_RANK) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Rank cannot exceed kint32max: rank %d", rank);
    }
    result = unknown_of_rank(ctx, rank);
    if (!result) return weir_out_of_memory();
  } else if (shape->rank >= 0 && shape->rank != rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be rank %d but is rank %d", rank, shape->rank);
  }
  if (out_shape) *out_shape = result;
  return NULL;
}

weir_status_t* weir_shape_at_least(weir_shape_ctx_t* ctx, const weir_shape_t* shape, int rank) {
  (void)ctx;
  if (shape->rank < 0 || shape->rank >= rank) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be at least rank %d but is rank %d", rank,
                     shape->rank);
}

weir_status_t* weir_shape_at_most(weir_shape_ctx_t* ctx, const weir_shape_t* shape, int rank) {
  (void)ctx;
  if (shape->rank <= rank) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be at most rank %d but is rank %d", rank,
                     shape->rank);
}

// ---- merging ----

static weir_status_t* shapes_differ(const weir_shape_t* a, const weir_shape_t* b) {
  if (a->rank != b->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Shapes must be equal rank, but are %d and %d", a->rank,
                       b->rank);
  }
  int at = 0;
  while (at < a->rank && (a->dims[at] < 0 || b->dims[at] < 0 || a->dims[at] == b->dims[at])) ++at;
  weir_strbuf_t text = {0};
  weir_shape_append(a, &text);
  weir_strbuf_puts(&text, " and ");
  weir_shape_append(b, &text);
  weir_status_t* status = WEIR_STATUS(INVALID_ARGUMENT,
                                      "Dimension %d in both shapes must be equal, but are %" PRId64
                                      " and %" PRId64 ". Shapes are %s.",
                                      at, a->dims[at], b->dims[at], text.data ? text.data : "");
  weir_strbuf_free(&text);
  return status;
}

// Whether the two contradict; what weir_shape_merge refuses otherwise is lack of memory.
static bool contradict(const weir_shape_t* a, const weir_shape_t* b) {
  if (a->rank < 0 || b->rank < 0) return false;
  if (a->rank != b->rank) return true;
  for (int i = 0; i < a->rank; ++i) {
    if (a->dims[i] >= 0 && b->dims[i] >= 0 && a->dims[i] != b->dims[i]) return true;
  }
  return false;
}

weir_status_t* weir_shape_join(weir_shape_ctx_t* ctx, const weir_shape_t* a, const weir_shape_t* b,
                               const weir_shape_t** out_shape) {
  if (!a || !b) return weir_out_of_memory();
  if (contradict(a, b)) return shapes_differ(a, b);
  if (!weir_shape_merge(ctx->arena, a, b, out_shape)) return weir_out_of_memory();
  return *out_shape ? NULL : weir_out_of_memory();
}

weir_status_t* weir_dim_join(weir_shape_ctx_t* ctx, int64_t a, int64_t b, int64_t* out_dim) {
  (void)ctx;
  if (a >= 0 && b >= 0 && a != b) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Dimensions must be equal, but are %" PRId64 " and %" PRId64, a, b);
  }
  *out_dim = a >= 0 ? a : b;
  return NULL;
}

// What is known of one dimension of the result. An unknown dimension may yet be 1.
static weir_status_t* broadcast_dim(weir_shape_ctx_t* ctx, int64_t a, int64_t b, int64_t* out_dim) {
  if (a >= 0 && b >= 0 && a != 1 && b != 1) return weir_dim_join(ctx, a, b, out_dim);
  if (a == 1) {
    *out_dim = b;
  } else if (b == 1) {
    *out_dim = a;
  } else {
    *out_dim = a > 1 ? a : b > 1 ? b : -1;
  }
  return NULL;
}

weir_status_t* weir_shape_broadcast(weir_shape_ctx_t* ctx, const weir_shape_t* a,
                                    const weir_shape_t* b, const weir_shape_t** out_shape) {
  if (a->rank < 0 || b->rank < 0) {
    *out_shape = &weir_shape_unknown;
    return NULL;
  }
  int rank = WEIR_MAX(a->rank, b->rank);
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i < rank; ++i) {
    int at_a = i - (rank - a->rank);
    int at_b = i - (rank - b->rank);
    WEIR_TRY(
        broadcast_dim(ctx, at_a < 0 ? 1 : a->dims[at_a], at_b < 0 ? 1 : b->dims[at_b], &dims[i]));
  }
  *out_shape = weir_shape_make(ctx->arena, rank, dims);
  return *out_shape ? NULL : weir_out_of_memory();
}

// ---- values read as shapes ----

static weir_status_t* shape_of_value(weir_shape_ctx_t* ctx, const weir_tensor_t* value,
                                     const weir_shape_t** out_shape) {
  weir_dtype_t dtype = weir_tensor_type(value);
  if (dtype != WEIR_DTYPE_INT32 && dtype != WEIR_DTYPE_INT64) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input tensor must be int32 or int64, but was %s",
                       weir_dtype_name(dtype));
  }
  if (value->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be rank 1 but is rank %d", value->rank);
  }
  if (value->count > WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape tensor has %" PRId64 " dimensions, at most %d fit",
                       value->count, WEIR_MAX_RANK);
  }
  int64_t dims[WEIR_MAX_RANK];
  for (int64_t i = 0; i < value->count; ++i) {
    dims[i] = weir_tensor_int_at(value, i);
    if (dims[i] < -1) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Invalid value in tensor used for shape: %" PRId64,
                         dims[i]);
    }
  }
  *out_shape = weir_shape_make(ctx->arena, (int)value->count, dims);
  return *out_shape ? NULL : weir_out_of_memory();
}

weir_status_t* weir_shape_from_value(weir_shape_ctx_t* ctx, int i, const weir_shape_t** out_shape) {
  const weir_shape_t* shape = ctx->input_shapes[i];
  WEIR_TRY(weir_shape_with_rank(ctx, shape, 1, NULL));
  if (ctx->input_values[i]) return shape_of_value(ctx, ctx->input_values[i], out_shape);
  const weir_shape_t* partial = ctx->input_values_as_shape ? ctx->input_values_as_shape[i] : NULL;
  if (partial && partial->rank >= 0) {
    *out_shape = partial;
    return NULL;
  }
  int64_t length = weir_shape_dim(shape, 0);
  if (length < 0 || length > WEIR_MAX_RANK) {
    *out_shape = &weir_shape_unknown;
    return NULL;
  }
  *out_shape = unknown_of_rank(ctx, (int)length);
  return *out_shape ? NULL : weir_out_of_memory();
}

weir_status_t* weir_shape_from_value_or_scalar(weir_shape_ctx_t* ctx, int i,
                                               const weir_shape_t** out_shape) {
  *out_shape = &weir_shape_unknown;
  const weir_tensor_t* value = weir_shape_value(ctx, i);
  if (value && value->rank == 0 && weir_tensor_int_at(value, 0) != -1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Received an invalid shape scalar with a static value that is not '-1': "
                       "%" PRId64,
                       weir_tensor_int_at(value, 0));
  }
  if (weir_shape_input(ctx, i)->rank != 1)
    return weir_shape_at_most(ctx, weir_shape_input(ctx, i), 1);
  return weir_shape_from_value(ctx, i, out_shape);
}

// ---- pieces ----

int64_t weir_shape_dim(const weir_shape_t* shape, int axis) {
  if (shape->rank < 0) return -1;
  if (axis < 0) axis += shape->rank;
  return axis >= 0 && axis < shape->rank ? shape->dims[axis] : -1;
}

const weir_shape_t* weir_shape_concat(weir_shape_ctx_t* ctx, const weir_shape_t* a,
                                      const weir_shape_t* b) {
  if (!a || !b) return NULL;
  if (a->rank < 0 || b->rank < 0) return &weir_shape_unknown;
  int64_t dims[2 * WEIR_MAX_RANK];
  for (int i = 0; i < a->rank; ++i) dims[i] = a->dims[i];
  for (int i = 0; i < b->rank; ++i) dims[a->rank + i] = b->dims[i];
  return weir_shape_make(ctx->arena, a->rank + b->rank, dims);
}

const weir_shape_t* weir_shape_sub(weir_shape_ctx_t* ctx, const weir_shape_t* shape, int begin,
                                   int end) {
  if (shape->rank < 0) return &weir_shape_unknown;
  begin = WEIR_MAX(0, WEIR_MIN(begin, shape->rank));
  end = WEIR_MAX(begin, WEIR_MIN(end, shape->rank));
  return weir_shape_make(ctx->arena, end - begin, shape->dims + begin);
}

// ---- shape functions many ops share ----

weir_status_t* weir_shape_fn_unknown(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->node->output_count; ++i) ctx->output_shapes[i] = &weir_shape_unknown;
  return NULL;
}

weir_status_t* weir_shape_fn_none(weir_shape_ctx_t* ctx) {
  (void)ctx;
  return NULL;
}

weir_status_t* weir_shape_fn_scalar(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->node->output_count; ++i) ctx->output_shapes[i] = &weir_shape_scalar;
  return NULL;
}

weir_status_t* weir_shape_fn_unchanged(weir_shape_ctx_t* ctx) {
  ctx->output_shapes[0] = ctx->input_shapes[0];
  if (ctx->output_handles && ctx->input_handles) ctx->output_handles[0] = ctx->input_handles[0];
  bool is_same_value = ctx->node->op && (ctx->node->op->flags & WEIR_OP_PASS_THROUGH);
  if (is_same_value && ctx->output_values_as_shape && ctx->input_values_as_shape) {
    ctx->output_values_as_shape[0] = ctx->input_values_as_shape[0];
  }
  return NULL;
}

weir_status_t* weir_shape_fn_broadcast(weir_shape_ctx_t* ctx) {
  return weir_shape_broadcast(ctx, ctx->input_shapes[0], ctx->input_shapes[1],
                              &ctx->output_shapes[0]);
}

weir_status_t* weir_shape_fn_merge_all(weir_shape_ctx_t* ctx) {
  const weir_shape_t* merged = &weir_shape_unknown;
  for (int i = 0; i < ctx->node->input_count; ++i) {
    weir_status_t* status = weir_shape_join(ctx, merged, ctx->input_shapes[i], &merged);
    if (status) {
      return weir_status_prefix(status, "From merging shape %d with other shapes. ", i);
    }
  }
  ctx->output_shapes[0] = merged;
  return NULL;
}

weir_status_t* weir_shape_fn_unsorted_segment(weir_shape_ctx_t* ctx) {
  const weir_shape_t* data = weir_shape_input(ctx, 0);
  const weir_shape_t* ids = weir_shape_input(ctx, 1);
  const weir_tensor_t* segments = weir_shape_value(ctx, 2);
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 0, NULL));
  if (data->rank < 0 || ids->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  WEIR_TRY(weir_shape_at_least(ctx, data, ids->rank));
  for (int i = 0; i < ids->rank; ++i) {
    int64_t dim;
    WEIR_TRY(weir_dim_join(ctx, data->dims[i], ids->dims[i], &dim));
  }
  int64_t dims[WEIR_MAX_RANK + 1];
  dims[0] = segments ? weir_tensor_int_at(segments, 0) : -1;
  if (segments && dims[0] < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Dimension size, given by scalar input 2, must be non-negative but is %lld",
                       (long long)dims[0]);
  }
  int rank = 1;
  for (int i = ids->rank; i < data->rank; ++i) dims[rank++] = data->dims[i];
  return weir_shape_set_dims(ctx, 0, rank, dims);
}
