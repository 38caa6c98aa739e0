// conv_test.c — Convolutions against loops written from the definition, and with different numbers
// of threads.
#include "kernel/conv/conv.h"

#include <math.h>

#include "base/alloc.h"
#include "kernel/conv/conv_direct.h"
#include "testing/cmocka.h"

static int64_t volume(const int64_t sizes[3]) { return sizes[0] * sizes[1] * sizes[2]; }
static int64_t in_count(const weir_conv_t* c) { return c->batch * volume(c->in) * c->in_c; }
static int64_t out_count(const weir_conv_t* c) { return c->batch * volume(c->out) * c->out_c; }
static int64_t filter_count(const weir_conv_t* c) {
  return volume(c->filter) * c->group_in * c->out_c;
}

static weir_conv_t make(int64_t batch, int64_t size, int64_t kernel, int64_t stride,
                        int64_t dilation, int64_t pad, int64_t groups, int64_t group_in,
                        int64_t group_out) {
  int64_t extent = (kernel - 1) * dilation + 1;
  int64_t out = (size + 2 * pad - extent) / stride + 1;
  int64_t wide = (size + 1 + 2 * pad - extent) / stride + 1;
  return (weir_conv_t){.batch = batch,
                       .in_c = groups * group_in,
                       .out_c = groups * group_out,
                       .groups = groups,
                       .group_in = group_in,
                       .group_out = group_out,
                       .in = {1, size, size + 1},
                       .filter = {1, kernel, kernel},
                       .out = {1, out, wide},
                       .stride = {1, stride, stride},
                       .dilation = {1, dilation, dilation},
                       .pad = {0, pad, pad}};
}

// The same with a depth of its own.
static weir_conv_t deep(weir_conv_t c, int64_t in, int64_t filter, int64_t out, int64_t stride,
                        int64_t pad) {
  c.in[0] = in, c.filter[0] = filter, c.out[0] = out, c.stride[0] = stride, c.pad[0] = pad;
  c.dilation[0] = c.dilation[1];
  return c;
}

static double* random_values(int64_t count, uint64_t seed) {
  double* values = weir_alloc_array((size_t)count + 1, sizeof(double));
  uint64_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values[i] = (double)(int64_t)(state >> 33) / (double)(1u << 30) - 1.0;
  }
  return values;
}

// The input pixel under tap |k| of output pixel |o|; -1 for padding.
static int64_t input_at(const weir_conv_t* c, int64_t o, int64_t k) {
  int64_t at[3];
  for (int axis = 2; axis >= 0; --axis) {
    at[axis] =
        o % c->out[axis] * c->stride[axis] - c->pad[axis] + k % c->filter[axis] * c->dilation[axis];
    if (at[axis] < 0 || at[axis] >= c->in[axis]) return -1;
    o /= c->out[axis];
    k /= c->filter[axis];
  }
  return ((o * c->in[0] + at[0]) * c->in[1] + at[1]) * c->in[2] + at[2];
}

// Every product of the definition: y[o] += x[i] * w[f].
typedef enum direction_t { FORWARD, BY_INPUT, BY_FILTER } direction_t;
static void reference(const weir_conv_t* c, direction_t direction, const double* x, const double* w,
                      const double* y, double* result) {
  for (int64_t pixel = 0; pixel < c->batch * volume(c->out); ++pixel) {
    for (int64_t tap = 0; tap < volume(c->filter); ++tap) {
      int64_t from = input_at(c, pixel, tap);
      if (from < 0) continue;
      for (int64_t k = 0; k < c->group_in * c->out_c; ++k) {
        int64_t ic = k / c->out_c, oc = k % c->out_c;
        int64_t i = from * c->in_c + oc / c->group_out * c->group_in + ic;
        int64_t f = (tap * c->group_in + ic) * c->out_c + oc, o = pixel * c->out_c + oc;
        if (direction == FORWARD) result[o] += x[i] * w[f];
        if (direction == BY_INPUT) result[i] += y[o] * w[f];
        if (direction == BY_FILTER) result[f] += y[o] * x[i];
      }
    }
  }
}

static void expect_near(const double* got, const double* want, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (fabs(got[i] - want[i]) > 1e-10 * (1 + fabs(want[i]))) {
      fail_msg("element %lld: got %g, want %g", (long long)i, got[i], want[i]);
    }
  }
}

static const weir_conv_fn_t fns[2][3] = {
    {weir_conv_forward, weir_conv_backprop_input, weir_conv_backprop_filter},
    {weir_depthwise_forward, weir_depthwise_backprop_input, weir_depthwise_backprop_filter}};

static void check_conv(weir_pool_t* pool, const weir_conv_t* c, bool is_depthwise) {
  double *x = random_values(in_count(c), 1), *w = random_values(filter_count(c), 2),
         *y = random_values(out_count(c), 3);
  int64_t counts[3] = {out_count(c), in_count(c), filter_count(c)};
  for (direction_t d = FORWARD; d <= BY_FILTER; ++d) {
    double *want = weir_calloc((size_t)counts[d] + 1, sizeof(double)),
           *got = random_values(counts[d], 4);
    reference(c, d, x, w, y, want);
    const void *a = d == BY_INPUT ? w : x, *b = d == FORWARD ? w : y;
    assert_null(fns[is_depthwise][d](pool, WEIR_DTYPE_DOUBLE, c, a, b, got));
    expect_near(got, want, counts[d]);
    weir_free(want);
    weir_free(got);
  }
  weir_free(x);
  weir_free(w);
  weir_free(y);
}

static float* as_floats(const double* values, int64_t count) {
  float* floats = weir_alloc_array((size_t)count + 1, sizeof(float));
  for (int64_t i = 0; i < count; ++i) floats[i] = (float)values[i];
  return floats;
}

// A result of floats, which started as NaN.
static void expect_floats(direction_t d, float* take_got, const double* want, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (!(fabs((double)take_got[i] - want[i]) < 2e-4)) {
      fail_msg("direction %d, element %lld: got %g, want %g", d, (long long)i, (double)take_got[i],
               want[i]);
    }
  }
  assert_true(isnan(take_got[count]));
  weir_free(take_got);
}

static float* no_numbers(int64_t count) {
  float* numbers = weir_alloc_array((size_t)count + 1, sizeof(float));
  for (int64_t i = 0; i <= count; ++i) numbers[i] = NAN;
  return numbers;
}

// Floats, which are not summed as doubles are: results start as NaN, and must not be read.
static void check_float(weir_pool_t* pool, const weir_conv_t* c) {
  const int64_t counts[3] = {out_count(c), in_count(c), filter_count(c)};
  double *x = random_values(counts[1], 1), *w = random_values(counts[2], 2),
         *y = random_values(counts[0], 3);
  float *xf = as_floats(x, counts[1]), *wf = as_floats(w, counts[2]), *yf = as_floats(y, counts[0]);
  for (direction_t d = FORWARD; d <= BY_FILTER; ++d) {
    double* want = weir_calloc((size_t)counts[d] + 1, sizeof(double));
    reference(c, d, x, w, y, want);
    float* got = no_numbers(counts[d]);
    const void *a = d == BY_INPUT ? wf : xf, *b = d == FORWARD ? wf : yf;
    assert_null(fns[0][d](pool, WEIR_DTYPE_FLOAT, c, a, b, got));
    expect_floats(d, got, want, counts[d]);
    if (d == BY_FILTER && weir_conv_direct_fits(c)) {  // which not every CPU uses by itself
      got = no_numbers(counts[d]);
      assert_null(weir_conv_direct_backprop_filter(pool, c, xf, yf, got));
      expect_floats(d, got, want, counts[d]);
    }
    weir_free(want);
  }
  void* all[] = {x, w, y, xf, wf, yf};
  for (size_t i = 0; i < WEIR_COUNT_OF(all); ++i) weir_free(all[i]);
}

static void test_geometries(void** state) {
  (void)state;
  weir_pool_t* pool = NULL;
  assert_null(weir_pool_create(3, &pool));
  for (int64_t batch = 1; batch <= 9; batch += 8) {
    for (int64_t kernel = 1; kernel <= 3; ++kernel) {
      for (int64_t stride = 1; stride <= 2; ++stride) {
        for (int64_t dilation = 1; dilation <= 2; ++dilation) {
          for (int64_t pad = 0; pad < 3; ++pad) {
            weir_conv_t one = make(batch, 6, kernel, stride, dilation, pad, 1, 3, 4);
            check_conv(pool, &one, false);
            check_float(pool, &one);
            weir_conv_t wide = make(batch, 5, kernel, stride, dilation, pad, 1, 18, 17);
            check_float(pool, &wide);
            weir_conv_t groups = make(batch, 6, kernel, stride, dilation, pad, 2, 2, 3);
            check_conv(pool, &groups, false);
            check_float(pool, &groups);
          }
        }
      }
    }
  }
  weir_pool_destroy(pool);
}

static void test_volumes(void** state) {
  (void)state;
  weir_pool_t* pool = NULL;
  assert_null(weir_pool_create(3, &pool));
  for (int64_t batch = 1; batch <= 9; batch += 8) {
    weir_conv_t cases[] = {
        deep(make(batch, 5, 3, 1, 1, 1, 1, 3, 4), 4, 3, 4, 1, 1),
        deep(make(batch, 4, 2, 2, 1, 0, 1, 2, 3), 3, 2, 1, 3, 0),
        deep(make(batch, 6, 2, 1, 2, 1, 2, 2, 3), 5, 2, 5, 1, 1),
        deep(make(batch, 10, 3, 1, 1, 1, 1, 8, 8), 6, 3, 6, 1, 1),
        deep(make(batch, 4, 1, 1, 1, 0, 1, 3, 5), 3, 1, 3, 1, 0),
        deep(make(batch, 6, 2, 2, 1, 1, 1, 17, 20), 5, 3, 3, 2, 1),
        deep(make(batch, 5, 2, 1, 1, 0, 1, 16, 16), 4, 2, 3, 1, 0),
    };
    for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
      check_conv(pool, &cases[i], false);
      check_float(pool, &cases[i]);
    }
  }
  weir_pool_destroy(pool);
}

// Sums of several chains, tiles of parts of a slice and of several, channels far apart, and a
// product shared out by channels and by rows of the filter.
static void test_long_sums(void** state) {
  (void)state;
  weir_pool_t* pool = NULL;
  assert_null(weir_pool_create(3, &pool));
  weir_conv_t cases[] = {
      make(1, 40, 3, 1, 1, 1, 1, 3, 16),   make(3, 7, 3, 1, 1, 1, 1, 80, 136),
      make(40, 4, 3, 1, 1, 1, 1, 33, 16),  make(2, 9, 1, 2, 1, 0, 1, 210, 32),
      make(1, 250, 2, 1, 1, 0, 1, 16, 16), make(2, 20, 5, 1, 1, 2, 1, 1, 33),
      make(1, 12, 3, 1, 1, 4, 1, 16, 20),
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) check_float(pool, &cases[i]);
  weir_pool_destroy(pool);
}

static void test_depthwise(void** state) {
  (void)state;
  weir_pool_t* pool = NULL;
  assert_null(weir_pool_create(3, &pool));
  for (int64_t multiplier = 1; multiplier <= 2; ++multiplier) {
    for (int64_t stride = 1; stride <= 2; ++stride) {
      weir_conv_t c = make(18, 5, 3, stride, 1, 1, 4, 1, multiplier);
      check_conv(pool, &c, true);
    }
  }
  weir_pool_destroy(pool);
}

static void test_int32_wraps(void** state) {
  (void)state;
  weir_conv_t c = make(1, 2, 1, 1, 1, 0, 1, 1, 1);
  int32_t x[6] = {INT32_MAX, 1, 2, 3, 4, 5}, w = 2, y[6];
  assert_null(weir_conv_forward(NULL, WEIR_DTYPE_INT32, &c, x, &w, y));
  assert_int_equal(y[0], -2);
  assert_int_equal(y[5], 10);
}

// Bit for bit the same with one thread and with four.
static void check_thread_count(const weir_conv_t* c, weir_dtype_t dtype) {
  const int64_t counts[3] = {out_count(c), in_count(c), filter_count(c)};
  const size_t size = weir_dtype_size(dtype);
  double *x = random_values(counts[1], 1), *w = random_values(counts[2], 2);
  float *xf = as_floats(x, counts[1]), *wf = as_floats(w, counts[2]);
  const void* in = dtype == WEIR_DTYPE_FLOAT ? (void*)xf : x;
  const void* filter = dtype == WEIR_DTYPE_FLOAT ? (void*)wf : w;
  void* results[2][3];
  for (int k = 0; k < 2; ++k) {
    void** r = results[k];
    weir_pool_t* pool = NULL;
    assert_null(weir_pool_create(k == 0 ? 1 : 4, &pool));
    for (int i = 0; i < 3; ++i) r[i] = weir_alloc_array((size_t)counts[i], size);
    assert_null(weir_conv_forward(pool, dtype, c, in, filter, r[0]));
    assert_null(weir_conv_backprop_input(pool, dtype, c, filter, r[0], r[1]));
    assert_null(weir_conv_backprop_filter(pool, dtype, c, in, r[0], r[2]));
    weir_pool_destroy(pool);
  }
  for (int i = 0; i < 3; ++i) {
    assert_memory_equal(results[0][i], results[1][i], (size_t)counts[i] * size);
    weir_free(results[0][i]);
    weir_free(results[1][i]);
  }
  void* all[] = {x, w, xf, wf};
  for (size_t i = 0; i < WEIR_COUNT_OF(all); ++i) weir_free(all[i]);
}

static void test_thread_count(void** state) {
  (void)state;
  weir_conv_t cases[] = {
      make(16, 20, 3, 1, 1, 1, 1, 8, 12),
      make(3, 40, 3, 2, 1, 1, 1, 32, 48),
      deep(make(1, 20, 3, 2, 1, 1, 1, 16, 48), 8, 3, 4, 2, 1),
      deep(make(3, 10, 3, 1, 1, 1, 1, 8, 8), 6, 3, 6, 1, 1),
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    check_thread_count(&cases[i], WEIR_DTYPE_DOUBLE);
    check_thread_count(&cases[i], WEIR_DTYPE_FLOAT);
  }
}

static void test_empty(void** state) {
  (void)state;
  weir_conv_t c = make(0, 4, 3, 1, 1, 1, 1, 2, 2);
  double w[36] = {0}, dw[36];
  assert_null(weir_conv_forward(NULL, WEIR_DTYPE_DOUBLE, &c, NULL, w, NULL));
  assert_null(weir_conv_backprop_input(NULL, WEIR_DTYPE_DOUBLE, &c, w, NULL, NULL));
  assert_null(weir_conv_backprop_filter(NULL, WEIR_DTYPE_DOUBLE, &c, NULL, NULL, dw));
  for (int i = 0; i < 36; ++i) assert_true(dw[i] == 0);
  float wf[36] = {0}, dwf[36];
  assert_null(weir_conv_forward(NULL, WEIR_DTYPE_FLOAT, &c, NULL, wf, NULL));
  assert_null(weir_conv_backprop_input(NULL, WEIR_DTYPE_FLOAT, &c, wf, NULL, NULL));
  assert_null(weir_conv_backprop_filter(NULL, WEIR_DTYPE_FLOAT, &c, NULL, NULL, dwf));
  for (int i = 0; i < 36; ++i) assert_true(dwf[i] == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_geometries),  cmocka_unit_test(test_depthwise),
      cmocka_unit_test(test_volumes),     cmocka_unit_test(test_long_sums),
      cmocka_unit_test(test_int32_wraps), cmocka_unit_test(test_thread_count),
      cmocka_unit_test(test_empty),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
