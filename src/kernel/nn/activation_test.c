// activation_test.c — Activations against libm, their gradients by finite differences, special
// values, narrow types.
#include "kernel/nn/activation.h"

#include <math.h>

#include "tensor/numeric.h"
#include "testing/cmocka.h"

static const float alpha = 0.3f;

static double want(weir_activation_t activation, double x) {
  const double scale = 1.0507009873554805, scale_alpha = 1.7580993408473769;
  switch (activation) {
    case WEIR_ACTIVATION_RELU: return x > 0 ? x : 0;
    case WEIR_ACTIVATION_RELU6: return x > 6 ? 6 : x > 0 ? x : 0;
    case WEIR_ACTIVATION_LEAKY_RELU: return x > 0 ? x : (double)alpha * x;
    case WEIR_ACTIVATION_ELU: return x < 0 ? expm1(x) : x;
    case WEIR_ACTIVATION_SELU: return x < 0 ? scale_alpha * expm1(x) : scale * x;
    case WEIR_ACTIVATION_SOFTPLUS: return x > 30 ? x : log1p(exp(x));
    default: return x / (1 + fabs(x));
  }
}

static bool is_by_output(weir_activation_t activation) {
  return activation == WEIR_ACTIVATION_ELU || activation == WEIR_ACTIVATION_SELU;
}

static void test_values(void** state) {
  (void)state;
  for (int a = 0; a < WEIR_ACTIVATION_COUNT; ++a) {
    weir_activation_t activation = (weir_activation_t)a;
    for (int i = -400; i <= 400; ++i) {
      float x = (float)i * 0.05f + 0.013f, y;
      double z, dx;
      weir_activation_find(activation, WEIR_DTYPE_FLOAT)(&x, &y, 1, alpha);
      assert_true(fabs(y - want(activation, x)) <= 1e-6 * (1e-3 + fabs(want(activation, x))));
      double wide = x, dy = 2;
      weir_activation_find(activation, WEIR_DTYPE_DOUBLE)(&wide, &z, 1, alpha);
      assert_true(fabs(z - want(activation, x)) <= 1e-13 * (1 + fabs(z)));
      const double* at = is_by_output(activation) ? &z : &wide;
      weir_activation_grad_find(activation, WEIR_DTYPE_DOUBLE)(&dy, at, &dx, 1, alpha);
      double slope = (want(activation, x + 1e-6) - want(activation, x - 1e-6)) / 2e-6;
      assert_true(fabs(dx - 2 * slope) < 1e-6);
    }
  }
}

static void test_special(void** state) {
  (void)state;
  float x[4] = {NAN, -0.0f, INFINITY, -INFINITY}, y[4];
  for (int a = 0; a < WEIR_ACTIVATION_COUNT; ++a) {
    weir_activation_find((weir_activation_t)a, WEIR_DTYPE_FLOAT)(x, y, 4, alpha);
    if (a != WEIR_ACTIVATION_SOFTSIGN) assert_false(isnan(y[2]));
    assert_true(isnan(y[0]));
  }
  weir_activation_find(WEIR_ACTIVATION_RELU, WEIR_DTYPE_FLOAT)(x, y, 4, alpha);
  assert_false(signbit(y[1]));
  weir_activation_find(WEIR_ACTIVATION_RELU6, WEIR_DTYPE_FLOAT)(x, y, 4, alpha);
  assert_true(!signbit(y[1]) && y[2] == 6 && y[3] == 0);
}

static void test_narrow(void** state) {
  (void)state;
  enum { COUNT = 600 };
  uint16_t x[COUNT], y[COUNT];
  for (int i = 0; i < COUNT; ++i) x[i] = weir_half_from_float((float)(i - 300) * 0.5f).bits;
  weir_activation_find(WEIR_ACTIVATION_RELU, WEIR_DTYPE_HALF)(x, y, COUNT, 0);
  for (int i = 0; i < COUNT; ++i) assert_int_equal(y[i], i < 300 ? 0 : x[i]);
  // Alpha is a half, too: -3 times 0.19995, and not -0.6.
  x[0] = weir_half_from_float(-3).bits;
  weir_activation_find(WEIR_ACTIVATION_LEAKY_RELU, WEIR_DTYPE_HALF)(x, y, 1, 0.2f);
  assert_float_equal(weir_half_to_float((weir_half_t){y[0]}), -0.599609375f, 0);
  x[1] = weir_half_from_float(1).bits;
  weir_activation_grad_find(WEIR_ACTIVATION_LEAKY_RELU, WEIR_DTYPE_HALF)(x, x, y, 2, 0.2f);
  assert_float_equal(weir_half_to_float((weir_half_t){y[0]}), -0.599609375f, 0);
  assert_int_equal(y[1], x[1]);
  int8_t small[3] = {-3, 3, 9};
  weir_activation_find(WEIR_ACTIVATION_RELU6, WEIR_DTYPE_INT8)(small, small, 3, 0);
  assert_memory_equal(small, ((const int8_t[]){0, 3, 6}), 3);
  assert_null(weir_activation_find(WEIR_ACTIVATION_ELU, WEIR_DTYPE_INT8));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_special),
      cmocka_unit_test(test_narrow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
