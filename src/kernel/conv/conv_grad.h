// conv_grad.h — What the gradients of convolutions, by input and by filter, are given: checked, in
// TensorFlow's words. Values only: thread-safe.
#ifndef WEIR_KERNEL_CONV_CONV_GRAD_H_
#define WEIR_KERNEL_CONV_CONV_GRAD_H_

#include "kernel/conv/conv_op.h"

enum { WEIR_CONV_MAX_RANK = 5 };

typedef struct weir_conv_grad_t {
  const weir_conv_family_t* family;
  const weir_window_t* window;
  const char* label;      // TensorFlow's name of the kernel, in its messages
  const int64_t* in;      // dimensions of what was convolved
  const int64_t* filter;  // and of the filter
  const weir_tensor_t* dy;
} weir_conv_grad_t;

// Fails unless |t|, called |name|, has as many dimensions as the window asks for.
WEIR_MUST_USE weir_status_t* weir_conv_grad_rank(const weir_conv_grad_t* g, const weir_tensor_t* t,
                                                 const char* name);
// The dimensions of the result, which input |i| says: of the image (0) or of the filter (1).
WEIR_MUST_USE weir_status_t* weir_conv_grad_sizes(const weir_kernel_ctx_t* ctx,
                                                  const weir_conv_grad_t* g, int i,
                                                  int64_t sizes[WEIR_CONV_MAX_RANK],
                                                  int* out_count);
// The geometry of the convolution, where |in|, |filter| and |dy| agree.
WEIR_MUST_USE weir_status_t* weir_conv_grad_conv(const weir_conv_grad_t* g, weir_conv_t* out_conv);

#endif  // WEIR_KERNEL_CONV_CONV_GRAD_H_
