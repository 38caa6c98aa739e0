// unicode.c — Decoding and encoding text. Bytes that are no character are taken in pieces as ICU
// takes them: of UTF-8 the longest beginning of a character, of the others a unit.
#include "ops/string/unicode.h"

#include <ctype.h>
#include <errno.h>
#include <iconv.h>

#include "base/alloc.h"

// ---- names ----

// Letters and digits of |name| in lower case; "" when they do not fit.
static void tidy_name(weir_view_t name, char* out, size_t size) {
  size_t count = 0;
  for (size_t i = 0; i < name.size; ++i) {
    if (!isalnum((unsigned char)name.data[i])) continue;
    if (count + 1 >= size) count = size;
    if (count < size) out[count++] = (char)tolower((unsigned char)name.data[i]);
  }
  out[count < size ? count : 0] = '\0';
}

static const struct {
  const char* name;
  weir_encoding_t encoding;
} encodings[] = {
    {"utf8", WEIR_ENCODING_UTF8},          {"utf16", WEIR_ENCODING_UTF16},
    {"unicode", WEIR_ENCODING_UTF16},      {"ucs2", WEIR_ENCODING_UTF16},
    {"iso10646ucs2", WEIR_ENCODING_UTF16}, {"utf16be", WEIR_ENCODING_UTF16_BE},
    {"utf16le", WEIR_ENCODING_UTF16_LE},   {"utf32", WEIR_ENCODING_UTF32},
    {"ucs4", WEIR_ENCODING_UTF32},         {"iso10646ucs4", WEIR_ENCODING_UTF32},
    {"utf32be", WEIR_ENCODING_UTF32_BE},   {"utf32le", WEIR_ENCODING_UTF32_LE},
    {"latin1", WEIR_ENCODING_LATIN1},      {"l1", WEIR_ENCODING_LATIN1},
    {"iso88591", WEIR_ENCODING_LATIN1},    {"88591", WEIR_ENCODING_LATIN1},
    {"usascii", WEIR_ENCODING_ASCII},      {"ascii", WEIR_ENCODING_ASCII},
    {"iso646us", WEIR_ENCODING_ASCII},     {"shiftjis", WEIR_ENCODING_SHIFT_JIS},
    {"sjis", WEIR_ENCODING_SHIFT_JIS},     {"xsjis", WEIR_ENCODING_SHIFT_JIS},
    {"mskanji", WEIR_ENCODING_SHIFT_JIS},  {"csshiftjis", WEIR_ENCODING_SHIFT_JIS},
    {"cp932", WEIR_ENCODING_SHIFT_JIS},    {"ms932", WEIR_ENCODING_SHIFT_JIS},
    {"pck", WEIR_ENCODING_SHIFT_JIS},      {"windows932", WEIR_ENCODING_SHIFT_JIS},
    {"cp943c", WEIR_ENCODING_SHIFT_JIS},   {"windows31j", WEIR_ENCODING_SHIFT_JIS},
};

static bool open_iconv(const char* name, void** out_iconv) {
  iconv_t opened = iconv_open("UTF-32LE", name);
  if (opened == (iconv_t)-1) return false;  // NOLINT(performance-no-int-to-ptr): POSIX has it so
  *out_iconv = (void*)opened;
  return true;
}

// The C library knows some names as they are and some without what stands between their words,
// which is nothing to ICU.
static weir_status_t* open_other(weir_view_t name, const char* tidied, void** out_iconv) {
  char text[64] = "";
  if (name.size > 0 && name.size < sizeof(text)) {
    memcpy(text, name.data, name.size);
    if (open_iconv(text, out_iconv) || (*tidied && open_iconv(tidied, out_iconv))) return NULL;
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "Could not create converter for input encoding: %.*s",
                     WEIR_VIEW_ARG(name));
}

weir_status_t* weir_decoder_open(weir_view_t name, weir_decoder_t* out_decoder) {
  char tidied[32];
  *out_decoder = (weir_decoder_t){.encoding = WEIR_ENCODING_OTHER, .order = WEIR_ENCODING_OTHER};
  tidy_name(name, tidied, sizeof(tidied));
  for (size_t i = 0; i < WEIR_COUNT_OF(encodings); ++i) {
    if (strcmp(tidied, encodings[i].name) == 0) {
      out_decoder->encoding = out_decoder->order = encodings[i].encoding;
      break;
    }
  }
  // Other tables of the C library have a yen sign where ICU has the backslash.
  if (out_decoder->encoding == WEIR_ENCODING_SHIFT_JIS && open_iconv("IBM943", &out_decoder->iconv))
    return NULL;
  if (out_decoder->encoding < WEIR_ENCODING_OTHER) return NULL;
  return open_other(name, tidied, &out_decoder->iconv);
}

void weir_decoder_close(weir_decoder_t* decoder) {
  if (decoder->iconv) (void)iconv_close((iconv_t)decoder->iconv);
  decoder->iconv = NULL;
}

// ---- decoding ----

static uint8_t byte_at(const weir_decoder_t* d, size_t at) { return (uint8_t)d->text.data[at]; }

// Continuation bytes that |lead| asks for, and the bounds of the first; 0: it is none's.
static int utf8_tail(uint8_t lead, uint8_t* low, uint8_t* high) {
  *low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  *high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  return lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
}

static int32_t next_utf8(weir_decoder_t* d) {
  const uint8_t lead = byte_at(d, d->at++);
  uint8_t low, high;
  if (lead < 0x80) return lead;
  const int tail = utf8_tail(lead, &low, &high);
  if (tail == 0) return -1;
  int32_t rune = lead & (0x3f >> tail);
  for (int i = 0; i < tail; ++i, low = 0x80, high = 0xbf) {
    if (d->at == d->text.size) return -1;
    const uint8_t byte = byte_at(d, d->at);
    if (byte < low || byte > high) return -1;
    rune = rune << 6 | (byte & 0x3f);
    ++d->at;
  }
  return rune;
}

static uint32_t unit_at(const weir_decoder_t* d, size_t at, int size, bool is_little) {
  uint32_t unit = 0;
  for (int i = 0; i < size; ++i) {
    unit |= (uint32_t)byte_at(d, at + (size_t)i) << 8 * (is_little ? i : size - 1 - i);
  }
  return unit;
}

// The text ends within a unit, or after the first of two. The next one has an order of its own
// then.
static int32_t cut_off(weir_decoder_t* d) {
  d->at = d->text.size;
  d->order = d->encoding;
  return -1;
}

static int32_t next_utf16(weir_decoder_t* d, bool is_little) {
  const size_t left = d->text.size - d->at;
  if (left < 2) return cut_off(d);
  const uint32_t unit = unit_at(d, d->at, 2, is_little);
  if (unit < 0xd800 || unit > 0xdfff) {
    d->at += 2;
    return (int32_t)unit;
  }
  if (unit < 0xdc00 && left < 4) return cut_off(d);
  const uint32_t other = unit < 0xdc00 ? unit_at(d, d->at + 2, 2, is_little) : 0;
  d->at += 2;
  if (other < 0xdc00 || other > 0xdfff) return -1;
  d->at += 2;
  return (int32_t)(0x10000 + ((unit - 0xd800) << 10) + (other - 0xdc00));
}

static int32_t next_utf32(weir_decoder_t* d, bool is_little) {
  if (d->text.size - d->at < 4) return cut_off(d);
  const uint32_t unit = unit_at(d, d->at, 4, is_little);
  d->at += 4;
  return unit <= WEIR_MAX_RUNE && weir_rune_is_valid((int32_t)unit) ? (int32_t)unit : -1;
}

static int32_t next_byte(weir_decoder_t* d, int32_t last) {
  const int32_t byte = byte_at(d, d->at++);
  return byte <= last ? byte : -1;
}

// Gives iconv one byte more until it has a character. What it refuses is one byte that is none.
static int32_t next_other(weir_decoder_t* d) {
  const size_t begin = d->at;
  for (size_t size = 1; begin + size <= d->text.size; ++size) {
    uint8_t out[16] = {0};
    char* from = (char*)d->text.data + begin;
    char* to = (char*)out;
    size_t in_left = size, out_left = 4;
    const size_t result = iconv((iconv_t)d->iconv, &from, &in_left, &to, &out_left);
    const bool has_rune = out_left == 0;
    if (has_rune) {
      d->at = begin + size - in_left;
      return (int32_t)(out[0] | out[1] << 8 | out[2] << 16);
    }
    if (result == (size_t)-1 && errno == EILSEQ) break;
    // Whatever was read, as a change of the set of letters, is remembered: it is not read again.
    if (in_left < size) {
      d->at = begin + size - in_left;
      return d->at < d->text.size ? next_other(d) : -1;
    }
  }
  (void)iconv((iconv_t)d->iconv, NULL, NULL, NULL, NULL);
  d->at = begin + 1;
  return -1;
}

static bool is_shift_jis_pair(uint8_t lead, uint8_t trail) {
  return ((lead >= 0x81 && lead <= 0x9f) || (lead >= 0xe0 && lead <= 0xfc)) && trail >= 0x40 &&
         trail != 0x7f && trail <= 0xfc;
}

// IBM's Japanese table and ICU's differ in these, and ICU takes two bytes that could be a character
// at once where there is none.
static int32_t next_shift_jis(weir_decoder_t* d) {
  const size_t begin = d->at;
  const int32_t rune = next_other(d);
  if (rune < 0 && d->at < d->text.size && is_shift_jis_pair(byte_at(d, begin), byte_at(d, d->at)))
    ++d->at;
  switch (rune) {
    case 0x00a6: return 0xffe4;  // broken bar
    case 0x2014: return 0x2015;  // dash
    case 0x2016: return 0x2225;  // two upright lines
    case 0x2212: return 0xff0d;  // minus
    case 0x301c: return 0xff5e;  // wave
    default: return rune;
  }
}

// Looks for a mark that says which order the bytes of a unit have.
static void find_order(weir_decoder_t* d) {
  const bool is_16 = d->encoding == WEIR_ENCODING_UTF16;
  const int size = is_16 ? 2 : 4;
  d->order = is_16 ? WEIR_ENCODING_UTF16_BE : WEIR_ENCODING_UTF32_BE;
  if (d->text.size < (size_t)size) return;
  const bool is_marked_little = unit_at(d, 0, size, true) == 0xfeff;
  if (is_marked_little) d->order = is_16 ? WEIR_ENCODING_UTF16_LE : WEIR_ENCODING_UTF32_LE;
  if (is_marked_little || unit_at(d, 0, size, false) == 0xfeff) d->at = (size_t)size;
}

void weir_decoder_start(weir_decoder_t* decoder, weir_view_t text) {
  decoder->text = text;
  decoder->at = 0;
  if (decoder->encoding == WEIR_ENCODING_UTF32) decoder->order = decoder->encoding;
  if (decoder->iconv) (void)iconv((iconv_t)decoder->iconv, NULL, NULL, NULL, NULL);
}

bool weir_decoder_next(weir_decoder_t* d, int32_t* out_rune) {
  if (d->at >= d->text.size) return false;
  if (d->order == WEIR_ENCODING_UTF16 || d->order == WEIR_ENCODING_UTF32) {
    find_order(d);
    if (d->at == d->text.size) {  // a mark and nothing else: ICU's next character is this then
      *out_rune = 0xffff;
      d->order = d->encoding;
      return true;
    }
  }
  switch (d->order) {
    case WEIR_ENCODING_UTF8: *out_rune = next_utf8(d); break;
    case WEIR_ENCODING_UTF16_BE: *out_rune = next_utf16(d, false); break;
    case WEIR_ENCODING_UTF16_LE: *out_rune = next_utf16(d, true); break;
    case WEIR_ENCODING_UTF32_BE: *out_rune = next_utf32(d, false); break;
    case WEIR_ENCODING_UTF32_LE: *out_rune = next_utf32(d, true); break;
    case WEIR_ENCODING_LATIN1: *out_rune = next_byte(d, 0xff); break;
    case WEIR_ENCODING_ASCII: *out_rune = next_byte(d, 0x7f); break;
    case WEIR_ENCODING_SHIFT_JIS: *out_rune = next_shift_jis(d); break;
    default: *out_rune = next_other(d);
  }
  return true;
}

// ---- encoding ----

static void put_utf8(int32_t rune, weir_strbuf_t* out) {
  const int tail = rune < 0x80 ? 0 : rune < 0x800 ? 1 : rune < 0x10000 ? 2 : 3;
  static const uint8_t leads[] = {0, 0xc0, 0xe0, 0xf0};
  weir_strbuf_putc(out, (char)(leads[tail] | rune >> 6 * tail));
  for (int i = tail; i-- > 0;) weir_strbuf_putc(out, (char)(0x80 | (rune >> 6 * i & 0x3f)));
}

static void put_big(uint32_t unit, int size, weir_strbuf_t* out) {
  for (int i = size; i-- > 0;) weir_strbuf_putc(out, (char)(unit >> 8 * i));
}

void weir_rune_put(weir_encoding_t encoding, int32_t rune, weir_strbuf_t* out) {
  if (!weir_rune_is_valid(rune)) rune = WEIR_REPLACEMENT_RUNE;
  const uint32_t bits = (uint32_t)rune;
  if (encoding == WEIR_ENCODING_UTF8) {
    put_utf8(rune, out);
  } else if (encoding == WEIR_ENCODING_UTF32_BE) {
    put_big(bits, 4, out);
  } else if (rune < 0x10000) {
    put_big(bits, 2, out);
  } else {
    put_big(0xd800 + ((bits - 0x10000) >> 10), 2, out);
    put_big(0xdc00 + ((bits - 0x10000) & 0x3ff), 2, out);
  }
}
