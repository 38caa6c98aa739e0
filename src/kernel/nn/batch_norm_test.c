// batch_norm_test.c — Moments, normalisation, and the gradient by finite differences.
#include "kernel/nn/batch_norm.h"

#include <math.h>

#include "testing/cmocka.h"

enum { ROWS = 150, CHANNELS = 3, COUNT = ROWS * CHANNELS };

static float x[COUNT], dy[COUNT];
static const float scale[CHANNELS] = {1.5f, -0.5f, 2.0f}, offset[CHANNELS] = {0.1f, 0.2f, 0.3f};
static const weir_batch_norm_t bn = {
    .rows = ROWS, .channels = CHANNELS, .epsilon = 0.01f, .scale = scale, .offset = offset};

static int setup(void** state) {
  (void)state;
  for (int i = 0; i < COUNT; ++i) {
    x[i] = sinf((float)i * 1.3f) + (float)(i % CHANNELS);
    dy[i] = cosf((float)i * 0.7f);
  }
  return 0;
}

static void expect_near(double got, double want, double tolerance) {
  if (fabs(got - want) > tolerance * (1 + fabs(want))) fail_msg("got %g, want %g", got, want);
}

static double moment(const float* values, int c, double mean, int power) {
  double sum = 0;
  for (int r = 0; r < ROWS; ++r) sum += pow(values[r * CHANNELS + c] - mean, power);
  return sum / ROWS;
}

// sum(dy * y) for the batch |values|, in double.
static double objective(const float* values) {
  double total = 0;
  for (int c = 0; c < CHANNELS; ++c) {
    double mean = moment(values, c, 0, 1),
           r = 1 / sqrt(moment(values, c, mean, 2) + (double)bn.epsilon);
    for (int i = c; i < COUNT; i += CHANNELS)
      total += dy[i] * ((values[i] - mean) * r * scale[c] + offset[c]);
  }
  return total;
}

static void test_forward(void** state) {
  (void)state;
  float mean[CHANNELS], variance[CHANNELS], y[COUNT];
  assert_null(weir_batch_norm_moments(NULL, &bn, x, mean, variance));
  assert_null(weir_batch_norm_apply(NULL, &bn, x, mean, variance, y));
  for (int c = 0; c < CHANNELS; ++c) {
    double want = moment(x, c, 0, 1);
    expect_near(mean[c], want, 1e-6);
    expect_near(variance[c], moment(x, c, want, 2), 1e-6);
    expect_near(moment(y, c, 0, 1), offset[c], 1e-5);
  }
}

static void test_grad(void** state) {
  (void)state;
  float mean[CHANNELS], variance[CHANNELS], dx[COUNT], dscale[CHANNELS], doffset[CHANNELS];
  assert_null(weir_batch_norm_moments(NULL, &bn, x, mean, variance));
  weir_batch_norm_grad_t grad = {.dy = dy,
                                 .x = x,
                                 .mean = mean,
                                 .variance = variance,
                                 .is_training = true,
                                 .dx = dx,
                                 .dscale = dscale,
                                 .doffset = doffset};
  assert_null(weir_batch_norm_grad(NULL, &bn, &grad));
  for (int i = 0; i < COUNT; i += 41) {
    const float h = 0.0078125f;
    float kept = x[i];
    x[i] = kept + h;
    double up = objective(x);
    x[i] = kept - h;
    double down = objective(x);
    x[i] = kept;
    expect_near(dx[i], (up - down) / (2 * (double)h), 1e-4);
  }
  for (int c = 0; c < CHANNELS; ++c) {
    double sum = 0;
    for (int r = 0; r < ROWS; ++r) sum += dy[r * CHANNELS + c];
    expect_near(doffset[c], sum, 1e-5);
  }
}

static void test_frozen_grad(void** state) {
  (void)state;
  const float mean[CHANNELS] = {0.5f, 0.5f, 0.5f}, variance[CHANNELS] = {0.99f, 0.99f, 0.99f};
  float dx[COUNT], dscale[CHANNELS], doffset[CHANNELS];
  weir_batch_norm_grad_t grad = {.dy = dy,
                                 .x = x,
                                 .mean = mean,
                                 .variance = variance,
                                 .is_training = false,
                                 .dx = dx,
                                 .dscale = dscale,
                                 .doffset = doffset};
  assert_null(weir_batch_norm_grad(NULL, &bn, &grad));
  for (int i = 0; i < COUNT; ++i)
    expect_near(dx[i], (double)dy[i] * (double)scale[i % CHANNELS], 1e-6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_forward),
      cmocka_unit_test(test_grad),
      cmocka_unit_test(test_frozen_grad),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
