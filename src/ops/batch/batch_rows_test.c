// batch_rows_test.c — Rows of several tensors as one, where they fit together and where not.
#include "ops/batch/batch_rows.h"

#include "testing/tensors.h"

static weir_tensor_t* rows(int64_t count, int64_t width, float first) {
  float values[16];
  for (int i = 0; i < 16; ++i) values[i] = first + (float)i;
  return make_tensor(WEIR_DTYPE_FLOAT, 2, (const int64_t[]){count, width}, values);
}

// Joins |take_a| and |take_b|, which are released.
static weir_status_t* join(weir_tensor_t* take_a, weir_tensor_t* take_b, int64_t padding,
                           weir_tensor_t** out) {
  weir_pool_t* pool = NULL;
  weir_tensor_t* parts[] = {take_a, take_b};
  check_ok(weir_pool_create(1, &pool));
  weir_status_t* status = weir_batch_rows_join(pool, parts, 2, padding, out);
  weir_pool_destroy(pool);
  weir_tensor_release(take_a);
  weir_tensor_release(take_b);
  return status;
}

static void test_join(void** state) {
  (void)state;
  weir_tensor_t* out = NULL;
  check_ok(join(rows(1, 2, 10), rows(2, 2, 20), 1, &out));
  assert_int_equal(out->rank, 2);
  assert_int_equal(out->dims[0], 4);
  assert_int_equal(out->dims[1], 2);
  const float expected[] = {10, 11, 20, 21, 22, 23, 10, 11};  // padded by the first row
  assert_memory_equal(out->data, expected, sizeof(expected));
  weir_tensor_release(out);
}

static void test_mismatch(void** state) {
  (void)state;
  weir_tensor_t* out = NULL;
  const int64_t two = 2;
  check_error(join(rows(1, 2, 0), rows(1, 3, 0), 0, &out), WEIR_INVALID_ARGUMENT,
              "Dimensions of inputs should match: shape[0] = [1,2] vs. shape[1] = [1,3]");
  check_error(
      join(rows(1, 2, 0), make_tensor(WEIR_DTYPE_FLOAT, 1, &two, (const float[]){1, 2}), 0, &out),
      WEIR_INVALID_ARGUMENT, "Ranks of all input tensors should match");
  check_error(
      join(rows(1, 2, 0),
           make_tensor(WEIR_DTYPE_INT32, 2, (const int64_t[]){1, 2}, (const int[]){1, 2}), 0, &out),
      WEIR_INVALID_ARGUMENT, "Types of inputs should match: float vs. int32");
  check_error(join(make_float(1), make_float(2), 0, &out), WEIR_INVALID_ARGUMENT,
              "A scalar cannot be part of a batch");
  check_error(join(rows(0, 2, 0), rows(1, 2, 0), 1, &out), WEIR_INVALID_ARGUMENT, "");
  assert_null(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_join), cmocka_unit_test(test_mismatch)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
