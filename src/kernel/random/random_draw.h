// random_draw.h — Draws from distributions with parameters, by rejection: bit for bit what
// TensorFlow's CPU kernels draw from the same state.
//
// Every output has a stretch of the generator for itself, so the number of threads does not show.
#ifndef WEIR_KERNEL_RANDOM_RANDOM_DRAW_H_
#define WEIR_KERNEL_RANDOM_RANDOM_DRAW_H_

#include <math.h>

#include "kernel/random/random.h"

// a * b + c, rounded as TensorFlow's build for this processor rounds it: fused where the processor
// always can.
#if defined(__aarch64__)
#define WEIR_MUL_ADD(a, b, c) fma(a, b, c)
#define WEIR_MUL_ADD_FLOAT(a, b, c) fmaf(a, b, c)
#else
#define WEIR_MUL_ADD(a, b, c) ((a) * (b) + (c))
#define WEIR_MUL_ADD_FLOAT(a, b, c) ((a) * (b) + (c))
#endif

// |samples| draws for each of |count| parameters; draw j of parameter i is element j * count + i.
typedef struct weir_draw_t {
  weir_philox_t philox;
  weir_dtype_t parameter_type;
  weir_dtype_t dtype;  // of the draws
  const void* parameters;
  int64_t count;
  int64_t samples;
  void* out;
} weir_draw_t;

// The gamma distribution of shape |parameters| and scale 1: half, bfloat16, float, double.
void weir_random_gamma(weir_pool_t* pool, const weir_draw_t* draw);
// The Poisson distribution of rate |parameters|: half, float, double, int32, int64 for both types.
void weir_random_poisson(weir_pool_t* pool, const weir_draw_t* draw);

// How many of |count| trials succeed with probability |p|; NaN where one of them is. |index| is the
// number of the draw, each of which has a stretch of the generator for itself, and |dtype|, half,
// float or double, the type that both numbers came in.
double weir_random_binomial(weir_philox_t philox, uint64_t index, weir_dtype_t dtype, double count,
                            double p);

// A normal distribution cut off at both ends. Bounds that are infinite on both sides or in the
// wrong order, and deviations that are not positive, are for the caller to refuse.
typedef struct weir_truncated_t {
  double mean;
  double deviation;
  double low;
  double high;
} weir_truncated_t;
// Fills elements [begin, end) of |out|: half, float or double, in whose precision all is computed.
// Moves |philox| on by what was needed. INTERNAL when no draw was accepted for long.
WEIR_MUST_USE weir_status_t* weir_random_truncated(weir_philox_t* philox, weir_dtype_t dtype,
                                                   const weir_truncated_t* parameters, void* out,
                                                   int64_t begin, int64_t end);
// After so many rejections one is taken as it is.
#define WEIR_TRUNCATED_MAX_ROUNDS 1000

#endif  // WEIR_KERNEL_RANDOM_RANDOM_DRAW_H_
