// range.h — How numbers of quantised types stand for floats within a range: TensorFlow's
// arithmetic, to the bit. Values only: thread-safe.
#ifndef WEIR_KERNEL_QUANTIZED_RANGE_H_
#define WEIR_KERNEL_QUANTIZED_RANGE_H_

#include <math.h>

#include "base/base.h"
#include "weir/dtype.h"

// The smallest and the largest number of a quantised type.
WEIR_INLINE int64_t weir_quantized_lowest(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_QINT8: return INT8_MIN;
    case WEIR_DTYPE_QINT16: return INT16_MIN;
    case WEIR_DTYPE_QINT32: return INT32_MIN;
    default: return 0;
  }
}
WEIR_INLINE int64_t weir_quantized_steps(weir_dtype_t dtype) {
  return (int64_t)1 << (8 * weir_dtype_size(dtype));
}
WEIR_INLINE int64_t weir_quantized_highest(weir_dtype_t dtype) {
  return weir_quantized_lowest(dtype) + weir_quantized_steps(dtype) - 1;
}

// ---- one number at a time, in double ----

// The float that |value| stands for.
WEIR_INLINE float weir_quantized_to_float(weir_dtype_t dtype, int64_t value, float min, float max) {
  if (min == max) return min;
  const double steps = (double)weir_quantized_steps(dtype);
  const double range = (double)(max - min) * (steps / (steps - 1.0));
  const double scale = range / steps;
  const double offset = (double)value - (double)weir_quantized_lowest(dtype);
  const double low = (double)(roundf(min / (float)scale) * (float)scale);
  return (float)(low + offset * scale);
}

// The number that stands for |x|, which may be beyond those of the type; NaN: the lowest.
WEIR_INLINE int64_t weir_float_to_quantized_free(weir_dtype_t dtype, float x, float min,
                                                 float max) {
  const int64_t lowest = weir_quantized_lowest(dtype);
  if (min == max) return lowest;
  const double steps = (double)weir_quantized_steps(dtype);
  const double range = (double)(max - min) * (steps / (steps - 1.0));
  const double scale = steps / range;
  const double value = round((double)x * scale) - round((double)min * scale);
  if (isnan(value)) return lowest;
  return (int64_t)(value < -0x1p60 ? -0x1p60 : value > 0x1p60 ? 0x1p60 : value) + lowest;
}

// The same within the type.
WEIR_INLINE int64_t weir_float_to_quantized(weir_dtype_t dtype, float x, float min, float max) {
  const int64_t value = weir_float_to_quantized_free(dtype, x, min, max);
  const int64_t lowest = weir_quantized_lowest(dtype), highest = weir_quantized_highest(dtype);
  return value < lowest ? lowest : value > highest ? highest : value;
}

// The range of sums of products of numbers of two types, as numbers of type |c|.
WEIR_INLINE void weir_quantized_product_range(weir_dtype_t a, float min_a, float max_a,
                                              weir_dtype_t b, float min_b, float max_b,
                                              weir_dtype_t c, float* out_min, float* out_max) {
  const float step_a = (max_a - min_a) / (float)(weir_quantized_steps(a) - 1);
  const float step_b = (max_b - min_b) / (float)(weir_quantized_steps(b) - 1);
  const float step = step_a * step_b;
  *out_min = step * (float)weir_quantized_lowest(c);
  *out_max = step * (float)weir_quantized_highest(c);
}

// ---- many numbers, in float: other roundings than above ----

// x = (value + shift) * scale + base
typedef struct weir_dequantize_t {
  float shift, scale, base;
} weir_dequantize_t;
weir_dequantize_t weir_dequantize_in(weir_dtype_t dtype, float min, float max);

typedef enum weir_quantize_rounding_t {
  WEIR_QUANTIZE_AWAY,  // halves away from zero
  WEIR_QUANTIZE_EVEN,  // halves to even
  WEIR_QUANTIZE_DOWN,  // to zero
} weir_quantize_rounding_t;

// value = round((x within [low, high] - origin) * scale + bias) - shift, at most |top|.
typedef struct weir_quantize_t {
  weir_quantize_rounding_t rounding;
  float low, high, origin, scale, bias, shift, top;
} weir_quantize_t;
weir_quantize_t weir_quantize_in(weir_dtype_t dtype, float min, float max);

// |value| of one range as a number of another, of type |dtype|.
WEIR_INLINE int32_t weir_requantize_value(const weir_dequantize_t* from, const weir_quantize_t* to,
                                          weir_dtype_t dtype, int32_t value) {
  const float low = (float)weir_quantized_lowest(dtype);
  const float high = fminf((float)weir_quantized_highest(dtype), to->top);
  const float x = from->base + (float)value * from->scale;
  const float v = roundf(x * to->scale) - to->shift;
  return (int32_t)(v > low ? v < high ? v : high : v != v ? 0 : low);
}

#endif  // WEIR_KERNEL_QUANTIZED_RANGE_H_
