// reduce_test.c — Reductions over every set of dimensions against a plain loop, their accuracy, and
// their independence of the number of threads.
#include "kernel/reduce/reduce.h"

#include <math.h>

#include "base/alloc.h"
#include "testing/cmocka.h"

static weir_pool_t* make_pool(int threads) {
  weir_pool_t* pool = NULL;
  assert_null(weir_pool_create(threads, &pool));
  return pool;
}

static void plain_sum(int rank, const int64_t* dims, const bool* is_reduced, const double* in,
                      double* out) {
  int64_t total = 1;
  for (int i = 0; i < rank; ++i) total *= dims[i];
  for (int64_t e = 0; e < total; ++e) {
    int64_t rest = e;
    int64_t at = 0;
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (!is_reduced[i]) {
        at += rest % dims[i] * stride;
        stride *= dims[i];
      }
      rest /= dims[i];
    }
    out[at] += in[e];
  }
}

static void check_shape(weir_pool_t* pool, int rank, const int64_t* dims) {
  int64_t total = 1;
  for (int i = 0; i < rank; ++i) total *= dims[i];
  double* in = weir_alloc_array((size_t)total, sizeof(double));
  double* got = weir_alloc_array((size_t)total, sizeof(double));
  double* want = weir_alloc_array((size_t)total, sizeof(double));
  for (int64_t i = 0; i < total; ++i) in[i] = (double)(i * 7919 % 1013);
  for (int mask = 0; mask < 1 << rank; ++mask) {
    bool is_reduced[8];
    int64_t kept = 1;
    for (int i = 0; i < rank; ++i) {
      is_reduced[i] = mask >> i & 1;
      if (!is_reduced[i]) kept *= dims[i];
    }
    memset(want, 0, (size_t)total * sizeof(double));
    plain_sum(rank, dims, is_reduced, in, want);
    assert_null(
        weir_reduce(pool, WEIR_REDUCE_SUM, WEIR_DTYPE_DOUBLE, rank, dims, is_reduced, in, got));
    assert_memory_equal(got, want,
                        (size_t)kept * sizeof(double));  // small integers: exact in any order
  }
  weir_free(in);
  weir_free(got);
  weir_free(want);
}

static void test_shapes(void** state) {
  (void)state;
  weir_pool_t* pool = make_pool(3);
  check_shape(pool, 0, NULL);
  check_shape(pool, 1, (const int64_t[]){1});
  check_shape(pool, 1, (const int64_t[]){300000});
  check_shape(pool, 2, (const int64_t[]){1000, 3});
  check_shape(pool, 2, (const int64_t[]){3, 5000});
  check_shape(pool, 3, (const int64_t[]){5, 1, 7});
  check_shape(pool, 3, (const int64_t[]){40, 50, 60});
  check_shape(pool, 4, (const int64_t[]){9, 10, 11, 12});
  check_shape(pool, 5, (const int64_t[]){3, 4, 5, 6, 7});
  check_shape(pool, 3, (const int64_t[]){2, 140000, 2});
  weir_pool_destroy(pool);
}

static void test_accuracy(void** state) {
  (void)state;
  enum { N = 4000000 };
  float* x = weir_alloc_array(N, sizeof(float));
  double exact = 0;
  for (int i = 0; i < N; ++i) {
    x[i] = 0.1f + (float)(i % 7) * 0.01f;
    exact += (double)x[i];
  }
  float sum;
  assert_null(weir_reduce(NULL, WEIR_REDUCE_SUM, WEIR_DTYPE_FLOAT, 1, (const int64_t[]){N},
                          (const bool[]){true}, x, &sum));
  assert_true(fabs((double)sum - exact) < 1e-6 * exact);
  float columns[2];
  assert_null(weir_reduce(NULL, WEIR_REDUCE_SUM, WEIR_DTYPE_FLOAT, 2, (const int64_t[]){N / 2, 2},
                          (const bool[]){true, false}, x, columns));
  assert_true(fabs((double)columns[0] + (double)columns[1] - exact) < 2e-6 * exact);
  weir_free(x);
}

static void test_threads(void** state) {
  (void)state;
  enum { ROWS = 3000, COLS = 130 };
  float* x = weir_alloc_array(ROWS * COLS, sizeof(float));
  for (int i = 0; i < ROWS * COLS; ++i) x[i] = sinf((float)i);
  weir_pool_t* one = make_pool(1);
  weir_pool_t* four = make_pool(4);
  const int64_t dims[] = {ROWS, COLS};
  for (int mask = 1; mask < 4; ++mask) {
    const bool is_reduced[] = {mask & 1, (mask & 2) != 0};
    float a[ROWS];
    float b[ROWS];
    int64_t kept = mask == 1 ? COLS : mask == 2 ? ROWS : 1;
    assert_null(weir_reduce(one, WEIR_REDUCE_SUM, WEIR_DTYPE_FLOAT, 2, dims, is_reduced, x, a));
    assert_null(weir_reduce(four, WEIR_REDUCE_SUM, WEIR_DTYPE_FLOAT, 2, dims, is_reduced, x, b));
    assert_memory_equal(a, b, (size_t)kept * sizeof(float));
  }
  weir_pool_destroy(one);
  weir_pool_destroy(four);
  weir_free(x);
}

static void test_kinds(void** state) {
  (void)state;
  const int64_t dims[] = {4};
  const bool all[] = {true};
  const float f[] = {3, -4, NAN, 1};
  float y;
  assert_null(weir_reduce(NULL, WEIR_REDUCE_MAX, WEIR_DTYPE_FLOAT, 1, dims, all, f, &y));
  assert_true(isnan(y));
  assert_null(
      weir_reduce(NULL, WEIR_REDUCE_NORM, WEIR_DTYPE_FLOAT, 1, (const int64_t[]){2}, all, f, &y));
  assert_true(y == 5);
  const int8_t i8[] = {100, 100, 100, -1};
  int8_t small;
  assert_null(weir_reduce(NULL, WEIR_REDUCE_MEAN, WEIR_DTYPE_INT8, 1, dims, all, i8, &small));
  assert_int_equal(small, 74);
  assert_null(weir_reduce(NULL, WEIR_REDUCE_SUM, WEIR_DTYPE_INT8, 1, dims, all, i8, &small));
  assert_int_equal(small, (int8_t)299);
  const bool flags[] = {true, false, true, true};
  bool flag;
  assert_null(weir_reduce(NULL, WEIR_REDUCE_ALL, WEIR_DTYPE_BOOL, 1, dims, all, flags, &flag));
  assert_false(flag);
  assert_null(weir_reduce(NULL, WEIR_REDUCE_ANY, WEIR_DTYPE_BOOL, 1, dims, all, flags, &flag));
  assert_true(flag);
}

static void test_empty(void** state) {
  (void)state;
  float y[2] = {5, 5};
  const int64_t dims[] = {2, 0};
  const bool second[] = {false, true};
  assert_null(weir_reduce(NULL, WEIR_REDUCE_MAX, WEIR_DTYPE_FLOAT, 2, dims, second, NULL, y));
  assert_true(y[0] == -INFINITY && y[1] == -INFINITY);
  assert_null(weir_reduce(NULL, WEIR_REDUCE_MEAN, WEIR_DTYPE_FLOAT, 2, dims, second, NULL, y));
  assert_true(isnan(y[0]));
  weir_status_t* status =
      weir_reduce(NULL, WEIR_REDUCE_MAX, WEIR_DTYPE_STRING, 2, dims, second, NULL, y);
  assert_int_equal(weir_status_code(status), WEIR_UNIMPLEMENTED);
  weir_status_destroy(status);
}

static float wave(int i) { return (float)(i * 7919 % 1013) * 0.37f - 180.0f; }

// Rounding follows TensorFlow's order: rows by turns in four chains, runs in four lanes of four.
static void test_order(void** state) {
  (void)state;
  enum { ROWS = 42, COLS = 8, RUN = 39 };
  float x[ROWS * COLS], y[COLS];
  for (int i = 0; i < ROWS * COLS; ++i) x[i] = wave(i);
  const int64_t dims[] = {ROWS, COLS};
  assert_null(weir_reduce(NULL, WEIR_REDUCE_SUM, WEIR_DTYPE_FLOAT, 2, dims,
                          (const bool[]){true, false}, x, y));
  for (int j = 0; j < COLS; ++j) {
    float chains[4] = {0};
    for (int r = 0; r < 40; ++r) chains[r % 4] += x[r * COLS + j];
    float want = ((chains[0] + chains[1]) + chains[2]) + chains[3];
    want = (want + x[40 * COLS + j]) + x[41 * COLS + j];
    assert_true(y[j] == want);
  }
  const int64_t run[] = {RUN};
  assert_null(
      weir_reduce(NULL, WEIR_REDUCE_SUM, WEIR_DTYPE_FLOAT, 1, run, (const bool[]){true}, x, y));
  float lanes[16] = {0};
  for (int i = 0; i < 32; ++i) lanes[i % 16] += x[i];
  for (int l = 4; l < 16; ++l) lanes[l % 4] += lanes[l];
  for (int l = 0; l < 4; ++l) lanes[l] += x[32 + l];
  float rest = (x[36] + x[37]) + x[38];
  assert_true(y[0] == rest + ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])));
}

static float extreme(weir_reduce_op_t op, const float* x, int64_t n) {
  float y;
  assert_null(weir_reduce(NULL, op, WEIR_DTYPE_FLOAT, 1, &n, (const bool[]){true}, x, &y));
  return y;
}

// Wherever it lies in runs that are groups, groups and a rest, or short; a NaN wins, unlike
// infinities are not taken for one, and of two zeros in a lane the first stays.
static void test_extremes(void** state) {
  (void)state;
  enum { MOST = 200 };
  float x[MOST];
  for (int n = 40; n <= MOST; n += 44) {
    for (int at = 0; at < n; ++at) {
      for (int i = 0; i < n; ++i) x[i] = 1.0f + (float)(i % 7);
      x[at] = 9;
      assert_true(extreme(WEIR_REDUCE_MAX, x, n) == 9);
      x[at] = -9;
      assert_true(extreme(WEIR_REDUCE_MIN, x, n) == -9);
      x[at] = NAN;
      assert_true(isnan(extreme(WEIR_REDUCE_MAX, x, n)));
      assert_true(isnan(extreme(WEIR_REDUCE_MIN, x, n)));
    }
    x[0] = INFINITY;
    x[n - 1] = -INFINITY;
    assert_true(extreme(WEIR_REDUCE_MAX, x, n) == INFINITY);
    assert_true(extreme(WEIR_REDUCE_MIN, x, n) == -INFINITY);
    for (int i = 0; i < n; ++i) x[i] = i == 0 ? -0.0f : i == 16 ? 0.0f : -1.0f;
    assert_true(signbit(extreme(WEIR_REDUCE_MAX, x, n)));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shapes),   cmocka_unit_test(test_accuracy),
      cmocka_unit_test(test_threads),  cmocka_unit_test(test_kinds),
      cmocka_unit_test(test_empty),    cmocka_unit_test(test_order),
      cmocka_unit_test(test_extremes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
