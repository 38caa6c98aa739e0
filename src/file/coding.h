// coding.h — Little-endian integers and varints in files. Private to src/file.
#ifndef WEIR_FILE_CODING_H_
#define WEIR_FILE_CODING_H_

#include "base/string.h"

WEIR_INLINE uint32_t weir_decode32(const void* data) {
  const uint8_t* p = data;
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
WEIR_INLINE uint64_t weir_decode64(const void* data) {
  const uint8_t* p = data;
  return (uint64_t)weir_decode32(p) | (uint64_t)weir_decode32(p + 4) << 32;
}
WEIR_INLINE void weir_encode32(void* data, uint32_t value) {
  uint8_t* p = data;
  for (int i = 0; i < 4; ++i) p[i] = (uint8_t)(value >> (8 * i));
}
WEIR_INLINE void weir_encode64(void* data, uint64_t value) {
  uint8_t* p = data;
  for (int i = 0; i < 8; ++i) p[i] = (uint8_t)(value >> (8 * i));
}
WEIR_INLINE void weir_put32(weir_strbuf_t* out, uint32_t value) {
  uint8_t bytes[4];
  weir_encode32(bytes, value);
  weir_strbuf_append(out, bytes, sizeof bytes);
}
WEIR_INLINE void weir_put64(weir_strbuf_t* out, uint64_t value) {
  uint8_t bytes[8];
  weir_encode64(bytes, value);
  weir_strbuf_append(out, bytes, sizeof bytes);
}

// Splits a varint off the front of *|rest|; false when it is cut off or longer than 64 bits.
WEIR_INLINE bool weir_take_varint(weir_view_t* rest, uint64_t* out_value) {
  uint64_t value = 0;
  for (size_t i = 0; i < 10 && i < rest->size; ++i) {
    uint8_t byte = (uint8_t)rest->data[i];
    if (i == 9 && byte > 1) return false;
    value |= (uint64_t)(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      *rest = weir_view(rest->data + i + 1, rest->size - i - 1);
      *out_value = value;
      return true;
    }
  }
  return false;
}

#endif  // WEIR_FILE_CODING_H_
