// base64_test.c — Letters of base 64 in both alphabets, with padding and without.
#include "base/base64.h"

#include "testing/cmocka.h"

static void check_pair(const char* bytes, const char* letters, const char* padding) {
  weir_strbuf_t bare = {0}, padded = {0}, decoded = {0};
  weir_base64_append(weir_view_of(bytes), false, &bare);
  assert_string_equal(bare.data, letters);
  weir_base64_append(weir_view_of(bytes), true, &padded);
  assert_int_equal(padded.size, strlen(letters) + strlen(padding));
  assert_string_equal(padded.data + bare.size, padding);
  assert_true(weir_base64_read(weir_strbuf_view(&bare), &decoded));
  assert_true(weir_base64_read(weir_strbuf_view(&padded), &decoded));
  assert_int_equal(decoded.size, 2 * strlen(bytes));
  assert_string_equal(decoded.data + strlen(bytes), bytes);
  weir_strbuf_free(&bare);
  weir_strbuf_free(&padded);
  weir_strbuf_free(&decoded);
}

static void test_pairs(void** state) {
  (void)state;
  check_pair("f", "Zg", "==");
  check_pair("fo", "Zm8", "=");
  check_pair("foo", "Zm9v", "");
  check_pair("foob", "Zm9vYg", "==");
}

static void test_all_bytes(void** state) {
  (void)state;
  weir_strbuf_t all = {0}, encoded = {0}, decoded = {0};
  for (int i = 0; i < 256; ++i) weir_strbuf_putc(&all, (char)i);
  weir_base64_append(weir_strbuf_view(&all), false, &encoded);
  assert_true(weir_base64_read(weir_strbuf_view(&encoded), &decoded));
  assert_int_equal(decoded.size, 256);
  assert_memory_equal(decoded.data, all.data, 256);
  weir_strbuf_free(&all);
  weir_strbuf_free(&encoded);
  weir_strbuf_free(&decoded);
}

static void test_nothing(void** state) {
  (void)state;
  weir_strbuf_t out = {0};
  weir_base64_append(weir_view("", 0), true, &out);
  assert_true(weir_base64_read(weir_view("", 0), &out));
  assert_int_equal(out.size, 0);
  weir_strbuf_free(&out);
}

static void test_alphabets(void** state) {
  (void)state;
  char letters[5] = "", bytes[3];
  weir_base64_encode(WEIR_BASE64_URL, weir_view("\xfb\xff", 2), true, letters);
  assert_string_equal(letters, "-_8=");
  assert_true(weir_base64_decode(WEIR_BASE64_URL, weir_view_of("-_8"), bytes));
  assert_memory_equal(bytes, "\xfb\xff", 2);
  assert_false(weir_base64_decode(WEIR_BASE64_STANDARD, weir_view_of("-_8"), bytes));
  assert_false(weir_base64_decode(WEIR_BASE64_URL, weir_view_of("+/8"), bytes));
  assert_true(weir_base64_decode(WEIR_BASE64_ANY, weir_view_of("+_8"), bytes));
}

static void test_refused(void** state) {
  (void)state;
  const char* const texts[] = {"Zg.=", "Zm9vY", "Zg=", "=", "Z===", "Zg==Zg==", "Z g=", "Zm9\xc3"};
  weir_strbuf_t out = {0};
  for (size_t i = 0; i < WEIR_COUNT_OF(texts); ++i) {
    assert_false(weir_base64_read(weir_view_of(texts[i]), &out));
    assert_int_equal(out.size, 0);
  }
  weir_strbuf_free(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs), cmocka_unit_test(test_all_bytes),
                                     cmocka_unit_test(test_nothing),
                                     cmocka_unit_test(test_alphabets),
                                     cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
