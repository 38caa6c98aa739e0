// conv3d_test.c — Three-dimensional convolution against plain loops.
#include "kernel/conv3d.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka needs the four above first.
#include <cmocka.h>
#include <math.h>

#include "base/alloc.h"

static const weir_conv3d_t cases[] = {
    {.batch = 2,
     .in_c = 3,
     .out_c = 4,
     .groups = 1,
     .group_in = 3,
     .group_out = 4,
     .in = {4, 5, 6},
     .filter = {3, 2, 3},
     .out = {4, 5, 6},
     .stride = {1, 1, 1},
     .dilation = {1, 1, 1},
     .pad = {1, 0, 1}},
    {.batch = 9,
     .in_c = 2,
     .out_c = 3,
     .groups = 1,
     .group_in = 2,
     .group_out = 3,
     .in = {3, 4, 5},
     .filter = {2, 2, 2},
     .out = {2, 2, 2},
     .stride = {1, 2, 3},
     .dilation = {1, 1, 1},
     .pad = {0, 0, 0}},
    {.batch = 1,
     .in_c = 4,
     .out_c = 6,
     .groups = 2,
     .group_in = 2,
     .group_out = 3,
     .in = {5, 6, 7},
     .filter = {2, 2, 2},
     .out = {5, 6, 7},
     .stride = {1, 1, 1},
     .dilation = {2, 2, 2},
     .pad = {1, 1, 1}},
    {.batch = 3,
     .in_c = 8,
     .out_c = 8,
     .groups = 1,
     .group_in = 8,
     .group_out = 8,
     .in = {6, 10, 10},
     .filter = {3, 3, 3},
     .out = {6, 10, 10},
     .stride = {1, 1, 1},
     .dilation = {1, 1, 1},
     .pad = {1, 1, 1}},
};

static int64_t volume(const int64_t sizes[3]) { return sizes[0] * sizes[1] * sizes[2]; }
static int64_t in_count(const weir_conv3d_t* c) { return c->batch * volume(c->in) * c->in_c; }
static int64_t out_count(const weir_conv3d_t* c) { return c->batch * volume(c->out) * c->out_c; }
static int64_t filter_count(const weir_conv3d_t* c) {
  return volume(c->filter) * c->group_in * c->out_c;
}

static double* make(int64_t count, uint32_t seed) {
  double* data = weir_alloc_array((size_t)count, sizeof(double));
  assert_non_null(data);
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    data[i] = (double)(seed >> 8) / (double)(1u << 23) - 1.0;
  }
  return data;
}

static float* narrow(const double* data, int64_t count) {
  float* out = weir_alloc_array((size_t)count, sizeof(float));
  assert_non_null(out);
  for (int64_t i = 0; i < count; ++i) out[i] = (float)data[i];
  return out;
}

// The input element under tap |k| of output voxel |o|; -1 for padding.
static int64_t input_at(const weir_conv3d_t* c, int64_t o, int64_t k) {
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

// Calls all products once: y += x * w, dx += dy * w, dw += dy * x.
static void plain(const weir_conv3d_t* c, const double* x, const double* w, const double* dy,
                  double* y, double* dx, double* dw) {
  memset(y, 0, (size_t)out_count(c) * sizeof(double));
  memset(dx, 0, (size_t)in_count(c) * sizeof(double));
  memset(dw, 0, (size_t)filter_count(c) * sizeof(double));
  for (int64_t o = 0; o < c->batch * volume(c->out); ++o) {
    for (int64_t k = 0; k < volume(c->filter); ++k) {
      int64_t voxel = input_at(c, o, k);
      if (voxel < 0) continue;
      for (int64_t i = 0; i < c->group_in; ++i) {
        for (int64_t n = 0; n < c->out_c; ++n) {
          int64_t xi = voxel * c->in_c + n / c->group_out * c->group_in + i;
          int64_t wi = (k * c->group_in + i) * c->out_c + n, yi = o * c->out_c + n;
          y[yi] += x[xi] * w[wi];
          dx[xi] += dy[yi] * w[wi];
          dw[wi] += dy[yi] * x[xi];
        }
      }
    }
  }
}

static void expect_close(const double* expected, const void* actual, bool is_double,
                         int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    double value = is_double ? ((const double*)actual)[i] : (double)((const float*)actual)[i];
    double tolerance = (is_double ? 1e-11 : 1e-4) * (1.0 + fabs(expected[i]));
    if (!(fabs(value - expected[i]) <= tolerance)) {
      fail_msg("element %lld is %g, not %g", (long long)i, value, expected[i]);
    }
  }
}

static void run_case(const weir_conv3d_t* c, weir_pool_t* pool, bool is_double) {
  double *x = make(in_count(c), 1), *w = make(filter_count(c), 2), *dy = make(out_count(c), 3);
  double *y = make(out_count(c), 4), *dx = make(in_count(c), 5), *dw = make(filter_count(c), 6);
  plain(c, x, w, dy, y, dx, dw);
  float *xf = narrow(x, in_count(c)), *wf = narrow(w, filter_count(c));
  float* dyf = narrow(dy, out_count(c));
  const void *px = is_double ? (void*)x : xf, *pw = is_double ? (void*)w : wf;
  const void* pdy = is_double ? (void*)dy : dyf;
  weir_dtype_t dtype = is_double ? WEIR_DTYPE_DOUBLE : WEIR_DTYPE_FLOAT;
  double *oy = make(out_count(c), 7), *ox = make(in_count(c), 8), *ow = make(filter_count(c), 9);
  assert_null(weir_conv3d_forward(pool, dtype, c, px, pw, oy));
  assert_null(weir_conv3d_backprop_input(pool, dtype, c, pw, pdy, ox));
  assert_null(weir_conv3d_backprop_filter(pool, dtype, c, px, pdy, ow));
  expect_close(y, oy, is_double, out_count(c));
  expect_close(dx, ox, is_double, in_count(c));
  expect_close(dw, ow, is_double, filter_count(c));
  void* all[] = {x, w, dy, y, dx, dw, xf, wf, dyf, oy, ox, ow};
  for (size_t i = 0; i < WEIR_COUNT_OF(all); ++i) weir_free(all[i]);
}

static void test_against_plain_loops(void** state) {
  (void)state;
  weir_pool_t* pool = NULL;
  assert_null(weir_pool_create(3, &pool));
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    run_case(&cases[i], NULL, false);
    run_case(&cases[i], pool, false);
    run_case(&cases[i], pool, true);
  }
  weir_pool_destroy(pool);
}

// Bit for bit the same on one thread and on four.
static void test_threads_change_nothing(void** state) {
  (void)state;
  weir_pool_t* pools[2] = {NULL, NULL};
  assert_null(weir_pool_create(1, &pools[0]));
  assert_null(weir_pool_create(4, &pools[1]));
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    const weir_conv3d_t* c = &cases[i];
    double *x = make(in_count(c), 1), *w = make(filter_count(c), 2), *dy = make(out_count(c), 3);
    double *dx[2], *dw[2];
    for (int p = 0; p < 2; ++p) {
      dx[p] = make(in_count(c), 4);
      dw[p] = make(filter_count(c), 5);
      assert_null(weir_conv3d_backprop_input(pools[p], WEIR_DTYPE_DOUBLE, c, w, dy, dx[p]));
      assert_null(weir_conv3d_backprop_filter(pools[p], WEIR_DTYPE_DOUBLE, c, x, dy, dw[p]));
    }
    assert_memory_equal(dx[0], dx[1], (size_t)in_count(c) * sizeof(double));
    assert_memory_equal(dw[0], dw[1], (size_t)filter_count(c) * sizeof(double));
    void* all[] = {x, w, dy, dx[0], dx[1], dw[0], dw[1]};
    for (size_t k = 0; k < WEIR_COUNT_OF(all); ++k) weir_free(all[k]);
  }
  weir_pool_destroy(pools[0]);
  weir_pool_destroy(pools[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_plain_loops),
      cmocka_unit_test(test_threads_change_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
