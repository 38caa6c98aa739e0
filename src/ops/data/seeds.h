// seeds.h — Where random datasets have their seeds and numbers from: TensorFlow's, number by
// number.
#ifndef WEIR_OPS_DATA_SEEDS_H_
#define WEIR_OPS_DATA_SEEDS_H_

#include "base/philox.h"
#include "ops/data/dataset.h"

// Numbers of 32 bits, one at a time. A value type.
typedef struct weir_samples_t {
  weir_philox_t philox;
  uint32_t group[4];
  int used;  // of |group|
} weir_samples_t;
weir_samples_t weir_samples_create(int64_t seed, int64_t seed2);
uint32_t weir_samples_next(weir_samples_t* samples);

// Seeds for one walk after another: other ones each time, or the same. Thread-safe, a resource.
typedef struct weir_seeds_t weir_seeds_t;
// Seeds that are both zero are drawn.
WEIR_MUST_USE weir_status_t* weir_seeds_create(int64_t seed, int64_t seed2, bool is_renewed,
                                               weir_seeds_t** out_seeds);
void weir_seeds_release(weir_seeds_t* seeds);  // NULL-safe
// Numbers of the next walk.
weir_samples_t weir_seeds_next(weir_seeds_t* seeds);

// The seeds behind handle input |i|, or NULL where that is a dummy; retained.
WEIR_MUST_USE weir_status_t* weir_seeds_find(weir_kernel_ctx_t* ctx, int i,
                                             weir_seeds_t** out_seeds);

#endif  // WEIR_OPS_DATA_SEEDS_H_
