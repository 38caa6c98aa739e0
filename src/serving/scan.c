// scan.c — A JSON scanner without a tree.
#include "serving/scan.h"

int weir_scan_peek(weir_scan_t* scan) {
  while (scan->at < scan->end) {
    char c = *scan->at;
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return (unsigned char)c;
    ++scan->at;
  }
  return -1;
}

weir_status_t* weir_scan_error(const weir_scan_t* scan, const char* expected) {
  int line = 1, column = 1;
  for (const char* c = scan->begin; c < scan->at; ++c) {
    column = *c == '\n' ? 1 : column + 1;
    if (*c == '\n') ++line;
  }
  if (scan->at >= scan->end)
    return WEIR_STATUS(INVALID_ARGUMENT, "JSON: line %d, column %d: expected %s, not the end", line,
                       column, expected);
  unsigned char c = (unsigned char)*scan->at;
  bool is_plain = c >= 0x20 && c < 0x7f;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     is_plain ? "JSON: line %d, column %d: expected %s, not '%c'"
                              : "JSON: line %d, column %d: expected %s, not byte 0x%02x",
                     line, column, expected, c);
}

// ---- values ----

// Strings with escapes, and those with bytes that must not be there, are left to the parser.
weir_status_t* weir_scan_string(weir_scan_t* scan, weir_view_t* out_text) {
  if (weir_scan_peek(scan) != '"') return weir_scan_error(scan, "a string");
  const char* begin = scan->at;
  const char* at = begin + 1;
  bool is_plain = true;
  while (at < scan->end && *at != '"') {
    is_plain &= *at != '\\' && (unsigned char)*at >= 0x20;
    at += *at == '\\' ? 2 : 1;
  }
  if (at >= scan->end) {
    scan->at = scan->end;
    return weir_scan_error(scan, "'\"'");
  }
  scan->at = at + 1;
  if (is_plain) {
    *out_text = weir_view(begin + 1, (size_t)(at - begin) - 1);
    return NULL;
  }
  const weir_json_t* value = NULL;
  WEIR_TRY(weir_json_parse(weir_view(begin, (size_t)(at + 1 - begin)), scan->arena, &value));
  *out_text = value->text;
  return NULL;
}

weir_status_t* weir_scan_number(weir_scan_t* scan, weir_json_number_t* out_number) {
  size_t size = 0;
  weir_scan_peek(scan);
  if (!weir_json_read_number(weir_view(scan->at, (size_t)(scan->end - scan->at)), out_number,
                             &size))
    return weir_scan_error(scan, "a number that a double can hold");
  scan->at += size;
  return NULL;
}

static bool take_word(weir_scan_t* scan, const char* word) {
  weir_scan_peek(scan);
  if (!weir_view_starts_with(weir_view(scan->at, (size_t)(scan->end - scan->at)), word))
    return false;
  scan->at += strlen(word);
  return true;
}

weir_status_t* weir_scan_bool(weir_scan_t* scan, bool* out_value) {
  *out_value = take_word(scan, "true");
  if (*out_value || take_word(scan, "false")) return NULL;
  return weir_scan_error(scan, "true or false");
}

// ---- arrays and objects ----

weir_status_t* weir_scan_open(weir_scan_t* scan, char bracket) {
  if (weir_scan_peek(scan) != bracket)
    return weir_scan_error(scan, bracket == '[' ? "an array" : "an object");
  if (++scan->depth > WEIR_JSON_MAX_DEPTH)
    return WEIR_STATUS(INVALID_ARGUMENT, "JSON: arrays and objects are nested more than %d deep",
                       WEIR_JSON_MAX_DEPTH);
  ++scan->at;
  return NULL;
}

weir_status_t* weir_scan_more(weir_scan_t* scan, char bracket, bool* is_first, bool* out_has_more) {
  char close = bracket == '[' ? ']' : '}';
  int c = weir_scan_peek(scan);
  bool was_first = *is_first;
  *is_first = false;
  *out_has_more = c != close;
  if (c == close) {
    ++scan->at;
    --scan->depth;
    return NULL;
  }
  if (was_first) return c < 0 ? weir_scan_error(scan, "a value") : NULL;
  if (c != ',') return weir_scan_error(scan, close == ']' ? "',' or ']'" : "',' or '}'");
  ++scan->at;
  if (weir_scan_peek(scan) == close) return weir_scan_error(scan, "another member after ','");
  return NULL;
}

weir_status_t* weir_scan_key(weir_scan_t* scan, weir_view_t* out_key) {
  if (weir_scan_peek(scan) != '"') return weir_scan_error(scan, "a key in quotes");
  WEIR_TRY(weir_scan_string(scan, out_key));
  if (weir_scan_peek(scan) != ':') return weir_scan_error(scan, "':'");
  ++scan->at;
  return NULL;
}

static weir_status_t* skip_members(weir_scan_t* scan, char bracket) {
  bool is_first = true, has_more = false;
  weir_view_t text;
  WEIR_TRY(weir_scan_open(scan, bracket));
  for (;;) {
    WEIR_TRY(weir_scan_more(scan, bracket, &is_first, &has_more));
    if (!has_more) return NULL;
    if (bracket == '{') WEIR_TRY(weir_scan_key(scan, &text));
    WEIR_TRY(weir_scan_skip(scan, &text));
  }
}

static weir_status_t* skip_value(weir_scan_t* scan) {
  weir_json_number_t number;
  weir_view_t text;
  int c = weir_scan_peek(scan);
  if (c == '[' || c == '{') return skip_members(scan, (char)c);
  if (c == '"') return weir_scan_string(scan, &text);
  if (c == '-' || (c >= '0' && c <= '9') || c == 'N' || c == 'I')
    return weir_scan_number(scan, &number);
  if (take_word(scan, "true") || take_word(scan, "false") || take_word(scan, "null")) return NULL;
  return weir_scan_error(scan, "a value");
}

weir_status_t* weir_scan_skip(weir_scan_t* scan, weir_view_t* out_text) {
  weir_scan_peek(scan);
  const char* begin = scan->at;
  WEIR_TRY(skip_value(scan));
  *out_text = weir_view(begin, (size_t)(scan->at - begin));
  return NULL;
}

weir_status_t* weir_scan_end(weir_scan_t* scan) {
  return weir_scan_peek(scan) < 0 ? NULL : weir_scan_error(scan, "the end");
}
