// base64.c — Bytes as letters of base 64, and back.
#include "base/base64.h"

static char letter(weir_base64_t alphabet, uint32_t value) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  if (value < 62) return letters[value];
  if (alphabet == WEIR_BASE64_URL) return value == 62 ? '-' : '_';
  return value == 62 ? '+' : '/';
}

static int value_of(weir_base64_t alphabet, char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (alphabet != WEIR_BASE64_URL && (c == '+' || c == '/')) return c == '+' ? 62 : 63;
  if (alphabet != WEIR_BASE64_STANDARD && (c == '-' || c == '_')) return c == '-' ? 62 : 63;
  return -1;
}

size_t weir_base64_size(size_t size, bool pads) {
  size_t rest = size % 3;
  return size / 3 * 4 + (rest == 0 ? 0 : pads ? 4 : rest + 1);
}

void weir_base64_encode(weir_base64_t alphabet, weir_view_t bytes, bool pads, char* out) {
  const char* end = out + weir_base64_size(bytes.size, pads);
  uint32_t bits = 0;
  int held = 0;
  for (size_t i = 0; i < bytes.size; ++i) {
    bits = bits << 8 | (uint8_t)bytes.data[i];
    for (held += 8; held >= 6; held -= 6) *out++ = letter(alphabet, bits >> (held - 6) & 63);
  }
  if (held > 0) *out++ = letter(alphabet, bits << (6 - held) & 63);
  while (out < end) *out++ = '=';
}

void weir_base64_append(weir_view_t bytes, bool pads, weir_strbuf_t* out) {
  size_t size = weir_base64_size(bytes.size, pads);
  if (size == 0 || !weir_strbuf_reserve(out, size)) return;
  weir_base64_encode(WEIR_BASE64_STANDARD, bytes, pads, out->data + out->size);
  out->size += size;
  out->data[out->size] = '\0';
}

weir_view_t weir_base64_trim(weir_view_t text) {
  if (text.size % 4) return text;
  for (int i = 0; i < 2 && text.size > 0 && text.data[text.size - 1] == '='; ++i) --text.size;
  return text;
}

bool weir_base64_decode(weir_base64_t alphabet, weir_view_t text, char* out) {
  uint32_t bits = 0;
  int held = 0;
  if (text.size % 4 == 1) return false;
  for (size_t i = 0; i < text.size; ++i) {
    int value = value_of(alphabet, text.data[i]);
    if (value < 0) return false;
    bits = bits << 6 | (uint32_t)value;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    *out++ = (char)(bits >> held & 0xff);
  }
  return true;
}

bool weir_base64_read(weir_view_t text, weir_strbuf_t* out) {
  weir_view_t letters = weir_base64_trim(text);
  size_t size = letters.size / 4 * 3 + letters.size % 4 * 3 / 4;
  if (!weir_strbuf_reserve(out, size)) return true;  // which the buffer remembers
  if (!weir_base64_decode(WEIR_BASE64_ANY, letters, out->data + out->size)) return false;
  out->size += size;
  out->data[out->size] = '\0';
  return true;
}
