// conv.h — Convolution over memory with the channels last (NHWC, NDHWC): forward and the two
// gradients. Thread-safe.
//
// All three are products of matrices over tiles of output pixels. Floats are read where they are
// (conv_direct.h) where the CPU has a tile for it, channels are of one group, and neighbours in a
// line of the filter are neighbours in the input; otherwise, patches are laid out side by side
// (im2col), and for the input gradient added to where they belong. The input gradient of a stride
// of 1 is the convolution of dy with the turned filter, unless that costs more. Tiles depend on the
// shape alone, so results do not depend on the number of threads.
#ifndef WEIR_KERNEL_CONV_CONV_H_
#define WEIR_KERNEL_CONV_CONV_H_

#include "base/thread.h"
#include "weir/dtype.h"

// Memory: input [batch, in[0..2], in_c], filter [filter[0..2], group_in, out_c], output [batch,
// out[0..2], out_c]; the three axes are depth, height and width, and all of an image's depths are
// 1. in_c == groups * group_in, out_c == groups * group_out. Padding after the last element of an
// axis follows from the sizes.
typedef struct weir_conv_t {
  int64_t batch, in_c, out_c;
  int64_t groups, group_in, group_out;
  int64_t in[3], filter[3], out[3];
  int64_t stride[3], dilation[3];
  int64_t pad[3];  // before each axis
} weir_conv_t;

// |out| is overwritten. RESOURCE_EXHAUSTED when there is no memory for a tile.
typedef weir_status_t* (*weir_conv_fn_t)(weir_pool_t* pool, weir_dtype_t dtype,
                                         const weir_conv_t* conv, const void* a, const void* b,
                                         void* out);

// |dtype| is float, double or int32.
WEIR_MUST_USE weir_status_t* weir_conv_forward(weir_pool_t* pool, weir_dtype_t dtype,
                                               const weir_conv_t* conv, const void* in,
                                               const void* filter, void* out);
WEIR_MUST_USE weir_status_t* weir_conv_backprop_input(weir_pool_t* pool, weir_dtype_t dtype,
                                                      const weir_conv_t* conv, const void* filter,
                                                      const void* dy, void* dx);
WEIR_MUST_USE weir_status_t* weir_conv_backprop_filter(weir_pool_t* pool, weir_dtype_t dtype,
                                                       const weir_conv_t* conv, const void* in,
                                                       const void* dy, void* dw);

// Depthwise, of images: each input channel has its own |group_out| filters; group_in is 1 and
// groups is in_c. Float and double.
WEIR_MUST_USE weir_status_t* weir_depthwise_forward(weir_pool_t* pool, weir_dtype_t dtype,
                                                    const weir_conv_t* conv, const void* in,
                                                    const void* filter, void* out);
WEIR_MUST_USE weir_status_t* weir_depthwise_backprop_input(weir_pool_t* pool, weir_dtype_t dtype,
                                                           const weir_conv_t* conv,
                                                           const void* filter, const void* dy,
                                                           void* dx);
WEIR_MUST_USE weir_status_t* weir_depthwise_backprop_filter(weir_pool_t* pool, weir_dtype_t dtype,
                                                            const weir_conv_t* conv, const void* in,
                                                            const void* dy, void* dw);

#endif  // WEIR_KERNEL_CONV_CONV_H_
