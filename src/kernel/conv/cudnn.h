// cudnn.h — cuDNN 9, opened at run time: one convolution, and what follows it, as a plan that was
// measured. Thread-safe.
#ifndef WEIR_KERNEL_CONV_CUDNN_H_
#define WEIR_KERNEL_CONV_CUDNN_H_

#include "kernel/conv/conv_kernels.h"

typedef enum weir_conv_kind_t {
  WEIR_CONV_FORWARD,
  WEIR_CONV_BY_INPUT,
  WEIR_CONV_BY_FILTER,
} weir_conv_kind_t;

// A convolution whose padding is the same before and after an axis. All of its bytes are compared:
// zero it first.
typedef struct weir_cudnn_conv_t {
  weir_conv_t conv;
  weir_dtype_t dtype;
  weir_conv_kind_t kind;
  weir_conv_tail_t tail;
  bool is_nchw;
  bool is_unaligned;  // images or bias begin at any element, not at a multiple of 16 bytes
} weir_cudnn_conv_t;

typedef struct weir_cudnn_operands_t {
  const void *a, *b;  // as weir_conv_fn_t of the kind takes them
  const void* bias;   // of a tail
  void* out;
} weir_cudnn_operands_t;

// In the compute stream. |kernels| are those of the type.
WEIR_MUST_USE weir_status_t* weir_cudnn_run(weir_device_t* device, const weir_cudnn_conv_t* conv,
                                            const weir_conv_kernels_t* kernels,
                                            const weir_cudnn_operands_t* operands);

#endif  // WEIR_KERNEL_CONV_CUDNN_H_
