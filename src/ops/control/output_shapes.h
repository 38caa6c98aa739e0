// output_shapes.h — The attribute output_shapes, which If, Case and While share.
#ifndef WEIR_OPS_CONTROL_OUTPUT_SHAPES_H_
#define WEIR_OPS_CONTROL_OUTPUT_SHAPES_H_

#include "op/shape_ctx.h"

// Sets the outputs as output_shapes says; *|out_is_set| is false when the attribute is empty.
static inline weir_status_t* set_output_shapes(weir_shape_ctx_t* ctx, bool* out_is_set) {
  const weir_attr_t* shapes = weir_attrs_list(weir_shape_attrs(ctx), "output_shapes");
  *out_is_set = shapes->count > 0;
  if (shapes->count == 0) return NULL;
  if (shapes->count != (size_t)ctx->node->output_count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "`output_shapes` must be the same length as num outputs (%zu vs. %d",
                       shapes->count, ctx->node->output_count);
  }
  for (int i = 0; i < ctx->node->output_count; ++i)
    WEIR_TRY(weir_shape_set(ctx, i, shapes->u.shapes[i]));
  return NULL;
}

#endif  // WEIR_OPS_CONTROL_OUTPUT_SHAPES_H_
