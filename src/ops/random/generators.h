// generators.h — Generators as ops are given them: as a seed, or as a key and a counter.
#ifndef WEIR_OPS_RANDOM_GENERATORS_H_
#define WEIR_OPS_RANDOM_GENERATORS_H_

#include "kernel/random/random.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

enum { ALG_PHILOX = 1, ALG_THREEFRY = 2, ALG_AUTO = 3 };

// Of the two numbers of input |input|.
WEIR_MUST_USE weir_status_t* weir_philox_of_seed(weir_kernel_ctx_t* ctx, int input,
                                                 weir_philox_t* out_philox);
// Of inputs 1 to 3: key, counter and algorithm.
WEIR_MUST_USE weir_status_t* weir_philox_of_key(weir_kernel_ctx_t* ctx, weir_philox_t* out_philox);

// Of the variable that is input 0, whose state begins at element |first|; it moves on by what
// |count| numbers take.
WEIR_MUST_USE weir_status_t* weir_philox_of_variable(weir_kernel_ctx_t* ctx, int first,
                                                     uint64_t count, weir_philox_t* out_philox);

// For shape functions: that inputs |first| and |first| + 1, minval and maxval, are scalars.
WEIR_MUST_USE weir_status_t* weir_random_check_bounds(weir_shape_ctx_t* ctx, int first);

#endif  // WEIR_OPS_RANDOM_GENERATORS_H_
