// convert.c — See convert.h, and the structs of range.h.
#include "kernel/quantized/convert.h"

#include <float.h>

weir_dequantize_t weir_dequantize_in(weir_dtype_t dtype, float min, float max) {
  const float scale = (float)((double)(max - min) / ((double)weir_quantized_steps(dtype) - 1.0));
  const float low = max == min ? min : roundf(min / scale) * scale;
  return (weir_dequantize_t){.scale = scale,
                             .base = low - (float)weir_quantized_lowest(dtype) * scale};
}

weir_quantize_t weir_quantize_in(weir_dtype_t dtype, float min, float max) {
  const double steps = (double)weir_quantized_steps(dtype) - 1.0;
  const float scale = max == min ? 0 : (float)(steps / (double)(max - min));
  return (weir_quantize_t){.rounding = WEIR_QUANTIZE_AWAY,
                           .low = -INFINITY,
                           .high = INFINITY,
                           .scale = scale,
                           .shift = roundf(min * scale) - (float)weir_quantized_lowest(dtype),
                           .top = 2147483520.0f};
}

typedef struct job_t {
  const weir_slices_t* slices;
  const void* ranges;
  const void* x;
  void* y;
} job_t;

#define T int8_t
#define N(name) name##_int8
#define LOWEST -128.0f
#define HIGHEST 127.0f
#include "kernel/quantized/convert.inc"

#define T uint8_t
#define N(name) name##_uint8
#define LOWEST 0.0f
#define HIGHEST 255.0f
#include "kernel/quantized/convert.inc"

#define T int16_t
#define N(name) name##_int16
#define LOWEST -32768.0f
#define HIGHEST 32767.0f
#include "kernel/quantized/convert.inc"

#define T uint16_t
#define N(name) name##_uint16
#define LOWEST 0.0f
#define HIGHEST 65535.0f
#include "kernel/quantized/convert.inc"

#define T int32_t
#define N(name) name##_int32
#define LOWEST -0x1p31f
#define HIGHEST 0x1p31f
#include "kernel/quantized/convert.inc"

void weir_quantize_floats(weir_pool_t* pool, weir_dtype_t dtype, const weir_slices_t* slices,
                          const weir_quantize_t* ranges, const float* x, void* y) {
  static const weir_range_fn_t loops[WEIR_DTYPE_COUNT] = {
      [WEIR_DTYPE_QINT8] = quantize_range_int8,
      [WEIR_DTYPE_QUINT8] = quantize_range_uint8,
      [WEIR_DTYPE_QINT16] = quantize_range_int16,
      [WEIR_DTYPE_QUINT16] = quantize_range_uint16,
      [WEIR_DTYPE_QINT32] = quantize_range_int32};
  job_t job = {.slices = slices, .ranges = ranges, .x = x, .y = y};
  weir_pool_for(pool, slices->outer * slices->slices * slices->inner, 1, loops[dtype], &job);
}

void weir_dequantize_floats(weir_pool_t* pool, weir_dtype_t dtype, const weir_slices_t* slices,
                            const weir_dequantize_t* ranges, const void* x, float* y) {
  static const weir_range_fn_t loops[WEIR_DTYPE_COUNT] = {
      [WEIR_DTYPE_QINT8] = dequantize_range_int8,
      [WEIR_DTYPE_QUINT8] = dequantize_range_uint8,
      [WEIR_DTYPE_QINT16] = dequantize_range_int16,
      [WEIR_DTYPE_QUINT16] = dequantize_range_uint16,
      [WEIR_DTYPE_QINT32] = dequantize_range_int32};
  job_t job = {.slices = slices, .ranges = ranges, .x = x, .y = y};
  weir_pool_for(pool, slices->outer * slices->slices * slices->inner, 0.5, loops[dtype], &job);
}
