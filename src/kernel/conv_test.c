// conv_test.c — Convolutions against loops written from the definition, and with different numbers
// of threads.
#include "kernel/conv.h"

#include <math.h>

#include "base/alloc.h"
#include "testing/cmocka.h"

static int64_t in_count(const weir_conv2d_t* c) { return c->batch * c->in_h * c->in_w * c->in_c; }
static int64_t out_count(const weir_conv2d_t* c) {
  return c->batch * c->out_h * c->out_w * c->out_c;
}
static int64_t filter_count(const weir_conv2d_t* c) {
  return c->filter_h * c->filter_w * c->group_in * c->out_c;
}

static weir_conv2d_t make(int64_t batch, int64_t size, int64_t kernel, int64_t stride,
                          int64_t dilation, int64_t pad, int64_t groups, int64_t group_in,
                          int64_t group_out) {
  weir_conv2d_t c = {.batch = batch,
                     .in_h = size,
                     .in_w = size + 1,
                     .in_c = groups * group_in,
                     .filter_h = kernel,
                     .filter_w = kernel,
                     .groups = groups,
                     .group_in = group_in,
                     .group_out = group_out,
                     .out_c = groups * group_out,
                     .stride_h = stride,
                     .stride_w = stride,
                     .dilation_h = dilation,
                     .dilation_w = dilation,
                     .pad_top = pad,
                     .pad_left = pad};
  int64_t extent = (kernel - 1) * dilation + 1;
  c.out_h = (c.in_h + 2 * pad - extent) / stride + 1;
  c.out_w = (c.in_w + 2 * pad - extent) / stride + 1;
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

// Calls for every product of the definition: y[o] += x[i] * w[f].
typedef enum direction_t { FORWARD, BY_INPUT, BY_FILTER } direction_t;
static void reference(const weir_conv2d_t* c, direction_t direction, const double* x,
                      const double* w, const double* y, double* result) {
  for (int64_t n = 0; n < c->batch; ++n)
    for (int64_t oh = 0; oh < c->out_h; ++oh)
      for (int64_t ow = 0; ow < c->out_w; ++ow)
        for (int64_t oc = 0; oc < c->out_c; ++oc)
          for (int64_t kh = 0; kh < c->filter_h; ++kh)
            for (int64_t kw = 0; kw < c->filter_w; ++kw)
              for (int64_t ic = 0; ic < c->group_in; ++ic) {
                int64_t ih = oh * c->stride_h - c->pad_top + kh * c->dilation_h;
                int64_t iw = ow * c->stride_w - c->pad_left + kw * c->dilation_w;
                if (ih < 0 || ih >= c->in_h || iw < 0 || iw >= c->in_w) continue;
                int64_t i = ((n * c->in_h + ih) * c->in_w + iw) * c->in_c +
                            oc / c->group_out * c->group_in + ic;
                int64_t f = ((kh * c->filter_w + kw) * c->group_in + ic) * c->out_c + oc;
                int64_t o = ((n * c->out_h + oh) * c->out_w + ow) * c->out_c + oc;
                if (direction == FORWARD) result[o] += x[i] * w[f];
                if (direction == BY_INPUT) result[i] += y[o] * w[f];
                if (direction == BY_FILTER) result[f] += y[o] * x[i];
              }
}

static void expect_near(const double* got, const double* want, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (fabs(got[i] - want[i]) > 1e-10 * (1 + fabs(want[i]))) {
      fail_msg("element %lld: got %g, want %g", (long long)i, got[i], want[i]);
    }
  }
}

static void check_conv(weir_pool_t* pool, const weir_conv2d_t* c, bool is_depthwise) {
  double *x = random_values(in_count(c), 1), *w = random_values(filter_count(c), 2),
         *y = random_values(out_count(c), 3);
  int64_t counts[3] = {out_count(c), in_count(c), filter_count(c)};
  for (direction_t d = FORWARD; d <= BY_FILTER; ++d) {
    double *want = weir_calloc((size_t)counts[d] + 1, sizeof(double)),
           *got = random_values(counts[d], 4);
    reference(c, d, x, w, y, want);
    weir_status_t* status = NULL;
    if (is_depthwise) {
      if (d == FORWARD) weir_depthwise2d_forward(pool, WEIR_DTYPE_DOUBLE, c, x, w, got);
      if (d == BY_INPUT) weir_depthwise2d_backprop_input(pool, WEIR_DTYPE_DOUBLE, c, w, y, got);
      if (d == BY_FILTER)
        status = weir_depthwise2d_backprop_filter(pool, WEIR_DTYPE_DOUBLE, c, x, y, got);
    } else {
      if (d == FORWARD) status = weir_conv2d_forward(pool, WEIR_DTYPE_DOUBLE, c, x, w, got);
      if (d == BY_INPUT) status = weir_conv2d_backprop_input(pool, WEIR_DTYPE_DOUBLE, c, w, y, got);
      if (d == BY_FILTER)
        status = weir_conv2d_backprop_filter(pool, WEIR_DTYPE_DOUBLE, c, x, y, got);
    }
    assert_null(status);
    expect_near(got, want, counts[d]);
    weir_free(want);
    weir_free(got);
  }
  weir_free(x);
  weir_free(w);
  weir_free(y);
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
            weir_conv2d_t one = make(batch, 6, kernel, stride, dilation, pad, 1, 3, 4);
            check_conv(pool, &one, false);
            weir_conv2d_t groups = make(batch, 6, kernel, stride, dilation, pad, 2, 2, 3);
            check_conv(pool, &groups, false);
          }
        }
      }
    }
  }
  weir_pool_destroy(pool);
}

static void test_depthwise(void** state) {
  (void)state;
  weir_pool_t* pool = NULL;
  assert_null(weir_pool_create(3, &pool));
  for (int64_t multiplier = 1; multiplier <= 2; ++multiplier) {
    for (int64_t stride = 1; stride <= 2; ++stride) {
      weir_conv2d_t c = make(18, 5, 3, stride, 1, 1, 4, 1, multiplier);
      check_conv(pool, &c, true);
    }
  }
  weir_pool_destroy(pool);
}

static void test_int32_wraps(void** state) {
  (void)state;
  weir_conv2d_t c = make(1, 2, 1, 1, 1, 0, 1, 1, 1);
  int32_t x[6] = {INT32_MAX, 1, 2, 3, 4, 5}, w = 2, y[6];
  assert_null(weir_conv2d_forward(NULL, WEIR_DTYPE_INT32, &c, x, &w, y));
  assert_int_equal(y[0], -2);
  assert_int_equal(y[5], 10);
}

// Bit for bit the same with one thread and with four.
static void test_thread_count(void** state) {
  (void)state;
  weir_conv2d_t c = make(16, 20, 3, 1, 1, 1, 1, 8, 12);
  size_t counts[3] = {(size_t)out_count(&c), (size_t)in_count(&c), (size_t)filter_count(&c)};
  float* results[2][3];
  float *x = weir_alloc_array(counts[1], 4), *w = weir_alloc_array(counts[2], 4);
  for (size_t i = 0; i < counts[1]; ++i) x[i] = sinf((float)i);
  for (size_t i = 0; i < counts[2]; ++i) w[i] = cosf((float)i);
  for (int k = 0; k < 2; ++k) {
    weir_pool_t* pool = NULL;
    assert_null(weir_pool_create(k == 0 ? 1 : 4, &pool));
    for (int i = 0; i < 3; ++i) results[k][i] = weir_alloc_array(counts[i], 4);
    assert_null(weir_conv2d_forward(pool, WEIR_DTYPE_FLOAT, &c, x, w, results[k][0]));
    assert_null(
        weir_conv2d_backprop_input(pool, WEIR_DTYPE_FLOAT, &c, w, results[k][0], results[k][1]));
    assert_null(
        weir_conv2d_backprop_filter(pool, WEIR_DTYPE_FLOAT, &c, x, results[k][0], results[k][2]));
    weir_pool_destroy(pool);
  }
  for (int i = 0; i < 3; ++i) {
    assert_memory_equal(results[0][i], results[1][i], counts[i] * 4);
    weir_free(results[0][i]);
    weir_free(results[1][i]);
  }
  weir_free(x);
  weir_free(w);
}

static void test_empty(void** state) {
  (void)state;
  weir_conv2d_t c = make(0, 4, 3, 1, 1, 1, 1, 2, 2);
  double w[36] = {0}, dw[36];
  assert_null(weir_conv2d_forward(NULL, WEIR_DTYPE_DOUBLE, &c, NULL, w, NULL));
  assert_null(weir_conv2d_backprop_input(NULL, WEIR_DTYPE_DOUBLE, &c, w, NULL, NULL));
  assert_null(weir_conv2d_backprop_filter(NULL, WEIR_DTYPE_DOUBLE, &c, NULL, NULL, dw));
  for (int i = 0; i < 36; ++i) assert_true(dw[i] == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_geometries),  cmocka_unit_test(test_depthwise),
      cmocka_unit_test(test_int32_wraps), cmocka_unit_test(test_thread_count),
      cmocka_unit_test(test_empty),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
