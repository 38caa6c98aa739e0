// cuda_by_filter.h — The gradient of a filter of 2 to 4 pixels a side by a kernel of our own.
// Thread-safe.
//
// For long lines of few channels, where cuDNN's engines leave most of the tensor cores idle: they
// make one large product of it, whose sides are too short. Here the pixels that taps have in common
// are read once.
//
// What a line of dy lacks to a whole number of fragments is 0 there, and is multiplied by the last
// pixels of x: a NaN or infinity among these reaches all taps of its channel, not only its own.
#ifndef WEIR_KERNEL_CONV_CUDA_BY_FILTER_H_
#define WEIR_KERNEL_CONV_CUDA_BY_FILTER_H_

#include "kernel/conv/cudnn.h"

// by_filter_t of by_filter.cu.
typedef struct weir_by_filter_shape_t {
  int32_t lines, pixels, channels;
  int32_t out_lines, out_pixels, out_channels;
  int32_t line_pad, pixel_pad;
  int32_t chunks;
  int32_t tiles, tiles_k;
  int32_t parts;
  int64_t stages;
} weir_by_filter_shape_t;

// How a convolution is computed so. Immutable.
typedef struct weir_by_filter_t {
  weir_by_filter_shape_t shape;
  weir_cuda_function_t by_filter, add_parts;
  weir_cuda_size_t size, adding;
  int64_t part_size;  // elements, of all tiles
} weir_by_filter_t;

// Whether |conv| is such a gradient when |shape| is what is convolved, and the device has the
// instructions and the memory for it.
bool weir_by_filter_takes(const weir_device_t* device, const weir_cudnn_conv_t* conv,
                          const weir_conv_t* shape);
// Begins to compile. REQUIRES: weir_by_filter_takes.
WEIR_MUST_USE weir_status_t* weir_by_filter_make(weir_device_t* device, const weir_conv_t* shape,
                                                 weir_by_filter_t* out);
// In the compute stream; |dw| comes in cuDNN's order. Sums have an order, so results repeat.
WEIR_MUST_USE weir_status_t* weir_by_filter_run(weir_device_t* device, const weir_by_filter_t* self,
                                                const void* x, const void* dy, void* dw);

#endif  // WEIR_KERNEL_CONV_CUDA_BY_FILTER_H_
