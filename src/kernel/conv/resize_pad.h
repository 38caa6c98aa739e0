// resize_pad.h — Images resized, and with a mirrored border around them: what a convolution may
// read instead of its input. Channels last, float or double. Thread-safe.
#ifndef WEIR_KERNEL_CONV_RESIZE_PAD_H_
#define WEIR_KERNEL_CONV_RESIZE_PAD_H_

#include "base/thread.h"
#include "weir/dtype.h"

// Axes are height and width.
typedef struct weir_resize_pad_t {
  int64_t batch, channels;
  int64_t in[2];
  int64_t resized[2];     // the same as |in|: nothing is resized
  bool is_align_corners;  // the centres of the corners stay where they are
  int64_t before[2];      // the border: smaller than |resized|, or as large where |offset| is 0
  int64_t out[2];
  int64_t offset;  // 1: the edge itself is not mirrored
} weir_resize_pad_t;

// RESOURCE_EXHAUSTED when there is no memory for a row of numbers.
WEIR_MUST_USE weir_status_t* weir_resize_pad(weir_pool_t* pool, weir_dtype_t dtype,
                                             const weir_resize_pad_t* p, const void* in, void* out);

#endif  // WEIR_KERNEL_CONV_RESIZE_PAD_H_
