// hash.c — The key of this process' tables, and the hash that it goes into.
#include "base/hash.h"

#include "base/philox.h"

uint64_t weir_hash_key[2];

// Before any other constructor could fill a map.
__attribute__((constructor(101))) static void choose_key(void) {
  weir_hash_key[0] = weir_random_entropy();
  weir_hash_key[1] = weir_random_entropy() | 1;  // a factor that is 0 would hash all alike
}

static uint64_t load64(const unsigned char* bytes) {
  uint64_t word;
  memcpy(&word, bytes, sizeof(word));
  return word;
}

static uint32_t load32(const unsigned char* bytes) {
  uint32_t word;
  memcpy(&word, bytes, sizeof(word));
  return word;
}

uint64_t weir_hash_keyed(const void* data, size_t size) {
  const unsigned char* bytes = data;
  uint64_t hash = weir_hash_key[0] ^ size, first = 0, last = 0;
  size_t left = size;
  for (; left > 16; left -= 16, bytes += 16)
    hash = weir_hash_fold(load64(bytes) ^ weir_hash_key[1], load64(bytes + 8) ^ hash);
  if (left >= 8) {  // the two loads may overlap
    first = load64(bytes);
    last = load64(bytes + left - 8);
  } else if (left >= 4) {
    first = load32(bytes);
    last = load32(bytes + left - 4);
  } else if (left > 0) {
    first = (uint64_t)bytes[0] << 16 | (uint64_t)bytes[left / 2] << 8 | bytes[left - 1];
  }
  return weir_hash_fold(first ^ weir_hash_key[1], last ^ hash);
}
