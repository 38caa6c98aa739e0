// requantize.h — Numbers of quantised types brought to another range and type. Thread-safe.
#ifndef WEIR_KERNEL_QUANTIZED_REQUANTIZE_H_
#define WEIR_KERNEL_QUANTIZED_REQUANTIZE_H_

#include "base/thread.h"
#include "kernel/quantized/range.h"

// qint32 to quint8, in fixed point, or to qint8, through floats.
typedef struct weir_requantize_t {
  weir_dtype_t out;
  float in_min, in_max, out_min, out_max;
} weir_requantize_t;
void weir_requantize(weir_pool_t* pool, const weir_requantize_t* args, const int32_t* x, void* y,
                     int64_t count);

// qint32 to quint8 or qint8 by a factor for each channel, halves to even.
void weir_requantize_channels(weir_pool_t* pool, weir_dtype_t out, int64_t rows, int64_t channels,
                              const float* factors, const int32_t* x, void* y);

// The smallest and the largest; of nothing INT32_MAX and INT32_MIN. |stride| elements apart.
void weir_int32_extremes(const int32_t* x, int64_t count, int64_t stride, int32_t* out_min,
                         int32_t* out_max);

#endif  // WEIR_KERNEL_QUANTIZED_REQUANTIZE_H_
