// cuda_resize.h — Images resized by GPUs, to the nearest pixel or by interpolating, and the
// gradients. Private to ops/image/.
#ifndef WEIR_OPS_IMAGE_CUDA_RESIZE_H_
#define WEIR_OPS_IMAGE_CUDA_RESIZE_H_

#include "device/cuda/cuda.h"
#include "ops/image/resize.h"

// The state of a GPU's kernels. |options| are first: weir_resize_read finds them there.
typedef struct weir_cuda_resize_t {
  weir_resize_options_t options;
  weir_cuda_function_t function;
} weir_cuda_resize_t;

// Finds the function |name| of resize.cu, for images of |dtype|.
WEIR_MUST_USE weir_status_t* weir_cuda_resize_find(const weir_kernel_init_t* init, const char* name,
                                                   weir_dtype_t dtype, void* state);
// Runs it: |in| to |out|, which are of the sizes |sizes|.
WEIR_MUST_USE weir_status_t* weir_cuda_resize_run(const weir_kernel_ctx_t* ctx,
                                                  const weir_resize_sizes_t* sizes,
                                                  const weir_tensor_t* in, weir_tensor_t* out);

#endif  // WEIR_OPS_IMAGE_CUDA_RESIZE_H_
