// dilation2d_test.c — Greyscale dilation on small images.
#include "kernel/pool/dilation2d.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka needs the four above first.
#include <cmocka.h>
#include <float.h>
#include <math.h>

static const weir_dilation2d_t row3 = {.batch = 1,
                                       .in_h = 1,
                                       .in_w = 3,
                                       .depth = 1,
                                       .filter_h = 1,
                                       .filter_w = 2,
                                       .out_h = 1,
                                       .out_w = 3,
                                       .stride_h = 1,
                                       .stride_w = 1,
                                       .rate_h = 1,
                                       .rate_w = 1};

static void test_forward_and_gradients(void** state) {
  (void)state;
  const float in[3] = {1, 5, 2}, filter[2] = {0, -1}, dy[3] = {10, 20, 30};
  float out[3], dx[3], dw[2];
  weir_dilation2d_forward(NULL, WEIR_DTYPE_FLOAT, &row3, in, filter, out);
  assert_true(out[0] == 4 && out[1] == 5 && out[2] == 2);
  weir_dilation2d_backprop_input(NULL, WEIR_DTYPE_FLOAT, &row3, in, filter, dy, dx);
  assert_true(dx[0] == 0 && dx[1] == 30 && dx[2] == 30);
  weir_dilation2d_backprop_filter(NULL, WEIR_DTYPE_FLOAT, &row3, in, filter, dy, dw);
  assert_true(dw[0] == 50 && dw[1] == 10);
}

static void test_nan_never_wins(void** state) {
  (void)state;
  const float in[3] = {NAN, NAN, -INFINITY}, filter[2] = {0, 0};
  float out[3];
  weir_dilation2d_forward(NULL, WEIR_DTYPE_FLOAT, &row3, in, filter, out);
  for (int i = 0; i < 3; ++i) assert_true(out[i] == -FLT_MAX);
}

static void test_integers_wrap(void** state) {
  (void)state;
  const int8_t in[3] = {127, 0, -128}, filter[2] = {1, 1};
  int8_t out[3];
  weir_dilation2d_forward(NULL, WEIR_DTYPE_INT8, &row3, in, filter, out);
  assert_int_equal(out[0], 1);
  assert_int_equal(out[1], 1);
  assert_int_equal(out[2], -127);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_forward_and_gradients),
      cmocka_unit_test(test_nan_never_wins),
      cmocka_unit_test(test_integers_wrap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
