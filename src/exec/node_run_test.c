// node_run_test.c — What ends a step before its time.
#include "exec/node_run.h"

#include "testing/tensors.h"

static void test_step_check(void** state) {
  (void)state;
  weir_step_t step = {.cancel = NULL};
  int64_t now = weir_clock_ns();
  check_ok(weir_step_check(&step, 0));
  check_ok(weir_step_check(&step, INT64_MAX));
  check_error(weir_step_check(&step, now - 1), WEIR_DEADLINE_EXCEEDED, "Timed out");
  check_ok(weir_cancel_create(NULL, &step.cancel));
  check_ok(weir_step_check(&step, 0));
  weir_cancel_start(step.cancel);
  check_error(weir_step_check(&step, 0), WEIR_CANCELLED, "Step was cancelled");
  check_error(weir_step_check(&step, now - 1), WEIR_CANCELLED, "Step was cancelled");
  weir_cancel_destroy(step.cancel);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_step_check)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
