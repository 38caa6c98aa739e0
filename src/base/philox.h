// philox.h — The Philox 4x32-10 counter-based generator, as TensorFlow's random ops use it.
#ifndef WEIR_BASE_PHILOX_H_
#define WEIR_BASE_PHILOX_H_

#include "base/base.h"

// State: 128-bit counter (little word first), 64-bit key. A value type; copying it copies the
// stream.
typedef struct weir_philox_t {
  uint32_t counter[4];
  uint32_t key[2];
} weir_philox_t;

// seed_lo is the key, seed_hi the upper half of the counter: PhiloxRandom(seed_lo, seed_hi) of
// TensorFlow.
weir_philox_t weir_philox_seed(uint64_t seed_lo, uint64_t seed_hi);
void weir_philox_skip(weir_philox_t* philox, uint64_t count);  // |count| groups of four
void weir_philox_next(weir_philox_t* philox,
                      uint32_t out_group[4]);  // one group; the counter advances by one

// The guarded generator of a stateful random op: seeds from attributes (both 0: from the system's
// entropy).
weir_philox_t weir_philox_from_seeds(int64_t seed, int64_t seed2);
uint64_t weir_random_entropy(void);  // 64 bits from the system

#endif  // WEIR_BASE_PHILOX_H_
