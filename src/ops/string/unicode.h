// unicode.h — Text in the encodings of the world as Unicode's characters, and what is known of
// these. For the Unicode* ops and StringLower, StringUpper. Decoders are thread-confined; all else
// is thread-safe.
#ifndef WEIR_OPS_STRING_UNICODE_H_
#define WEIR_OPS_STRING_UNICODE_H_

#include "base/base.h"
#include "base/string.h"

#define WEIR_MAX_RUNE 0x10ffff
#define WEIR_REPLACEMENT_RUNE 0xfffd

// ---- decoding ----
typedef enum weir_encoding_t {
  WEIR_ENCODING_UTF8,
  WEIR_ENCODING_UTF16,  // by its byte order mark, big-endian without one
  WEIR_ENCODING_UTF16_BE,
  WEIR_ENCODING_UTF16_LE,
  WEIR_ENCODING_UTF32,  // likewise
  WEIR_ENCODING_UTF32_BE,
  WEIR_ENCODING_UTF32_LE,
  WEIR_ENCODING_LATIN1,
  WEIR_ENCODING_ASCII,
  WEIR_ENCODING_OTHER,      // by the C library's iconv
  WEIR_ENCODING_SHIFT_JIS,  // likewise, but for a few characters
} weir_encoding_t;

typedef struct weir_decoder_t {
  weir_encoding_t encoding;
  void* iconv;  // of OTHER and SHIFT_JIS
  // The text at hand, set by weir_decoder_start.
  weir_view_t text;
  size_t at;
  // As UTF16 and UTF32 turned out to be. Texts of UTF16 have the order of the one before, unless
  // that was cut off: TensorFlow leaves its converter as it is between the strings of a tensor.
  weir_encoding_t order;
} weir_decoder_t;

// INVALID_ARGUMENT "Could not create converter for input encoding: …" when nobody knows |name|.
// Case, hyphens and underscores in it do not matter.
WEIR_MUST_USE weir_status_t* weir_decoder_open(weir_view_t name, weir_decoder_t* out_decoder);
void weir_decoder_close(weir_decoder_t* decoder);
void weir_decoder_start(weir_decoder_t* decoder, weir_view_t text);
// The next character, or -1 for bytes that are none; they end at |decoder->at|. False at the end.
bool weir_decoder_next(weir_decoder_t* decoder, int32_t* out_rune);

// ---- encoding: to UTF8, UTF16_BE or UTF32_BE ----
WEIR_INLINE bool weir_rune_is_surrogate(int32_t rune) { return rune >= 0xd800 && rune < 0xe000; }
WEIR_INLINE bool weir_rune_is_valid(int32_t rune) {
  return rune >= 0 && rune <= WEIR_MAX_RUNE && !weir_rune_is_surrogate(rune);
}
// What is no character becomes the replacement character; |out|'s failure is sticky.
void weir_rune_put(weir_encoding_t encoding, int32_t rune, weir_strbuf_t* out);

// ---- what is known of characters (unicode_tables.c) ----
int32_t weir_rune_script(int32_t rune);  // ICU's number; -1 when |rune| is out of range
// The characters that |rune| is in the other case; returns how many.
int weir_rune_lower(int32_t rune, int32_t out_runes[3]);
int weir_rune_upper(int32_t rune, int32_t out_runes[3]);
bool weir_rune_is_cased(int32_t rune);           // has a case, and is not …
bool weir_rune_is_case_ignorable(int32_t rune);  // … passed over when looking for a letter's word

#endif  // WEIR_OPS_STRING_UNICODE_H_
