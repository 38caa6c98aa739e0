// cudnn.h — cuDNN 9, opened at run time: one convolution as a plan that was measured. Thread-safe.
#ifndef WEIR_KERNEL_CONV_CUDNN_H_
#define WEIR_KERNEL_CONV_CUDNN_H_

#include "device/cuda/cuda.h"
#include "kernel/conv/conv.h"

typedef enum weir_conv_kind_t {
  WEIR_CONV_FORWARD,
  WEIR_CONV_BY_INPUT,
  WEIR_CONV_BY_FILTER,
} weir_conv_kind_t;

// A convolution as cuDNN sees it: padding is the same before and after an axis, filters have the
// output channels first, then as the images: channels last ([out, sizes…, in]) or first.
typedef struct weir_cudnn_conv_t {
  weir_conv_t conv;
  weir_dtype_t dtype;
  weir_conv_kind_t kind;
  bool is_nchw;
} weir_cudnn_conv_t;

// In the compute stream: |a| and |b| as weir_conv_fn_t of the kind takes them.
WEIR_MUST_USE weir_status_t* weir_cudnn_run(weir_device_t* device, const weir_cudnn_conv_t* conv,
                                            const void* a, const void* b, void* out);

#endif  // WEIR_KERNEL_CONV_CUDNN_H_
