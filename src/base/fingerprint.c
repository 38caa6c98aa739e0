// fingerprint.c — FarmHash's Fingerprint64: one mix for each range of sizes, 64 bytes a round
// above.
#include "base/fingerprint.h"

#include <string.h>

// Odd 64-bit primes of the definition.
#define K0 UINT64_C(0xc3a5c85c97cb3127)
#define K1 UINT64_C(0xb492b66fbe98f273)
#define K2 UINT64_C(0x9ae16a3b2f90404f)

typedef struct pair_t {
  uint64_t a, b;
} pair_t;

static uint64_t load(const unsigned char* bytes, int count) {  // little-endian on every machine
  uint64_t value = 0;
  for (int i = 0; i < count; ++i) value |= (uint64_t)bytes[i] << (8 * i);
  return value;
}

static uint64_t word(const unsigned char* bytes) { return load(bytes, 8); }

static uint64_t rotate(uint64_t value, int bits) { return value >> bits | value << (64 - bits); }

static uint64_t fold(uint64_t value) { return value ^ value >> 47; }

static uint64_t join(uint64_t u, uint64_t v, uint64_t factor) {
  uint64_t inner = fold((u ^ v) * factor);
  return fold((v ^ inner) * factor) * factor;
}

// ---- Up to 64 bytes: words from the front and from the end, which may overlap ----

static uint64_t hash_to_16(const unsigned char* s, size_t size) {
  const uint64_t factor = K2 + size * 2;
  if (size >= 8) {
    uint64_t head = word(s) + K2, tail = word(s + size - 8);
    return join(rotate(tail, 37) * factor + head, (rotate(head, 25) + tail) * factor, factor);
  }
  if (size >= 4) return join(size + (load(s, 4) << 3), load(s + size - 4, 4), factor);
  if (size == 0) return K2;
  uint64_t y = s[0] + ((uint64_t)s[size / 2] << 8), z = size + ((uint64_t)s[size - 1] << 2);
  return fold(y * K2 ^ z * K0) * K2;
}

static uint64_t hash_to_32(const unsigned char* s, size_t size) {
  const uint64_t factor = K2 + size * 2;
  uint64_t a = word(s) * K1, b = word(s + 8);
  uint64_t c = word(s + size - 8) * factor, d = word(s + size - 16) * K2;
  return join(rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + K2, 18) + c, factor);
}

static uint64_t hash_to_64(const unsigned char* s, size_t size) {
  const uint64_t factor = K2 + size * 2;
  uint64_t a = word(s) * K2, b = word(s + 8);
  uint64_t c = word(s + size - 8) * factor, d = word(s + size - 16) * K2;
  uint64_t y = rotate(a + b, 43) + rotate(c, 30) + d;
  uint64_t z = join(y, a + rotate(b + K2, 18) + c, factor);
  uint64_t e = word(s + 16) * factor, f = word(s + 24);
  uint64_t g = (y + word(s + size - 32)) * factor, h = (z + word(s + size - 24)) * factor;
  return join(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, factor);
}

// ---- More: 56 bytes of state ----

typedef struct state_t {
  uint64_t x, y, z;
  pair_t v, w;
} state_t;

static pair_t mix_32(const unsigned char* s, uint64_t a, uint64_t b) {
  const uint64_t last = word(s + 24);
  a += word(s);
  b = rotate(b + a + last, 21);
  const uint64_t first = a;
  a += word(s + 8) + word(s + 16);
  return (pair_t){a + last, b + rotate(a, 44) + first};
}

// Takes in 64 bytes. The last round weighs two terms by 9, the others by 1.
static void take_64(state_t* t, const unsigned char* s, uint64_t factor, uint64_t weight) {
  uint64_t x = rotate(t->x + t->y + t->v.a + word(s + 8), 37) * factor;
  uint64_t y = rotate(t->y + t->v.b + word(s + 48), 42) * factor;
  x ^= t->w.b * weight;
  y += t->v.a * weight + word(s + 40);
  const uint64_t z = rotate(t->z + t->w.a, 33) * factor;
  t->v = mix_32(s, t->v.b * factor, x + t->w.a);
  t->w = mix_32(s + 32, z + t->w.b, y + word(s + 16));
  t->x = z;  // x and z change places
  t->y = y;
  t->z = x;
}

static uint64_t hash_long(const unsigned char* s, size_t size) {
  const uint64_t seed = 81;
  state_t t = {.x = seed * K2 + word(s), .y = seed * K1 + 113};
  t.z = fold(t.y * K2 + 113) * K2;
  const size_t rest = (size - 1) % 64;  // the last round has 1 to 64 new bytes
  for (const unsigned char* end = s + (size - 1 - rest); s != end; s += 64) take_64(&t, s, K1, 1);
  const uint64_t factor = K1 + ((t.z & 0xff) << 1);
  t.w.a += rest;
  t.v.a += t.w.a;
  t.w.a += t.v.a;
  take_64(&t, s + rest - 63, factor, 9);
  return join(join(t.v.a, t.w.a, factor) + fold(t.y) * K0 + t.z, join(t.v.b, t.w.b, factor) + t.x,
              factor);
}

uint64_t weir_fingerprint64(const void* data, size_t size) {
  const unsigned char* bytes = data;
  if (size <= 16) return hash_to_16(bytes, size);
  if (size <= 32) return hash_to_32(bytes, size);
  if (size <= 64) return hash_to_64(bytes, size);
  return hash_long(bytes, size);
}

uint64_t weir_murmur64_seeded(const void* data, size_t size, uint64_t seed) {
  const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
  const uint8_t* bytes = data;
  uint64_t h = seed ^ size * m;
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t k = 0;
    for (int i = 7; i >= 0; --i) k = k << 8 | bytes[i];
    k *= m;
    k = (k ^ k >> 47) * m;
    h = (h ^ k) * m;
  }
  for (size_t i = size; i-- > 0;) h ^= (uint64_t)bytes[i] << (8 * i);
  if (size > 0) h *= m;
  h = (h ^ h >> 47) * m;
  return h ^ h >> 47;
}

uint64_t weir_murmur64(const void* data, size_t size) {
  return weir_murmur64_seeded(data, size, UINT64_C(0xdecafcaffe));
}
