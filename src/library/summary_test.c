// summary_test.c — Summaries: what is collected, what is merged, what is refused.
#include <stdlib.h>

#include "testing/tensors.h"
#include "weir/weir.h"

static weir_scope_t* open_scope(weir_graph_t** out_graph) {
  check_ok(weir_graph_create(out_graph));
  return weir_scope_create(*out_graph);
}

static void test_merges_all(void** state) {
  (void)state;
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  weir_tensor_t* result = NULL;
  size_t size = 0;
  weir_scope_t* s = open_scope(&graph);
  assert_null(weir_summary_merge_all(s).node);  // none so far, and no error
  weir_summary_scalar(s, "a/b", weir_const_float(s, 0.5f));
  weir_summary_text(weir_scope_in(s, "inner"), "note", weir_const_string(s, "hello"));
  weir_edge_t all = weir_summary_merge_all(s);
  check_ok(weir_scope_finish(s));
  check_ok(weir_session_create(graph, NULL, &session));
  weir_step_spec_t spec = {WEIR_FETCHES(all)};
  check_ok(weir_session_run(session, &spec, &result));
  const char* bytes = weir_tensor_string(result, 0, &size);
  assert_true(size > 10);
  assert_memory_equal(bytes,
                      "\x0a\x0a\x0a\x03"
                      "a/b\x15\x00\x00\x00\x3f",
                      12);
  weir_tensor_release(result);
  weir_session_destroy(session);
  weir_graph_release(graph);
}

static void test_same_tags(void** state) {
  (void)state;
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  weir_tensor_t* result = NULL;
  weir_scope_t* s = open_scope(&graph);
  weir_summary_scalar(s, "twice", weir_const_float(s, 1));
  weir_summary_scalar(s, "twice", weir_const_float(s, 2));
  weir_edge_t all = weir_summary_merge_all(s);
  check_ok(weir_scope_finish(s));
  check_ok(weir_session_create(graph, NULL, &session));
  weir_step_spec_t spec = {WEIR_FETCHES(all)};
  check_error(weir_session_run(session, &spec, &result), WEIR_INVALID_ARGUMENT, "twice");
  weir_session_destroy(session);
  weir_graph_release(graph);
}

static void test_refused(void** state) {
  (void)state;
  const char* texts[] = {"without a node", "not of strings"};
  for (int kind = 0; kind < 2; ++kind) {
    weir_graph_t* graph = NULL;
    weir_scope_t* s = open_scope(&graph);
    if (kind == 0) weir_summary_histogram(s, "h", (weir_edge_t){NULL, 0});
    if (kind == 1) weir_summary_text(s, "t", weir_const_float(s, 1));
    assert_null(weir_summary_merge_all(s).node);
    check_error(weir_scope_finish(s), WEIR_INVALID_ARGUMENT, texts[kind]);
    weir_graph_release(graph);
  }
  char directory[] = "/tmp/weir_summary_XXXXXX", command[64];
  weir_events_t* events = NULL;
  weir_tensor_t* number = make_float(1);
  assert_non_null(mkdtemp(directory));
  check_ok(weir_events_create(directory, &events));
  check_error(weir_events_add_summary(events, number, 1), WEIR_INVALID_ARGUMENT, "one string");
  check_ok(weir_events_close(events));
  weir_tensor_release(number);
  snprintf(command, sizeof(command), "rm -rf '%s'", directory);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_merges_all),
                                     cmocka_unit_test(test_same_tags),
                                     cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
