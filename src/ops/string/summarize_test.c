// summarize_test.c — Tensors in the words of Assert and Print.

#include "ops/string/summarize.h"

#include <math.h>

#include "testing/cmocka.h"

static void expect(weir_dtype_t dtype, int rank, const int64_t* dims, const void* data,
                   int64_t limit, const char* want) {
  weir_tensor_t* tensor = NULL;
  weir_strbuf_t out = {0};
  assert_null(weir_tensor_create_from(dtype, rank, dims, data, &tensor));
  weir_tensor_summarize(tensor, limit, &out);
  weir_view_t got = weir_strbuf_view(&out);
  if (!weir_view_is(got, want)) fail_msg("'%.*s', not '%s'", WEIR_VIEW_ARG(got), want);
  weir_strbuf_free(&out);
  weir_tensor_release(tensor);
}

// As many digits as it takes to read the value back, and no more.
static void test_digits(void** state) {
  (void)state;
  const float floats[] = {0.5f, 0.1f, 1.0f / 3, 16777216, -0.0f, NAN, INFINITY};
  expect(WEIR_DTYPE_FLOAT, 1, (int64_t[]){7}, floats, -1,
         "0.5 0.1 0.333333343 16777216 -0 nan inf");
  const double doubles[] = {0.1, 1.0 / 3, 2e300, NAN};
  expect(WEIR_DTYPE_DOUBLE, 1, (int64_t[]){4}, doubles, -1, "0.1 0.33333333333333331 2e+300 nan");
}

static void test_other_types(void** state) {
  (void)state;
  expect(WEIR_DTYPE_INT8, 0, NULL, (int8_t[]){-7}, -1, "-7");
  expect(WEIR_DTYPE_UINT64, 0, NULL, (uint64_t[]){UINT64_MAX}, -1, "18446744073709551615");
  expect(WEIR_DTYPE_BOOL, 1, (int64_t[]){2}, (bool[]){true, false}, -1, "1 0");
  expect(WEIR_DTYPE_COMPLEX64, 0, NULL, (float[]){1, 2}, -1, "?");
}

static void test_rows_and_limits(void** state) {
  (void)state;
  const int32_t values[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {2, 3};
  expect(WEIR_DTYPE_INT32, 2, dims, values, -1, "[1 2 3][4 5 6]");
  expect(WEIR_DTYPE_INT32, 2, dims, values, 6, "[1 2 3][4 5 6]");
  expect(WEIR_DTYPE_INT32, 2, dims, values, 4, "[1 2 3][4...]...");
  expect(WEIR_DTYPE_INT32, 2, dims, values, 3, "[1 2 3]...");
  expect(WEIR_DTYPE_INT32, 1, (int64_t[]){6}, values, 2, "1 2...");
  expect(WEIR_DTYPE_INT32, 1, (int64_t[]){6}, values, 0, "...");
  expect(WEIR_DTYPE_INT32, 0, NULL, values, 0, "...");
  expect(WEIR_DTYPE_INT32, 1, (int64_t[]){0}, values, 3, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_digits),
      cmocka_unit_test(test_other_types),
      cmocka_unit_test(test_rows_and_limits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
