// staging_test.c — What a staging area under a limit of memory lets wait: puts that would pass it,
// until somebody took enough out.
#include "testing/bench.h"

#define TYPES WEIR_TYPES(WEIR_DTYPE_FLOAT, WEIR_DTYPE_FLOAT)

static weir_edge_t floats(bench_t* b, int64_t count) {
  return weir_fill(b->s, weir_const_ints(b->s, (const int[]){(int)count}, 1),
                   weir_const_float(b->s, 1));
}

// A tuple of 25 floats and of |last|, of 4 bytes each, under |key|.
static weir_node_t* put(bench_t* b, int key, int64_t last, int64_t limit) {
  weir_edge_t parts[2] = {floats(b, 25), floats(b, last)};
  weir_edge_t number = weir_cast(b->s, weir_const_int(b->s, key), WEIR_DTYPE_INT64);
  weir_edge_t indices = weir_const_ints(b->s, (const int[]){0, 1}, 2);
  return weir_map_stage(b->s, number, indices, parts, 2, TYPES, .memory_limit = limit,
                        .shared_name = "area");
}

static weir_status_t* run(weir_session_t* session, weir_node_t* node, int64_t timeout_ms) {
  weir_step_spec_t spec = {WEIR_TARGETS(node)};
  weir_run_options_t options = {.timeout_ms = timeout_ms};
  return weir_session_run_with(session, &spec, &options, NULL, NULL, NULL);
}

static void test_puts_wait_for_memory(void** state) {
  bench_t* b = *state;
  weir_session_t* session = NULL;
  weir_node_t* first = put(b, 1, 10, 60);
  weir_node_t* second = put(b, 2, 10, 60);
  weir_node_t* clear = weir_map_clear(b->s, TYPES, .memory_limit = 60, .shared_name = "area");
  check_built(b);
  check_ok(weir_session_create(b->graph, NULL, &session));
  check_ok(run(session, first, 0));
  check_error(run(session, second, 50), WEIR_DEADLINE_EXCEEDED, "");
  check_ok(run(session, clear, 0));
  check_ok(run(session, second, 0));
  weir_session_destroy(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_puts_wait_for_memory, setup, teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
