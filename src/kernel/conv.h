// conv.h — Two-dimensional convolution over NHWC memory: forward and the two gradients.
// Thread-safe.
//
// All three are products of matrices over tiles of output pixels whose patches are laid out side by
// side (im2col). Tiles depend on the shape alone, so results do not depend on the number of
// threads.
#ifndef WEIR_KERNEL_CONV_H_
#define WEIR_KERNEL_CONV_H_

#include "base/thread.h"
#include "weir/dtype.h"

// Memory: input [batch, in_h, in_w, in_c], filter [filter_h, filter_w, group_in, out_c], output
// [batch, out_h, out_w, out_c]. in_c == groups * group_in, out_c == groups * group_out. Padding
// after the last row and column follows from the sizes.
typedef struct weir_conv2d_t {
  int64_t batch, in_h, in_w, in_c;
  int64_t filter_h, filter_w;
  int64_t groups, group_in, group_out;
  int64_t out_h, out_w, out_c;
  int64_t stride_h, stride_w;
  int64_t dilation_h, dilation_w;
  int64_t pad_top, pad_left;
} weir_conv2d_t;

// |dtype| is float, double or int32. RESOURCE_EXHAUSTED when there is no memory for a tile.
WEIR_MUST_USE weir_status_t* weir_conv2d_forward(weir_pool_t* pool, weir_dtype_t dtype,
                                                 const weir_conv2d_t* conv, const void* in,
                                                 const void* filter, void* out);
// Gradient by the input: |dx| is overwritten.
WEIR_MUST_USE weir_status_t* weir_conv2d_backprop_input(weir_pool_t* pool, weir_dtype_t dtype,
                                                        const weir_conv2d_t* conv,
                                                        const void* filter, const void* dy,
                                                        void* dx);
// Gradient by the filter: |dw| is overwritten.
WEIR_MUST_USE weir_status_t* weir_conv2d_backprop_filter(weir_pool_t* pool, weir_dtype_t dtype,
                                                         const weir_conv2d_t* conv, const void* in,
                                                         const void* dy, void* dw);

// Depthwise: each input channel has its own |group_out| filters; group_in is 1 and groups is in_c.
// Float and double.
void weir_depthwise2d_forward(weir_pool_t* pool, weir_dtype_t dtype, const weir_conv2d_t* conv,
                              const void* in, const void* filter, void* out);
void weir_depthwise2d_backprop_input(weir_pool_t* pool, weir_dtype_t dtype,
                                     const weir_conv2d_t* conv, const void* filter, const void* dy,
                                     void* dx);
WEIR_MUST_USE weir_status_t* weir_depthwise2d_backprop_filter(weir_pool_t* pool, weir_dtype_t dtype,
                                                              const weir_conv2d_t* conv,
                                                              const void* in, const void* dy,
                                                              void* dw);

#endif  // WEIR_KERNEL_CONV_H_
