// status_test.c — Statuses: content, annotation, copies, and what happens without memory.

#include "weir/status.h"

#include "base/alloc.h"
#include "base/details.h"
#include "testing/cmocka.h"

static void test_create(void** state) {
  (void)state;
  weir_status_t* status = WEIR_STATUS(NOT_FOUND, "no node '%s' of %d", "x", 7);
  assert_int_equal(weir_status_code(status), WEIR_NOT_FOUND);
  assert_string_equal(weir_status_message(status), "no node 'x' of 7");
  weir_status_destroy(status);
  assert_null(weir_status_create(WEIR_OK, __FILE__, __LINE__, "%s", "ignored"));
  assert_int_equal(weir_status_code(NULL), WEIR_OK);
  assert_string_equal(weir_status_message(NULL), "");
  weir_status_destroy(NULL);
}

static void test_empty_message(void** state) {
  (void)state;
  weir_status_t* status = WEIR_STATUS(ABORTED, "%s", "");
  assert_string_equal(weir_status_message(status), "");
  weir_status_destroy(status);
}

static void test_prefix(void** state) {
  (void)state;
  assert_null(weir_status_prefix(NULL, "node '%s': ", "a"));
  weir_status_t* status = WEIR_STATUS(INTERNAL, "bad %%");
  status = weir_status_prefix(status, "node '%s': ", "a");
  assert_string_equal(weir_status_message(status), "node 'a': bad %");
  assert_int_equal(weir_status_code(status), WEIR_INTERNAL);
  weir_status_destroy(status);
}

static void test_copy(void** state) {
  (void)state;
  assert_null(weir_status_copy(NULL));
  weir_status_t* status = WEIR_STATUS(DATA_LOSS, "lost");
  weir_status_t* copy = weir_status_copy(status);
  weir_status_destroy(status);
  assert_int_equal(weir_status_code(copy), WEIR_DATA_LOSS);
  assert_string_equal(weir_status_message(copy), "lost");
  weir_status_destroy(copy);
}

static void check_details(const weir_status_t* status, const char* details, size_t size) {
  assert_int_equal(weir_status_details(status).size, size);
  assert_memory_equal(weir_status_details(status).data, details, size);
}

static void test_details(void** state) {
  (void)state;
  assert_null(weir_status_with_details(NULL, weir_view("a", 1)));
  assert_int_equal(weir_status_details(NULL).size, 0);
  weir_status_t* status = WEIR_STATUS(ABORTED, "why");
  assert_int_equal(weir_status_details(status).size, 0);
  status = weir_status_with_details(status, weir_view("\0b\0", 3));
  assert_string_equal(weir_status_message(status), "why");
  status = weir_status_prefix(status, "that is ");
  assert_string_equal(weir_status_message(status), "that is why");
  check_details(status, "\0b\0", 3);
  weir_status_t* copy = weir_status_copy(status);
  status = weir_status_with_details(status, weir_view("other", 5));
  check_details(status, "other", 5);
  check_details(copy, "\0b\0", 3);
  assert_int_equal(weir_status_code(copy), WEIR_ABORTED);
  weir_alloc_fail_at(1, true);
  status = weir_status_with_details(status, weir_view("unseen", 6));
  weir_alloc_fail_at(0, false);
  check_details(status, "other", 5);
  status = weir_status_with_details(status, weir_view("", 0));
  assert_int_equal(weir_status_details(status).size, 0);
  weir_status_t* none = weir_status_with_details(weir_out_of_memory(), weir_view("a", 1));
  assert_int_equal(weir_status_details(none).size, 0);
  weir_status_destroy(status);
  weir_status_destroy(copy);
}

static void test_out_of_memory(void** state) {
  (void)state;
  weir_status_t* status = WEIR_STATUS(UNAVAILABLE, "kept");
  weir_alloc_fail_at(1, true);
  weir_status_t* none = WEIR_STATUS(INTERNAL, "lost");
  weir_status_t* copy = weir_status_copy(status);
  status = weir_status_prefix(status, "unseen ");
  weir_alloc_fail_at(0, false);
  assert_ptr_equal(none, weir_out_of_memory());
  assert_ptr_equal(copy, weir_out_of_memory());
  assert_int_equal(weir_status_code(none), WEIR_RESOURCE_EXHAUSTED);
  assert_string_equal(weir_status_message(status), "kept");
  weir_status_destroy(none);
  weir_status_destroy(copy);
  weir_status_destroy(status);
  assert_string_equal(weir_status_message(weir_out_of_memory()), "out of memory");
  weir_status_t* annotated = weir_status_prefix(weir_out_of_memory(), "node 'b': ");
  assert_string_equal(weir_status_message(annotated), "node 'b': out of memory");
  weir_status_destroy(annotated);
}

static void test_code_names(void** state) {
  (void)state;
  assert_string_equal(weir_code_name(WEIR_OK), "OK");
  assert_string_equal(weir_code_name(WEIR_INVALID_ARGUMENT), "INVALID_ARGUMENT");
  assert_string_equal(weir_code_name(WEIR_UNAUTHENTICATED), "UNAUTHENTICATED");
  assert_string_equal(weir_code_name((weir_code_t)99), "UNKNOWN");
}

static weir_status_t* try_it(weir_status_t* status) {
  WEIR_TRY(status);
  return WEIR_STATUS(OUT_OF_RANGE, "passed");
}

static void test_try_and_report(void** state) {
  (void)state;
  weir_status_t* status = try_it(NULL);
  assert_int_equal(weir_status_code(status), WEIR_OUT_OF_RANGE);
  weir_status_destroy(status);
  status = try_it(WEIR_STATUS(CANCELLED, "stop"));
  assert_int_equal(weir_status_code(status), WEIR_CANCELLED);
  assert_true(weir_status_report(status));
  assert_false(weir_status_report(NULL));
}

static void check_message(const weir_status_t* status, const char* message) {
  assert_string_equal(weir_status_message(status), message);
}

static void test_node(void** state) {
  (void)state;
  assert_null(weir_status_at_node(NULL, "a", "Add"));
  assert_null(weir_status_about_node(NULL, weir_view_of("a")));
  assert_null(weir_status_mark_node(NULL));
  weir_status_t* status = WEIR_NODE_STATUS(INVALID_ARGUMENT, "inner", "it broke");
  status = weir_status_with_details(status, weir_view("d", 1));
  status = weir_status_at_node(status, "outer", "Call");
  check_message(status, "Node 'outer' (Call): Node 'inner': it broke");
  weir_status_t* copy = weir_status_mark_node(weir_status_copy(status));
  check_message(copy, "Node 'outer' (Call): Node 'inner': it broke\n\t [[{{node outer}}]]");
  check_details(copy, "d", 1);
  copy = weir_status_mark_node(copy);  // once
  check_message(copy, "Node 'outer' (Call): Node 'inner': it broke\n\t [[{{node outer}}]]");
  weir_status_destroy(copy);
  status = weir_status_mark_node(weir_status_prefix(status, "Function 'f': "));
  check_message(status, "Function 'f': Node 'outer' (Call): Node 'inner': it broke");
  weir_status_destroy(status);
  status = weir_status_about_node(WEIR_STATUS(NOT_FOUND, "no x"), weir_view("xy", 1));
  check_message(status, "no x");
  status = weir_status_mark_node(status);
  check_message(status, "no x\n\t [[{{node x}}]]");
  assert_int_equal(weir_status_code(status), WEIR_NOT_FOUND);
  weir_status_destroy(status);
}

// A message that marks a node itself, here or in the words of another process, is left alone.
static void test_marked_already(void** state) {
  (void)state;
  weir_status_t* status = WEIR_STATUS(INTERNAL, "bad; NodeDef: {{node %s}}", "x");
  status = weir_status_mark_node(weir_status_at_node(status, "call", NULL));
  check_message(status, "Node 'call': bad; NodeDef: {{node x}}");
  weir_status_destroy(status);
  status = weir_status_received(WEIR_INTERNAL, weir_view_of("bad {{node x}}"));
  status = weir_status_mark_node(weir_status_at_node(status, "recv", "_Recv"));
  check_message(status, "Node 'recv' (_Recv): bad {{node x}}");
  weir_status_destroy(status);
}

static void test_origin(void** state) {
  (void)state;
  assert_null(weir_status_from(NULL, "/job:ps"));
  assert_false(weir_status_has_origin(NULL));
  weir_status_t* status = weir_status_from(WEIR_STATUS(ABORTED, "gone"), "/job:ps");
  assert_true(weir_status_has_origin(status));
  status = weir_status_from(status, "/job:worker");
  check_message(status, "From /job:ps:\ngone");
  weir_status_t* copy = weir_status_copy(status);
  assert_true(weir_status_has_origin(copy));
  weir_status_destroy(copy);
  status = weir_status_prefix(status, "peer: ");
  assert_false(weir_status_has_origin(status));
  weir_status_destroy(status);
  status = weir_status_received(WEIR_ABORTED, weir_view_of("From /job:ps:\ngone"));
  assert_true(weir_status_has_origin(status));
  weir_status_destroy(status);
  status = weir_status_received(WEIR_ABORTED, weir_view_of("From merging shape 0"));
  assert_false(weir_status_has_origin(status));
  weir_status_destroy(status);
  assert_null(weir_status_received(WEIR_OK, weir_view_of("")));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_create),         cmocka_unit_test(test_empty_message),
      cmocka_unit_test(test_prefix),         cmocka_unit_test(test_copy),
      cmocka_unit_test(test_out_of_memory),  cmocka_unit_test(test_code_names),
      cmocka_unit_test(test_try_and_report), cmocka_unit_test(test_details),
      cmocka_unit_test(test_node),           cmocka_unit_test(test_marked_already),
      cmocka_unit_test(test_origin)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
