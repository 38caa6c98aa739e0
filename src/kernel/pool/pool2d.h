// pool2d.h — Two-dimensional pooling over NHWC memory: maxima, averages and their gradients.
// Thread-safe.
#ifndef WEIR_KERNEL_POOL_POOL2D_H_
#define WEIR_KERNEL_POOL_POOL2D_H_

#include "base/thread.h"
#include "weir/dtype.h"

typedef struct weir_pool2d_t {
  int64_t batch, in_h, in_w, channels;
  int64_t out_h, out_w;
  int64_t window_h, window_w;
  int64_t stride_h, stride_w;
  int64_t pad_top, pad_left;
} weir_pool2d_t;

// Real number types but half and bfloat16, which callers widen to float.
void weir_max_pool2d(weir_pool_t* pool, weir_dtype_t dtype, const weir_pool2d_t* p, const void* in,
                     void* out);
// For each output element, the offset of its maximum within its image (h * in_w + w) * channels +
// c: the first one in row-major order, or -1 for an empty window. |out| may be NULL.
WEIR_MUST_USE weir_status_t* weir_max_pool2d_argmax(weir_pool_t* pool, weir_dtype_t dtype,
                                                    const weir_pool2d_t* p, const void* in,
                                                    void* out, int64_t* argmax);
// dx[first maximum of each window] += dy; |dx| is overwritten. RESOURCE_EXHAUSTED when there is no
// memory for a row.
WEIR_MUST_USE weir_status_t* weir_max_pool2d_grad(weir_pool_t* pool, weir_dtype_t dtype,
                                                  const weir_pool2d_t* p, const void* in,
                                                  const void* dy, void* dx);
// ddy = grad at the first element of each window that equals |out|, 0 where none does.
void weir_max_pool2d_grad_grad(weir_pool_t* pool, weir_dtype_t dtype, const weir_pool2d_t* p,
                               const void* in, const void* out, const void* grad, void* ddy);
// Averages over the elements within the image, padding not counted. Float and double.
void weir_avg_pool2d(weir_pool_t* pool, weir_dtype_t dtype, const weir_pool2d_t* p, const void* in,
                     void* out);
void weir_avg_pool2d_grad(weir_pool_t* pool, weir_dtype_t dtype, const weir_pool2d_t* p,
                          const void* dy, void* dx);

#endif  // WEIR_KERNEL_POOL_POOL2D_H_
