// outcome_test.c — What a callback brings, from the same thread and from another.

#include "base/outcome.h"

#include "testing/cmocka.h"

static void* wake_later(void* arg) {
  weir_outcome_set(arg, WEIR_STATUS(ABORTED, "from afar"));
  return NULL;
}

static void test_waits(void** state) {
  (void)state;
  weir_outcome_t outcome;
  weir_outcome_init(&outcome);
  weir_outcome_set(&outcome, NULL);  // before anybody waits
  assert_null(weir_outcome_wait(&outcome));
  for (int i = 0; i < 100; ++i) {
    pthread_t thread;
    weir_outcome_init(&outcome);
    assert_int_equal(pthread_create(&thread, NULL, wake_later, &outcome), 0);
    weir_status_t* status = weir_outcome_wait(&outcome);
    assert_int_equal(weir_status_code(status), WEIR_ABORTED);
    weir_status_destroy(status);
    pthread_join(thread, NULL);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_waits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
