// add_n_test.c — AddN of more elements than it sums up at a time.
#include "testing/world.h"

// Two inputs make the sum, a third is added to it; the last block is not full.
static void test_blocks(void** state) {
  enum { COUNT = 2 * 2048 + 3, INPUTS = 3 };
  world_t* w = *state;
  float values[COUNT];
  weir_edge_t inputs[INPUTS];
  weir_feed_t feeds[INPUTS];
  for (int i = 0; i < COUNT; ++i) values[i] = (float)i;
  for (int i = 0; i < INPUTS; ++i) {
    inputs[i] = placeholder(w, NULL, WEIR_DTYPE_FLOAT);
    feeds[i] = (weir_feed_t){inputs[i], make_floats(COUNT, values)};
  }
  weir_edge_t sum = OP(w, "AddN", inputs[0], inputs[1], inputs[2]);
  weir_tensor_t* result = NULL;
  weir_step_spec_t spec = {.feeds = feeds, .feed_count = INPUTS, .fetches = &sum, .fetch_count = 1};
  check_ok(weir_session_run(open_session(w, 1), &spec, &result));
  assert_int_equal(weir_tensor_count(result), COUNT);
  for (int i = 0; i < COUNT; ++i)
    assert_float_equal(((const float*)weir_tensor_data(result))[i], INPUTS * (float)i, 0);
  weir_tensor_release(result);
  for (int i = 0; i < INPUTS; ++i) weir_tensor_release(feeds[i].tensor);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_blocks, world_setup, world_teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
