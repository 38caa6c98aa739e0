// common.h — What ops of quantised tensors share: bounds of ranges as scalars, in and out.
#ifndef WEIR_OPS_QUANTIZED_COMMON_H_
#define WEIR_OPS_QUANTIZED_COMMON_H_

#include "op/kernel.h"
#include "op/shape_ctx.h"

// Inputs [first, last] are scalars, outputs 1 and 2 too.
WEIR_INLINE weir_status_t* quantized_bounds_shape(weir_shape_ctx_t* ctx, int first, int last) {
  for (int i = first; i <= last; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  WEIR_TRY(weir_shape_set_scalar(ctx, 1));
  return weir_shape_set_scalar(ctx, 2);
}

// The float of input |i|, which must be a scalar.
WEIR_INLINE weir_status_t* quantized_scalar(const weir_kernel_ctx_t* ctx, int i, const char* name,
                                            float* out_value) {
  const weir_tensor_t* t = weir_kernel_input(ctx, i);
  if (t->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "`%s` must be rank 0 but is rank %d", name, t->rank);
  }
  *out_value = *WEIR_TENSOR_DATA(t, float);
  return NULL;
}

WEIR_INLINE weir_status_t* quantized_set_scalar(weir_kernel_ctx_t* ctx, int output, float value) {
  weir_tensor_t* t = NULL;
  WEIR_TRY(weir_kernel_output(ctx, output, 0, NULL, &t));
  *WEIR_TENSOR_DATA(t, float) = value;
  return NULL;
}

// Outputs 1 and 2.
WEIR_INLINE weir_status_t* quantized_set_bounds(weir_kernel_ctx_t* ctx, float min, float max) {
  WEIR_TRY(quantized_set_scalar(ctx, 1, min));
  return quantized_set_scalar(ctx, 2, max);
}

#endif  // WEIR_OPS_QUANTIZED_COMMON_H_
