// siphash.c — As its authors define it (Aumasson and Bernstein, 2012).
#include "base/siphash.h"

static uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static void rounds(uint64_t v[4], int count) {
  for (int i = 0; i < count; ++i) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
  }
}

static void take_word(uint64_t v[4], uint64_t word) {
  v[3] ^= word;
  rounds(v, 2);
  v[0] ^= word;
}

uint64_t weir_siphash(const uint64_t key[2], const void* data, size_t size) {
  uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                   key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
  const uint8_t* p = data;
  uint64_t word = 0;
  for (size_t i = 0; i < size; ++i) {
    word |= (uint64_t)p[i] << (i % 8 * 8);
    if (i % 8 != 7) continue;
    take_word(v, word);
    word = 0;
  }
  take_word(v, word | (uint64_t)size << 56);
  v[2] ^= 0xff;
  rounds(v, 4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}
