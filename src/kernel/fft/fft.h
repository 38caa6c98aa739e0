// fft.h — Fourier transforms of any length, of float and double.
//
// A plan holds what the transforms of one length need; it is immutable after create and shared by
// reference. A pass runs one-dimensional transforms along one axis of an array, several at a time,
// so that loops run over their elements of the same place, whatever the length.
#ifndef WEIR_KERNEL_FFT_FFT_H_
#define WEIR_KERNEL_FFT_FFT_H_

#include "base/thread.h"
#include "tensor/numeric.h"

typedef struct weir_fft_plan_t weir_fft_plan_t;

// A plan for transforms of |n| >= 1 complex numbers; |is_real|: of n real ones, to and from the
// first n / 2 + 1 of their transform. The caller owns one reference. RESOURCE_EXHAUSTED.
WEIR_MUST_USE weir_status_t* weir_fft_plan_create(int64_t n, bool is_real, bool is_double,
                                                  weir_fft_plan_t** out_plan);
void weir_fft_plan_retain(weir_fft_plan_t* plan);
void weir_fft_plan_release(weir_fft_plan_t* plan);  // NULL-safe
bool weir_fft_plan_is(const weir_fft_plan_t* plan, int64_t n, bool is_real, bool is_double);

// Where the transforms of a pass lie: transform (i, j, k) of |dims| begins at i, j, k times
// |strides| and goes on in steps of |step|, all in elements, complex ones where they are complex.
typedef struct weir_fft_side_t {
  void* data;
  int64_t strides[3];
  int64_t step;
} weir_fft_side_t;
typedef struct weir_fft_pass_t {
  const weir_fft_plan_t* plan;
  bool is_inverse;
  double scale;  // of the results
  int64_t dims[3];
  weir_fft_side_t in;  // may be the same as |out|, where both are complex
  weir_fft_side_t out;
} weir_fft_pass_t;
// A forward pass of a real plan reads real numbers, an inverse one writes them. RESOURCE_EXHAUSTED.
WEIR_MUST_USE weir_status_t* weir_fft_run(weir_pool_t* pool, const weir_fft_pass_t* pass);

#endif  // WEIR_KERNEL_FFT_FFT_H_
