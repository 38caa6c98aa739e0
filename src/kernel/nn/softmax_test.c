// softmax_test.c — Softmax and cross entropies against the definition in double.
#include "kernel/nn/softmax.h"

#include <math.h>

#include "testing/cmocka.h"

enum { ROWS = 5, MAX_COLUMNS = 2500 };

static float x[ROWS * MAX_COLUMNS], y[ROWS * MAX_COLUMNS], labels[ROWS * MAX_COLUMNS];

static double log_sum(const float* row, int64_t n) {
  double top = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; ++i) top = fmax(top, row[i]);
  for (int64_t i = 0; i < n; ++i) sum += exp(row[i] - top);
  return top + log(sum);
}

static void expect_near(double got, double want) {
  if (fabs(got - want) > 2e-6 * (1 + fabs(want))) fail_msg("got %g, want %g", got, want);
}

static void check_columns(int64_t n) {
  float loss[ROWS];
  int64_t classes[ROWS];
  for (int64_t i = 0; i < ROWS * n; ++i) {
    x[i] = 20.0f * sinf((float)i * 1.7f);
    labels[i] = fabsf(cosf((float)i));
  }
  for (int64_t r = 0; r < ROWS; ++r) classes[r] = (r * 7) % n;
  weir_softmax(NULL, WEIR_DTYPE_FLOAT, ROWS, n, x, y, false);
  for (int64_t i = 0; i < ROWS * n; ++i) expect_near(y[i], exp(x[i] - log_sum(x + i / n * n, n)));
  weir_softmax(NULL, WEIR_DTYPE_FLOAT, ROWS, n, x, y, true);
  for (int64_t i = 0; i < ROWS * n; ++i) expect_near(y[i], x[i] - log_sum(x + i / n * n, n));
  weir_sparse_softmax_loss(NULL, WEIR_DTYPE_FLOAT, ROWS, n, x, classes, loss, y);
  for (int64_t r = 0; r < ROWS; ++r)
    expect_near(loss[r], log_sum(x + r * n, n) - x[r * n + classes[r]]);
  for (int64_t i = 0; i < ROWS * n; ++i) {
    expect_near(y[i], exp(x[i] - log_sum(x + i / n * n, n)) - (i % n == classes[i / n]));
  }
  weir_softmax_loss(NULL, WEIR_DTYPE_FLOAT, ROWS, n, x, labels, loss, y);
  for (int64_t r = 0; r < ROWS; ++r) {
    double want = 0;
    for (int64_t i = 0; i < n; ++i)
      want += labels[r * n + i] * (log_sum(x + r * n, n) - x[r * n + i]);
    expect_near(loss[r] / (double)n, want / (double)n);
  }
}

static void test_rows(void** state) {
  (void)state;
  const int64_t columns[] = {1, 3, 10, 16, 33, 1000, 1024, MAX_COLUMNS};
  for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); ++i) check_columns(columns[i]);
}

static void test_in_place(void** state) {
  (void)state;
  double z[4] = {0, 0, 1000, 0};
  weir_softmax(NULL, WEIR_DTYPE_DOUBLE, 2, 2, z, z, false);
  assert_true(z[0] == 0.5 && z[1] == 0.5 && z[2] == 1 && z[3] == 0);
}

static void test_nan(void** state) {
  (void)state;
  float z[3] = {NAN, 1, 2};
  weir_softmax(NULL, WEIR_DTYPE_FLOAT, 1, 3, z, z, false);
  assert_true(isnan(z[0]) && isnan(z[1]) && isnan(z[2]));
  for (int i = 0; i < 40; ++i) x[i] = i == 20 ? NAN : 1000.0f * (float)i;
  weir_softmax(NULL, WEIR_DTYPE_FLOAT, 1, 40, x, y, true);
  for (int i = 0; i < 40; ++i) assert_true(isnan(y[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows),
      cmocka_unit_test(test_in_place),
      cmocka_unit_test(test_nan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
