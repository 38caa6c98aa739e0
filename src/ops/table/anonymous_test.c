// anonymous_test.c — Tables without a name go with the last handle to them; what is left over, the
// sanitizer of addresses tells.
#include "testing/world.h"

static weir_edge_t table(world_t* w, const char* op) {
  return output(add(w, op, NULL, WEIR_NO_EDGES,
                    WEIR_ATTRS(weir_attr_type("key_dtype", WEIR_DTYPE_INT64),
                               weir_attr_type("value_dtype", WEIR_DTYPE_INT64))),
                0);
}

static void test_goes_with_its_handle(void** state) {
  world_t* w = *state;
  weir_edge_t sizes[2];
  static const char* const kOps[] = {"AnonymousHashTable", "AnonymousMutableHashTable"};
  for (int i = 0; i < 2; ++i) sizes[i] = OP(w, "LookupTableSizeV2", table(w, kOps[i]));
  weir_session_t* session = open_session(w, 1);
  for (int step = 0; step < 3; ++step) {
    weir_tensor_t* results[2] = {NULL, NULL};
    weir_step_spec_t spec = {.fetches = sizes, .fetch_count = 2};
    check_ok(weir_session_run_with(session, &spec, NULL, results, NULL, NULL));
    for (int i = 0; i < 2; ++i) {
      assert_int_equal(*(const int64_t*)results[i]->data, 0);
      weir_tensor_release(results[i]);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_goes_with_its_handle, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
