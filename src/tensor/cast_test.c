// cast_test.c — One element as a number: of types that are numbers, and of those that are not.
#include "tensor/cast.h"

#include "tensor/tensor.h"
#include "testing/cmocka.h"

static void test_element_to_double(void** state) {
  (void)state;
  const int8_t small = -3;
  const bool yes = true;
  const uint64_t large = UINT64_C(1) << 63;
  const weir_string_t text = {0};
  double value = 0;
  assert_true(weir_element_to_double(WEIR_DTYPE_INT8, &small, &value));
  assert_true(value == -3);
  assert_true(weir_element_to_double(WEIR_DTYPE_BOOL, &yes, &value));
  assert_true(value == 1);
  assert_true(weir_element_to_double(WEIR_DTYPE_UINT64, &large, &value));
  assert_true(value == 9223372036854775808.0);
  assert_false(weir_element_to_double(WEIR_DTYPE_STRING, &text, &value));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_element_to_double)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
