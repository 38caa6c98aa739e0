// utf8.h — UTF-8: lengths of characters. Protobuf strings must be valid UTF-8; bytes need not.
#ifndef WEIR_WIRE_UTF8_H_
#define WEIR_WIRE_UTF8_H_

#include "base/base.h"

// Returns the size of the character at the start of |text|, or 0 when it is malformed, overlong, a
// surrogate or too large.
static inline size_t weir_utf8_size(weir_view_t text) {
  if (text.size == 0) return 0;
  const uint8_t* p = (const uint8_t*)text.data;
  if (p[0] < 0x80) return 1;
  size_t size = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
  if (p[0] < 0xc2 || p[0] > 0xf4 || text.size < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((p[i] & 0xc0) != 0x80) return 0;
  }
  if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)) return 0;
  if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)) return 0;
  return size;
}

static inline bool weir_utf8_is_valid(weir_view_t text) {
  while (text.size > 0) {
    size_t size = weir_utf8_size(text);
    if (size == 0) return false;
    text = weir_view(text.data + size, text.size - size);
  }
  return true;
}

#endif  // WEIR_WIRE_UTF8_H_
