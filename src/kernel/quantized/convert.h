// convert.h — Arrays of floats made numbers of quantised types, and back. Thread-safe.
#ifndef WEIR_KERNEL_QUANTIZED_CONVERT_H_
#define WEIR_KERNEL_QUANTIZED_CONVERT_H_

#include "base/thread.h"
#include "kernel/quantized/range.h"

// Elements around an axis: each of |slices| has a range of its own.
typedef struct weir_slices_t {
  int64_t outer, slices, inner;
} weir_slices_t;

// |ranges|: one a slice, all of one rounding.
void weir_quantize_floats(weir_pool_t* pool, weir_dtype_t dtype, const weir_slices_t* slices,
                          const weir_quantize_t* ranges, const float* x, void* y);
void weir_dequantize_floats(weir_pool_t* pool, weir_dtype_t dtype, const weir_slices_t* slices,
                            const weir_dequantize_t* ranges, const void* x, float* y);

#endif  // WEIR_KERNEL_QUANTIZED_CONVERT_H_
