// lrn_test.c — Local response normalisation against the definition, its gradient by finite
// differences.
#include "kernel/nn/lrn.h"

#include <math.h>

#include "testing/cmocka.h"

enum { ROWS = 3, CHANNELS = 7, COUNT = ROWS * CHANNELS };

static double definition(const weir_lrn_t* l, const float* x, int i) {
  double sum = 0;
  for (int c = 0; c < CHANNELS; ++c) {
    if ((c > i % CHANNELS ? c - i % CHANNELS : i % CHANNELS - c) <= l->radius)
      sum += pow(x[i / CHANNELS * CHANNELS + c], 2);
  }
  return x[i] * pow((double)l->bias + (double)l->alpha * sum, -(double)l->beta);
}

static void check(int64_t radius, float beta) {
  const weir_lrn_t l = {.rows = ROWS,
                        .channels = CHANNELS,
                        .radius = radius,
                        .bias = 1.5f,
                        .alpha = 0.5f,
                        .beta = beta};
  float x[COUNT], y[COUNT], dy[COUNT], dx[COUNT];
  for (int i = 0; i < COUNT; ++i) x[i] = sinf((float)i), dy[i] = cosf((float)(3 * i));
  assert_null(weir_lrn(NULL, &l, x, y));
  for (int i = 0; i < COUNT; ++i) assert_true(fabs(y[i] - definition(&l, x, i)) < 1e-6);
  assert_null(weir_lrn_grad(NULL, &l, dy, x, y, dx));
  for (int i = 0; i < COUNT; ++i) {
    const float h = 0.0078125f, kept = x[i];
    double slope = 0;
    for (int side = -1; side <= 1; side += 2) {
      x[i] = kept + (float)side * h;
      for (int j = 0; j < COUNT; ++j)
        slope += side * dy[j] * definition(&l, x, j) / (2 * (double)h);
    }
    x[i] = kept;
    assert_true(fabs(dx[i] - slope) < 1e-3);
  }
}

static void test_radii(void** state) {
  (void)state;
  const float betas[] = {0.5f, 0.75f, 1.0f, 0.6f};
  for (int64_t radius = 0; radius < 10; radius += 3) {
    for (int i = 0; i < 4; ++i) check(radius, betas[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_radii)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
