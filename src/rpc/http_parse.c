// http_parse.c — The states of an HTTP/1.1 request that comes in pieces.
#include "rpc/http_parse.h"

#include <strings.h>

#include "base/alloc.h"

enum { LINE_LIMIT = 1024, KEPT_SIZE = 1 << 16, FIRST_RESERVE = 1 << 20 };

void weir_http_parser_reset(weir_http_parser_t* parser) {
  parser->state = WEIR_HTTP_HEAD;
  parser->code = 0;
  parser->keeps_alive = parser->awaits_continue = false;
  parser->left = parser->trailer_size = 0;
  parser->head.size = parser->line.size = parser->body.size = 0;
  parser->request = (weir_http_request_t){.method = {0}};
  if (parser->body.capacity > KEPT_SIZE) weir_strbuf_free(&parser->body);
}

void weir_http_parser_free(weir_http_parser_t* parser) {
  weir_strbuf_free(&parser->head);
  weir_strbuf_free(&parser->body);
  weir_strbuf_free(&parser->line);
}

static void refuse(weir_http_parser_t* parser, int code) {
  parser->state = WEIR_HTTP_BAD;
  parser->code = code;
  parser->keeps_alive = parser->awaits_continue = false;
}

static void finish(weir_http_parser_t* parser) {
  parser->state = WEIR_HTTP_DONE;
  parser->request.body = weir_strbuf_view(&parser->body);
}

// ---- the head ----

static bool is_name(weir_view_t text, const char* name) {
  return text.size == strlen(name) && strncasecmp(text.data, name, text.size) == 0;
}

static bool is_token(weir_view_t text) {
  for (size_t i = 0; i < text.size; ++i) {
    unsigned char c = (unsigned char)text.data[i];
    bool is_plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    if (!is_plain && !(c && strchr("!#$%&'*+-.^_`|~", c))) return false;
  }
  return text.size > 0;
}

// "GET /path?query HTTP/1.1"
static bool parse_request_line(weir_http_parser_t* parser, weir_view_t line) {
  weir_http_request_t* request = &parser->request;
  weir_view_t target;
  bool is_good = weir_view_next(&line, ' ', &request->method) && is_token(request->method) &&
                 weir_view_next(&line, ' ', &target) && target.size > 0 && target.data[0] == '/' &&
                 weir_view_starts_with(line, "HTTP/1.") && line.size == 8;
  if (!is_good) return false;
  parser->keeps_alive = line.data[7] != '0';
  weir_view_next(&target, '?', &request->path);
  request->query = target;
  return true;
}

// What is declared of the body: its length, or that it comes in chunks.
typedef struct framing_t {
  uint64_t length;
  bool has_length, is_chunked;
} framing_t;

static bool parse_length(weir_view_t text, framing_t* framing) {
  uint64_t length = 0;
  for (size_t i = 0; i < text.size; ++i) {
    if (text.data[i] < '0' || text.data[i] > '9' || i >= 18) return false;
    length = length * 10 + (uint64_t)(text.data[i] - '0');
  }
  if (text.size == 0 || (framing->has_length && framing->length != length)) return false;
  framing->has_length = true;
  framing->length = length;
  return true;
}

static void parse_connection(weir_http_parser_t* parser, weir_view_t value) {
  weir_view_t word;
  while (weir_view_next(&value, ',', &word)) {
    if (is_name(weir_view_trim(word), "close")) parser->keeps_alive = false;
  }
}

// One field; returns the code to refuse with, or 0.
static int parse_field(weir_http_parser_t* parser, weir_view_t line, framing_t* framing) {
  weir_view_t name, value = line;
  if (!memchr(line.data, ':', line.size)) return 400;
  if (!weir_view_next(&value, ':', &name) || !is_token(name)) return 400;
  value = weir_view_trim(value);
  if (is_name(name, "authorization")) parser->request.authorization = value;
  else if (is_name(name, "content-type")) parser->request.content_type = value;
  else if (is_name(name, "connection")) parse_connection(parser, value);
  else if (is_name(name, "content-length")) return parse_length(value, framing) ? 0 : 400;
  else if (is_name(name, "expect")) {
    if (!is_name(value, "100-continue")) return 417;
    parser->awaits_continue = true;
  } else if (is_name(name, "transfer-encoding")) {
    if (!is_name(value, "chunked") || framing->is_chunked) return 501;
    framing->is_chunked = true;
  }
  return 0;
}

static int parse_head(weir_http_parser_t* parser, framing_t* framing) {
  weir_view_t rest = weir_strbuf_view(&parser->head), line;
  if (memchr(rest.data, 0, rest.size) || !weir_view_next(&rest, '\n', &line)) return 400;
  if (!parse_request_line(parser, weir_view_trim(line))) return 400;
  while (weir_view_next(&rest, '\n', &line)) {
    weir_view_t trimmed = weir_view_trim(line);
    if (trimmed.size == 0) break;
    if (line.data[0] == ' ' || line.data[0] == '\t') return 400;  // a folded line
    int code = parse_field(parser, trimmed, framing);
    if (code) return code;
  }
  // Two lengths are two readings of what follows.
  return framing->is_chunked && framing->has_length ? 400 : 0;
}

static void end_head(weir_http_parser_t* parser) {
  framing_t framing = {.length = 0};
  int code = parse_head(parser, &framing);
  if (!code && framing.length > parser->max_body_size) code = 413;
  if (code) {
    refuse(parser, code);
    return;
  }
  bool has_body = framing.is_chunked || framing.length > 0;
  parser->left = framing.length;
  parser->awaits_continue &= has_body;
  if (!has_body) {
    finish(parser);
    return;
  }
  parser->state = framing.is_chunked ? WEIR_HTTP_CHUNK_SIZE : WEIR_HTTP_BODY;
  // A length is a claim: more room is made as the bytes come.
  if (!weir_strbuf_reserve(&parser->body, (size_t)WEIR_MIN(parser->left, FIRST_RESERVE)))
    refuse(parser, 503);
}

static size_t feed_head(weir_http_parser_t* parser, const char* data, size_t size) {
  weir_strbuf_t* head = &parser->head;
  for (size_t i = 0; i < size;) {
    const char* newline = memchr(data + i, '\n', size - i);
    size_t part = newline ? (size_t)(newline - data) + 1 - i : size - i;
    if (head->size + part > WEIR_HTTP_HEAD_LIMIT) {
      refuse(parser, 431);
      return i;
    }
    weir_strbuf_append(head, data + i, part);
    i += part;
    if (head->failed) refuse(parser, 503);
    if (head->failed) return i;
    if (!newline) break;
    weir_view_t text = weir_strbuf_view(head);
    if (!weir_view_ends_with(text, "\n\r\n") && !weir_view_ends_with(text, "\n\n")) continue;
    end_head(parser);
    return i;
  }
  return size;
}

// ---- the body ----

static size_t feed_body(weir_http_parser_t* parser, const char* data, size_t size) {
  size_t part = (size_t)WEIR_MIN(parser->left, (uint64_t)size);
  weir_strbuf_append(&parser->body, data, part);
  parser->left -= part;
  if (parser->body.failed) refuse(parser, 503);
  else if (parser->left == 0 && parser->state == WEIR_HTTP_BODY) finish(parser);
  else if (parser->left == 0) parser->state = WEIR_HTTP_CHUNK_END;
  return part;
}

static int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  int lower = c | 0x20;
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// "1a3f;what=ever"
static void begin_chunk(weir_http_parser_t* parser, weir_view_t line) {
  weir_view_t digits;
  uint64_t size = 0;
  bool is_good = weir_view_next(&line, ';', &digits);
  digits = weir_view_trim(digits);
  if (!is_good || digits.size == 0 || digits.size > 15) {
    refuse(parser, 400);
    return;
  }
  for (size_t i = 0; i < digits.size; ++i) {
    int value = hex_value(digits.data[i]);
    if (value < 0) refuse(parser, 400);
    if (value < 0) return;
    size = size << 4 | (uint64_t)value;
  }
  parser->left = size;
  parser->state = size > 0 ? WEIR_HTTP_CHUNK : WEIR_HTTP_TRAILER;
  if (size > parser->max_body_size - parser->body.size) refuse(parser, 413);
}

static void end_line(weir_http_parser_t* parser, weir_view_t line) {
  switch (parser->state) {
    case WEIR_HTTP_CHUNK_SIZE: begin_chunk(parser, line); break;
    case WEIR_HTTP_CHUNK_END:
      parser->state = WEIR_HTTP_CHUNK_SIZE;
      if (weir_view_trim(line).size > 0) refuse(parser, 400);
      break;
    default:  // a trailer
      parser->trailer_size += line.size;
      if (weir_view_trim(line).size == 0) finish(parser);
      else if (parser->trailer_size > WEIR_HTTP_HEAD_LIMIT) refuse(parser, 431);
  }
}

static size_t feed_line(weir_http_parser_t* parser, const char* data, size_t size) {
  const char* newline = memchr(data, '\n', size);
  size_t part = newline ? (size_t)(newline - data) + 1 : size;
  weir_strbuf_append(&parser->line, data, part);
  if (parser->line.failed || parser->line.size > LINE_LIMIT) {
    refuse(parser, parser->line.failed ? 503 : 400);
  } else if (newline) {
    end_line(parser, weir_strbuf_view(&parser->line));
    parser->line.size = 0;
  }
  return part;
}

size_t weir_http_parser_feed(weir_http_parser_t* parser, const char* data, size_t size) {
  size_t used = 0;
  while (used < size && parser->state < WEIR_HTTP_DONE) {
    if (parser->state == WEIR_HTTP_HEAD) used += feed_head(parser, data + used, size - used);
    else if (parser->state == WEIR_HTTP_BODY || parser->state == WEIR_HTTP_CHUNK)
      used += feed_body(parser, data + used, size - used);
    else used += feed_line(parser, data + used, size - used);
  }
  return used;
}
