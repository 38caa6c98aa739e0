// tensor_array_old_test.c — TensorArrays of the first two generations, which TensorFlow has in
// graphs of old only: handles are strings, by reference and by value.
#include "testing/bench.h"

static weir_edge_t number(bench_t* b, int value) { return weir_const_int(b->s, value); }
static weir_edge_t real(bench_t* b, float value) { return weir_const_float(b->s, value); }

static float fetch(bench_t* b, weir_edge_t edge) {
  weir_session_t* session = NULL;
  float value = 0;
  check_built(b);
  check_ok(weir_session_create(b->graph, NULL, &session));
  check_ok(weir_session_fetch_float(session, edge, &value));
  weir_session_destroy(session);
  return value;
}

static void test_handles_by_reference(void** state) {
  bench_t* b = *state;
  weir_edge_t array = weir_tensor_array(b->s, number(b, 2), WEIR_DTYPE_FLOAT);
  weir_edge_t flow = weir_tensor_array_write(b->s, array, number(b, 0), real(b, 3), real(b, 0));
  flow = weir_tensor_array_write(b->s, array, number(b, 1), real(b, 4), flow);
  weir_edge_t rows = weir_tensor_array_pack(b->s, array, flow, WEIR_DTYPE_FLOAT);
  weir_edge_t other = weir_tensor_array(b->s, number(b, 2), WEIR_DTYPE_FLOAT);
  flow = weir_tensor_array_unpack(b->s, other, rows, real(b, 0));
  weir_edge_t read = weir_tensor_array_read(b->s, other, number(b, 1), flow, WEIR_DTYPE_FLOAT);
  assert_true(fetch(b, read) == 4);
}

static void test_handles_by_value(void** state) {
  bench_t* b = *state;
  weir_edge_t array = weir_tensor_array_v2(b->s, number(b, 1), WEIR_DTYPE_FLOAT);
  weir_edge_t flow = weir_tensor_array_write_v2(b->s, array, number(b, 0), real(b, 3), real(b, 0));
  weir_edge_t read = weir_tensor_array_read_v2(b->s, array, number(b, 0), flow, WEIR_DTYPE_FLOAT);
  assert_true(fetch(b, read) == 3);
}

// Both nodes name the same array, in which writes are added.
static void test_gradients_add_up(void** state) {
  bench_t* b = *state;
  weir_edge_t array = weir_tensor_array_v2(b->s, number(b, 1), WEIR_DTYPE_FLOAT);
  weir_edge_t flow = weir_tensor_array_write_v2(b->s, array, number(b, 0), real(b, 3), real(b, 0));
  for (int i = 0; i < 2; ++i) {
    weir_edge_t grad = weir_tensor_array_grad_v2(b->s, array, flow, "g");
    flow = weir_tensor_array_write_v2(b->s, grad, number(b, 0), real(b, 5), flow);
  }
  weir_edge_t grad = weir_tensor_array_grad_v2(b->s, array, flow, "g");
  weir_edge_t read = weir_tensor_array_read_v2(b->s, grad, number(b, 0), flow, WEIR_DTYPE_FLOAT);
  assert_true(fetch(b, read) == 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_handles_by_reference, setup, teardown),
      cmocka_unit_test_setup_teardown(test_handles_by_value, setup, teardown),
      cmocka_unit_test_setup_teardown(test_gradients_add_up, setup, teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
