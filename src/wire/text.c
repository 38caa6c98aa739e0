// text.c — The text format's parser: writes wire bytes as it reads, without building messages.
#include "wire/text.h"

#include <math.h>
#include <strings.h>

#include "wire/utf8.h"

enum { kMaxDepth = 100, kMaxNumberSize = 128, kMaxFields = 512 };

typedef enum token_kind_t {
  TOKEN_END,
  TOKEN_NAME,         // identifier
  TOKEN_NUMBER,       // starts with a digit, or a point before one; checked when it is used
  TOKEN_STRING,       // with its quotes, escapes untouched
  TOKEN_SYMBOL,       // any other single character
  TOKEN_OPEN_STRING,  // a string that is not closed on its line
} token_kind_t;

typedef struct parser_t {
  const char* start;  // of the text
  const char* next;   // behind the current token
  const char* end;
  token_kind_t kind;  // of the current token
  weir_view_t token;
  int depth;              // of messages
  weir_strbuf_t* out;     // wire bytes
  weir_strbuf_t scratch;  // a string without its escapes
} parser_t;

// A message being read.
typedef struct body_t {
  const weir_message_t* message;
  uint64_t seen[kMaxFields / 64];  // bit i: singular field i of the table was given
  const weir_field_t* packed;      // the packed field now being written, or NULL
  size_t packed_begin;
} body_t;

// ---- tokens ----

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

static void skip_blanks(parser_t* p) {
  while (p->next < p->end) {
    if (*p->next == '#') {
      while (p->next < p->end && *p->next != '\n') ++p->next;
    } else if (is_blank(*p->next)) {
      ++p->next;
    } else {
      return;
    }
  }
}

static token_kind_t scan_string(parser_t* p) {
  char quote = *p->next++;
  while (p->next < p->end && *p->next != quote && *p->next != '\n') {
    if (*p->next == '\\' && p->end - p->next > 1 && p->next[1] != '\n') ++p->next;
    ++p->next;
  }
  if (p->next == p->end || *p->next != quote) return TOKEN_OPEN_STRING;
  ++p->next;
  return TOKEN_STRING;
}

// Takes in all that could belong to a number, so that "1x" is one bad number and not two tokens.
static token_kind_t scan_number(parser_t* p) {
  bool is_hex = *p->next == '0' && p->end - p->next > 1 && (p->next[1] == 'x' || p->next[1] == 'X');
  char before = 0;
  for (; p->next < p->end; before = *p->next++) {
    char c = *p->next;
    bool is_sign = (c == '+' || c == '-') && !is_hex && (before == 'e' || before == 'E');
    if (!is_digit(c) && !is_name_start(c) && c != '.' && !is_sign) break;
  }
  return TOKEN_NUMBER;
}

static void next_token(parser_t* p) {
  skip_blanks(p);
  const char* begin = p->next;
  if (begin == p->end) {
    p->kind = TOKEN_END;
  } else if (is_name_start(*begin)) {
    while (p->next < p->end && (is_name_start(*p->next) || is_digit(*p->next))) ++p->next;
    p->kind = TOKEN_NAME;
  } else if (is_digit(*begin) || (*begin == '.' && p->end - begin > 1 && is_digit(begin[1]))) {
    p->kind = scan_number(p);
  } else if (*begin == '"' || *begin == '\'') {
    p->kind = scan_string(p);
  } else {
    ++p->next;
    p->kind = TOKEN_SYMBOL;
  }
  p->token = weir_view(begin, (size_t)(p->next - begin));
}

static bool is_symbol(const parser_t* p, char c) {
  return p->kind == TOKEN_SYMBOL && p->token.data[0] == c;
}

static bool accept(parser_t* p, char c) {
  if (!is_symbol(p, c)) return false;
  next_token(p);
  return true;
}

// ---- errors ----

// Puts line and column of the current token before the message. Counted only here, as most texts
// have no error.
static weir_status_t* at_token(const parser_t* p, weir_status_t* take_status) {
  size_t line = 1;
  const char* line_begin = p->start;
  for (const char* c = p->start; c < p->token.data; ++c) {
    if (*c != '\n') continue;
    ++line;
    line_begin = c + 1;
  }
  size_t column = (size_t)(p->token.data - line_begin) + 1;
  return weir_status_prefix(take_status, "text format, %zu:%zu: ", line, column);
}

static weir_status_t* expected(const parser_t* p, const char* what) {
  if (p->kind == TOKEN_END) {
    return at_token(p, WEIR_STATUS(INVALID_ARGUMENT, "expected %s, not the end of the text", what));
  }
  if (p->kind == TOKEN_OPEN_STRING) {
    return at_token(p, WEIR_STATUS(INVALID_ARGUMENT, "string is not closed on its line"));
  }
  int size = (int)WEIR_MIN(p->token.size, (size_t)60);
  return at_token(
      p, WEIR_STATUS(INVALID_ARGUMENT, "expected %s, not '%.*s'", what, size, p->token.data));
}

// ---- strings ----

static int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Reads up to |max| digits of |base| (8 or 16). Returns how many there were.
static int read_digits(const char** next, const char* end, int base, int max, uint32_t* out_value) {
  uint32_t value = 0;
  int count = 0;
  for (; count < max && *next < end; ++count, ++*next) {
    int digit = hex_digit(**next);
    if (digit < 0 || digit >= base) break;
    value = value * (uint32_t)base + (uint32_t)digit;
  }
  *out_value = value;
  return count;
}

static bool put_utf8(weir_strbuf_t* out, uint32_t c) {
  if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return false;
  if (c < 0x80) {
    weir_strbuf_putc(out, (char)c);
    return true;
  }
  uint8_t text[4];
  size_t size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = size - 1; i > 0; --i, c >>= 6) text[i] = (uint8_t)(0x80 | (c & 0x3f));
  text[0] = (uint8_t)((0xf00u >> size) | c);  // as many leading ones as bytes
  weir_strbuf_append(out, text, size);
  return true;
}

// \uXXXX, where a pair of surrogates is one character, and \UXXXXXXXX. *|next| is behind the u.
static bool put_unicode_escape(weir_strbuf_t* out, const char** next, const char* end, int digits) {
  uint32_t c = 0;
  if (read_digits(next, end, 16, digits, &c) != digits) return false;
  bool is_high = digits == 4 && c >= 0xd800 && c < 0xdc00;
  if (is_high && end - *next > 2 && (*next)[0] == '\\' && (*next)[1] == 'u') {
    uint32_t low = 0;
    *next += 2;
    if (read_digits(next, end, 16, 4, &low) != 4 || low < 0xdc00 || low > 0xdfff) return false;
    c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
  }
  return put_utf8(out, c);
}

// One escape; *|next| is behind the backslash and before |end|. False when it is none.
static bool put_escape(weir_strbuf_t* out, const char** next, const char* end) {
  static const char kNames[] = "abfnrtv\\?'\"";
  static const char kValues[] = "\a\b\f\n\r\t\v\\?'\"";
  uint32_t value = 0;
  if (read_digits(next, end, 8, 3, &value) > 0) {
    if (value > 0xff) return false;
    weir_strbuf_putc(out, (char)value);
    return true;
  }
  char c = *(*next)++;
  if (c == 'x' || c == 'X') {
    if (read_digits(next, end, 16, 2, &value) == 0) return false;
    weir_strbuf_putc(out, (char)value);
    return true;
  }
  if (c == 'u' || c == 'U') return put_unicode_escape(out, next, end, c == 'u' ? 4 : 8);
  const char* name = c ? strchr(kNames, c) : NULL;
  if (!name) return false;
  weir_strbuf_putc(out, kValues[name - kNames]);
  return true;
}

// Appends the current string token, without quotes and escapes, to |scratch|.
static weir_status_t* unescape(parser_t* p) {
  const char* next = p->token.data + 1;
  const char* end = p->token.data + p->token.size - 1;
  while (next < end) {
    const char* escape = memchr(next, '\\', (size_t)(end - next));
    const char* plain_end = escape ? escape : end;
    weir_strbuf_append(&p->scratch, next, (size_t)(plain_end - next));
    if (!escape) break;
    next = escape + 1;
    if (next == end || !put_escape(&p->scratch, &next, end)) {
      return at_token(p, WEIR_STATUS(INVALID_ARGUMENT, "bad escape in string"));
    }
  }
  return weir_strbuf_finish(&p->scratch);
}

static weir_status_t* parse_string(parser_t* p, const weir_field_t* field) {
  if (p->kind != TOKEN_STRING) return expected(p, "a string");
  p->scratch.size = 0;
  for (; p->kind == TOKEN_STRING; next_token(p)) WEIR_TRY(unescape(p));  // adjacent ones are one
  if (p->kind == TOKEN_OPEN_STRING) return expected(p, "a string");
  if (field->type == WEIR_FIELD_STRING && !weir_utf8_is_valid(weir_strbuf_view(&p->scratch))) {
    return at_token(
        p, WEIR_STATUS(INVALID_ARGUMENT, "field '%s' before here is not valid UTF-8", field->name));
  }
  weir_wire_put_bytes(p->out, field->number, p->scratch.data, p->scratch.size);
  return NULL;
}

// ---- numbers ----

// Decimal, hexadecimal (0x) or octal (0).
static bool parse_magnitude(weir_view_t text, uint64_t* out_value) {
  uint64_t base = 10;
  size_t i = 0;
  if (text.size > 1 && text.data[0] == '0') {
    bool is_hex = text.data[1] == 'x' || text.data[1] == 'X';
    base = is_hex ? 16 : 8;
    i = is_hex ? 2 : 1;
  }
  if (i == text.size) return false;
  uint64_t value = 0;
  for (; i < text.size; ++i) {
    int digit = hex_digit(text.data[i]);
    if (digit < 0 || (uint64_t)digit >= base) return false;
    if (__builtin_mul_overflow(value, base, &value)) return false;
    if (__builtin_add_overflow(value, (uint64_t)digit, &value)) return false;
  }
  *out_value = value;
  return true;
}

static uint64_t largest_magnitude(weir_field_type_t type, bool is_negative) {
  switch (type) {
    case WEIR_FIELD_SINT64:
    case WEIR_FIELD_SFIXED64:
    case WEIR_FIELD_INT64: return (uint64_t)INT64_MAX + is_negative;
    case WEIR_FIELD_SINT32:
    case WEIR_FIELD_SFIXED32:
    case WEIR_FIELD_INT32:
    case WEIR_FIELD_ENUM: return (uint64_t)INT32_MAX + is_negative;
    case WEIR_FIELD_UINT32:
    case WEIR_FIELD_FIXED32: return is_negative ? 0 : UINT32_MAX;
    case WEIR_FIELD_BOOL: return is_negative ? 0 : 1;
    default: return is_negative ? 0 : UINT64_MAX;
  }
}

static weir_status_t* parse_integer(parser_t* p, const weir_field_t* field, uint64_t* out_bits) {
  bool is_negative = accept(p, '-');
  if (p->kind != TOKEN_NUMBER) return expected(p, "an integer");
  uint64_t value = 0;
  if (!parse_magnitude(p->token, &value)) return expected(p, "an integer");
  if (value > largest_magnitude(field->type, is_negative)) {
    return at_token(p, WEIR_STATUS(INVALID_ARGUMENT, "%s%.*s is out of range for field '%s'",
                                   is_negative ? "-" : "", WEIR_VIEW_ARG(p->token), field->name));
  }
  next_token(p);
  *out_bits = is_negative ? 0 - value : value;
  return NULL;
}

// digits [. digits] [e [sign] digits] [f], decimal. Out of range is infinity, as in protobuf.
static bool parse_decimal(weir_view_t text, double* out_value) {
  if (text.data[text.size - 1] == 'f' || text.data[text.size - 1] == 'F') --text.size;
  if (text.size > 1 && text.data[0] == '0' && is_digit(text.data[1])) return false;  // octal
  for (size_t i = 0; i < text.size; ++i) {
    if (!is_digit(text.data[i]) && !strchr(".eE+-", text.data[i])) return false;
  }
  if (weir_parse_double(text, out_value)) return true;
  // Either too large or not a number: without the exponent only the second fails.
  weir_view_t mantissa = {.data = text.data, .size = 0};
  while (mantissa.size < text.size && !strchr("eE", text.data[mantissa.size])) ++mantissa.size;
  size_t i = mantissa.size + 1;
  if (i < text.size && text.data[i] == '+') ++i;
  int64_t exponent = 0;
  for (size_t k = i; k < text.size; ++k) {
    if (!is_digit(text.data[k])) return false;
    exponent = WEIR_MIN(exponent * 10 + (text.data[k] - '0'), 1000000);
  }
  if (text.size >= kMaxNumberSize || exponent == 0) return false;
  *out_value = INFINITY;
  return weir_parse_double(mantissa, &(double){0});
}

static bool is_name_of(const parser_t* p, const char* name) {
  return p->kind == TOKEN_NAME && p->token.size == strlen(name) &&
         strncasecmp(p->token.data, name, p->token.size) == 0;
}

static weir_status_t* parse_real(parser_t* p, const weir_field_t* field, uint64_t* out_bits) {
  bool is_negative = accept(p, '-');
  double value = 0;
  if (is_name_of(p, "inf") || is_name_of(p, "infinity")) {
    value = INFINITY;
  } else if (is_name_of(p, "nan")) {
    value = NAN;
  } else if (p->kind != TOKEN_NUMBER || !parse_decimal(p->token, &value)) {
    return expected(p, "a number");
  }
  next_token(p);
  if (is_negative) value = -value;
  if (field->type == WEIR_FIELD_DOUBLE) {
    memcpy(out_bits, &value, sizeof value);
  } else {
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    *out_bits = bits;
  }
  return NULL;
}

static weir_status_t* parse_bool(parser_t* p, const weir_field_t* field, uint64_t* out_bits) {
  if (p->kind == TOKEN_NUMBER) return parse_integer(p, field, out_bits);
  bool is_true = weir_view_is(p->token, "true") || weir_view_is(p->token, "True") ||
                 weir_view_is(p->token, "t");
  bool is_false = weir_view_is(p->token, "false") || weir_view_is(p->token, "False") ||
                  weir_view_is(p->token, "f");
  if (!is_true && !is_false) return expected(p, "true or false");
  *out_bits = is_true;
  next_token(p);
  return NULL;
}

static weir_status_t* parse_enum(parser_t* p, const weir_field_t* field, uint64_t* out_bits) {
  if (p->kind != TOKEN_NAME) return parse_integer(p, field, out_bits);
  for (const weir_enum_value_t* value = field->enum_values; value->name; ++value) {
    if (!weir_view_is(p->token, value->name)) continue;
    *out_bits = (uint64_t)value->number;
    next_token(p);
    return NULL;
  }
  return at_token(p, WEIR_STATUS(INVALID_ARGUMENT, "field '%s' has no value named '%.*s'",
                                 field->name, WEIR_VIEW_ARG(p->token)));
}

// ---- fields ----

static void close_packed(parser_t* p, body_t* body) {
  if (body->packed) weir_wire_end(p->out, body->packed_begin);
  body->packed = NULL;
}

static void put_bits(weir_strbuf_t* out, weir_wire_type_t type, uint64_t bits) {
  if (type == WEIR_WIRE_VARINT) {
    weir_wire_put_varint(out, bits);
    return;
  }
  uint8_t text[8];
  size_t size = type == WEIR_WIRE_FIXED32 ? 4 : 8;
  for (size_t i = 0; i < size; ++i) text[i] = (uint8_t)(bits >> (8 * i));
  weir_strbuf_append(out, text, size);
}

static weir_status_t* parse_scalar(parser_t* p, body_t* body, const weir_field_t* field) {
  uint64_t bits = 0;
  switch (field->type) {
    case WEIR_FIELD_STRING:
    case WEIR_FIELD_BYTES: return parse_string(p, field);
    case WEIR_FIELD_FLOAT:
    case WEIR_FIELD_DOUBLE: WEIR_TRY(parse_real(p, field, &bits)); break;
    case WEIR_FIELD_BOOL: WEIR_TRY(parse_bool(p, field, &bits)); break;
    case WEIR_FIELD_ENUM: WEIR_TRY(parse_enum(p, field, &bits)); break;
    default: WEIR_TRY(parse_integer(p, field, &bits)); break;
  }
  if (field->type == WEIR_FIELD_SINT32 || field->type == WEIR_FIELD_SINT64)
    bits = bits << 1 ^ (bits >> 63 ? UINT64_MAX : 0);  // zigzag: small where the magnitude is
  weir_wire_type_t type = weir_field_wire_type(field->type);
  if (!field->is_repeated) {
    weir_wire_put_tag(p->out, field->number, type);
  } else if (!body->packed) {
    body->packed = field;
    body->packed_begin = weir_wire_begin(p->out, field->number);
  }
  put_bits(p->out, type, bits);
  return NULL;
}

static weir_status_t* parse_body(parser_t* p, const weir_message_t* message, char close);

static weir_status_t* parse_message(parser_t* p, const weir_field_t* field) {
  bool is_angle = is_symbol(p, '<');
  if (!is_angle && !is_symbol(p, '{')) return expected(p, "'{'");
  if (p->depth == kMaxDepth) {
    return at_token(p,
                    WEIR_STATUS(INVALID_ARGUMENT, "messages are nested deeper than %d", kMaxDepth));
  }
  next_token(p);
  ++p->depth;
  const bool is_group = field->type == WEIR_FIELD_GROUP;
  size_t begin = 0;
  if (is_group) weir_wire_put_tag(p->out, field->number, WEIR_WIRE_GROUP);
  else begin = weir_wire_begin(p->out, field->number);
  WEIR_TRY(parse_body(p, field->message, is_angle ? '>' : '}'));
  if (is_group) weir_wire_put_tag(p->out, field->number, WEIR_WIRE_END_GROUP);
  else weir_wire_end(p->out, begin);
  --p->depth;
  return NULL;
}

static bool is_message(const weir_field_t* field) {
  return field->type == WEIR_FIELD_MESSAGE || field->type == WEIR_FIELD_GROUP;
}

static weir_status_t* parse_value(parser_t* p, body_t* body, const weir_field_t* field) {
  return is_message(field) ? parse_message(p, field) : parse_scalar(p, body, field);
}

// [value, value, …]; the bracket was taken.
static weir_status_t* parse_list(parser_t* p, body_t* body, const weir_field_t* field) {
  if (accept(p, ']')) return NULL;
  while (true) {
    WEIR_TRY(parse_value(p, body, field));
    if (accept(p, ']')) return NULL;
    if (!accept(p, ',')) return expected(p, "',' or ']'");
  }
}

// A singular field may be given once, and one field of a oneof.
static weir_status_t* check_once(const parser_t* p, body_t* body, const weir_field_t* field) {
  if (field->is_repeated) return NULL;
  const weir_field_t* fields = body->message->fields;
  for (unsigned i = 0; fields[i].number != 0; ++i) {
    bool is_same = &fields[i] == field;
    bool excludes = is_same || (field->oneof != 0 && fields[i].oneof == field->oneof);
    if (i >= kMaxFields) {
      return at_token(p, WEIR_STATUS(UNIMPLEMENTED, "%s has more than %d fields",
                                     body->message->name, kMaxFields));
    }
    if (excludes && (body->seen[i / 64] >> i % 64 & 1)) {
      return at_token(p, WEIR_STATUS(INVALID_ARGUMENT, "%s may have '%s' once, not also '%s'",
                                     body->message->name, fields[i].name, field->name));
    }
    if (is_same) body->seen[i / 64] |= (uint64_t)1 << i % 64;
  }
  return NULL;
}

// A group may be given by the name of its type.
static const weir_field_t* find_group(const weir_message_t* message, weir_view_t name) {
  for (const weir_field_t* field = message->fields; field->number != 0; ++field) {
    if (field->type != WEIR_FIELD_GROUP) continue;
    const char* dot = strrchr(field->message->name, '.');
    if (weir_view_is(name, dot ? dot + 1 : field->message->name)) return field;
  }
  return NULL;
}

// The name of an extension, in brackets: they and it become the current token.
static weir_status_t* read_extension_name(parser_t* p) {
  const char* begin = p->next;
  do {
    next_token(p);
    if (p->kind != TOKEN_NAME) return expected(p, "an extension's name");
    next_token(p);
  } while (is_symbol(p, '.'));
  if (!is_symbol(p, ']')) return expected(p, "']'");
  p->token = weir_view_trim(weir_view(begin, (size_t)(p->token.data - begin)));
  return NULL;
}

static weir_status_t* parse_field(parser_t* p, body_t* body) {
  if (is_symbol(p, '[')) WEIR_TRY(read_extension_name(p));
  else if (p->kind != TOKEN_NAME) return expected(p, "a field name");
  const weir_field_t* field = weir_message_field_named(body->message, p->token);
  if (!field) field = find_group(body->message, p->token);
  if (!field) {
    return at_token(p, WEIR_STATUS(INVALID_ARGUMENT, "%s has no field named '%.*s'",
                                   body->message->name, WEIR_VIEW_ARG(p->token)));
  }
  WEIR_TRY(check_once(p, body, field));
  if (field != body->packed) close_packed(p, body);
  next_token(p);
  bool has_colon = accept(p, ':');
  if (!has_colon && !is_message(field)) return expected(p, "':'");
  if (field->is_repeated && accept(p, '[')) {
    WEIR_TRY(parse_list(p, body, field));
  } else {
    WEIR_TRY(parse_value(p, body, field));
  }
  if (!accept(p, ',')) accept(p, ';');
  return NULL;
}

// Reads fields up to |close|, which is taken, or to the end of the text when it is 0.
static weir_status_t* parse_body(parser_t* p, const weir_message_t* message, char close) {
  body_t body = {.message = message};
  while (p->kind != TOKEN_END && !(close && is_symbol(p, close))) {
    WEIR_TRY(parse_field(p, &body));
  }
  close_packed(p, &body);
  if (close && !accept(p, close)) return expected(p, close == '}' ? "'}'" : "'>'");
  return NULL;
}

weir_status_t* weir_text_parse(const weir_message_t* message, weir_view_t text,
                               weir_strbuf_t* out) {
  const char* start = text.size > 0 ? text.data : "";
  parser_t p = {.start = start, .next = start, .end = start + text.size, .out = out};
  size_t before = out->size;
  next_token(&p);
  weir_status_t* status = parse_body(&p, message, 0);
  if (!status) status = weir_strbuf_finish(out);
  if (status && out->data) {  // nothing half-written
    out->size = before;
    out->data[before] = '\0';
  }
  weir_strbuf_free(&p.scratch);
  return status;
}
