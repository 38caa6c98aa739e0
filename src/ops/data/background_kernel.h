// background_kernel.h — Kernels that walk over datasets: a function that may wait, on a thread that
// may.
#ifndef WEIR_OPS_DATA_BACKGROUND_KERNEL_H_
#define WEIR_OPS_DATA_BACKGROUND_KERNEL_H_

#include "ops/data/dataset.h"

// Runs |compute| on a background thread, then |done|: the whole of an asynchronous kernel.
void weir_background_kernel(weir_kernel_ctx_t* ctx, weir_done_t done,
                            weir_status_t* (*compute)(weir_kernel_ctx_t* ctx));
// What a walk within a step has: its functions, its cancellation.
WEIR_INLINE weir_walk_t weir_step_walk(const weir_kernel_ctx_t* ctx) {
  return (weir_walk_t){.functions = ctx->step->functions,
                       .cancel = ctx->step->cancel,
                       .pool = weir_kernel_pool(ctx)};
}

#endif  // WEIR_OPS_DATA_BACKGROUND_KERNEL_H_
