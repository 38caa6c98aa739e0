// dilation2d.h — Greyscale dilation over NHWC memory, and its two gradients. Thread-safe.
//
// Work is shared out by images or channels, each owned by one task, so results do not depend on the
// number of threads.
#ifndef WEIR_KERNEL_POOL_DILATION2D_H_
#define WEIR_KERNEL_POOL_DILATION2D_H_

#include "base/thread.h"
#include "weir/dtype.h"

// Memory: input [batch, in_h, in_w, depth], filter [filter_h, filter_w, depth], output [batch,
// out_h, out_w, depth].
typedef struct weir_dilation2d_t {
  int64_t batch, in_h, in_w, depth;
  int64_t filter_h, filter_w;
  int64_t out_h, out_w;
  int64_t stride_h, stride_w;
  int64_t rate_h, rate_w;
  int64_t pad_top, pad_left;
} weir_dilation2d_t;

// out = the largest input + filter under the window; the type's lowest finite number where there is
// none larger, so NaNs never win. |dtype| is any real number type.
void weir_dilation2d_forward(weir_pool_t* pool, weir_dtype_t dtype, const weir_dilation2d_t* geo,
                             const void* in, const void* filter, void* out);
// Gradients: each element of |dy| is added to the input or filter element that won, the first of
// equals. |dx| and |dw| are overwritten.
void weir_dilation2d_backprop_input(weir_pool_t* pool, weir_dtype_t dtype,
                                    const weir_dilation2d_t* geo, const void* in,
                                    const void* filter, const void* dy, void* dx);
void weir_dilation2d_backprop_filter(weir_pool_t* pool, weir_dtype_t dtype,
                                     const weir_dilation2d_t* geo, const void* in,
                                     const void* filter, const void* dy, void* dw);

#endif  // WEIR_KERNEL_POOL_DILATION2D_H_
