// number_text.c — Reading numbers from text.
#include "ops/string/number_text.h"

#include <ctype.h>
#include <stdlib.h>

// |lowest| is how far below 0 the number may be.
static bool parse_integer(weir_view_t text, uint64_t lowest, uint64_t highest,
                          uint64_t* out_value) {
  while (text.size > 0 && isspace((unsigned char)text.data[text.size - 1])) --text.size;
  while (text.size > 0 && isspace((unsigned char)text.data[0])) {
    text = weir_view(text.data + 1, text.size - 1);
  }
  const bool is_negative = text.size > 0 && text.data[0] == '-';
  if (is_negative && lowest == 0) return false;
  if (is_negative || (text.size > 0 && text.data[0] == '+')) {
    text = weir_view(text.data + 1, text.size - 1);
  }
  const uint64_t limit = is_negative ? lowest : highest;
  uint64_t value = 0;
  for (size_t i = 0; i < text.size; ++i) {
    if (text.data[i] < '0' || text.data[i] > '9') return false;
    const uint64_t digit = (uint64_t)(text.data[i] - '0');
    if (value > (limit - digit) / 10) return false;
    value = 10 * value + digit;
  }
  *out_value = is_negative ? 0 - value : value;
  return text.size > 0;
}

static bool parse_floating(weir_view_t text, weir_dtype_t dtype, void* out_value) {
  char* end = NULL;
  if (dtype == WEIR_DTYPE_FLOAT) {
    *(float*)out_value = strtof(text.data, &end);
  } else {
    *(double*)out_value = strtod(text.data, &end);
  }
  if (end == text.data) return false;
  while (isspace((unsigned char)*end)) ++end;
  return end == text.data + text.size;
}

static bool parse_32(weir_view_t text, uint64_t lowest, uint64_t highest, void* out_value) {
  uint64_t value = 0;
  if (!parse_integer(text, lowest, highest, &value)) return false;
  *(uint32_t*)out_value = (uint32_t)value;
  return true;
}

bool weir_number_parse(weir_view_t text, weir_dtype_t dtype, void* out_value) {
  switch (dtype) {
    case WEIR_DTYPE_INT32: return parse_32(text, UINT64_C(1) << 31, INT32_MAX, out_value);
    case WEIR_DTYPE_UINT32: return parse_32(text, 0, UINT32_MAX, out_value);
    case WEIR_DTYPE_INT64: return parse_integer(text, UINT64_C(1) << 63, INT64_MAX, out_value);
    case WEIR_DTYPE_UINT64: return parse_integer(text, 0, UINT64_MAX, out_value);
    default: return parse_floating(text, dtype, out_value);
  }
}
