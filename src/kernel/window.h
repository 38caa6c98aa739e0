// window.h — Geometry of sliding windows: strides, dilations, padding and data format of
// convolutions and poolings.
//
// Shape functions and kernels read the attributes through the same functions, so both compute the
// same sizes. Values only: thread-safe.
#ifndef WEIR_KERNEL_WINDOW_H_
#define WEIR_KERNEL_WINDOW_H_

#include "kernel/conv.h"
#include "kernel/pool2d.h"
#include "op/shape_ctx.h"

typedef enum weir_padding_t {
  WEIR_PADDING_VALID,
  WEIR_PADDING_SAME,
  WEIR_PADDING_EXPLICIT,
} weir_padding_t;

// What the attributes say; index 0 is the height, 1 the width.
typedef struct weir_window_t {
  bool is_nchw;
  weir_padding_t padding;
  int64_t pads[2][2];  // EXPLICIT: before and after each axis
  int64_t stride[2];
  int64_t dilation[2];
  int64_t size[2];     // poolings only: convolutions take it from the filter
  int64_t depth_size;  // poolings: the window along the channels, 1 when there is none
  int64_t depth_stride;
} weir_window_t;

// Positions of batch, height, width and channels in a tensor of the window's data format.
enum { WEIR_AXIS_N = 0, WEIR_AXIS_H = 1, WEIR_AXIS_W = 2, WEIR_AXIS_C = 3 };
WEIR_INLINE int weir_window_axis(const weir_window_t* w, int axis) {
  static const int nchw[4] = {0, 2, 3, 1};
  return w->is_nchw ? nchw[axis] : axis;
}

// Reads strides, dilations, padding, explicit_paddings and data_format. INVALID_ARGUMENT or
// UNIMPLEMENTED as TensorFlow.
WEIR_MUST_USE weir_status_t* weir_window_read_conv(weir_attrs_t attrs, weir_window_t* out_window);
// Reads ksize and strides (from |ksize| and |strides|, four values each), padding and data_format.
WEIR_MUST_USE weir_status_t* weir_window_read_pool(weir_attrs_t attrs, const int64_t* ksize,
                                                   const int64_t* strides,
                                                   weir_window_t* out_window);
// As above, from the attributes ksize and strides.
WEIR_MUST_USE weir_status_t* weir_window_read_pool_attrs(weir_attrs_t attrs,
                                                         weir_window_t* out_window);

// Output size and leading padding along |axis| (0 height, 1 width) for |in| elements under a window
// of |size|. Unknown (-1) sizes give an unknown result. INVALID_ARGUMENT when the output would be
// negative.
WEIR_MUST_USE weir_status_t* weir_window_output(const weir_window_t* w, int axis, int64_t in,
                                                int64_t size, int64_t* out_size, int64_t* out_pad);

// The full geometry of a convolution of an input by a filter [h, w, c, n]; |op| names the caller in
// messages. For a depthwise filter [h, w, channels, multiplier] use |is_depthwise|.
WEIR_MUST_USE weir_status_t* weir_window_conv2d(const weir_window_t* w, const char* op,
                                                const int64_t in_dims[4],
                                                const int64_t filter_dims[4], bool is_depthwise,
                                                weir_conv2d_t* out_conv);
// The full geometry of a pooling of an input.
WEIR_MUST_USE weir_status_t* weir_window_pool2d(const weir_window_t* w, const int64_t in_dims[4],
                                                weir_pool2d_t* out_pool);

// Writes [n, h, w, c] in the order of the data format.
void weir_window_dims(const weir_window_t* w, int64_t n, int64_t h, int64_t width, int64_t c,
                      int64_t out_dims[4]);
// Fails unless |tensor| has the four dimensions given. |what| names it: "Conv2DBackpropInput:
// out_backprop".
WEIR_MUST_USE weir_status_t* weir_window_expect(const weir_tensor_t* tensor, const int64_t dims[4],
                                                const char* what);

// Output shape of a pooling with window |w| over input 0.
WEIR_MUST_USE weir_status_t* weir_window_pool_shape(weir_shape_ctx_t* ctx, const weir_window_t* w);

#endif  // WEIR_KERNEL_WINDOW_H_
