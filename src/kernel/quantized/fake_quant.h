// fake_quant.h — Rounding of floats to the steps of a quantised range, and its gradient.
// Thread-safe.
#ifndef WEIR_KERNEL_QUANTIZED_FAKE_QUANT_H_
#define WEIR_KERNEL_QUANTIZED_FAKE_QUANT_H_

#include "base/thread.h"

// A range moved so that zero is one of its steps.
typedef struct weir_fake_range_t {
  float low, high;
  float step, inverse;  // inverse is not 1 / step, but computed as the step is
  float zero;           // the number of the step that is 0
  bool is_empty;        // [0, 0]: all elements become 0, gradients pass
} weir_fake_range_t;

// The range [min, max] in steps first … last.
weir_fake_range_t weir_fake_range(float min, float max, int first, int last);

// Of rows of |channels| elements, each channel under a range of its own. |divides|: by the step,
// instead of multiplying by its inverse, which rounds otherwise.
typedef struct weir_fake_quant_t {
  int64_t rows, channels;
  const weir_fake_range_t* ranges;  // one a channel
  bool divides;
} weir_fake_quant_t;

void weir_fake_quant(weir_pool_t* pool, const weir_fake_quant_t* quant, const float* x, float* y);
// dx = dy within the range, dmin and dmax (one a channel; NULL: not wanted) its sums below and
// above.
void weir_fake_quant_grad(weir_pool_t* pool, const weir_fake_quant_t* quant, const float* dy,
                          const float* x, float* dx, float* dmin, float* dmax);

#endif  // WEIR_KERNEL_QUANTIZED_FAKE_QUANT_H_
