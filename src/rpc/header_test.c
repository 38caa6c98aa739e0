// header_test.c — Timeouts and percent-encoding as gRPC writes them.
#include "rpc/header.h"

#include "base/alloc.h"
#include "testing/cmocka.h"

static void expect_timeout(const char* text, int64_t ns) {
  int64_t parsed = -1;
  bool is_good = weir_rpc_timeout_parse(weir_view_of(text), &parsed);
  assert_int_equal(is_good, ns >= 0);
  if (is_good) assert_int_equal(parsed, ns);
}

static void expect_format(int64_t ns, const char* text) {
  char formatted[WEIR_RPC_TIMEOUT_TEXT_SIZE];
  weir_rpc_timeout_format(ns, formatted);
  assert_string_equal(formatted, text);
}

static void test_timeout(void** state) {
  (void)state;
  expect_timeout("301m", 301000000);
  expect_timeout("1n", 1);
  expect_timeout("99999999u", (int64_t)99999999 * 1000);
  expect_timeout("2S", 2000000000);
  expect_timeout("3M", (int64_t)180 * 1000000000);
  expect_timeout("1H", (int64_t)3600 * 1000000000);
  expect_timeout("99999999H", INT64_MAX);  // more than there are nanoseconds
  const char* bad[] = {"", "m", "1", "1x", "-1m", "1 m", "123456789m", " 1m"};
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i) expect_timeout(bad[i], -1);
  expect_format(0, "1n");
  expect_format(99999999, "99999999n");
  expect_format(100000000, "100000u");
  expect_format((int64_t)3600 * 1000000000, "3600000m");
  expect_format(INT64_MAX, "2562047H");
}

static void test_percent(void** state) {
  (void)state;
  weir_strbuf_t encoded = {0}, decoded = {0};
  weir_rpc_percent_encode(&encoded, weir_view_of("a b%\n\xc3\xa4~"));
  assert_string_equal(encoded.data, "a b%25%0A%C3%A4~");
  weir_rpc_percent_decode(&decoded, weir_strbuf_view(&encoded));
  assert_string_equal(decoded.data, "a b%\n\xc3\xa4~");
  decoded.size = 0;
  weir_rpc_percent_decode(&decoded, weir_view_of("50% %4 %zz %4a%"));
  assert_string_equal(decoded.data, "50% %4 %zz J%");
  weir_strbuf_t text = {0};  // long ones are cut between letters, by their size in the header
  for (int i = 0; i < 4000; ++i) weir_strbuf_puts(&text, "\xc3\xa4");
  encoded.size = 0;
  weir_rpc_percent_encode(&encoded, weir_strbuf_view(&text));
  assert_int_equal(encoded.size, 6144);
  assert_int_equal(encoded.size % 6, 0);
  weir_strbuf_free(&text);
  weir_strbuf_free(&encoded);
  weir_strbuf_free(&decoded);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_timeout),
                                     cmocka_unit_test(test_percent)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
