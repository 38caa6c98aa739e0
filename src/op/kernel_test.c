// kernel_test.c — What kernels share: axes that may be counted from the end, names that no other
// resource of the step has.
#include "op/kernel.h"

#include "testing/cmocka.h"

static void test_axes(void** state) {
  (void)state;
  for (int64_t axis = -4; axis <= 3; ++axis) {
    int found = -1;
    weir_status_t* status = weir_kernel_axis(axis, 3, &found);
    if (axis == -4 || axis == 3) {
      assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
      assert_non_null(strstr(weir_status_message(status), "in the range [-3, 3), but got "));
    } else {
      assert_null(status);
      assert_int_equal(found, (axis + 3) % 3);
    }
    weir_status_destroy(status);
  }
}

static void test_unique_names(void** state) {
  (void)state;
  weir_step_t step = {.next_id = 9};
  weir_kernel_ctx_t ctx = {.step = &step};
  char name[8];
  assert_null(weir_kernel_unique_name(&ctx, "array", name, sizeof(name)));
  assert_string_equal(name, "array_9");  // as long as can be
  weir_status_t* status = weir_kernel_unique_name(&ctx, "array", name, sizeof(name));
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), "the name 'array' is too long"));
  weir_status_destroy(status);
  assert_null(weir_kernel_unique_name(&ctx, "a", name, sizeof(name)));
  assert_string_equal(name, "a_11");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_axes),
                                     cmocka_unit_test(test_unique_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
