// json.c — A recursive-descent JSON parser with a limit on depth.
#include "base/json.h"

#include "base/string.h"

typedef struct parser_t {
  weir_view_t text;
  size_t at;
  int depth;
  weir_arena_t* arena;
} parser_t;

static weir_status_t* parse_value(parser_t* p, weir_json_t* value);

// ---- the text ----

// -1 at the end.
static int peek(const parser_t* p) {
  return p->at < p->text.size ? (unsigned char)p->text.data[p->at] : -1;
}

static void skip_space(parser_t* p) {
  while (peek(p) == ' ' || peek(p) == '\t' || peek(p) == '\n' || peek(p) == '\r') ++p->at;
}

static weir_status_t* wrong(const parser_t* p, const char* expected) {
  int line = 1, column = 1;
  for (size_t i = 0; i < p->at; ++i) {
    column = p->text.data[i] == '\n' ? 1 : column + 1;
    if (p->text.data[i] == '\n') ++line;
  }
  int c = peek(p);
  if (c < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "JSON: line %d, column %d: expected %s, not the end", line,
                       column, expected);
  if (c < 0x20 || c >= 0x7f)
    return WEIR_STATUS(INVALID_ARGUMENT, "JSON: line %d, column %d: expected %s, not byte 0x%02x",
                       line, column, expected, c);
  return WEIR_STATUS(INVALID_ARGUMENT, "JSON: line %d, column %d: expected %s, not '%c'", line,
                     column, expected, c);
}

// ---- strings ----

static weir_status_t* parse_hex4(parser_t* p, uint32_t* out_unit) {
  uint32_t unit = 0;
  for (int i = 0; i < 4; ++i, ++p->at) {
    int c = peek(p);
    int lower = c | 0x20;
    bool is_letter = lower >= 'a' && lower <= 'f';
    if (c < 0 || !(is_letter || (c >= '0' && c <= '9')))
      return wrong(p, "four hexadecimal digits after \\u");
    unit = unit << 4 | (uint32_t)(is_letter ? lower - 'a' + 10 : c - '0');
  }
  *out_unit = unit;
  return NULL;
}

static char* put_utf8(char* out, uint32_t code) {
  if (code < 0x80) {
    *out++ = (char)code;
  } else if (code < 0x800) {
    *out++ = (char)(0xc0 | code >> 6);
    *out++ = (char)(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    *out++ = (char)(0xe0 | code >> 12);
    *out++ = (char)(0x80 | (code >> 6 & 0x3f));
    *out++ = (char)(0x80 | (code & 0x3f));
  } else {
    *out++ = (char)(0xf0 | code >> 18);
    *out++ = (char)(0x80 | (code >> 12 & 0x3f));
    *out++ = (char)(0x80 | (code >> 6 & 0x3f));
    *out++ = (char)(0x80 | (code & 0x3f));
  }
  return out;
}

static weir_status_t* parse_unicode(parser_t* p, char** out) {
  uint32_t code = 0, low = 0;
  WEIR_TRY(parse_hex4(p, &code));
  if (code >= 0xdc00 && code < 0xe000) return wrong(p, "the first half of a surrogate pair");
  if (code >= 0xd800 && code < 0xdc00) {
    if (peek(p) != '\\') return wrong(p, "the second half of a surrogate pair");
    ++p->at;
    if (peek(p) != 'u') return wrong(p, "the second half of a surrogate pair");
    ++p->at;
    WEIR_TRY(parse_hex4(p, &low));
    if (low < 0xdc00 || low >= 0xe000) return wrong(p, "the second half of a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  *out = put_utf8(*out, code);
  return NULL;
}

static weir_status_t* parse_escape(parser_t* p, char** out) {
  static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  int c = peek(p);
  if (c == 'u') {
    ++p->at;
    return parse_unicode(p, out);
  }
  const char* name = c > 0 ? strchr(names, c) : NULL;
  if (!name) return wrong(p, "one of \"\\/bfnrtu after a backslash");
  *(*out)++ = values[name - names];
  ++p->at;
  return NULL;
}

// Decodes up to the closing quote into |out|, which holds as many bytes as the text: an escape is
// never shorter than what it stands for.
static weir_status_t* decode_string(parser_t* p, char* out, weir_view_t* out_view) {
  char* begin = out;
  for (int c = peek(p); c != '"'; c = peek(p)) {
    if (c < 0x20) return wrong(p, "a character of a string or '\"'");
    ++p->at;
    if (c == '\\') WEIR_TRY(parse_escape(p, &out));
    else *out++ = (char)c;
  }
  ++p->at;
  *out_view = weir_view(begin, (size_t)(out - begin));
  return NULL;
}

// At the opening quote.
static weir_status_t* parse_string(parser_t* p, weir_view_t* out_view) {
  size_t begin = ++p->at, end = begin;
  bool has_escape = false;
  while (end < p->text.size && p->text.data[end] != '"') {
    bool is_escape = p->text.data[end] == '\\';
    has_escape |= is_escape;
    if ((unsigned char)p->text.data[end] < 0x20) has_escape = true;  // refused by decode_string
    end += is_escape ? 2 : 1;
  }
  if (!has_escape && end < p->text.size) {
    *out_view = weir_view(p->text.data + begin, end - begin);
    p->at = end + 1;
    return NULL;
  }
  char* copy = weir_arena_alloc(p->arena, WEIR_MIN(end, p->text.size) - begin + 1);
  if (!copy) return weir_out_of_memory();
  return decode_string(p, copy, out_view);
}

// ---- numbers and words ----

static bool skip_digits(parser_t* p) {
  size_t begin = p->at;
  while (peek(p) >= '0' && peek(p) <= '9') ++p->at;
  return p->at > begin;
}

static weir_status_t* parse_number(parser_t* p, weir_json_t* value) {
  size_t begin = p->at;
  if (peek(p) == '-') ++p->at;
  if (peek(p) == '0') ++p->at;  // no digit may follow
  else if (!skip_digits(p)) return wrong(p, "a digit");
  if (peek(p) == '.') {
    ++p->at;
    if (!skip_digits(p)) return wrong(p, "a digit after the point");
  }
  if (peek(p) == 'e' || peek(p) == 'E') {
    ++p->at;
    if (peek(p) == '+' || peek(p) == '-') ++p->at;
    if (!skip_digits(p)) return wrong(p, "a digit of the exponent");
  }
  value->kind = WEIR_JSON_NUMBER;
  value->text = weir_view(p->text.data + begin, p->at - begin);
  if (weir_parse_double(value->text, &value->number)) return NULL;
  p->at = begin;
  return wrong(p, "a number that a double can hold");
}

static weir_status_t* parse_word(parser_t* p, const char* word, weir_json_kind_t kind,
                                 weir_json_t* value) {
  for (const char* c = word; *c; ++c, ++p->at) {
    if (peek(p) != *c) return wrong(p, word);
  }
  value->kind = kind;
  value->boolean = kind == WEIR_JSON_BOOL && word[0] == 't';
  return NULL;
}

// ---- arrays and objects ----

static weir_status_t* parse_key(parser_t* p, weir_view_t* out_key) {
  skip_space(p);
  if (peek(p) != '"') return wrong(p, "a key in quotes");
  WEIR_TRY(parse_string(p, out_key));
  skip_space(p);
  if (peek(p) != ':') return wrong(p, "':'");
  ++p->at;
  return NULL;
}

// At the opening bracket.
static weir_status_t* parse_members(parser_t* p, weir_json_t* value, char close) {
  if (++p->depth > WEIR_JSON_MAX_DEPTH)
    return WEIR_STATUS(INVALID_ARGUMENT, "JSON: arrays and objects are nested more than %d deep",
                       WEIR_JSON_MAX_DEPTH);
  weir_json_t** place = &value->first;
  ++p->at;
  skip_space(p);
  while (peek(p) != close) {
    weir_json_t* member = weir_arena_alloc(p->arena, sizeof(*member));
    if (!member) return weir_out_of_memory();
    if (close == '}') WEIR_TRY(parse_key(p, &member->key));
    WEIR_TRY(parse_value(p, member));
    *place = member;
    place = &member->next;
    ++value->count;
    skip_space(p);
    if (peek(p) == close) break;
    if (peek(p) != ',') return wrong(p, close == '}' ? "',' or '}'" : "',' or ']'");
    ++p->at;
    skip_space(p);
    if (peek(p) == close) return wrong(p, "another member after ','");
  }
  ++p->at;
  --p->depth;
  return NULL;
}

static weir_status_t* parse_value(parser_t* p, weir_json_t* value) {
  skip_space(p);
  int c = peek(p);
  switch (c) {
    case '{': value->kind = WEIR_JSON_OBJECT; return parse_members(p, value, '}');
    case '[': value->kind = WEIR_JSON_ARRAY; return parse_members(p, value, ']');
    case '"': value->kind = WEIR_JSON_STRING; return parse_string(p, &value->text);
    case 't': return parse_word(p, "true", WEIR_JSON_BOOL, value);
    case 'f': return parse_word(p, "false", WEIR_JSON_BOOL, value);
    case 'n': return parse_word(p, "null", WEIR_JSON_NULL, value);
    default: break;
  }
  if (c == '-' || (c >= '0' && c <= '9')) return parse_number(p, value);
  return wrong(p, "a value");
}

weir_status_t* weir_json_parse(weir_view_t text, weir_arena_t* arena,
                               const weir_json_t** out_value) {
  parser_t p = {.text = text, .arena = arena};
  weir_json_t* value = weir_arena_alloc(arena, sizeof(*value));
  if (!value) return weir_out_of_memory();
  WEIR_TRY(parse_value(&p, value));
  skip_space(&p);
  if (peek(&p) >= 0) return wrong(&p, "the end");
  *out_value = value;
  return NULL;
}

// ---- reading a tree ----

const weir_json_t* weir_json_find(const weir_json_t* value, const char* key) {
  const weir_json_t* found = NULL;
  if (!value || value->kind != WEIR_JSON_OBJECT) return NULL;
  for (const weir_json_t* member = value->first; member; member = member->next) {
    if (weir_view_is(member->key, key)) found = member;
  }
  return found;
}

bool weir_json_int(const weir_json_t* value, int64_t* out_number) {
  if (!value || value->kind != WEIR_JSON_NUMBER) return false;
  if (weir_parse_int64(value->text, out_number)) return true;
  // Beyond 2^53 a double may stand for a neighbour of what was written.
  const double limit = 9007199254740992.0;
  if (!(value->number >= -limit && value->number <= limit)) return false;
  int64_t number = (int64_t)value->number;
  if ((double)number != value->number) return false;
  *out_number = number;
  return true;
}

const char* weir_json_kind_name(weir_json_kind_t kind) {
  static const char* const names[] = {"null",     "a boolean", "a number",
                                      "a string", "an array",  "an object"};
  return (size_t)kind < WEIR_COUNT_OF(names) ? names[kind] : "unknown";
}

void weir_json_put_view(weir_view_t text, weir_strbuf_t* out) {
  weir_strbuf_putc(out, '"');
  for (size_t i = 0; i < text.size; ++i) {
    const unsigned char c = (unsigned char)text.data[i];
    if (c == '"' || c == '\\') weir_strbuf_putc(out, '\\');
    if (c >= 0x20) weir_strbuf_putc(out, text.data[i]);
    else weir_strbuf_printf(out, "\\u%04x", (unsigned)c);
  }
  weir_strbuf_putc(out, '"');
}
