// cuda_conv.h — Convolutions on GPUs: TensorFlow's layouts and paddings, brought to cuDNN's.
#ifndef WEIR_KERNEL_CONV_CUDA_CONV_H_
#define WEIR_KERNEL_CONV_CUDA_CONV_H_

#include "kernel/conv/cudnn.h"
#include "op/kernel.h"

// |a|, |b| and |out| as weir_conv_fn_t of the kind takes them, images as |is_nchw| says.
WEIR_MUST_USE weir_status_t* weir_cuda_conv(weir_kernel_ctx_t* ctx, weir_conv_kind_t kind,
                                            const weir_conv_t* conv, bool is_nchw, const void* a,
                                            const void* b, weir_tensor_t* out);

#endif  // WEIR_KERNEL_CONV_CUDA_CONV_H_
