// crc32c.h — The Castagnoli CRC of records, tables and checkpoints, with hardware where the CPU has
// it.
#ifndef WEIR_BASE_CRC32C_H_
#define WEIR_BASE_CRC32C_H_

#include "base/base.h"

uint32_t weir_crc32c_extend(uint32_t crc, const void* data, size_t size);
WEIR_INLINE uint32_t weir_crc32c(const void* data, size_t size) {
  return weir_crc32c_extend(0, data, size);
}
// Records store checksums masked, so that the checksum of data that holds checksums stays good.
WEIR_INLINE uint32_t weir_crc32c_mask(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}
WEIR_INLINE uint32_t weir_crc32c_unmask(uint32_t masked) {
  uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

#endif  // WEIR_BASE_CRC32C_H_
