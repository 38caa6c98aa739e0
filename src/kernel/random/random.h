// random.h — Random numbers by Philox, bit for bit what TensorFlow's CPU kernels draw from the same
// state.
//
// Every function is a pure function of its generator: the number of threads does not show.
#ifndef WEIR_KERNEL_RANDOM_RANDOM_H_
#define WEIR_KERNEL_RANDOM_RANDOM_H_

#include "base/philox.h"
#include "base/thread.h"
#include "weir/dtype.h"

typedef enum weir_random_t {
  WEIR_RANDOM_UNIFORM,           // [0, 1): half, bfloat16, float, double
  WEIR_RANDOM_NORMAL,            // mean 0, deviation 1: the same types
  WEIR_RANDOM_TRUNCATED_NORMAL,  // the same within (-2, 2)
  WEIR_RANDOM_UNIFORM_INT,       // [low, low + range): int32, int64
  WEIR_RANDOM_FULL_INT,          // all bits: int32, uint32, int64, uint64
} weir_random_t;

typedef struct weir_random_spec_t {
  weir_random_t kind;
  weir_dtype_t dtype;
  int64_t low;     // UNIFORM_INT
  uint64_t range;  // UNIFORM_INT; not 0
} weir_random_spec_t;

// Fills |data| with |count| numbers. The kind must be defined for the type.
void weir_random_fill(weir_pool_t* pool, const weir_random_spec_t* spec, weir_philox_t philox,
                      void* data, int64_t count);

// The generator that stateless ops make of their two seeds: scrambled, so that weak seeds will do.
weir_philox_t weir_random_scramble(uint64_t seed0, uint64_t seed1);

// ---- a generator shared by the steps of a stateful op. Thread-safe. ----
typedef struct weir_random_state_t {
  weir_mutex_t mu;
  weir_philox_t philox;  // guarded by mu
} weir_random_state_t;
void weir_random_state_init(weir_random_state_t* state, int64_t seed, int64_t seed2);
void weir_random_state_deinit(weir_random_state_t* state);
// Returns the generator as it is and moves the shared one |groups| groups of four words on.
weir_philox_t weir_random_reserve(weir_random_state_t* state, uint64_t groups);
// What an op that puts out |count| numbers reserves, whatever the distribution needs.
#define WEIR_RANDOM_GROUPS_PER_OUTPUT 256

// ---- one word at a time ----
typedef struct weir_random_words_t {
  weir_philox_t philox;
  uint32_t group[4];
  int used;  // words of |group| already handed out
} weir_random_words_t;
WEIR_INLINE weir_random_words_t weir_random_words(weir_philox_t philox) {
  return (weir_random_words_t){.philox = philox, .used = 4};
}
WEIR_INLINE uint32_t weir_random_word(weir_random_words_t* words) {
  if (words->used == 4) {
    weir_philox_next(&words->philox, words->group);
    words->used = 0;
  }
  return words->group[words->used++];
}
// Moves |count| words on.
void weir_random_skip_words(weir_random_words_t* words, uint64_t count);
// [0, 1) with 52 bits, of two words.
WEIR_INLINE double weir_random_to_double(uint32_t high, uint32_t low) {
  uint64_t bits = (uint64_t)1023 << 52 | (uint64_t)(high & 0xfffffu) << 32 | low;
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value - 1.0;
}
WEIR_INLINE double weir_random_double(weir_random_words_t* words) {
  uint32_t high = weir_random_word(words);
  return weir_random_to_double(high, weir_random_word(words));
}

#endif  // WEIR_KERNEL_RANDOM_RANDOM_H_
