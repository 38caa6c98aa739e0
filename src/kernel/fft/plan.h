// plan.h — What plans are made of: for the files of this folder.
#ifndef WEIR_KERNEL_FFT_PLAN_H_
#define WEIR_KERNEL_FFT_PLAN_H_

#include <stdatomic.h>

#include "kernel/fft/fft.h"

enum { WEIR_FFT_STAGES = 64, WEIR_FFT_LARGEST_RADIX = 31 };

// A length is factored into stages. Where a prime factor is too large for one, the transform is a
// convolution with a chirp instead, by transforms of a longer length that is a power of two.
struct weir_fft_plan_t {
  atomic_int references;
  int64_t n;
  bool is_real;
  bool is_double;
  int64_t inner;  // the length of complex transforms: n, or half of it where real ones are even
  int stage_count;
  int radices[WEIR_FFT_STAGES];
  // Tables of float or double, re and im by turns.
  void* stage_roots;  // of each stage: for each p below its m, the powers 1 to radix - 1
  void* radix_roots;  // of each stage: the radix roots of 1
  void* real_roots;   // exp(-2 pi i k / n) for k up to n / 2, of real transforms
  // Where there are no stages:
  weir_fft_plan_t* longer;  // NULL otherwise
  void* chirp;              // exp(-pi i k^2 / inner)
  void* chirp_transform;    // of its conjugate, wrapped around, over the longer length
};

#endif  // WEIR_KERNEL_FFT_PLAN_H_
