// string_test.c — The text buffer, number parsing and views.

#include "base/string.h"

#include <math.h>

#include "base/alloc.h"
#include "testing/cmocka.h"

static void test_buffer(void** state) {
  (void)state;
  weir_strbuf_t buffer = {0};
  weir_strbuf_puts(&buffer, "a");
  weir_strbuf_putc(&buffer, 'b');
  weir_strbuf_append(&buffer, "cde", 2);
  weir_strbuf_printf(&buffer, "%d|%s", 42,
                     "a long text that does not fit what is reserved so far, surely not");
  assert_string_equal(buffer.data,
                      "abcd42|a long text that does not fit what is reserved so far, surely not");
  assert_int_equal(buffer.size, strlen(buffer.data));
  assert_null(weir_strbuf_finish(&buffer));
  weir_strbuf_free(&buffer);
  weir_strbuf_append(&buffer, NULL, 0);
  assert_string_equal(buffer.data, "");
  weir_strbuf_free(&buffer);
}

static void test_buffer_grows(void** state) {
  (void)state;
  weir_strbuf_t buffer = {0};
  for (int i = 0; i < 10000; ++i) weir_strbuf_putc(&buffer, (char)('a' + i % 26));
  assert_int_equal(buffer.size, 10000);
  for (int i = 0; i < 10000; ++i) assert_int_equal(buffer.data[i], 'a' + i % 26);
  weir_strbuf_free(&buffer);
}

static void test_buffer_out_of_memory(void** state) {
  (void)state;
  weir_strbuf_t buffer = {0};
  weir_strbuf_puts(&buffer, "kept");
  weir_alloc_fail_at(1, false);
  weir_strbuf_printf(&buffer, "%64d", 1);
  weir_alloc_fail_at(0, false);
  weir_strbuf_puts(&buffer, "ignored");
  assert_string_equal(buffer.data, "kept");
  assert_ptr_equal(weir_strbuf_finish(&buffer), weir_out_of_memory());
  assert_false(weir_strbuf_reserve(&buffer, 1));
  weir_strbuf_free(&buffer);
  assert_false(weir_strbuf_reserve(&buffer, SIZE_MAX));
  weir_strbuf_free(&buffer);
}

static void test_parse_int64(void** state) {
  (void)state;
  static const struct {
    const char* text;
    bool is_good;
    int64_t value;
  } cases[] = {{"0", true, 0},
               {"-17", true, -17},
               {"+5", true, 5},
               {"007", true, 7},
               {"9223372036854775807", true, INT64_MAX},
               {"-9223372036854775808", true, INT64_MIN},
               {"9223372036854775808", false, 0},
               {"-9223372036854775809", false, 0},
               {"99999999999999999999999", false, 0},
               {"", false, 0},
               {"-", false, 0},
               {" 1", false, 0},
               {"1 ", false, 0},
               {"1x", false, 0},
               {"0x10", false, 0}};
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    int64_t value = 0;
    assert_int_equal(weir_parse_int64(weir_view_of(cases[i].text), &value), cases[i].is_good);
    assert_true(value == cases[i].value);
  }
  int64_t value = 0;
  assert_true(weir_parse_int64(weir_view("123456", 3), &value));
  assert_int_equal(value, 123);
}

static void test_parse_double(void** state) {
  (void)state;
  static const char* const bad[] = {"", " 1", "1 ", "1,5", "x", "1e", "1e999", "--1", "1.5f"};
  double value = 3;
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i)
    assert_false(weir_parse_double(weir_view_of(bad[i]), &value));
  assert_true(value == 3);
  assert_true(weir_parse_double(weir_view_of("-1.5e3"), &value) && value == -1500);
  assert_true(weir_parse_double(weir_view("2.55", 3), &value) && value == 2.5);
  assert_true(weir_parse_double(weir_view_of("inf"), &value) && isinf(value));
  assert_true(weir_parse_double(weir_view_of("nan"), &value) && isnan(value));
  assert_true(weir_parse_double(weir_view_of("1e-320"), &value) && value > 0);
  assert_false(weir_parse_double(weir_view("1\0002", 3), &value));
  char many[300];
  memset(many, '0', sizeof(many));
  many[299] = '4';
  assert_true(weir_parse_double(weir_view(many, sizeof(many)), &value) && value == 4);
}

static void test_affixes(void** state) {
  (void)state;
  weir_view_t text = weir_view_of("DT_FLOAT");
  assert_true(weir_view_starts_with(text, "DT_"));
  assert_true(weir_view_starts_with(text, ""));
  assert_false(weir_view_starts_with(text, "DT_FLOAT_REF"));
  assert_true(weir_view_ends_with(text, "FLOAT"));
  assert_false(weir_view_ends_with(text, "float"));
  assert_true(weir_view_ends_with(weir_view(NULL, 0), ""));
}

static void test_split(void** state) {
  (void)state;
  weir_view_t rest = weir_view_of("a,,bc,");
  weir_view_t part;
  const char* expected[] = {"a", "", "bc", ""};
  for (size_t i = 0; i < WEIR_COUNT_OF(expected); ++i) {
    assert_true(weir_view_next(&rest, ',', &part));
    assert_true(weir_view_is(part, expected[i]));
  }
  assert_false(weir_view_next(&rest, ',', &part));
  rest = weir_view(NULL, 0);
  assert_false(weir_view_next(&rest, ',', &part));
}

static void test_trim(void** state) {
  (void)state;
  assert_true(weir_view_is(weir_view_trim(weir_view_of(" \t a b\r\n")), "a b"));
  assert_int_equal(weir_view_trim(weir_view_of(" \n ")).size, 0);
  assert_int_equal(weir_view_trim(weir_view(NULL, 0)).size, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_buffer),
                                     cmocka_unit_test(test_buffer_grows),
                                     cmocka_unit_test(test_buffer_out_of_memory),
                                     cmocka_unit_test(test_parse_int64),
                                     cmocka_unit_test(test_parse_double),
                                     cmocka_unit_test(test_affixes),
                                     cmocka_unit_test(test_split),
                                     cmocka_unit_test(test_trim)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
