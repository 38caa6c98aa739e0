// plugin_shape.c — What plug-ins see of shapes: what the built-in ops use, behind checks.
#include "op/shape_ctx.h"
#include "weir/plugin.h"

// ---- shapes as numbers ----

int weir_plugin_shape_input(const weir_shape_ctx_t* ctx, int index, int64_t* dims, int capacity) {
  if (capacity > 0) WEIR_ASSERT_ARG(dims);
  WEIR_ASSERT_ARG(ctx);
  const weir_shape_t* shape = weir_shape_input(ctx, index);
  for (int i = 0; i < shape->rank && i < capacity; ++i) dims[i] = shape->dims[i];
  return shape->rank;
}

static weir_status_t* check_output(const weir_shape_ctx_t* ctx, int output) {
  if (output >= 0 && output < ctx->node->output_count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s has %d outputs, not one of index %d", ctx->node->op_name,
                     ctx->node->output_count, output);
}

weir_status_t* weir_plugin_shape_set(weir_shape_ctx_t* ctx, int output, int rank,
                                     const int64_t* dims) {
  if (rank > 0) WEIR_REQUIRE_ARG(dims);
  WEIR_REQUIRE_ARG(ctx);
  WEIR_TRY(check_output(ctx, output));
  if (rank < 0) return weir_shape_set(ctx, output, &weir_shape_unknown);
  return weir_shape_set_dims(ctx, output, rank, dims);
}

// ---- shape functions to use as they are ----

weir_status_t* weir_plugin_shape_unchanged(weir_shape_ctx_t* ctx) {
  WEIR_REQUIRE_ARG(ctx);
  return weir_shape_fn_unchanged(ctx);
}
weir_status_t* weir_plugin_shape_broadcast(weir_shape_ctx_t* ctx) {
  WEIR_REQUIRE_ARG(ctx);
  return weir_shape_fn_broadcast(ctx);
}
weir_status_t* weir_plugin_shape_scalar(weir_shape_ctx_t* ctx) {
  WEIR_REQUIRE_ARG(ctx);
  return weir_shape_fn_scalar(ctx);
}
weir_status_t* weir_plugin_shape_merge_all(weir_shape_ctx_t* ctx) {
  WEIR_REQUIRE_ARG(ctx);
  return weir_shape_fn_merge_all(ctx);
}

// ---- shapes to compute with ----

const weir_shape_t* weir_plugin_shape_at(const weir_shape_ctx_t* ctx, int index) {
  WEIR_ASSERT_ARG(ctx);
  return weir_shape_input(ctx, index);
}
int weir_plugin_shape_rank(const weir_shape_t* shape) {
  WEIR_ASSERT_ARG(shape);
  return shape->rank;
}
int64_t weir_plugin_shape_dim(const weir_shape_t* shape, int axis) {
  WEIR_ASSERT_ARG(shape);
  return weir_shape_dim(shape, axis);
}
const weir_tensor_t* weir_plugin_shape_value(const weir_shape_ctx_t* ctx, int index) {
  WEIR_ASSERT_ARG(ctx);
  return weir_shape_value(ctx, index);
}

// A shape that was made, or NULL where memory was exhausted.
static weir_status_t* made(const weir_shape_t* shape, const weir_shape_t** out_shape) {
  if (!shape) return weir_out_of_memory();
  *out_shape = shape;
  return NULL;
}

weir_status_t* weir_plugin_shape_make(weir_shape_ctx_t* ctx, int rank, const int64_t* dims,
                                      const weir_shape_t** out_shape) {
  if (rank > 0) WEIR_REQUIRE_ARG(dims);
  WEIR_REQUIRE_ARG(ctx);
  WEIR_REQUIRE_ARG(out_shape);
  if (rank > WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "rank %d is more than %d", rank, WEIR_MAX_RANK);
  }
  return made(rank < 0 ? &weir_shape_unknown : weir_shape_make(ctx->arena, rank, dims), out_shape);
}

weir_status_t* weir_plugin_shape_with_rank(weir_shape_ctx_t* ctx, const weir_shape_t* shape,
                                           int rank, const weir_shape_t** out_shape) {
  WEIR_REQUIRE_ARG(ctx);
  WEIR_REQUIRE_ARG(shape);
  return weir_shape_with_rank(ctx, shape, rank, out_shape);
}

weir_status_t* weir_plugin_shape_at_least(weir_shape_ctx_t* ctx, const weir_shape_t* shape,
                                          int rank) {
  WEIR_REQUIRE_ARG(ctx);
  WEIR_REQUIRE_ARG(shape);
  return weir_shape_at_least(ctx, shape, rank);
}

// What functions of two shapes need.
#define REQUIRE_TWO(ctx, a, b, out_shape) \
  do {                                    \
    WEIR_REQUIRE_ARG(ctx);                \
    WEIR_REQUIRE_ARG(a);                  \
    WEIR_REQUIRE_ARG(b);                  \
    WEIR_REQUIRE_ARG(out_shape);          \
  } while (0)

weir_status_t* weir_plugin_shape_join(weir_shape_ctx_t* ctx, const weir_shape_t* a,
                                      const weir_shape_t* b, const weir_shape_t** out_shape) {
  REQUIRE_TWO(ctx, a, b, out_shape);
  return weir_shape_join(ctx, a, b, out_shape);
}

weir_status_t* weir_plugin_shape_join_broadcast(weir_shape_ctx_t* ctx, const weir_shape_t* a,
                                                const weir_shape_t* b,
                                                const weir_shape_t** out_shape) {
  REQUIRE_TWO(ctx, a, b, out_shape);
  return weir_shape_broadcast(ctx, a, b, out_shape);
}

weir_status_t* weir_plugin_shape_concat(weir_shape_ctx_t* ctx, const weir_shape_t* a,
                                        const weir_shape_t* b, const weir_shape_t** out_shape) {
  REQUIRE_TWO(ctx, a, b, out_shape);
  return made(weir_shape_concat(ctx, a, b), out_shape);
}

weir_status_t* weir_plugin_shape_sub(weir_shape_ctx_t* ctx, const weir_shape_t* shape, int begin,
                                     int end, const weir_shape_t** out_shape) {
  WEIR_REQUIRE_ARG(ctx);
  WEIR_REQUIRE_ARG(shape);
  WEIR_REQUIRE_ARG(out_shape);
  if (shape->rank >= 0 && (begin < 0 || begin > end || end > shape->rank)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "dimensions [%d, %d) of a shape of rank %d are asked for",
                       begin, end, shape->rank);
  }
  return made(weir_shape_sub(ctx, shape, begin, end), out_shape);
}

weir_status_t* weir_plugin_shape_from_value(weir_shape_ctx_t* ctx, int index,
                                            const weir_shape_t** out_shape) {
  WEIR_REQUIRE_ARG(ctx);
  WEIR_REQUIRE_ARG(out_shape);
  return weir_shape_from_value(ctx, index, out_shape);
}

weir_status_t* weir_plugin_shape_give(weir_shape_ctx_t* ctx, int output,
                                      const weir_shape_t* shape) {
  WEIR_REQUIRE_ARG(ctx);
  WEIR_REQUIRE_ARG(shape);
  WEIR_TRY(check_output(ctx, output));
  return weir_shape_set(ctx, output, shape);
}
