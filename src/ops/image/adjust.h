// adjust.h — What kernels that adjust colours check. Private to ops/image/.
#ifndef WEIR_OPS_IMAGE_ADJUST_H_
#define WEIR_OPS_IMAGE_ADJUST_H_

#include "op/kernel.h"

// Images of rank 3 or more and a scalar; three channels for those that mix colours.
WEIR_INLINE weir_status_t* check_adjusted(const weir_kernel_ctx_t* ctx, const char* scalar_name,
                                          bool is_rgb) {
  const weir_tensor_t *images = weir_kernel_input(ctx, 0), *scalar = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (images->rank < 3) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be at least 3-D, got shape%s",
                       weir_tensor_shape_text(images, text));
  }
  if (scalar->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be scalar: %s", scalar_name,
                       weir_tensor_shape_text(scalar, text));
  }
  if (is_rgb && images->dims[images->rank - 1] != 3) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "input must have 3 channels but instead has %lld channels.",
                       (long long)images->dims[images->rank - 1]);
  }
  return NULL;
}

#endif  // WEIR_OPS_IMAGE_ADJUST_H_
