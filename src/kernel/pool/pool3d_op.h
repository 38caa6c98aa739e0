// pool3d_op.h — What the ops of three-dimensional pooling have in common: attributes, sizes and
// shapes. Thread-safe.
#ifndef WEIR_KERNEL_POOL_POOL3D_OP_H_
#define WEIR_KERNEL_POOL_POOL3D_OP_H_

#include "kernel/conv/window.h"
#include "kernel/pool/pool3d.h"

// The state of the kernels.
typedef struct weir_pool3d_window_t {
  weir_window_t window;
  int64_t size[3];
} weir_pool3d_window_t;

// Reads ksize, strides, padding and data_format, for a kernel. |what| is pooling, in messages.
WEIR_MUST_USE weir_status_t* weir_pool3d_read(weir_attrs_t attrs, const char* what,
                                              weir_pool3d_window_t* out_window);
// The same for gradients, which ask for sizes that are positive last, by the other function.
WEIR_MUST_USE weir_status_t* weir_pool3d_read_grad(weir_attrs_t attrs, const char* what,
                                                   weir_pool3d_window_t* out_window);
WEIR_MUST_USE weir_status_t* weir_pool3d_check_window(const weir_pool3d_window_t* w);
// The sizes of a pooling of an input of |dims|; |out_dims| are those of its result.
WEIR_MUST_USE weir_status_t* weir_pool3d_sizes(const weir_pool3d_window_t* w, const int64_t dims[5],
                                               weir_pool3d_t* out_pool, int64_t out_dims[5]);
// Where windows of padding SAME are shorter than strides, they are in the middle of what they stand
// for: a negative padding. So it is in TensorFlow when pooling, but not in its gradients.
void weir_pool3d_skip(const weir_pool3d_window_t* w, weir_pool3d_t* p);
// The shape of a pooling of input 0, into |out_dims|. Attributes that only the kernel refuses are
// let pass, as in TensorFlow: of a gradient, also sizes that are not positive.
WEIR_MUST_USE weir_status_t* weir_pool3d_shape(weir_shape_ctx_t* ctx, bool is_grad,
                                               int64_t out_dims[5]);

#endif  // WEIR_KERNEL_POOL_POOL3D_OP_H_
