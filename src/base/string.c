// string.c — The growable text buffer, number parsing, and views.
#include "base/string.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

bool weir_strbuf_reserve(weir_strbuf_t* buffer, size_t extra) {
  if (buffer->failed) return false;
  if (extra < buffer->capacity - buffer->size) return true;  // one byte is kept for the terminator
  size_t needed;
  if (__builtin_add_overflow(buffer->size, extra, &needed) || needed == SIZE_MAX ||
      !WEIR_GROW(buffer->data, buffer->capacity, needed + 1)) {
    buffer->failed = true;
    return false;
  }
  return true;
}

void weir_strbuf_append(weir_strbuf_t* buffer, const void* data, size_t size) {
  if (!weir_strbuf_reserve(buffer, size)) return;
  if (size > 0) memcpy(buffer->data + buffer->size, data, size);
  buffer->size += size;
  buffer->data[buffer->size] = '\0';
}

void weir_strbuf_puts(weir_strbuf_t* buffer, const char* text) {
  weir_strbuf_append(buffer, text, strlen(text));
}

void weir_strbuf_putc(weir_strbuf_t* buffer, char c) { weir_strbuf_append(buffer, &c, 1); }

void weir_strbuf_vprintf(weir_strbuf_t* buffer, const char* format, va_list args) {
  if (!weir_strbuf_reserve(buffer, 0)) return;
  size_t room = buffer->capacity - buffer->size;
  va_list again;
  va_copy(again, args);
  int size = vsnprintf(buffer->data + buffer->size, room, format, args);
  if (size < 0) {
    buffer->data[buffer->size] = '\0';  // an encoding error appends nothing
  } else if ((size_t)size < room) {
    buffer->size += (size_t)size;
  } else if (weir_strbuf_reserve(buffer, (size_t)size)) {
    vsnprintf(buffer->data + buffer->size, (size_t)size + 1, format, again);
    buffer->size += (size_t)size;
  } else {
    buffer->data[buffer->size] = '\0';
  }
  va_end(again);
}

void weir_strbuf_printf(weir_strbuf_t* buffer, const char* format, ...) {
  va_list args;
  va_start(args, format);
  weir_strbuf_vprintf(buffer, format, args);
  va_end(args);
}

void weir_strbuf_free(weir_strbuf_t* buffer) {
  weir_free(buffer->data);
  *buffer = (weir_strbuf_t){0};
}

weir_status_t* weir_strbuf_finish(const weir_strbuf_t* buffer) {
  return buffer->failed ? weir_out_of_memory() : NULL;
}

bool weir_parse_int64(weir_view_t text, int64_t* out_value) {
  size_t i = 0;
  bool is_negative = text.size > 0 && text.data[0] == '-';
  if (is_negative || (text.size > 0 && text.data[0] == '+')) i = 1;
  if (i == text.size) return false;
  int64_t value = 0;  // negative while parsing: INT64_MIN has no positive twin
  for (; i < text.size; ++i) {
    unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';
    if (digit > 9) return false;
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_sub_overflow(value, (int64_t)digit, &value))
      return false;
  }
  if (!is_negative && __builtin_sub_overflow((int64_t)0, value, &value)) return false;
  *out_value = value;
  return true;
}

static locale_t c_locale;  // (locale_t)0 when it cannot be made
static void make_c_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

// strtod as in the C locale, whatever the program chose: files have decimal points, never commas.
static double parse_terminated(const char* text, char** end) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_c_locale);
  return c_locale ? strtod_l(text, end, c_locale) : strtod(text, end);
}

bool weir_parse_double(weir_view_t text, double* out_value) {
  char local[128];
  if (text.size == 0 || strchr(" \t\n\v\f\r", text.data[0]))
    return false;  // strtod would skip blanks
  char* copy = local;
  if (text.size >= sizeof(local)) copy = weir_malloc(text.size + 1);
  if (!copy) return false;
  memcpy(copy, text.data, text.size);
  copy[text.size] = '\0';
  char* end = NULL;
  errno = 0;
  double value = parse_terminated(copy, &end);
  bool is_overflow = errno == ERANGE && isinf(value);
  bool is_good = end == copy + text.size && !is_overflow;
  if (copy != local) weir_free(copy);
  if (is_good) *out_value = value;
  return is_good;
}

bool weir_view_starts_with(weir_view_t text, const char* prefix) {
  size_t size = strlen(prefix);
  return text.size >= size && (size == 0 || memcmp(text.data, prefix, size) == 0);
}

bool weir_view_ends_with(weir_view_t text, const char* suffix) {
  size_t size = strlen(suffix);
  return text.size >= size &&
         (size == 0 || memcmp(text.data + text.size - size, suffix, size) == 0);
}

bool weir_view_next(weir_view_t* rest, char separator, weir_view_t* out_part) {
  // "a," has two parts, the second empty: data == NULL, not size == 0, marks a view used up.
  if (!rest->data) return false;
  const char* hit = rest->size > 0 ? memchr(rest->data, separator, rest->size) : NULL;
  if (!hit) {
    *out_part = *rest;
    *rest = weir_view(NULL, 0);
    return true;
  }
  size_t size = (size_t)(hit - rest->data);
  *out_part = weir_view(rest->data, size);
  *rest = weir_view(hit + 1, rest->size - size - 1);
  return true;
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

weir_view_t weir_view_trim(weir_view_t text) {
  while (text.size > 0 && is_blank(text.data[0])) {
    ++text.data;
    --text.size;
  }
  while (text.size > 0 && is_blank(text.data[text.size - 1])) --text.size;
  return text;
}
