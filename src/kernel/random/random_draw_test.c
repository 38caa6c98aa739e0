// random_draw_test.c — Draws by rejection: moments, bounds, and independence of the thread count.
#include "kernel/random/random_draw.h"

#include "kernel/elementwise/special.h"
#include "testing/cmocka.h"

enum { SAMPLES = 20000 };

static weir_draw_t draw_of(const double* parameters, int64_t count, double* out) {
  return (weir_draw_t){.philox = weir_philox_seed(11, 12),
                       .parameter_type = WEIR_DTYPE_DOUBLE,
                       .dtype = WEIR_DTYPE_DOUBLE,
                       .parameters = parameters,
                       .count = count,
                       .samples = SAMPLES,
                       .out = out};
}

static void assert_moments(const double* values, int64_t stride, double mean, double variance) {
  double sum = 0, squares = 0;
  for (int i = 0; i < SAMPLES; ++i) {
    sum += values[i * stride];
    squares += values[i * stride] * values[i * stride];
  }
  const double m = sum / SAMPLES, v = squares / SAMPLES - m * m;
  assert_true(fabs(m - mean) < 5 * sqrt(variance / SAMPLES));
  assert_true(fabs(v / variance - 1) < 0.15);
}

static void test_gamma(void** state) {
  (void)state;
  static double out[3 * SAMPLES];
  const double alphas[] = {0.5, 1, 6};
  weir_draw_t draw = draw_of(alphas, 3, out);
  weir_random_gamma(NULL, &draw);
  for (int i = 0; i < 3; ++i) assert_moments(out + i, 3, alphas[i], alphas[i]);
}

static void test_poisson(void** state) {
  (void)state;
  static double out[2 * SAMPLES];
  const double rates[] = {3, 40};
  weir_draw_t draw = draw_of(rates, 2, out);
  weir_random_poisson(NULL, &draw);
  for (int i = 0; i < 2; ++i) assert_moments(out + i, 2, rates[i], rates[i]);
}

static void test_odd_parameters(void** state) {
  (void)state;
  static double out[4 * SAMPLES];
  const double odd[] = {NAN, -5, 0, -INFINITY};
  weir_draw_t draw = draw_of(odd, 4, out);
  weir_random_gamma(NULL, &draw);
  assert_true(isnan(out[0]) && isnan(out[1]));
  const double rates[] = {INFINITY, -1, 0, 1e300};
  draw.parameters = rates;
  weir_random_poisson(NULL, &draw);
  assert_true(isinf(out[0]) && out[1] == 0 && out[2] == 0);
}

// Series and continued fraction agree where one gives way to the other.
static void test_derivative(void** state) {
  (void)state;
  for (double a = 1.5; a < 30; a *= 1.7) {
    const double below = weir_gamma_sample_derivative(a, a * (1 - 1e-9), false);
    const double above = weir_gamma_sample_derivative(a, a * (1 + 1e-9), false);
    assert_true(fabs(below / above - 1) < 1e-6);
  }
  assert_true(weir_gamma_sample_derivative(2, 0, false) == 0);
  assert_true(isnan(weir_gamma_sample_derivative(-1, 1, false)));
  assert_true(isnan(weir_gamma_sample_derivative(1, NAN, false)));
}

static void test_truncated(void** state) {
  (void)state;
  static const weir_truncated_t kinds[] = {
      {0, 1, -2, 2}, {0, 1, 3, 3.1}, {0, 1, 4, 40}, {5, 2, -INFINITY, 1}, {5, 2, 9, INFINITY}};
  static double out[1000];
  for (size_t i = 0; i < WEIR_COUNT_OF(kinds); ++i) {
    weir_philox_t philox = weir_philox_seed(1, i);
    assert_null(weir_random_truncated(&philox, WEIR_DTYPE_DOUBLE, &kinds[i], out, 0, 1000));
    for (int k = 0; k < 1000; ++k) assert_true(out[k] >= kinds[i].low && out[k] <= kinds[i].high);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_gamma), cmocka_unit_test(test_poisson),
                                     cmocka_unit_test(test_odd_parameters),
                                     cmocka_unit_test(test_derivative),
                                     cmocka_unit_test(test_truncated)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
