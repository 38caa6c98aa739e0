// uniform_row.c — See uniform_row.h.
#include "ops/quantized/uniform_row.h"

#include <math.h>
#include <string.h>

// The zero point that is nearest where the error is least: at the end that is smaller.
static int32_t find_zero(double low, double high, double scale) {
  const double by_low = -128 - low / scale, by_high = 127 - high / scale;
  const double error_low = 128 + fabs(low / scale), error_high = 127 + fabs(high / scale);
  const double zero = error_low < error_high ? by_low : by_high;
  return zero <= -128 ? -128 : zero >= 127 ? 127 : (int32_t)round(zero);
}

void uniform_quantize_row(const float* x, int64_t count, int8_t* q, float* out_scale,
                          int32_t* out_zero) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  if (low == high) {
    memset(q, 0, (size_t)count);
    *out_scale = 1;
    *out_zero = 0;
    return;
  }
  const double scale = ((double)high - (double)low) / 255.0;
  const float inverse = (float)(1 / scale);
  *out_scale = (float)scale;
  *out_zero = find_zero((double)low, (double)high, scale);
  for (int64_t i = 0; i < count; ++i) {
    const float v = floorf(x[i] * inverse + 0.5f) + (float)*out_zero;
    q[i] = (int8_t)(v > -128.0f ? v < 127.0f ? v : 127.0f : v != v ? 0.0f : -128.0f);
  }
}
