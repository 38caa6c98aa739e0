// upload.h — Numbers that a kernel of a GPU has in host memory, and needs on the device, too: ids
// that say how large its output is. Copying them by itself would make the host wait, so they travel
// as arguments of launches: thousands of numbers in a few, and nothing has to live on.
#ifndef WEIR_KERNEL_MOVE_UPLOAD_H_
#define WEIR_KERNEL_MOVE_UPLOAD_H_

#include "device/cuda/cuda.h"
#include "op/kernel.h"

WEIR_MUST_USE weir_status_t* weir_upload_find(const weir_kernel_init_t* init,
                                              weir_cuda_function_t* out_function);
// Copies |size| bytes, a multiple of 4, from host memory to |dst| on the device.
WEIR_MUST_USE weir_status_t* weir_gpu_upload(const weir_kernel_ctx_t* ctx,
                                             weir_cuda_function_t function, const void* src,
                                             size_t size, void* dst);
// Makes a copy of |tensor|, of int32 or int64, on the device. Released by the caller.
WEIR_MUST_USE weir_status_t* weir_gpu_uploaded(weir_kernel_ctx_t* ctx,
                                               weir_cuda_function_t function,
                                               const weir_tensor_t* tensor,
                                               weir_tensor_t** out_copy);

#endif  // WEIR_KERNEL_MOVE_UPLOAD_H_
