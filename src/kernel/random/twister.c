// twister.c — The Mersenne Twister of 64 bits, after Nishimura and Matsumoto.
#include "kernel/random/twister.h"

enum { kSize = WEIR_TWISTER_SIZE, kMiddle = 156 };

void weir_twister_seed(weir_twister_t* twister, uint64_t seed) {
  twister->state[0] = seed;
  for (uint64_t i = 1; i < kSize; ++i) {
    uint64_t last = twister->state[i - 1];
    twister->state[i] = 6364136223846793005u * (last ^ (last >> 62)) + i;
  }
  twister->next = kSize;
}

static void renew(weir_twister_t* twister) {
  uint64_t* state = twister->state;
  for (int i = 0; i < kSize; ++i) {
    uint64_t mixed = (state[i] & ~(uint64_t)0x7fffffff) | (state[(i + 1) % kSize] & 0x7fffffff);
    uint64_t twist = mixed & 1 ? 0xb5026f5aa96619e9u : 0;
    state[i] = state[(i + kMiddle) % kSize] ^ (mixed >> 1) ^ twist;
  }
  twister->next = 0;
}

uint64_t weir_twister_next(weir_twister_t* twister) {
  if (twister->next == kSize) renew(twister);
  uint64_t x = twister->state[twister->next++];
  x ^= (x >> 29) & 0x5555555555555555u;
  x ^= (x << 17) & 0x71d67fffeda60000u;
  x ^= (x << 37) & 0xfff7eee000000000u;
  return x ^ (x >> 43);
}

// A number below |limit|: the high half of a product, without the draws that would favour some.
static uint64_t draw_below(weir_twister_t* twister, uint64_t limit) {
  const uint64_t refused = (0 - limit) % limit;
  for (;;) {
    unsigned __int128 product = (unsigned __int128)weir_twister_next(twister) * limit;
    if ((uint64_t)product >= refused) return (uint64_t)(product >> 64);
  }
}

static void swap(char** items, size_t i, size_t k) {
  char* item = items[i];
  items[i] = items[k];
  items[k] = item;
}

// Two places are drawn at a time, after a single one where their number is odd.
void weir_twister_shuffle(weir_twister_t* twister, char** items, size_t count) {
  size_t i = 1;
  if (count > 0 && count % 2 == 0) {
    swap(items, 1, (size_t)draw_below(twister, 2));
    i = 2;
  }
  for (; i + 1 < count; i += 2) {
    uint64_t both = draw_below(twister, (uint64_t)(i + 1) * (i + 2));
    swap(items, i, (size_t)(both / (i + 2)));
    swap(items, i + 1, (size_t)(both % (i + 2)));
  }
}
