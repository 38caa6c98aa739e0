// uniform.h — What ops of uniformly quantised tensors share: x stands for (x - zero point) * scale.
#ifndef WEIR_OPS_QUANTIZED_UNIFORM_H_
#define WEIR_OPS_QUANTIZED_UNIFORM_H_

#include <math.h>

#include "op/kernel.h"
#include "op/shape_ctx.h"

// An integer attribute that must be an int32.
WEIR_INLINE weir_status_t* uniform_attr(weir_attrs_t attrs, const char* name, int32_t* out) {
  const int64_t value = weir_attrs_int(attrs, name);
  if (value < INT32_MIN || value > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Attr %s has value %lld out of range for an int32", name,
                       (long long)value);
  }
  *out = (int32_t)value;
  return NULL;
}

// Scales and zero points of inputs |first| and the next: scalars, or one for each of |columns|.
WEIR_INLINE weir_status_t* uniform_scales_shape(weir_shape_ctx_t* ctx, int first, int rank,
                                                int64_t columns) {
  const weir_shape_t *scales = weir_shape_input(ctx, first),
                     *zeros = weir_shape_input(ctx, first + 1);
  int64_t size;
  WEIR_TRY(weir_shape_at_most(ctx, scales, rank));
  WEIR_TRY(weir_shape_at_most(ctx, zeros, rank));
  if (scales->rank < 0 || zeros->rank < 0) return NULL;
  if (scales->rank != zeros->rank)
    return WEIR_STATUS(INVALID_ARGUMENT, "scales and zero_points must have same rank.");
  if (scales->rank == 0) return NULL;
  WEIR_TRY(weir_dim_join(ctx, scales->dims[0], columns, &size));
  return weir_dim_join(ctx, zeros->dims[0], columns, &size);
}

WEIR_INLINE weir_status_t* uniform_same_shape(const weir_tensor_t* scales,
                                              const weir_tensor_t* zeros) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (weir_tensor_same_shape(scales, zeros)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "scales and zero_points shape must be same, but given scales shape %s and "
                     "zero_points shape %s",
                     weir_tensor_shape_text(scales, a), weir_tensor_shape_text(zeros, b));
}

// Scales and zero points of data of |rank| dimensions: scalars, or one for each index along |axis|.
WEIR_INLINE weir_status_t* uniform_check(int rank, const int64_t* dims, const weir_tensor_t* scales,
                                         const weir_tensor_t* zeros, int64_t axis) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  WEIR_TRY(uniform_same_shape(scales, zeros));
  if (axis < -1 || axis >= rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "quantization_axis must be -1 or in range [0, input.rank), but given %lld",
                       (long long)axis);
  }
  if (axis == -1 && scales->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "If quantization_axis is -1, scales and zero_points must be scalar tensors, "
                       "but given scales shape %s and zero_points shape %s",
                       weir_tensor_shape_text(scales, a), weir_tensor_shape_text(zeros, b));
  }
  if (axis != -1 && (scales->rank != 1 || scales->count != dims[axis])) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "If quantization_axis is not -1, scales and zero_points must be a tensor of "
        "rank 1 and the size must be equal to the input.dim_size(quantization_axis), "
        "but given quantization_axis %lld, scales shape %s and zero_points shape %s",
        (long long)axis, weir_tensor_shape_text(scales, a), weir_tensor_shape_text(zeros, b));
  }
  return NULL;
}

WEIR_INLINE bool uniform_are_positive(const weir_tensor_t* scales) {
  for (int64_t i = 0; i < scales->count; ++i)
    if (!(WEIR_TENSOR_DATA(scales, float)[i] > 0)) return false;
  return true;
}

// Element |i|, or the only one.
WEIR_INLINE float uniform_scale(const weir_tensor_t* scales, int64_t i) {
  return WEIR_TENSOR_DATA(scales, float)[scales->rank == 0 ? 0 : i];
}
WEIR_INLINE int32_t uniform_zero(const weir_tensor_t* zeros, int64_t i) {
  return WEIR_TENSOR_DATA(zeros, int32_t)[zeros->rank == 0 ? 0 : i];
}

// A qint32 as TensorFlow's kernels compute with it: by way of a float.
WEIR_INLINE int32_t uniform_through_float(int32_t value) {
  const float v = (float)value;
  return v >= 0x1p31f ? INT32_MAX : (int32_t)v;
}

// A factor in fixed point: factor * 2^(shift - 31).
typedef struct uniform_factor_t {
  int32_t factor;
  int shift;  // -31 … 30
} uniform_factor_t;

WEIR_INLINE weir_status_t* uniform_find_factor(double value, uniform_factor_t* out) {
  if (!isfinite(value) || value <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "double_multiplier must be a poisitive finite number. Given %g", value);
  }
  int shift;
  int64_t fixed = (int64_t)round(frexp(value, &shift) * 0x1p31);
  if (fixed == (int64_t)1 << 31) {
    fixed /= 2;
    ++shift;
  }
  if (shift < -31) {
    shift = 0;
    fixed = 0;
  }
  if (shift > 30) {
    shift = 30;
    fixed = INT32_MAX;
  }
  *out = (uniform_factor_t){.factor = (int32_t)fixed, .shift = shift};
  return NULL;
}

WEIR_INLINE int32_t uniform_wrap(int64_t value) { return (int32_t)(uint32_t)(uint64_t)value; }

// x * factor, halves up, as an int32; then + zero, which may wrap, within [low, high].
WEIR_INLINE int32_t uniform_apply(uniform_factor_t f, int32_t x, int32_t zero, int32_t low,
                                  int32_t high) {
  const int shift = 31 - f.shift;
  const int64_t product = (int64_t)x * f.factor + ((int64_t)1 << (shift - 1));
  const int64_t scaled = product >> shift;
  const int64_t near = scaled < INT32_MIN ? INT32_MIN : scaled > INT32_MAX ? INT32_MAX : scaled;
  const int32_t moved = uniform_wrap(near + zero);
  const int32_t capped = moved < high ? moved : high;
  return capped > low ? capped : low;
}

#endif  // WEIR_OPS_QUANTIZED_UNIFORM_H_
