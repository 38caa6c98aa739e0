// master_devices_test.c — Which tasks a session's device filters let in.
#include "cluster/master/master_session.h"
#include "testing/tensors.h"

static bool is_allowed(const char* first, const char* second, const char* task) {
  weir_view_t filters[2] = {weir_view_of(first), weir_view_of(second ? second : "")};
  bool result = false;
  check_ok(weir_master_filter(filters, second ? 2 : 1, task, &result));
  return result;
}

static void test_filters(void** state) {
  (void)state;
  bool result = false;
  check_ok(weir_master_filter(NULL, 0, "/job:ps/replica:0/task:1", &result));
  assert_true(result);  // without any, all
  assert_true(is_allowed("/job:ps", NULL, "/job:ps/replica:0/task:1"));
  assert_true(is_allowed("/job:ps/task:1", NULL, "/job:ps/replica:0/task:1"));
  assert_false(is_allowed("/job:ps/task:0", NULL, "/job:ps/replica:0/task:1"));
  assert_false(is_allowed("/job:worker", NULL, "/job:ps/replica:0/task:1"));
  assert_true(is_allowed("/job:worker", "/job:ps", "/job:ps/replica:0/task:1"));
  // A device of a task is the task.
  assert_true(is_allowed("/job:ps/task:1/device:GPU:3", NULL, "/job:ps/replica:0/task:1"));
}

static void test_bad_filter(void** state) {
  (void)state;
  weir_view_t filter = weir_view_of("/job:ps/task:many");
  bool result = false;
  check_error(weir_master_filter(&filter, 1, "/job:ps/replica:0/task:1", &result),
              WEIR_INVALID_ARGUMENT, "device filter: ");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_filters),
      cmocka_unit_test(test_bad_filter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
