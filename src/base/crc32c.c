// crc32c.c — CRC-32C by the CPU's own instruction, or by eight tables where it has none.
#include "base/crc32c.h"

#include <pthread.h>

#if defined(__aarch64__)
#include <sys/auxv.h>
#if defined(__clang__)  // its arm_acle.h hides these unless the whole file is compiled for them
#define CRC32C_TARGET __attribute__((target("crc")))
#define CRC32C_WORD __builtin_arm_crc32cd
#define CRC32C_BYTE __builtin_arm_crc32cb
#else
#include <arm_acle.h>
#define CRC32C_TARGET __attribute__((target("+crc")))
#define CRC32C_WORD __crc32cd
#define CRC32C_BYTE __crc32cb
#endif
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#elif defined(__x86_64__)
#include <nmmintrin.h>
#endif

#define CRC32C_POLYNOMIAL 0x82f63b78u  // reflected

typedef uint32_t (*extend_fn_t)(uint32_t state, const unsigned char* bytes, size_t size);

static uint32_t tables[8][256];

static void make_tables(void) {
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? CRC32C_POLYNOMIAL : 0);
    tables[0][i] = crc;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (int k = 1; k < 8; ++k)
      tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 0xff];
  }
}

static uint32_t load_le32(const unsigned char* bytes) {
  return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static uint32_t extend_by_tables(uint32_t state, const unsigned char* bytes, size_t size) {
  for (; size >= 8; size -= 8, bytes += 8) {
    uint32_t low = state ^ load_le32(bytes);
    uint32_t high = load_le32(bytes + 4);
    state = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
            tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
            tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
  }
  for (; size > 0; --size, ++bytes) state = (state >> 8) ^ tables[0][(state ^ *bytes) & 0xff];
  return state;
}

#if defined(__aarch64__)

CRC32C_TARGET static uint32_t extend_by_cpu(uint32_t state, const unsigned char* bytes,
                                            size_t size) {
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    state = CRC32C_WORD(state, word);
  }
  for (; size > 0; --size, ++bytes) state = CRC32C_BYTE(state, *bytes);
  return state;
}

static bool cpu_has_crc32c(void) { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }

#elif defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t extend_by_cpu(uint32_t state,
                                                                const unsigned char* bytes,
                                                                size_t size) {
  uint64_t wide = state;
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    wide = _mm_crc32_u64(wide, word);
  }
  state = (uint32_t)wide;
  for (; size > 0; --size, ++bytes) state = _mm_crc32_u8(state, *bytes);
  return state;
}

static bool cpu_has_crc32c(void) { return __builtin_cpu_supports("sse4.2"); }

#else

static uint32_t extend_by_cpu(uint32_t state, const unsigned char* bytes, size_t size) {
  return extend_by_tables(state, bytes, size);
}
static bool cpu_has_crc32c(void) { return false; }

#endif

static extend_fn_t extend_fn;
static pthread_once_t extend_once = PTHREAD_ONCE_INIT;

static void choose_extend(void) {
  make_tables();
  extend_fn = cpu_has_crc32c() ? extend_by_cpu : extend_by_tables;
}

uint32_t weir_crc32c_extend(uint32_t crc, const void* data, size_t size) {
  pthread_once(&extend_once, choose_extend);
  return ~extend_fn(~crc, data, size);
}

// For the test: the tables give what the CPU gives. Declared there.
uint32_t weir_crc32c_extend_by_tables(uint32_t crc, const void* data, size_t size);
uint32_t weir_crc32c_extend_by_tables(uint32_t crc, const void* data, size_t size) {
  pthread_once(&extend_once, choose_extend);
  return ~extend_by_tables(~crc, data, size);
}
