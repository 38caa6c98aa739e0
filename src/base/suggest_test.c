// suggest_test.c — Tests of edit distance and suggestions.
#include "base/suggest.h"

#include "testing/tensors.h"
#include "weir/suggest.h"

static int distance(const char* a, const char* b) {
  return weir_edit_distance(weir_view_of(a), weir_view_of(b), 100);
}

static void test_counts_edits(void** state) {
  (void)state;
  assert_int_equal(distance("same", "same"), 0);
  assert_int_equal(distance("", "abc"), 6);
  assert_int_equal(distance("kitten", "sitting"), 6);
  assert_int_equal(distance("shwo", "show"), 2);  // a swap is one change
  assert_int_equal(distance("matmul", "MatMul"), 2);
  assert_int_equal(weir_edit_distance(weir_view_of("abcdef"), weir_view_of("uvwxyz"), 4), 5);
}

static void test_is_symmetric(void** state) {
  (void)state;
  static const char* const words[] = {"a", "ab", "ba", "abc", "Conv2D", "conv3d", "", "xConv2"};
  for (size_t i = 0; i < WEIR_COUNT_OF(words); ++i) {
    for (size_t k = 0; k < WEIR_COUNT_OF(words); ++k)
      assert_int_equal(distance(words[i], words[k]), distance(words[k], words[i]));
  }
}

static void test_suggests_the_nearest(void** state) {
  (void)state;
  static const char* const names[] = {"--json", "--steps", "--seconds", "--feed", NULL};
  assert_string_equal(weir_suggest("--jsn", names, 5), "--json");
  assert_string_equal(weir_suggest("--step", names, 5), "--steps");
  assert_null(weir_suggest("--nothing", names, 5));
  assert_null(weir_suggest(NULL, names, 5));
  static const char* const letters[] = {"y", "z"};
  assert_null(weir_suggest("x", letters, 2));  // nothing in common
}

static void test_leaves_long_names_alone(void** state) {
  (void)state;
  char name[400];
  memset(name, 'n', sizeof(name));
  name[399] = 0;
  const char* names[] = {name};
  assert_null(weir_suggest(name + 1, names, 1));
  name[WEIR_SUGGEST_MAX] = 0;
  assert_ptr_equal(weir_suggest(name + 1, names, 1), name);
}

static void test_adds_to_a_status(void** state) {
  (void)state;
  weir_suggestion_t suggestion = weir_suggestion(weir_view_of("MatMull"));
  weir_suggestion_offer(&suggestion, weir_view_of("MatMul"));
  weir_status_t* status = weir_suggestion_add(&suggestion, WEIR_STATUS(NOT_FOUND, "no op"));
  assert_string_equal(weir_status_message(status), "no op (did you mean 'MatMul'?)");
  weir_status_destroy(status);
  assert_null(weir_suggestion_add(&suggestion, NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_counts_edits), cmocka_unit_test(test_is_symmetric),
      cmocka_unit_test(test_suggests_the_nearest), cmocka_unit_test(test_leaves_long_names_alone),
      cmocka_unit_test(test_adds_to_a_status)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
