// pool2d_test.c — Poolings on small images worked out by hand, and their ties, padding and NaN.
#include "kernel/pool/pool2d.h"

#include <float.h>
#include <math.h>

#include "testing/cmocka.h"

// A 3x3 image of one channel under 2x2 windows of stride 1, no padding.
static const weir_pool2d_t plain = {.batch = 1,
                                    .in_h = 3,
                                    .in_w = 3,
                                    .channels = 1,
                                    .out_h = 2,
                                    .out_w = 2,
                                    .window_h = 2,
                                    .window_w = 2,
                                    .stride_h = 1,
                                    .stride_w = 1};
static const float image[9] = {1, 9, 2, 3, 5, 9, 7, 4, 6};

static void test_max(void** state) {
  (void)state;
  float out[4];
  weir_max_pool2d(NULL, WEIR_DTYPE_FLOAT, &plain, image, out);
  assert_memory_equal(out, ((const float[]){9, 9, 7, 9}), sizeof(out));
}

static void test_argmax_takes_the_first(void** state) {
  (void)state;
  float out[4];
  int64_t argmax[4];
  assert_null(weir_max_pool2d_argmax(NULL, WEIR_DTYPE_FLOAT, &plain, image, out, argmax));
  assert_memory_equal(argmax, ((const int64_t[]){1, 1, 6, 5}), sizeof(argmax));
  const uint8_t ties[9] = {0};
  uint8_t low[4];
  assert_null(weir_max_pool2d_argmax(NULL, WEIR_DTYPE_UINT8, &plain, ties, low, argmax));
  assert_memory_equal(argmax, ((const int64_t[]){0, 1, 3, 4}), sizeof(argmax));
}

static void test_max_grad(void** state) {
  (void)state;
  const float dy[4] = {1, 10, 100, 1000};
  float dx[9];
  assert_null(weir_max_pool2d_grad(NULL, WEIR_DTYPE_FLOAT, &plain, image, dy, dx));
  assert_memory_equal(dx, ((const float[]){0, 11, 0, 0, 0, 1000, 100, 0, 0}), sizeof(dx));
}

// Windows that share no pixel: of every position of the maximum, ties, NaN first and NaN later.
static void test_max_grad_of_quads(void** state) {
  (void)state;
  const weir_pool2d_t p = {.batch = 1,
                           .in_h = 2,
                           .in_w = 2,
                           .channels = 7,
                           .out_h = 1,
                           .out_w = 1,
                           .window_h = 2,
                           .window_w = 2,
                           .stride_h = 2,
                           .stride_w = 2};
  const float x[28] = {4, 1, 1, 1, 5, NAN, 1,  // top left
                       3, 4, 2, 2, 5, 9,   2,  // top right
                       2, 3, 4, 3, 5, 9,   NAN, 1, 2, 3, 4, 5, 9, 3};
  const float dy[7] = {1, 2, 3, 4, 5, 6, 7};
  const float want[28] = {1, 0, 0, 0, 5, 6, 0, 0, 2, 0, 0, 0, 0, 0,
                          0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 7};
  float dx[28];
  for (int i = 0; i < 28; ++i) dx[i] = NAN;
  assert_null(weir_max_pool2d_grad(NULL, WEIR_DTYPE_FLOAT, &p, x, dy, dx));
  for (int i = 0; i < 28; ++i) assert_true(dx[i] == want[i]);
}

// Windows of 2 x 2, some of them cut off by the borders and, with larger strides, pixels in none.
static void check_quads(int64_t size, int64_t stride, int64_t pad) {
  enum { CHANNELS = 5, MAX_SIZE = 10 };
  const int64_t out = (size + 2 * pad - 2) / stride + 1;
  const weir_pool2d_t p = {2, size, size, CHANNELS, out, out, 2, 2, stride, stride, pad, pad};
  int16_t x[2 * MAX_SIZE * MAX_SIZE * CHANNELS], dy[WEIR_COUNT_OF(x)], dx[WEIR_COUNT_OF(x)];
  int16_t want[WEIR_COUNT_OF(x)] = {0};
  int64_t argmax[WEIR_COUNT_OF(x)];
  for (size_t i = 0; i < WEIR_COUNT_OF(x); ++i) {
    x[i] = (int16_t)(i * 7919 % 5), dy[i] = (int16_t)(i + 1), dx[i] = -1;
  }
  assert_null(weir_max_pool2d_argmax(NULL, WEIR_DTYPE_INT16, &p, x, NULL, argmax));
  for (int64_t i = 0; i < 2 * out * out * CHANNELS; ++i) {
    int64_t base = i / (out * out * CHANNELS) * size * size * CHANNELS;
    if (argmax[i] >= 0) want[base + argmax[i]] = (int16_t)(want[base + argmax[i]] + dy[i]);
  }
  assert_null(weir_max_pool2d_grad(NULL, WEIR_DTYPE_INT16, &p, x, dy, dx));
  assert_memory_equal(dx, want, (size_t)(2 * size * size * CHANNELS) * sizeof(*dx));
}

static void test_max_grad_of_cut_quads(void** state) {
  (void)state;
  for (int64_t size = 4; size <= 9; ++size) {
    for (int64_t stride = 1; stride <= 3; ++stride) {
      check_quads(size, stride, 0);
      check_quads(size, stride, 1);
    }
  }
}

static void test_max_grad_grad(void** state) {
  (void)state;
  const float top[4] = {9, 9, 7, 9}, grad[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  float out[4];
  weir_max_pool2d_grad_grad(NULL, WEIR_DTYPE_FLOAT, &plain, image, top, grad, out);
  assert_memory_equal(out, ((const float[]){1, 1, 6, 5}), sizeof(out));
}

static void test_nan_and_lowest(void** state) {
  (void)state;
  const float bad[9] = {NAN, -INFINITY, -INFINITY, 1, -INFINITY, -INFINITY, 1, 1, 1};
  float out[4];
  weir_max_pool2d(NULL, WEIR_DTYPE_FLOAT, &plain, bad, out);
  assert_true(isnan(out[0]));
  assert_true(out[1] == -FLT_MAX);
}

// Padding on all sides: averages count only what lies within the image.
static void test_average(void** state) {
  (void)state;
  const weir_pool2d_t p = {.batch = 1,
                           .in_h = 2,
                           .in_w = 2,
                           .channels = 2,
                           .out_h = 2,
                           .out_w = 2,
                           .window_h = 2,
                           .window_w = 2,
                           .stride_h = 2,
                           .stride_w = 2,
                           .pad_top = 1,
                           .pad_left = 1};
  const double x[8] = {1, 10, 2, 20, 3, 30, 4, 40};
  double out[8], dx[8];
  weir_avg_pool2d(NULL, WEIR_DTYPE_DOUBLE, &p, x, out);
  assert_memory_equal(out, x, sizeof(out));
  weir_avg_pool2d_grad(NULL, WEIR_DTYPE_DOUBLE, &p, x, dx);
  assert_memory_equal(dx, x, sizeof(dx));
  const float line[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  float mean[4], spread[9];
  weir_avg_pool2d(NULL, WEIR_DTYPE_FLOAT, &plain, line, mean);
  assert_memory_equal(mean, ((const float[]){3, 4, 6, 7}), sizeof(mean));
  weir_avg_pool2d_grad(NULL, WEIR_DTYPE_FLOAT, &plain, ((const float[]){4, 4, 4, 4}), spread);
  assert_memory_equal(spread, ((const float[]){1, 2, 1, 2, 4, 2, 1, 2, 1}), sizeof(spread));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_max),
      cmocka_unit_test(test_argmax_takes_the_first),
      cmocka_unit_test(test_max_grad),
      cmocka_unit_test(test_max_grad_of_quads),
      cmocka_unit_test(test_max_grad_of_cut_quads),
      cmocka_unit_test(test_max_grad_grad),
      cmocka_unit_test(test_nan_and_lowest),
      cmocka_unit_test(test_average),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
