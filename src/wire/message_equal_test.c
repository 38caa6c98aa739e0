// message_equal_test.c — Messages that say the same, and those that do not.

#include "testing/cmocka.h"
#include "wire/message.h"
#include "wire/text.h"

static bool texts_equal(const char* a, const char* b) {
  weir_strbuf_t x = {0}, y = {0};
  assert_null(weir_text_parse(&weir_message_node_def, weir_view_of(a), &x));
  assert_null(weir_text_parse(&weir_message_node_def, weir_view_of(b), &y));
  bool is_equal =
      weir_message_equal(&weir_message_node_def, weir_strbuf_view(&x), weir_strbuf_view(&y));
  weir_strbuf_free(&x);
  weir_strbuf_free(&y);
  return is_equal;
}

#define ATTR(key, value) " attr { key: '" key "' value { " value " } }"

static void test_maps_in_any_order(void** state) {
  (void)state;
  assert_true(texts_equal("name: 'x'" ATTR("a", "i: 1") ATTR("b", "i: 2") ATTR("c", "i: 3"),
                          "name: 'x'" ATTR("c", "i: 3") ATTR("a", "i: 1") ATTR("b", "i: 2")));
  assert_false(
      texts_equal(ATTR("a", "i: 1") ATTR("b", "i: 2"), ATTR("a", "i: 2") ATTR("b", "i: 1")));
  assert_false(
      texts_equal(ATTR("a", "i: 1") ATTR("b", "i: 2"), ATTR("a", "i: 1") ATTR("c", "i: 2")));
  assert_false(
      texts_equal(ATTR("a", "i: 1") ATTR("b", "i: 2"), ATTR("b", "i: 2") ATTR("b", "i: 2")));
}

static void test_nested_maps(void** state) {
  (void)state;
#define FUNCTION(first, second) "func { name: 'f'" first second " }"
  assert_true(texts_equal(ATTR("f", FUNCTION(ATTR("a", "i: 1"), ATTR("b", "i: 2"))),
                          ATTR("f", FUNCTION(ATTR("b", "i: 2"), ATTR("a", "i: 1")))));
  assert_false(texts_equal(ATTR("f", FUNCTION(ATTR("a", "i: 1"), ATTR("b", "i: 2"))),
                           ATTR("f", FUNCTION(ATTR("b", "i: 1"), ATTR("a", "i: 2")))));
}

static void test_lists_have_an_order(void** state) {
  (void)state;
  assert_true(texts_equal("input: 'a' input: 'b'", "input: 'a' input: 'b'"));
  assert_false(texts_equal("input: 'a' input: 'b'", "input: 'b' input: 'a'"));
  assert_false(texts_equal("name: 'x'", "op: 'x'"));
  assert_false(texts_equal("name: 'x'", "name: 'x' op: 'y'"));
}

// Of what cannot be read to its end nothing is known.
static void test_malformed(void** state) {
  (void)state;
  weir_view_t a = weir_view("\x0a\x01x\x12", 4), b = weir_view("\x0a\x01x\x0a", 4);
  assert_false(weir_message_equal(&weir_message_node_def, a, b));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_maps_in_any_order),
      cmocka_unit_test(test_nested_maps),
      cmocka_unit_test(test_lists_have_an_order),
      cmocka_unit_test(test_malformed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
