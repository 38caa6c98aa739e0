// tile_grad_test.c — TileGrad, which TensorFlow defines but has no kernel for that would start.
#include "testing/bench.h"

static void test_sums_copies(void** state) {
  bench_t* b = *state;
  const float values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  weir_edge_t x = weir_const_floats(b->s, WEIR_DIMS(4, 4), values);
  weir_edge_t y = weir_tile_grad(b->s, x, weir_const_ints(b->s, (const int[]){2, 2}, 2));
  check_built(b);
  weir_session_t* session = NULL;
  weir_tensor_t* result = NULL;
  const weir_step_spec_t spec = {.fetches = &y, .fetch_count = 1};
  check_ok(weir_session_create(b->graph, NULL, &session));
  check_ok(weir_session_run(session, &spec, &result));
  // Rows 0 and 2, columns 0 and 2, and so on.
  check_floats(result, 0, 0 + 2 + 8 + 10, 1 + 3 + 9 + 11, 4 + 6 + 12 + 14, 5 + 7 + 13 + 15);
  weir_tensor_release(result);
  weir_session_destroy(session);
}

static void test_whole_copies(void** state) {
  bench_t* b = *state;
  weir_edge_t x = weir_const_floats(b->s, WEIR_DIMS(3), (const float[]){1, 2, 3});
  weir_edge_t y = weir_tile_grad(b->s, x, weir_const_ints(b->s, (const int[]){2}, 1));
  check_built(b);
  weir_session_t* session = NULL;
  weir_tensor_t* result = NULL;
  const weir_step_spec_t spec = {.fetches = &y, .fetch_count = 1};
  check_ok(weir_session_create(b->graph, NULL, &session));
  check_error(weir_session_run(session, &spec, &result), WEIR_INVALID_ARGUMENT, "multiple");
  weir_session_destroy(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_sums_copies, setup, teardown),
      cmocka_unit_test_setup_teardown(test_whole_copies, setup, teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
