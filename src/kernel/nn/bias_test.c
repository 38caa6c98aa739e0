// bias_test.c — Adding vectors and summing them back, in both layouts and with any number of
// threads.
#include "kernel/nn/bias.h"

#include "base/alloc.h"
#include "testing/cmocka.h"

static void test_layouts(void** state) {
  (void)state;
  const weir_bias_t last = {.outer = 2, .channels = 3, .inner = 1},
                    middle = {.outer = 1, .channels = 3, .inner = 2};
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6], sum[3];
  const float bias[3] = {10, 20, 30};
  weir_bias_add(NULL, WEIR_DTYPE_FLOAT, &last, x, bias, y);
  assert_memory_equal(y, ((const float[]){11, 22, 33, 14, 25, 36}), sizeof(y));
  assert_null(weir_bias_sum(NULL, WEIR_DTYPE_FLOAT, &last, x, sum));
  assert_memory_equal(sum, ((const float[]){5, 7, 9}), sizeof(sum));
  assert_null(weir_bias_sum(NULL, WEIR_DTYPE_FLOAT, &middle, x, sum));
  assert_memory_equal(sum, ((const float[]){3, 7, 11}), sizeof(sum));
  weir_bias_add(NULL, WEIR_DTYPE_FLOAT, &middle, x, bias, x);  // in place
  assert_memory_equal(x, ((const float[]){11, 12, 23, 24, 35, 36}), sizeof(x));
}

static void test_integers_wrap(void** state) {
  (void)state;
  const weir_bias_t shape = {.outer = 1, .channels = 2, .inner = 1};
  int8_t x[2] = {127, -128}, y[2];
  const int8_t bias[2] = {1, -1};
  weir_bias_add(NULL, WEIR_DTYPE_INT8, &shape, x, bias, y);
  assert_int_equal(y[0], -128);
  assert_int_equal(y[1], 127);
}

static void test_threads_agree(void** state) {
  (void)state;
  enum { OUTER = 40000, CHANNELS = 7 };
  const weir_bias_t shape = {.outer = OUTER, .channels = CHANNELS, .inner = 1};
  float* x = weir_alloc_array(OUTER * CHANNELS, sizeof(float));
  float sums[2][CHANNELS];
  for (int i = 0; i < OUTER * CHANNELS; ++i) x[i] = (float)(i % 1000) * 0.1f;
  for (int k = 0; k < 2; ++k) {
    weir_pool_t* pool = NULL;
    assert_null(weir_pool_create(k == 0 ? 1 : 4, &pool));
    assert_null(weir_bias_sum(pool, WEIR_DTYPE_FLOAT, &shape, x, sums[k]));
    weir_pool_destroy(pool);
  }
  assert_memory_equal(sums[0], sums[1], sizeof(sums[0]));
  double want = 0;
  for (int i = 0; i < OUTER; ++i) want += x[i * CHANNELS];
  assert_true(sums[0][0] > want * 0.99999 && sums[0][0] < want * 1.00001);
  weir_free(x);
}

static void test_empty(void** state) {
  (void)state;
  const weir_bias_t rows = {.outer = 0, .channels = 2, .inner = 1},
                    inner = {.outer = 3, .channels = 2, .inner = 0};
  double sum[2] = {1, 1};
  assert_null(weir_bias_sum(NULL, WEIR_DTYPE_DOUBLE, &rows, NULL, sum));
  assert_true(sum[0] == 0 && sum[1] == 0);
  sum[0] = 1;
  assert_null(weir_bias_sum(NULL, WEIR_DTYPE_DOUBLE, &inner, NULL, sum));
  assert_true(sum[0] == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_layouts),
      cmocka_unit_test(test_integers_wrap),
      cmocka_unit_test(test_threads_agree),
      cmocka_unit_test(test_empty),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
