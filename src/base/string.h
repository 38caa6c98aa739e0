// string.h — Building and comparing text: a growable buffer with sticky out-of-memory.
#ifndef WEIR_BASE_STRING_H_
#define WEIR_BASE_STRING_H_

#include <stdarg.h>

#include "base/base.h"

// A growable byte string, always terminated once anything was appended. Thread-compatible.
// Zero-initialise to use. Appending after a failed allocation does nothing; weir_strbuf_finish
// reports it once.
typedef struct weir_strbuf_t {
  char* data;
  size_t size;
  size_t capacity;
  bool failed;  // an allocation failed: the content is incomplete
} weir_strbuf_t;

void weir_strbuf_append(weir_strbuf_t* buffer, const void* data, size_t size);
void weir_strbuf_puts(weir_strbuf_t* buffer, const char* text);
void weir_strbuf_putc(weir_strbuf_t* buffer, char c);
void weir_strbuf_printf(weir_strbuf_t* buffer, const char* format, ...) WEIR_PRINTF(2, 3);
void weir_strbuf_vprintf(weir_strbuf_t* buffer, const char* format, va_list args);
bool weir_strbuf_reserve(weir_strbuf_t* buffer, size_t extra);  // room for |extra| more bytes
void weir_strbuf_free(weir_strbuf_t* buffer);
WEIR_INLINE weir_view_t weir_strbuf_view(const weir_strbuf_t* buffer) {
  return weir_view(buffer->data, buffer->size);
}

// Returns RESOURCE_EXHAUSTED when any append failed.
WEIR_MUST_USE weir_status_t* weir_strbuf_finish(const weir_strbuf_t* buffer);

// Parses the whole of |text|; false on anything else, overflow included.
bool weir_parse_int64(weir_view_t text, int64_t* out_value);
bool weir_parse_double(weir_view_t text, double* out_value);

bool weir_view_starts_with(weir_view_t text, const char* prefix);
bool weir_view_ends_with(weir_view_t text, const char* suffix);
// Splits off what stands before the first |separator| of *|rest|; false when *|rest| is empty and
// used up.
bool weir_view_next(weir_view_t* rest, char separator, weir_view_t* out_part);
weir_view_t weir_view_trim(weir_view_t text);  // without spaces, tabs and newlines at both ends

#endif  // WEIR_BASE_STRING_H_
