// header.c — Values of gRPC's HTTP/2 headers: timeouts, percent-encoded messages.
#include "rpc/header.h"

#include <stdio.h>

typedef struct unit_t {
  char letter;
  int64_t ns;
} unit_t;

static const unit_t units[] = {{'n', 1},
                               {'u', 1000},
                               {'m', 1000000},
                               {'S', 1000000000},
                               {'M', 60 * (int64_t)1000000000},
                               {'H', 3600 * (int64_t)1000000000}};

#define MAX_TIMEOUT_VALUE 99999999  // the protocol allows eight digits

bool weir_rpc_timeout_parse(weir_view_t text, int64_t* out_ns) {
  if (text.size < 2 || text.size > 9) return false;
  int64_t value = 0;
  for (size_t i = 0; i + 1 < text.size; ++i) {
    if (text.data[i] < '0' || text.data[i] > '9') return false;
    value = value * 10 + (text.data[i] - '0');
  }
  for (size_t i = 0; i < WEIR_COUNT_OF(units); ++i) {
    if (units[i].letter != text.data[text.size - 1]) continue;
    *out_ns = value > INT64_MAX / units[i].ns ? INT64_MAX : value * units[i].ns;
    return true;
  }
  return false;
}

void weir_rpc_timeout_format(int64_t ns, char out_text[WEIR_RPC_TIMEOUT_TEXT_SIZE]) {
  if (ns < 1) ns = 1;
  size_t i = 0;
  while (i + 1 < WEIR_COUNT_OF(units) && ns / units[i].ns > MAX_TIMEOUT_VALUE) ++i;
  int value = (int)WEIR_MIN(ns / units[i].ns, (int64_t)MAX_TIMEOUT_VALUE);
  snprintf(out_text, WEIR_RPC_TIMEOUT_TEXT_SIZE, "%d%c", value, units[i].letter);
}

static bool is_literal(uint8_t byte) { return byte >= 0x20 && byte <= 0x7e && byte != '%'; }

void weir_rpc_percent_encode(weir_strbuf_t* out, weir_view_t text) {
  // gRPC's clients begin to refuse answers at 8 KB of headers, and other letters than ASCII's take
  // three bytes for each of theirs.
  enum { MAX_ENCODED = 6144 };
  static const char digits[] = "0123456789ABCDEF";
  size_t size = 0;
  for (size_t encoded = 0; size < WEIR_MIN(text.size, (size_t)WEIR_RPC_MAX_STATUS_MESSAGE);
       ++size) {
    encoded += is_literal((uint8_t)text.data[size]) ? 1 : 3;
    if (encoded > MAX_ENCODED) break;
  }
  // A cut must not split a UTF-8 sequence: drop the continuation bytes and their lead.
  if (size < text.size) {
    while (size > 0 && ((uint8_t)text.data[size] & 0xc0) == 0x80) --size;
  }
  for (size_t i = 0; i < size; ++i) {
    uint8_t byte = (uint8_t)text.data[i];
    if (is_literal(byte)) {
      weir_strbuf_putc(out, (char)byte);
    } else {
      weir_strbuf_putc(out, '%');
      weir_strbuf_putc(out, digits[byte >> 4]);
      weir_strbuf_putc(out, digits[byte & 15]);
    }
  }
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void weir_rpc_percent_decode(weir_strbuf_t* out, weir_view_t text) {
  for (size_t i = 0; i < text.size; ++i) {
    int high = -1, low = -1;
    if (text.data[i] == '%' && i + 2 < text.size) {
      high = hex_digit(text.data[i + 1]);
      low = hex_digit(text.data[i + 2]);
    }
    if (high >= 0 && low >= 0) {
      weir_strbuf_putc(out, (char)(high * 16 + low));
      i += 2;
    } else {
      weir_strbuf_putc(out, text.data[i]);
    }
  }
}
