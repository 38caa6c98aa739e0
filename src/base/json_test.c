// json_test.c — JSON: every kind of value, escapes, errors with their place, bounds.
#include "base/json.h"

#include "base/string.h"
#include "testing/cmocka.h"

static const weir_json_t* parse(weir_arena_t* arena, const char* text) {
  const weir_json_t* value = NULL;
  weir_status_t* status = weir_json_parse(weir_view_of(text), arena, &value);
  if (status) fail_msg("%s: %s", text, weir_status_message(status));
  return value;
}

static void test_values(void** state) {
  (void)state;
  weir_arena_t arena = {0};
  const weir_json_t* v =
      parse(&arena,
            " {\"a\": [1, -2.5e1, true, false, null, \"x\"], \"b\": {}, \"c\": [],\"b\":7}\r\n\t");
  assert_int_equal(v->kind, WEIR_JSON_OBJECT);
  assert_int_equal(v->count, 4);
  const weir_json_t* a = weir_json_find(v, "a");
  assert_int_equal(a->count, 6);
  const weir_json_t* item = a->first;
  assert_true(item->number == 1);
  item = item->next;
  assert_true(item->number == -25);
  item = item->next;
  assert_true(item->kind == WEIR_JSON_BOOL && item->boolean);
  item = item->next;
  assert_true(item->kind == WEIR_JSON_BOOL && !item->boolean);
  item = item->next;
  assert_int_equal(item->kind, WEIR_JSON_NULL);
  item = item->next;
  assert_true(weir_view_is(item->text, "x") && !item->next);
  assert_true(weir_json_find(v, "b")->number == 7);  // the last of equal keys, as Python has it
  assert_int_equal(weir_json_find(v, "c")->count, 0);
  assert_null(weir_json_find(v, "d"));
  assert_null(weir_json_find(a, "a"));
  assert_null(weir_json_find(NULL, "a"));
  assert_true(parse(&arena, "0")->number == 0);
  assert_int_equal(parse(&arena, "\"\"")->text.size, 0);
  weir_arena_free(&arena);
}

static void test_strings(void** state) {
  (void)state;
  weir_arena_t arena = {0};
  static const struct {
    const char *text, *bytes;
    size_t size;
  } cases[] = {
      {"\"a\\\"b\\\\c\\/\\b\\f\\n\\r\\t\"", "a\"b\\c/\b\f\n\r\t", 11},
      {"\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10},
      {"\"a\\u0000b\"", "a\0b", 3},
      {"\"\xc3\xa9\"", "\xc3\xa9", 2},
      {"\"\\\\\"", "\\", 1},
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    const weir_json_t* v = parse(&arena, cases[i].text);
    assert_int_equal(v->kind, WEIR_JSON_STRING);
    assert_int_equal(v->text.size, cases[i].size);
    assert_memory_equal(v->text.data, cases[i].bytes, cases[i].size);
  }
  weir_arena_free(&arena);
}

static void test_integers(void** state) {
  (void)state;
  weir_arena_t arena = {0};
  int64_t n = 0;
  assert_true(weir_json_int(parse(&arena, "9223372036854775807"), &n) && n == INT64_MAX);
  assert_true(weir_json_int(parse(&arena, "3.0"), &n) && n == 3);
  assert_true(weir_json_int(parse(&arena, "-3e0"), &n) && n == -3);
  assert_false(weir_json_int(parse(&arena, "3.5"), &n));
  assert_false(weir_json_int(parse(&arena, "1e30"), &n));
  assert_false(weir_json_int(parse(&arena, "\"3\""), &n));
  assert_false(weir_json_int(NULL, &n));
  weir_arena_free(&arena);
}

static void test_errors(void** state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"", "line 1, column 1: expected a value, not the end"},
      {"{\"a\": 1,}", "another member after ','"},
      {"[1 2]", "column 4: expected ',' or ']', not '2'"},
      {"{\"a\" 1}", "expected ':', not '1'"},
      {"{a: 1}", "a key in quotes, not 'a'"},
      {"{\n\"a\": tru}", "line 2, column 9: expected true, not '}'"},
      {"[01]", "',' or ']', not '1'"},
      {"-", "a digit, not the end"},
      {"1.", "after the point"},
      {"1e", "of the exponent"},
      {"1e999", "a double can hold"},
      {"\"abc", "a string or '\"', not the end"},
      {"\"abc\\", "after a backslash, not the end"},
      {"\"\\x\"", "after a backslash, not 'x'"},
      {"\"\\u12g4\"", "four hexadecimal digits"},
      {"\"\\ud800\"", "second half"},
      {"\"\\ud800\\n\"", "second half"},
      {"\"\\ud800\\u0041\"", "second half"},
      {"\"\\udc00\"", "first half"},
      {"\"a\nb\"", "not byte 0x0a"},
      {"{} {}", "expected the end, not '{'"},
      {"[", "a value, not the end"},
      {"{", "a key in quotes, not the end"},
      {"nul", "null, not the end"},
      {"'a'", "a value, not '''"},
      {"\xff", "not byte 0xff"},
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    weir_arena_t arena = {0};
    const weir_json_t* value = NULL;
    weir_status_t* status = weir_json_parse(weir_view_of(cases[i].text), &arena, &value);
    assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
    if (!strstr(weir_status_message(status), cases[i].message))
      fail_msg("%s gave %s", cases[i].text, weir_status_message(status));
    assert_null(value);
    weir_status_destroy(status);
    weir_arena_free(&arena);
  }
}

static void test_depth(void** state) {
  (void)state;
  for (int depth = WEIR_JSON_MAX_DEPTH; depth <= WEIR_JSON_MAX_DEPTH + 1; ++depth) {
    weir_arena_t arena = {0};
    weir_strbuf_t text = {0};
    const weir_json_t* value = NULL;
    for (int i = 0; i < depth; ++i) weir_strbuf_putc(&text, '[');
    for (int i = 0; i < depth; ++i) weir_strbuf_putc(&text, ']');
    weir_status_t* status = weir_json_parse(weir_strbuf_view(&text), &arena, &value);
    assert_int_equal(status != NULL, depth > WEIR_JSON_MAX_DEPTH);
    weir_status_destroy(status);
    weir_strbuf_free(&text);
    weir_arena_free(&arena);
  }
}

static void test_out_of_memory(void** state) {
  (void)state;
  static const char text[] = "{\"a\\n\": [1, {\"b\": \"\\u0041\"}], \"c\": null}";
  for (int64_t n = 1;; ++n) {
    weir_arena_t arena = {0};
    const weir_json_t* value = NULL;
    weir_alloc_fail_at(n, false);
    weir_status_t* status = weir_json_parse(weir_view_of(text), &arena, &value);
    weir_alloc_fail_at(0, false);
    weir_arena_free(&arena);
    if (!status) break;
    assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
    weir_status_destroy(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),   cmocka_unit_test(test_strings),
      cmocka_unit_test(test_integers), cmocka_unit_test(test_errors),
      cmocka_unit_test(test_depth),    cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
