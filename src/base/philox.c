// philox.c — Philox 4x32-10 (Salmon et al., SC'11) and the system's entropy.
#include "base/philox.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/random.h>

#include "base/map.h"
#include "base/thread.h"

#define PHILOX_ROUNDS 10
#define PHILOX_MULTIPLIER_A 0xd2511f53u
#define PHILOX_MULTIPLIER_B 0xcd9e8d57u
#define PHILOX_WEYL_A 0x9e3779b9u
#define PHILOX_WEYL_B 0xbb67ae85u

weir_philox_t weir_philox_seed(uint64_t seed_lo, uint64_t seed_hi) {
  return (weir_philox_t){.counter = {0, 0, (uint32_t)seed_hi, (uint32_t)(seed_hi >> 32)},
                         .key = {(uint32_t)seed_lo, (uint32_t)(seed_lo >> 32)}};
}

void weir_philox_skip(weir_philox_t* philox, uint64_t count) {
  uint64_t low = philox->counter[0] | (uint64_t)philox->counter[1] << 32;
  uint64_t high = philox->counter[2] | (uint64_t)philox->counter[3] << 32;
  // TensorFlow adds word by word and loses the carry of a count whose upper word is full: so a
  // count that was negative goes back without borrowing.
  const bool is_lost =
      count >> 32 == UINT32_MAX && ((low & UINT32_MAX) + (count & UINT32_MAX)) >> 32;
  if (__builtin_add_overflow(low, count, &low) && !is_lost) ++high;
  philox->counter[0] = (uint32_t)low;
  philox->counter[1] = (uint32_t)(low >> 32);
  philox->counter[2] = (uint32_t)high;
  philox->counter[3] = (uint32_t)(high >> 32);
}

void weir_philox_next(weir_philox_t* philox, uint32_t out_group[4]) {
  uint32_t c0 = philox->counter[0], c1 = philox->counter[1], c2 = philox->counter[2],
           c3 = philox->counter[3];
  uint32_t k0 = philox->key[0], k1 = philox->key[1];
  for (int i = 0; i < PHILOX_ROUNDS; ++i) {
    uint64_t a = (uint64_t)PHILOX_MULTIPLIER_A * c0;
    uint64_t b = (uint64_t)PHILOX_MULTIPLIER_B * c2;
    c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)b;
    c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)a;
    k0 += PHILOX_WEYL_A;
    k1 += PHILOX_WEYL_B;
  }
  out_group[0] = c0;
  out_group[1] = c1;
  out_group[2] = c2;
  out_group[3] = c3;
  weir_philox_skip(philox, 1);
}

uint64_t weir_random_entropy(void) {
  uint64_t bits = 0;
  ssize_t got;
  do {
    got = getrandom(&bits, sizeof(bits), 0);
  } while (got < 0 && errno == EINTR);
  if (got == (ssize_t)sizeof(bits)) return bits;
  // A kernel without getrandom: clocks and a count still keep two calls apart.
  static _Atomic(uint64_t) calls = 0;
  uint64_t call = atomic_fetch_add(&calls, 1);
  return weir_hash_mix((uint64_t)weir_clock_ns() ^
                       weir_hash_mix((uint64_t)weir_wall_clock_us() + call));
}

weir_philox_t weir_philox_from_seeds(int64_t seed, int64_t seed2) {
  uint64_t low = (uint64_t)seed;
  uint64_t high = (uint64_t)seed2;
  if (low == 0 && high == 0) {
    low = weir_random_entropy();
    high = weir_random_entropy();
  }
  return weir_philox_seed(low, high);
}
