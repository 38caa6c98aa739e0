// http_parse_test.c — HTTP requests in pieces: bodies, chunks, limits, and what must be refused.
#include "rpc/http_parse.h"

#include "base/alloc.h"
#include "testing/cmocka.h"

enum { MAX_BODY = 64 };

// Feeds |text| in pieces of |step| bytes.
static weir_http_parser_t parse(const char* text, size_t step) {
  weir_http_parser_t parser = {.max_body_size = MAX_BODY};
  weir_http_parser_reset(&parser);
  size_t size = strlen(text), at = 0;
  while (at < size && parser.state < WEIR_HTTP_DONE)
    at += weir_http_parser_feed(&parser, text + at, WEIR_MIN(step, size - at));
  return parser;
}

static void expect_body(const char* text, const char* body) {
  for (size_t step = 1; step < 40; step += 3) {
    weir_http_parser_t parser = parse(text, step);
    assert_int_equal(parser.state, WEIR_HTTP_DONE);
    assert_true(weir_view_is(parser.request.body, body));
    assert_true(weir_view_is(parser.request.path, "/p"));
    weir_http_parser_free(&parser);
  }
}

static void expect_refused(const char* text, int code) {
  for (size_t step = 1; step < 40; step += 13) {
    weir_http_parser_t parser = parse(text, step);
    assert_int_equal(parser.state, WEIR_HTTP_BAD);
    assert_int_equal(parser.code, code);
    weir_http_parser_free(&parser);
  }
}

static void test_bodies(void** state) {
  (void)state;
  expect_body("GET /p HTTP/1.1\r\n\r\n", "");
  expect_body("POST /p?a=b HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "hello");
  expect_body(
      "POST /p HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n"
      "Trailer: 1\r\n\r\n",
      "abcde");
  expect_body("POST /p HTTP/1.0\ncontent-length: 2\ncontent-length: 2\n\nhi", "hi");
}

static void test_fields(void** state) {
  (void)state;
  weir_http_parser_t parser = parse(
      "PUT /a/b?c=d&e HTTP/1.1\r\nAuthorization:  Bearer x \r\nContent-Type: a/b\r\n"
      "Expect: 100-Continue\r\nConnection: x, Close\r\nContent-Length: 3\r\n\r\n",
      1000);
  assert_int_equal(parser.state, WEIR_HTTP_BODY);
  assert_true(parser.awaits_continue && !parser.keeps_alive);
  assert_true(weir_view_is(parser.request.method, "PUT"));
  assert_true(weir_view_is(parser.request.path, "/a/b"));
  assert_true(weir_view_is(parser.request.query, "c=d&e"));
  assert_true(weir_view_is(parser.request.authorization, "Bearer x"));
  assert_true(weir_view_is(parser.request.content_type, "a/b"));
  weir_http_parser_free(&parser);
}

static void test_stops_behind_a_request(void** state) {
  (void)state;
  const char* text = "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n";
  weir_http_parser_t parser = {.max_body_size = MAX_BODY};
  weir_http_parser_reset(&parser);
  size_t used = weir_http_parser_feed(&parser, text, strlen(text));
  assert_int_equal(used, strlen(text) / 2);
  assert_true(parser.keeps_alive && weir_view_is(parser.request.path, "/a"));
  weir_http_parser_reset(&parser);
  weir_http_parser_feed(&parser, text + used, strlen(text) - used);
  assert_true(weir_view_is(parser.request.path, "/b"));
  weir_http_parser_free(&parser);
}

static void test_refuses(void** state) {
  (void)state;
  static const struct {
    const char* text;
    int code;
  } cases[] = {
      {"\r\n\r\n", 400},
      {"GET\r\n\r\n", 400},
      {"GET x HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\n\r\n", 400},
      {"G@T / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nname : x\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\na: b\r\n folded\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nContent-Length: 65\r\n\r\n", 413},
      {"GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"GET / HTTP/1.1\r\nExpect: wonders\r\n\r\n", 417},
      {"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400},
      {"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n41\r\n", 413},
      {"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", 400},
      {"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400},
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) expect_refused(cases[i].text, cases[i].code);
}

static void test_long_heads(void** state) {
  (void)state;
  weir_strbuf_t text = {0};
  weir_strbuf_puts(&text, "GET / HTTP/1.1\r\n");
  while (text.size <= WEIR_HTTP_HEAD_LIMIT) weir_strbuf_puts(&text, "a: b\r\n");
  expect_refused(text.data, 431);
  weir_strbuf_free(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_bodies), cmocka_unit_test(test_fields),
                                     cmocka_unit_test(test_stops_behind_a_request),
                                     cmocka_unit_test(test_refuses),
                                     cmocka_unit_test(test_long_heads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
