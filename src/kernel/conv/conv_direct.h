// conv_direct.h — Convolution of floats without laying patches out: products whose rows are
// pointers into the input. Thread-safe.
//
// In a line of the input, the pixels under one line of the filter are neighbours. So a patch is as
// many runs of elements side by side as the filter has lines; neighbouring patches share most of
// theirs. Only the borders need a copy of the input, a tile at a time, with the padding around it.
//
// Used by conv.c alone. Tiles depend on the shape alone, so results do not depend on the number of
// threads.
#ifndef WEIR_KERNEL_CONV_CONV_DIRECT_H_
#define WEIR_KERNEL_CONV_CONV_DIRECT_H_

#include "kernel/conv/conv.h"

// Whether the functions below take it: one group, no dilation along lines, a tile of the CPU for so
// many output channels.
bool weir_conv_direct_fits(const weir_conv_t* conv);

// The output is not empty, nor is a patch. RESOURCE_EXHAUSTED when there is no memory for a tile.
WEIR_MUST_USE weir_status_t* weir_conv_direct_forward(weir_pool_t* pool, const weir_conv_t* conv,
                                                      const float* in, const float* filter,
                                                      float* out);
WEIR_MUST_USE weir_status_t* weir_conv_direct_backprop_filter(weir_pool_t* pool,
                                                              const weir_conv_t* conv,
                                                              const float* in, const float* dy,
                                                              float* dw);

#endif  // WEIR_KERNEL_CONV_CONV_DIRECT_H_
