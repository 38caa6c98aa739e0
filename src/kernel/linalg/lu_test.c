// lu_test.c — Elimination: factors, solutions and determinants, in one block and in several.
#include "kernel/linalg/lu.h"

#include <math.h>
#include <stdlib.h>

#include "testing/cmocka.h"

static double wave(int64_t i) { return sin(1.7 * (double)i + 0.3) + 0.1 * cos(5.1 * (double)i); }

static void check_system(int64_t n, int64_t m) {
  double* a = malloc(sizeof(double) * (size_t)(2 * n * n + 2 * n * m));
  double* lu = a + n * n;
  double* b = lu + n * n;
  double* x = b + n * m;
  int64_t* order = malloc(sizeof(int64_t) * (size_t)n);
  for (int64_t i = 0; i < n * n; ++i) lu[i] = a[i] = wave(i * i % 1009);
  for (int64_t i = 0; i < n * m; ++i) b[i] = wave(i + 5);
  weir_lu(WEIR_DTYPE_DOUBLE, NULL, n, lu, order);
  assert_true(weir_lu_is_regular(WEIR_DTYPE_DOUBLE, n, lu));
  weir_lu_solve(WEIR_DTYPE_DOUBLE, NULL, n, lu, order, m, b, x);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += a[i * n + k] * x[k * m + j];
      assert_true(fabs(sum - b[i * m + j]) < 1e-8);
    }
  }
  free(order);
  free(a);
}

static void test_systems(void** state) {
  (void)state;
  check_system(1, 1);
  check_system(5, 2);
  check_system(48, 3);
  check_system(49, 1);
  check_system(131, 7);
}

static void test_determinant(void** state) {
  (void)state;
  double a[] = {0, 2, 3, 4}, sign = 0, logarithm = 0;
  int64_t order[2];
  int turns = weir_lu(WEIR_DTYPE_DOUBLE, NULL, 2, a, order);
  assert_int_equal(turns, -1);
  assert_int_equal(order[0], 1);
  weir_lu_determinant(WEIR_DTYPE_DOUBLE, 2, a, turns, &sign, &logarithm);
  assert_true(sign == -1 && fabs(logarithm - log(6)) < 1e-15);
  double singular[] = {1, 2, 2, 4};
  turns = weir_lu(WEIR_DTYPE_DOUBLE, NULL, 2, singular, order);
  assert_false(weir_lu_is_regular(WEIR_DTYPE_DOUBLE, 2, singular));
  weir_lu_determinant(WEIR_DTYPE_DOUBLE, 2, singular, turns, &sign, &logarithm);
  assert_true(sign == 0 && logarithm == -INFINITY);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_systems),
                                     cmocka_unit_test(test_determinant)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
