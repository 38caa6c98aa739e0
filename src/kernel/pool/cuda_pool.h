// cuda_pool.h — Two-dimensional pooling on GPUs, as pool2d.h has it, of floating types.
#ifndef WEIR_KERNEL_POOL_CUDA_POOL_H_
#define WEIR_KERNEL_POOL_CUDA_POOL_H_

#include "device/cuda/cuda.h"
#include "kernel/conv/window.h"
#include "kernel/pool/pool2d.h"
#include "op/kernel.h"

enum { WEIR_CUDA_POOL_FUNCTIONS = 15 };

// Functions for one type, and for windows of one kind or of any; immutable after they were found.
typedef struct weir_cuda_pool_t {
  bool is_fixed;     // windows are those that it was found for
  bool is_separate;  // and share no pixel
  weir_cuda_function_t at[WEIR_CUDA_POOL_FUNCTIONS];
} weir_cuda_pool_t;

// |window| is what all windows will be, or NULL.
WEIR_MUST_USE weir_status_t* weir_cuda_pool_find(weir_device_t* device, weir_dtype_t dtype,
                                                 const weir_window_t* window,
                                                 weir_cuda_pool_t* out_functions);

// Images with channels first are, to a pooling, as many images of one channel.
WEIR_INLINE weir_pool2d_t weir_pool2d_of_planes(const weir_pool2d_t* p) {
  weir_pool2d_t planes = *p;
  planes.batch *= p->channels;
  planes.channels = 1;
  return planes;
}

// As their namesakes of pool2d.h.
WEIR_MUST_USE weir_status_t* weir_cuda_max_pool(weir_kernel_ctx_t* ctx, const weir_cuda_pool_t* f,
                                                const weir_pool2d_t* p, const void* x, void* y);
WEIR_MUST_USE weir_status_t* weir_cuda_max_pool_grad(weir_kernel_ctx_t* ctx,
                                                     const weir_cuda_pool_t* f,
                                                     const weir_pool2d_t* p, const void* x,
                                                     const void* dy, void* dx);
WEIR_MUST_USE weir_status_t* weir_cuda_max_pool_grad_grad(weir_kernel_ctx_t* ctx,
                                                          const weir_cuda_pool_t* f,
                                                          const weir_pool2d_t* p, const void* x,
                                                          const void* y, const void* grad,
                                                          void* ddy);
WEIR_MUST_USE weir_status_t* weir_cuda_avg_pool(weir_kernel_ctx_t* ctx, const weir_cuda_pool_t* f,
                                                const weir_pool2d_t* p, const void* x, void* y);
WEIR_MUST_USE weir_status_t* weir_cuda_avg_pool_grad(weir_kernel_ctx_t* ctx,
                                                     const weir_cuda_pool_t* f,
                                                     const weir_pool2d_t* p, const void* dy,
                                                     void* dx);

#endif  // WEIR_KERNEL_POOL_CUDA_POOL_H_
