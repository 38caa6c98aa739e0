// fft_test.c — Transforms against sums by the definition, there and back, and along a middle axis.
#include "kernel/fft/fft.h"

#include <math.h>
#include <stdlib.h>

#include "testing/cmocka.h"

typedef weir_complex128_t number_t;

static number_t wave(int64_t i) {
  return __builtin_complex(sin(1.7 * (double)i + 0.3), cos(2.3 * (double)(i * i % 97)));
}

static void run(weir_fft_plan_t* plan, bool is_inverse, double scale, int64_t rows, void* in,
                int64_t in_row, void* out, int64_t out_row) {
  const weir_fft_pass_t pass = {.plan = plan,
                                .is_inverse = is_inverse,
                                .scale = scale,
                                .dims = {rows, 1, 1},
                                .in = {in, {in_row}, 1},
                                .out = {out, {out_row}, 1}};
  assert_null(weir_fft_run(NULL, &pass));
}

static void check_length(int64_t n) {
  enum { ROWS = 3 };
  number_t* x = malloc(sizeof(number_t) * (size_t)(3 * ROWS * n));
  number_t* y = x + ROWS * n;
  number_t* back = y + ROWS * n;
  weir_fft_plan_t* plan = NULL;
  assert_null(weir_fft_plan_create(n, false, true, &plan));
  for (int64_t i = 0; i < ROWS * n; ++i) x[i] = wave(i);
  run(plan, false, 1, ROWS, x, n, y, n);
  for (int64_t k = 0; k < n; ++k) {
    number_t sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += x[n + i] * cexp(__builtin_complex(0.0, -2 * M_PI * (double)(i * k % n) / (double)n));
    assert_true(cabs(sum - y[n + k]) < 1e-12 * (double)n);
  }
  run(plan, true, 1.0 / (double)n, ROWS, y, n, back, n);
  for (int64_t i = 0; i < ROWS * n; ++i) assert_true(cabs(back[i] - x[i]) < 1e-13 * (double)n);
  weir_fft_plan_release(plan);
  free(x);
}

static void check_real(int64_t n) {
  const int64_t half = n / 2 + 1;
  double* x = malloc(sizeof(double) * (size_t)(2 * n));
  number_t* y = malloc(sizeof(number_t) * (size_t)half);
  weir_fft_plan_t* plan = NULL;
  assert_null(weir_fft_plan_create(n, true, true, &plan));
  for (int64_t i = 0; i < n; ++i) x[i] = creal(wave(i));
  run(plan, false, 1, 1, x, n, y, half);
  for (int64_t k = 0; k < half; ++k) {
    number_t sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += x[i] * cexp(__builtin_complex(0.0, -2 * M_PI * (double)(i * k % n) / (double)n));
    assert_true(cabs(sum - y[k]) < 1e-12 * (double)n);
  }
  run(plan, true, 1.0 / (double)n, 1, y, half, x + n, n);
  for (int64_t i = 0; i < n; ++i) assert_true(fabs(x[n + i] - x[i]) < 1e-13 * (double)n);
  weir_fft_plan_release(plan);
  free(y);
  free(x);
}

static void test_lengths(void** state) {
  (void)state;
  for (int64_t n = 1; n < 70; ++n) {
    check_length(n);
    check_real(n);
  }
  check_length(128);
  check_length(360);
  check_length(509);
  check_real(1018);
}

// Along the second of three dimensions, in place.
static void test_middle(void** state) {
  (void)state;
  enum { A = 2, B = 6, C = 5 };
  number_t x[A * B * C], y[A * B * C];
  weir_fft_plan_t* plan = NULL;
  assert_null(weir_fft_plan_create(B, false, true, &plan));
  for (int i = 0; i < A * B * C; ++i) x[i] = y[i] = wave(i);
  const weir_fft_side_t side = {y, {B * C, 0, 1}, C};
  const weir_fft_pass_t pass = {
      .plan = plan, .scale = 1, .dims = {A, 1, C}, .in = side, .out = side};
  assert_null(weir_fft_run(NULL, &pass));
  for (int k = 0; k < B; ++k) {
    number_t sum = 0;
    for (int i = 0; i < B; ++i)
      sum += x[B * C + i * C + 3] * cexp(__builtin_complex(0.0, -2 * M_PI * i * k / B));
    assert_true(cabs(sum - y[B * C + k * C + 3]) < 1e-12);
  }
  weir_fft_plan_release(plan);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths), cmocka_unit_test(test_middle)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
