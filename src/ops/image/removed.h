// removed.h — Ops that newer graphs do not have. Private to ops/image.
#ifndef WEIR_OPS_IMAGE_REMOVED_H_
#define WEIR_OPS_IMAGE_REMOVED_H_

#include "op/shape_ctx.h"

// UNIMPLEMENTED where the graph says that it is of |version| or newer.
WEIR_INLINE weir_status_t* check_removed(const weir_shape_ctx_t* ctx, int64_t version,
                                         const char* instead) {
  if (ctx->producer < version) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED,
                     "Op %s is not available in GraphDef version %lld. It has been removed in "
                     "version %lld. %s.",
                     ctx->node->op->name, (long long)ctx->producer, (long long)version, instead);
}

#endif  // WEIR_OPS_IMAGE_REMOVED_H_
