// http_fuzz.c — Fuzz target: any bytes as HTTP/1.1 requests one after another, in pieces; however
// they are cut, the parser makes the same of them.
#include "base/alloc.h"
#include "rpc/http_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

enum { MAX_BODY = 4096, MAX_REQUESTS = 16 };

// Feeds |data| in pieces of |step| bytes; notes what came out.
static void parse(const char* data, size_t size, size_t step, weir_strbuf_t* out) {
  weir_http_parser_t parser = {.max_body_size = MAX_BODY};
  weir_http_parser_reset(&parser);
  size_t at = 0;
  for (int requests = 0; at < size && requests < MAX_REQUESTS;) {
    size_t used = weir_http_parser_feed(&parser, data + at, WEIR_MIN(step, size - at));
    WEIR_CHECK(used > 0 || parser.state == WEIR_HTTP_BAD);
    WEIR_CHECK(parser.body.size <= MAX_BODY && parser.head.size <= WEIR_HTTP_HEAD_LIMIT);
    at += used;
    if (parser.state == WEIR_HTTP_BAD) break;
    if (parser.state != WEIR_HTTP_DONE) continue;
    weir_strbuf_append(out, parser.request.path.data, parser.request.path.size);
    weir_strbuf_append(out, parser.request.body.data, parser.request.body.size);
    weir_strbuf_printf(out, "|%d|", parser.keeps_alive);
    weir_http_parser_reset(&parser);
    ++requests;
  }
  weir_strbuf_printf(out, "%d %d", (int)parser.state, parser.code);
  weir_http_parser_free(&parser);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir_strbuf_t whole = {0}, pieces = {0};
  parse((const char*)data, size, size ? size : 1, &whole);
  parse((const char*)data, size, 1 + size % 7, &pieces);
  WEIR_CHECK(weir_view_equal(weir_strbuf_view(&whole), weir_strbuf_view(&pieces)));
  weir_strbuf_free(&whole);
  weir_strbuf_free(&pieces);
  return 0;
}
