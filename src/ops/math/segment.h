// segment.h — What reductions of rows by id share.
#ifndef WEIR_OPS_MATH_SEGMENT_H_
#define WEIR_OPS_MATH_SEGMENT_H_

#include "ops/math/common.h"
#include "tensor/cast.h"

// Whether a NaN is forgotten when the next row comes: by the extremes of rows of one number. In
// wider rows a NaN wins; TensorFlow's take either way there, by the vectors of the machine.
static inline bool segment_forgets_nan(weir_binary_op_t op, weir_dtype_t dtype, int64_t inner) {
  bool is_extreme = op == WEIR_BINARY_MAXIMUM || op == WEIR_BINARY_MINIMUM;
  return inner == 1 && is_extreme && weir_dtype_is_floating(dtype);
}

// |number|, or |next| in place of a NaN.
static inline const char* segment_without_nan(weir_dtype_t dtype, const char* number,
                                              const char* next) {
  double value = 0;
  bool is_nan = weir_element_to_double(dtype, number, &value) && value != value;
  return is_nan ? next : number;
}

#endif  // WEIR_OPS_MATH_SEGMENT_H_
