// regex_test.c — Regular expressions: syntax, matching, errors, and input made to hurt.
#include "base/regex.h"

#include <stdlib.h>

#include "testing/cmocka.h"

static bool matches(const char* pattern, const char* text) {
  weir_regex_t* regex = NULL;
  bool result = false;
  assert_null(weir_regex_create(weir_view_of(pattern), &regex));
  assert_null(weir_regex_full_match(regex, weir_view_of(text), &result));
  weir_regex_destroy(regex);
  return result;
}

static weir_code_t code_of(weir_view_t pattern) {
  weir_regex_t* regex = NULL;
  weir_status_t* status = weir_regex_create(pattern, &regex);
  weir_code_t code = status ? weir_status_code(status) : WEIR_OK;
  weir_status_destroy(status);
  weir_regex_destroy(regex);
  return code;
}

static void test_matching(void** state) {
  (void)state;
  assert_true(matches("", ""));
  assert_false(matches("", "a"));
  assert_true(matches("a|bc*", "bccc"));
  assert_false(matches("a|bc*", "ac"));
  assert_true(matches("x|y|z|", ""));
  assert_true(matches("x|y|z|", "z"));
  assert_true(matches("(ab){2,3}", "ababab"));
  assert_false(matches("(ab){2,3}", "ab"));
  assert_true(matches("[^a-c]\\d+", "x12"));
  assert_true(matches("(?i)Hello\\b.*", "hELLO world"));
  assert_true(matches("\\Qa.b\\E", "a.b"));
  assert_false(matches("\\Qa.b\\E", "axb"));
  assert_true(matches("..", "\xc3\xa9x"));
}

static void test_errors(void** state) {
  (void)state;
  static const char* const bad[] = {"(", ")", "[a", "*", "a**", "a{2,1}", "\\", "[z-a]", "(?z)"};
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i)
    assert_int_equal(code_of(weir_view_of(bad[i])), WEIR_INVALID_ARGUMENT);
  assert_int_equal(code_of(weir_view("a\xff", 2)), WEIR_INVALID_ARGUMENT);
  static const char* const no_class[] = {"\\p",  "\\p{",    "\\p{Lu",     "\\p{}",    "\\p{^}",
                                         "\\pX", "\\p{Lx}", "\\p{greek}", "[\\p{G}]", "\\p\xff"};
  for (size_t i = 0; i < WEIR_COUNT_OF(no_class); ++i)
    assert_int_equal(code_of(weir_view_of(no_class[i])), WEIR_INVALID_ARGUMENT);
}

static void test_unicode_classes(void** state) {
  (void)state;
  assert_true(matches("\\pL+\\p{Nd}\\p{Po}", "aZ\u00e4\u4e007!"));
  assert_true(matches("\\p{Lu}\\P{Lu}\\p{^Lu}", "A1a"));
  assert_false(matches("\\P{^Lu}", "a"));
  assert_true(matches("\\P{^Lu}", "A"));
  assert_true(matches("[\\p{Greek}\\d]+", "\u03b11\u03c9"));
  assert_false(matches("\\p{Greek}", "a"));
  assert_true(matches("[^\\pL]", "\u0301"));
  assert_true(matches("\\p{Any}{3}", "a\n\U0010ffff"));
  assert_true(matches("(?i)\\p{Lu}", "a"));
  assert_true(matches("\\p{Co}", "\U0010fffd"));
  assert_false(matches("\\pC", "\U0010ffff"));  // that is none's
}

// A pattern that takes exponential time when threads are tried one by one.
static void test_many_ways(void** state) {
  (void)state;
  char text[201];
  memset(text, 'a', sizeof(text) - 1);
  text[sizeof(text) - 1] = '\0';
  assert_false(matches("(a|aa|a?)*b", text));
  assert_true(matches("(a|aa|a?)*", text));
}

static void test_long_patterns(void** state) {
  (void)state;
  const size_t size = 100000;
  char* pattern = malloc(size);
  assert_non_null(pattern);
  for (size_t i = 0; i < size; ++i) pattern[i] = i % 2 ? '|' : 'a';
  assert_int_equal(code_of(weir_view(pattern, size)), WEIR_OK);
  memset(pattern, 'a', size);
  assert_int_equal(code_of(weir_view(pattern, size)), WEIR_OK);
  memset(pattern, '(', size);
  assert_int_equal(code_of(weir_view(pattern, size)), WEIR_INVALID_ARGUMENT);
  free(pattern);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_matching),        cmocka_unit_test(test_errors),
      cmocka_unit_test(test_unicode_classes), cmocka_unit_test(test_many_ways),
      cmocka_unit_test(test_long_patterns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
