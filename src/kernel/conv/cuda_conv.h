// cuda_conv.h — Convolutions on GPUs: TensorFlow's layouts and paddings, brought to cuDNN's.
#ifndef WEIR_KERNEL_CONV_CUDA_CONV_H_
#define WEIR_KERNEL_CONV_CUDA_CONV_H_

#include "kernel/conv/cudnn.h"
#include "op/kernel.h"

typedef struct weir_cuda_conv_t {
  const weir_conv_t* conv;
  weir_conv_kind_t kind;
  bool is_nchw;  // images
  weir_conv_tail_t tail;
  const void* bias;  // of a tail
} weir_cuda_conv_t;

// |a|, |b| and |out| as weir_conv_fn_t of the kind takes them, images as is_nchw says.
WEIR_MUST_USE weir_status_t* weir_cuda_conv(weir_kernel_ctx_t* ctx, const weir_cuda_conv_t* conv,
                                            const void* a, const void* b, weir_tensor_t* out);

#endif  // WEIR_KERNEL_CONV_CUDA_CONV_H_
