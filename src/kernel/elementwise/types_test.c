// types_test.c — Functions that are looked up by type: there is none of a number that is no type.
#include "kernel/elementwise/elementwise.h"
#include "kernel/elementwise/update.h"
#include "kernel/reduce/reduce_internal.h"
#include "testing/cmocka.h"

static void test_no_type(void** state) {
  (void)state;
  const weir_dtype_t none[] = {WEIR_DTYPE_INVALID, (weir_dtype_t)-1, (weir_dtype_t)-1000,
                               WEIR_DTYPE_COUNT, (weir_dtype_t)1000};
  for (size_t i = 0; i < WEIR_COUNT_OF(none); ++i) {
    assert_null(weir_unary_find(WEIR_UNARY_NEG, none[i]));
    assert_null(weir_binary_find(WEIR_BINARY_ADD, none[i]));
    assert_null(weir_binary_find(WEIR_BINARY_EQUAL, none[i]));
    assert_null(weir_update_find(WEIR_UPDATE_ADD, none[i]));
    assert_null(weir_reducer_find(WEIR_REDUCE_SUM, none[i]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_type)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
