// window.h — Geometry of sliding windows: strides, dilations, padding and data format of
// convolutions and poolings.
//
// Shape functions and kernels read the attributes through the same functions, so both compute the
// same sizes. Values only: thread-safe.
#ifndef WEIR_KERNEL_CONV_WINDOW_H_
#define WEIR_KERNEL_CONV_WINDOW_H_

#include "kernel/conv/conv.h"
#include "kernel/pool/pool2d.h"
#include "op/shape_ctx.h"

typedef enum weir_padding_t {
  WEIR_PADDING_VALID,
  WEIR_PADDING_SAME,
  WEIR_PADDING_EXPLICIT,
} weir_padding_t;

// What the attributes say; the axes are height and width, or depth, height and width.
typedef struct weir_window_t {
  int axes;      // 2 or 3
  bool is_nchw;  // channels before the axes: NCHW or NCDHW
  weir_padding_t padding;
  int64_t pads[3][2];  // EXPLICIT: before and after each axis
  int64_t stride[3];
  int64_t dilation[3];
  int64_t size[2];     // poolings only: convolutions take it from the filter
  int64_t depth_size;  // poolings: the window along the channels, 1 when there is none
  int64_t depth_stride;
  int64_t batch_size;  // poolings: the window along the batch, which must be 1
  int64_t batch_stride;
} weir_window_t;

// Dimensions of a tensor of the window's data format: of axis |axis|, and of the channels.
WEIR_INLINE int weir_window_axis(const weir_window_t* w, int axis) {
  return axis + (w->is_nchw ? 2 : 1);
}
WEIR_INLINE int weir_window_channels(const weir_window_t* w) {
  return w->is_nchw ? 1 : w->axes + 1;
}

// Reads strides, dilations, padding, explicit_paddings and data_format for a kernel; of what the op
// lacks, all but the first is as if it had TensorFlow's default. Strides and dilations along batch
// or channels are |unsupported|, all else that is wrong INVALID_ARGUMENT or UNIMPLEMENTED as in
// TensorFlow.
WEIR_MUST_USE weir_status_t* weir_window_read_conv(weir_attrs_t attrs, weir_code_t unsupported,
                                                   weir_window_t* out_window);
// The same for a shape function, which asks for less; |op| names it in messages (NULL: Conv2D, or
// Conv3D).
WEIR_MUST_USE weir_status_t* weir_window_read_conv_shape(weir_attrs_t attrs, const char* op,
                                                         weir_window_t* out_window);
// Reads ksize and strides (from |ksize| and |strides|, four values each), padding and data_format.
// What values they are is not asked.
WEIR_MUST_USE weir_status_t* weir_window_read_pool(weir_attrs_t attrs, const int64_t* ksize,
                                                   const int64_t* strides,
                                                   weir_window_t* out_window);
// As above, from the attributes ksize and strides.
WEIR_MUST_USE weir_status_t* weir_window_read_pool_attrs(weir_attrs_t attrs,
                                                         weir_window_t* out_window);
// The same in the words of TensorFlow's shape functions; |op| names it in them.
WEIR_MUST_USE weir_status_t* weir_window_read_pool_shape(weir_attrs_t attrs, const char* op,
                                                         weir_window_t* out_window);

// What kernels of poolings refuse, each in an order of its own: sizes that are not positive,
// windows along the batch, what is no batch of images, and windows along |channels| where these are
// not all that is pooled.
WEIR_MUST_USE weir_status_t* weir_window_check_pool_sizes(const weir_window_t* w);
WEIR_MUST_USE weir_status_t* weir_window_check_pool_batch(const weir_window_t* w);
WEIR_MUST_USE weir_status_t* weir_window_check_pool_input(const weir_tensor_t* in);
WEIR_MUST_USE weir_status_t* weir_window_check_pool_depth(const weir_window_t* w, int64_t channels);
WEIR_MUST_USE weir_status_t* weir_window_check_pool_stride(const weir_window_t* w);

// Output size and leading padding along |axis| for |in| elements under a window of |size|.
// INVALID_ARGUMENT when the output would be negative.
WEIR_MUST_USE weir_status_t* weir_window_output(const weir_window_t* w, int axis, int64_t in,
                                                int64_t size, int64_t* out_size, int64_t* out_pad);
// The output size for the shape functions that find it as kernels do; -1 where it is not known.
WEIR_MUST_USE weir_status_t* weir_window_output_if_known(const weir_window_t* w, int axis,
                                                         int64_t in, int64_t size,
                                                         int64_t* out_size);
// The output size as most shape functions find it: unknown (-1) sizes give an unknown result, and a
// window must fit into the input.
WEIR_MUST_USE weir_status_t* weir_window_output_shape(const weir_window_t* w, int axis, int64_t in,
                                                      int64_t size, int64_t* out_size);

// The full geometry of a convolution of an input by a filter [axes…, c, n]; |op| names the caller
// in messages. For a depthwise filter [axes…, channels, multiplier] use |is_depthwise|.
WEIR_MUST_USE weir_status_t* weir_window_conv(const weir_window_t* w, const char* op,
                                              const int64_t* in_dims, const int64_t* filter_dims,
                                              bool is_depthwise, weir_conv_t* out_conv);
// The full geometry of a pooling of an input.
WEIR_MUST_USE weir_status_t* weir_window_pool2d(const weir_window_t* w, const int64_t in_dims[4],
                                                weir_pool2d_t* out_pool);

// Writes [n, sizes…, c] in the order of the data format.
void weir_window_dims(const weir_window_t* w, int64_t n, const int64_t* sizes, int64_t c,
                      int64_t* out_dims);
// Fails unless |tensor| has the |rank| dimensions given. |what| names it: "out_backprop".
WEIR_MUST_USE weir_status_t* weir_window_expect(const weir_tensor_t* tensor, int rank,
                                                const int64_t* dims, const char* what);
// The same in the words of TensorFlow's gradients of pooling.
WEIR_MUST_USE weir_status_t* weir_window_expect_pooled(const weir_tensor_t* tensor,
                                                       const int64_t dims[4], const char* what);

// Output shape of a pooling with window |w| over input 0. One channel at a time leaves all of them,
// whatever the stride.
WEIR_MUST_USE weir_status_t* weir_window_pool_shape(weir_shape_ctx_t* ctx, const weir_window_t* w);
// The same where the stride counts, as TensorFlow's shape functions have it: where kernels know of
// no such stride, the result is compared with other shapes.
WEIR_MUST_USE weir_status_t* weir_window_pool_grad_shape(weir_shape_ctx_t* ctx,
                                                         const weir_window_t* w);

#endif  // WEIR_KERNEL_CONV_WINDOW_H_
