// base64.h — Bytes as letters of base 64 (RFC 4648), in its two alphabets. Pure functions.
#ifndef WEIR_BASE_BASE64_H_
#define WEIR_BASE_BASE64_H_

#include "base/string.h"

typedef enum weir_base64_t {
  WEIR_BASE64_STANDARD,  // "+/"
  WEIR_BASE64_URL,       // "-_"
  WEIR_BASE64_ANY,       // both, of use for decoding only
} weir_base64_t;

// How many letters |size| bytes are, with |pads| a multiple of four.
size_t weir_base64_size(size_t size, bool pads);
// Writes that many letters to |out|.
void weir_base64_encode(weir_base64_t alphabet, weir_view_t bytes, bool pads, char* out);
void weir_base64_append(weir_view_t bytes, bool pads, weir_strbuf_t* out);  // in the standard one

// |text| without its padding, which may be left out and is whole where it is there.
weir_view_t weir_base64_trim(weir_view_t text);
// Writes the bytes of trimmed |text|, size * 3 / 4 of them. Bits left over are not looked at.
// False, with some written, for a letter of another alphabet or a last letter by itself.
bool weir_base64_decode(weir_base64_t alphabet, weir_view_t text, char* out);
// Appends the bytes of |text|, trimmed or not, in either alphabet; false as above, with nothing
// appended.
bool weir_base64_read(weir_view_t text, weir_strbuf_t* out);

#endif  // WEIR_BASE_BASE64_H_
