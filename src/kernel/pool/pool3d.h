// pool3d.h — Three-dimensional pooling over NDHWC memory of floats: maxima, averages and their
// gradients. Thread-safe.
#ifndef WEIR_KERNEL_POOL_POOL3D_H_
#define WEIR_KERNEL_POOL_POOL3D_H_

#include "base/thread.h"
#include "weir/dtype.h"

// Axes are depth, height and width.
typedef struct weir_pool3d_t {
  int64_t batch, channels;
  int64_t in[3], out[3];
  int64_t window[3], stride[3], pad[3];
} weir_pool3d_t;

void weir_max_pool3d(weir_pool_t* pool, const weir_pool3d_t* p, const float* in, float* out);
// Padding is not counted.
void weir_avg_pool3d(weir_pool_t* pool, const weir_pool3d_t* p, const float* in, float* out);
// dx += dy at every element of a window that equals |out|; |dx| is overwritten.
void weir_max_pool3d_grad(weir_pool_t* pool, const weir_pool3d_t* p, const float* in,
                          const float* out, const float* dy, float* dx);
// ddy = grad at the first element of each window that equals |out|, 0 where none does.
void weir_max_pool3d_grad_grad(weir_pool_t* pool, const weir_pool3d_t* p, const float* in,
                               const float* out, const float* grad, float* ddy);
void weir_avg_pool3d_grad(weir_pool_t* pool, const weir_pool3d_t* p, const float* dy, float* dx);

#endif  // WEIR_KERNEL_POOL_POOL3D_H_
