// sort_key.h — Elements of any number type as integers of one order.
#ifndef WEIR_OPS_ARRAY_SORT_KEY_H_
#define WEIR_OPS_ARRAY_SORT_KEY_H_

#include <math.h>

#include "ops/array/common.h"
#include "tensor/numeric.h"

// An element as a number that sorts as it does; a NaN above all.
static inline uint64_t sort_key(weir_dtype_t dtype, const void* data, int64_t i) {
  const uint64_t sign = (uint64_t)1 << 63;
  double value = 0;
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: value = (double)((const float*)data)[i]; break;
    case WEIR_DTYPE_DOUBLE: value = ((const double*)data)[i]; break;
    case WEIR_DTYPE_HALF: value = (double)weir_half_to_float(((const weir_half_t*)data)[i]); break;
    case WEIR_DTYPE_BFLOAT16:
      value = (double)weir_bfloat16_to_float(((const weir_bfloat16_t*)data)[i]);
      break;
    case WEIR_DTYPE_UINT64: return ((const uint64_t*)data)[i];
    default: {
      weir_tensor_t view = {.dtype = (uint8_t)dtype, .data = (void*)(uintptr_t)data};
      return (uint64_t)weir_move_int_at(&view, i) ^ sign;
    }
  }
  if (isnan(value)) return UINT64_MAX;
  if (value == 0) value = 0;  // -0 too
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits & sign ? ~bits : bits | sign;
}

#endif  // WEIR_OPS_ARRAY_SORT_KEY_H_
