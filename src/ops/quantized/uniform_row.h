// uniform_row.h — A row of floats as eight-bit numbers of its own range.
#ifndef WEIR_OPS_QUANTIZED_UNIFORM_ROW_H_
#define WEIR_OPS_QUANTIZED_UNIFORM_ROW_H_

#include "base/base.h"

// The range holds 0; one of nothing else has the scale 1.
void uniform_quantize_row(const float* x, int64_t count, int8_t* q, float* out_scale,
                          int32_t* out_zero);

#endif  // WEIR_OPS_QUANTIZED_UNIFORM_ROW_H_
