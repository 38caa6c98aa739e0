// vmath_test.c — The vectorisable float functions against the double functions of libm, in units of
// the last place.
#include "kernel/elementwise/vmath.h"

#include <float.h>

#include "kernel/elementwise/special.h"
#include "kernel/elementwise/vmath_trig.h"
#include "testing/cmocka.h"

typedef void (*array_fn_t)(const float* x, float* y, int64_t n);

static double ulp_error(float got, double want) {
  if (isnan(want)) return isnan(got) ? 0 : HUGE_VAL;
  float rounded = (float)want;
  if (isinf(rounded) || isinf(got))
    return got == rounded || fabs(want) > (double)FLT_MAX * (1 - 1e-6) ? 0 : HUGE_VAL;
  int exponent;
  frexp(fabs(want) < (double)FLT_MIN ? (double)FLT_MIN : want, &exponent);
  return fabs((double)got - want) / ldexp(1.0, exponent - 24);
}

// Checks |fn| on |count| points from |lo| to |hi|, in an array and one at a time (the loop's tail).
static void check_range(array_fn_t fn, double (*exact)(double), float lo, float hi, int count,
                        double limit) {
  float x[1000];
  float y[1000];
  double worst = 0;
  for (int begin = 0; begin < count; begin += 1000) {
    for (int i = 0; i < 1000; ++i) x[i] = lo + (hi - lo) * ((float)(begin + i) / (float)count);
    fn(x, y, 1000);
    for (int i = 0; i < 1000; ++i) {
      worst = fmax(worst, ulp_error(y[i], exact((double)x[i])));
      if (i % 100 == 0) {
        float one;
        fn(&x[i], &one, 1);
        worst = fmax(worst, ulp_error(one, exact((double)x[i])));
      }
    }
  }
  if (worst > limit) fail_msg("off by %g ULP in [%g, %g]", worst, (double)lo, (double)hi);
}

static double exact_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

static void test_ranges(void** state) {
  (void)state;
  check_range(weir_vexp, exp, -110.0f, 90.0f, 200000, 2.0);
  check_range(weir_vexp, exp, -1.0f, 1.0f, 100000, 2.0);
  check_range(weir_vlog, log, 1e-40f, 1e-37f, 50000, 2.0);
  check_range(weir_vlog, log, 1e-6f, 4.0f, 200000, 2.0);
  check_range(weir_vlog, log, 0.9f, 1.1f, 200000, 2.0);
  check_range(weir_vlog, log, 1.0f, 3e38f, 50000, 2.0);
  check_range(weir_vtanh, tanh, -12.0f, 12.0f, 200000, 6.0);
  check_range(weir_vtanh, tanh, -1e-3f, 1e-3f, 50000, 2.0);
  check_range(weir_vsigmoid, exact_sigmoid, -100.0f, 100.0f, 200000, 6.0);
  check_range(weir_vsin, sin, -100.0f, 100.0f, 200000, 2.0);
  check_range(weir_vcos, cos, -100.0f, 100.0f, 200000, 2.0);
  check_range(weir_vsin, sin, -2e6f, 2e6f, 200000, 2.0);
  check_range(weir_vsin, sin, 11000.0f, 14000.0f, 100000, 2.5);
  check_range(weir_vcos, cos, 9e5f, 1e6f, 100000, 2.0);
  check_range(weir_vcos, cos, 11000.0f, 14000.0f, 100000, 2.5);
  check_range(weir_vtan, tan, -100.0f, 100.0f, 200000, 2.0);
  check_range(weir_vtan, tan, 11000.0f, 14000.0f, 100000, 2.0);
  check_range(weir_vasin, asin, -1.01f, 1.01f, 200000, 2.5);
  check_range(weir_vacos, acos, -1.01f, 1.01f, 200000, 2.0);
  check_range(weir_vatan, atan, -3.0f, 3.0f, 200000, 2.5);
  check_range(weir_vatan, atan, 0.0f, 1e4f, 100000, 2.5);
  check_range(weir_vsinh, sinh, -2.0f, 2.0f, 200000, 2.0);
  check_range(weir_vsinh, sinh, -91.0f, 91.0f, 100000, 2.0);
  check_range(weir_vcosh, cosh, -91.0f, 91.0f, 200000, 2.0);
  check_range(weir_vatanh, atanh, -1.01f, 1.01f, 200000, 2.0);
  check_range(weir_verf, erf, -5.0f, 5.0f, 200000, 2.5);
  check_range(weir_verfc, erfc, -5.0f, 11.0f, 200000, 2.5);
  check_range(weir_verfinv, weir_erfinv, -1.01f, 1.01f, 100000, 2.0);
  check_range(weir_vndtri, weir_ndtri, -0.01f, 1.02f, 100000, 2.0);
  check_range(weir_vndtri, weir_ndtri, 1e-44f, 1e-38f, 10000, 2.0);
  check_range(weir_vndtri, weir_ndtri, 1e-10f, 1e-5f, 50000, 2.0);
  check_range(weir_vexpm1, expm1, -20.0f, 89.0f, 200000, 2.5);
  check_range(weir_vexpm1, expm1, -0.5f, 0.5f, 200000, 2.5);
  check_range(weir_vlog1p, log1p, -0.999f, 10.0f, 200000, 3.0);
  check_range(weir_vlog1p, log1p, -1e-3f, 1e-3f, 100000, 3.0);
}

static void check_specials(array_fn_t fn, double (*exact)(double)) {
  const float x[] = {0.0f,     -0.0f,   INFINITY, -INFINITY, NAN,  FLT_MIN,
                     -FLT_MIN, FLT_MAX, -FLT_MAX, 1e-45f,    1.0f, -1.0f};
  float y[WEIR_COUNT_OF(x)];
  fn(x, y, (int64_t)WEIR_COUNT_OF(x));
  for (size_t i = 0; i < WEIR_COUNT_OF(x); ++i) {
    double want = exact((double)x[i]);
    if (ulp_error(y[i], want) > 3 || (want == 0 && !signbit(y[i]) != !signbit(want)))
      fail_msg("f(%g) = %g", (double)x[i], (double)y[i]);
  }
}

static void test_specials(void** state) {
  (void)state;
  check_specials(weir_vexp, exp);
  check_specials(weir_vlog, log);
  check_specials(weir_vtanh, tanh);
  check_specials(weir_vsigmoid, exact_sigmoid);
  check_specials(weir_vsin, sin);
  check_specials(weir_vcos, cos);
  check_specials(weir_vtan, tan);
  check_specials(weir_vasin, asin);
  check_specials(weir_vacos, acos);
  check_specials(weir_vatan, atan);
  check_specials(weir_vsinh, sinh);
  check_specials(weir_vcosh, cosh);
  check_specials(weir_vatanh, atanh);
  check_specials(weir_verf, erf);
  check_specials(weir_verfc, erfc);
  check_specials(weir_verfinv, weir_erfinv);
  check_specials(weir_vndtri, weir_ndtri);
  check_specials(weir_vexpm1, expm1);
  check_specials(weir_vlog1p, log1p);
}

static void test_atan2(void** state) {
  (void)state;
  const float v[] = {0.0f, -0.0f, 1e-45f, -1e-45f, 0.5f,    -0.5f,    1.0f,      -1.0f,
                     3.0f, -3.0f, 1e30f,  -1e30f,  FLT_MAX, INFINITY, -INFINITY, NAN};
  for (size_t i = 0; i < WEIR_COUNT_OF(v); ++i) {
    for (size_t j = 0; j < WEIR_COUNT_OF(v); ++j) {
      float got = weir_vm_atan2(v[i], v[j]);
      double want = atan2((double)v[i], (double)v[j]);
      if (ulp_error(got, want) > 2 || (!isnan(want) && !signbit(got) != !signbit(want)))
        fail_msg("atan2(%g, %g) = %g", (double)v[i], (double)v[j], (double)got);
    }
  }
}

static void test_exp_down(void** state) {
  (void)state;
  enum { COUNT = 100000 };
  static float x[COUNT], want[COUNT], got[COUNT];
  for (int i = 0; i < COUNT; ++i) x[i] = (float)i * -1.1e-3f;
  x[COUNT - 3] = -FLT_MAX;
  x[COUNT - 2] = -INFINITY;
  x[COUNT - 1] = NAN;
  weir_vexp(x, want, COUNT);
  weir_vexp_down(x, got, COUNT);
  assert_memory_equal(got, want, sizeof(got));
}

// A large neighbour, whose reduction is another, changes nothing.
static void test_neighbours(void** state) {
  (void)state;
  enum { COUNT = 300 };
  float x[COUNT], alone[COUNT];
  for (int i = 0; i < COUNT; ++i) x[i] = (float)i * 0.37f;
  weir_vsin(x, alone, COUNT);
  x[7] = 3e6f;
  weir_vsin(x, x, COUNT);
  assert_true(x[7] == sinf(3e6f));
  for (int i = 0; i < COUNT; ++i) assert_true(i == 7 || x[i] == alone[i]);
}

// Blocks without an extreme take a shorter way, to the same bits: every 4,999th float up to |limit|
// and both its signs, with an extreme beside it and without.
static void check_calm(array_fn_t fn, float limit) {
  enum { COUNT = 256 };
  float x[COUNT], calm[COUNT], any[COUNT];
  uint32_t bits = 0;
  while (bits <= weir_float_bits(limit)) {
    for (int i = 0; i < COUNT; i += 2) {
      x[i] = WEIR_MIN(weir_float_from_bits(bits), limit);
      x[i + 1] = -x[i];
      bits += 4999;
    }
    fn(x, calm, COUNT);
    x[COUNT - 1] = NAN;
    fn(x, any, COUNT);
    assert_true(isnan(any[COUNT - 1]));
    assert_memory_equal(calm, any, sizeof(calm) - sizeof(*calm));
  }
}

static void test_calm(void** state) {
  (void)state;
  check_calm(weir_vexp, WEIR_EXP_CALM);
  check_calm(weir_vtanh, WEIR_TANH_CALM);
  check_calm(weir_vsigmoid, WEIR_SIGMOID_CALM);
}

static void test_in_place(void** state) {
  (void)state;
  float x[100];
  float y[100];
  for (int i = 0; i < 100; ++i) x[i] = (float)i * 0.1f - 5.0f;
  weir_vtanh(x, y, 100);
  weir_vtanh(x, x, 100);
  assert_memory_equal(x, y, sizeof(x));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ranges),     cmocka_unit_test(test_specials),
      cmocka_unit_test(test_exp_down),   cmocka_unit_test(test_atan2),
      cmocka_unit_test(test_neighbours), cmocka_unit_test(test_calm),
      cmocka_unit_test(test_in_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
