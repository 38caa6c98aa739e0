// gemm_test.c — Matrix products of every type against a triple loop, and their independence of the
// number of threads.
#include "kernel/gemm/gemm.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "testing/cmocka.h"

static uint32_t seed = 1;
static float uniform(void) {
  seed = seed * 1664525u + 1013904223u;
  return (float)(seed >> 8) / (float)(1 << 24) - 0.5f;
}

static weir_pool_t* make_pool(int threads) {
  weir_pool_t* pool = NULL;
  assert_null(weir_pool_create(threads, &pool));
  return pool;
}

static void fill(float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = uniform();
}

static void check_float(weir_pool_t* pool, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                        float alpha, float beta) {
  int64_t lda = (ta ? m : k) + 3;
  int64_t ldb = (tb ? k : n) + 1;
  int64_t ldc = n + 2;
  float* a = weir_alloc_array((size_t)((ta ? k : m) * lda), 4);
  float* b = weir_alloc_array((size_t)((tb ? n : k) * ldb), 4);
  float* c = weir_alloc_array((size_t)(m * ldc), 4);
  float* before = weir_alloc_array((size_t)(m * ldc), 4);
  fill(a, (ta ? k : m) * lda);
  fill(b, (tb ? n : k) * ldb);
  fill(c, m * ldc);
  memcpy(before, c, (size_t)(m * ldc) * 4);
  weir_gemm(pool, ta ? WEIR_TRANS : WEIR_NO_TRANS, tb ? WEIR_TRANS : WEIR_NO_TRANS, m, n, k, alpha,
            a, lda, b, ldb, beta, c, ldc);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < ldc; ++j) {
      double sum = 0;
      for (int64_t kk = 0; kk < k && j < n; ++kk) {
        sum += (double)(ta ? a[kk * lda + i] : a[i * lda + kk]) *
               (double)(tb ? b[j * ldb + kk] : b[kk * ldb + j]);
      }
      double old = (double)before[i * ldc + j];
      double want = j < n ? (double)alpha * sum + (double)beta * old : old;
      if (fabs((double)c[i * ldc + j] - want) > 1e-4) {
        fail_msg("m=%d n=%d k=%d ta=%d tb=%d: [%d,%d] %g, not %g", (int)m, (int)n, (int)k, ta, tb,
                 (int)i, (int)j, (double)c[i * ldc + j], want);
      }
    }
  }
  weir_free(a);
  weir_free(b);
  weir_free(c);
  weir_free(before);
}

static void test_float(void** state) {
  (void)state;
  weir_pool_t* pool = make_pool(3);
  const int64_t sizes[][3] = {{1, 1, 1},     {2, 3, 4},       {1, 50, 70},     {60, 1, 80},
                              {17, 65, 129}, {64, 64, 64},    {5, 7, 0},       {200, 1, 300},
                              {1, 300, 200}, {150, 140, 130}, {300, 200, 100}, {1, 1, 1000},
                              {5, 17, 203},  {241, 33, 410},  {3, 16, 200},    {4, 15, 199}};
  for (size_t s = 0; s < WEIR_COUNT_OF(sizes); ++s) {
    for (int trans = 0; trans < 4; ++trans) {
      check_float(pool, trans & 1, trans & 2, sizes[s][0], sizes[s][1], sizes[s][2], 1, 0);
      check_float(NULL, trans & 1, trans & 2, sizes[s][0], sizes[s][1], sizes[s][2], 0.5f, 2);
    }
  }
  weir_pool_destroy(pool);
}

// c must not be read when beta is 0: it may hold NaN.
static void test_beta_zero(void** state) {
  (void)state;
  float a[64 * 64];
  float c[64 * 64];
  fill(a, 64 * 64);
  for (int i = 0; i < 64 * 64; ++i) c[i] = NAN;
  weir_gemm(NULL, WEIR_NO_TRANS, WEIR_NO_TRANS, 64, 64, 64, 1, a, 64, a, 64, 0, c, 64);
  for (int i = 0; i < 64 * 64; ++i) assert_true(c[i] == c[i]);
  c[0] = NAN;
  weir_gemm(NULL, WEIR_NO_TRANS, WEIR_NO_TRANS, 1, 1, 0, 1, a, 64, a, 64, 0, c, 64);
  assert_true(c[0] == 0);
}

static void test_threads(void** state) {
  (void)state;
  enum { N = 400 };
  float* data = weir_alloc_array(4 * N * N, sizeof(float));
  fill(data, 2 * N * N);
  weir_pool_t* one = make_pool(1);
  weir_pool_t* four = make_pool(4);
  weir_gemm(one, WEIR_NO_TRANS, WEIR_TRANS, N, N, N, 1, data, N, data + N * N, N, 0,
            data + 2 * N * N, N);
  weir_gemm(four, WEIR_NO_TRANS, WEIR_TRANS, N, N, N, 1, data, N, data + N * N, N, 0,
            data + 3 * N * N, N);
  assert_memory_equal(data + 2 * N * N, data + 3 * N * N, N * N * sizeof(float));
  weir_pool_destroy(one);
  weir_pool_destroy(four);
  weir_free(data);
}

// On 64-bit ARM the whole product is the sum of the products of its chains, joined in order.
static void check_chains(int64_t m, int64_t n, int64_t k, int64_t chain) {
  float* a = weir_alloc_array((size_t)(m * k), sizeof(float));
  float* b = weir_alloc_array((size_t)(k * n), sizeof(float));
  float* c = weir_alloc_array((size_t)(m * n), sizeof(float));
  float* sum = weir_alloc_array((size_t)(m * n), sizeof(float));
  fill(a, m * k);
  fill(b, k * n);
  weir_gemm(NULL, WEIR_NO_TRANS, WEIR_NO_TRANS, m, n, k, 1, a, k, b, n, 0, c, n);
  for (int64_t i = 0; i < m * n; ++i) {
    sum[i] = 0;
    for (int64_t at = 0; at < k; at += chain) {
      float part = 0;
      for (int64_t p = at; p < WEIR_MIN(at + chain, k); ++p)
        part = fmaf(a[i / n * k + p], b[p * n + i % n], part);
      sum[i] += part;
    }
  }
  assert_memory_equal(c, sum, (size_t)(m * n) * sizeof(float));
  weir_free(a);
  weir_free(b);
  weir_free(c);
  weir_free(sum);
}

static void test_chains(void** state) {
  (void)state;
#if !defined(__aarch64__)
  skip();
#endif
  check_chains(64, 256, 450, 200);  // large: full chains and the rest
  check_chains(32, 32, 256, 136);   // small: chains of nearly equal length
  check_chains(31, 33, 650, 168);
  check_chains(32, 32, 400, 200);
  check_chains(5, 7, 30, 30);
  check_chains(8, 300, 401, 200);  // few rows, or few columns, take longer: as if they were more
  check_chains(600, 4, 401, 200);
  check_chains(30, 80, 401, 136);
}

static void test_complex(void** state) {
  (void)state;
  enum { M = 20, N = 30, K = 40 };
  static weir_complex128_t a[K * M], b[N * K], c[M * N];
  for (int i = 0; i < K * M; ++i) a[i] = __builtin_complex((double)uniform(), (double)uniform());
  for (int i = 0; i < N * K; ++i) b[i] = __builtin_complex((double)uniform(), (double)uniform());
  weir_gemm_complex128(NULL, WEIR_CONJ_TRANS, WEIR_TRANS, M, N, K, 1, a, M, b, K, 0, c, N);
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      weir_complex128_t want = 0;
      for (int k = 0; k < K; ++k) want += conj(a[k * M + i]) * b[j * K + k];
      assert_true(cabs(want - c[i * N + j]) < 1e-12);
    }
  }
}

static void test_any(void** state) {
  (void)state;
  const int8_t a[] = {1, -2, 3, 4, 5, 127};
  const uint8_t b[] = {200, 1, 2, 3, 4, 255};
  int32_t c[4];
  weir_gemm_args_t args = {.dtype_a = WEIR_DTYPE_INT8,
                           .dtype_b = WEIR_DTYPE_UINT8,
                           .dtype_c = WEIR_DTYPE_INT32,
                           .m = 2,
                           .n = 2,
                           .k = 3,
                           .a = a,
                           .b = b,
                           .c = c};
  assert_null(weir_gemm_any(NULL, &args));
  assert_int_equal(c[0], 200 - 4 + 12);
  assert_int_equal(c[3], 4 * 1 + 5 * 3 + 127 * 255);
  weir_half_t h[4] = {weir_half_from_float(1.5f), weir_half_from_float(2), weir_half_from_float(-1),
                      weir_half_from_float(4)};
  weir_half_t hc[4];
  args = (weir_gemm_args_t){.dtype_a = WEIR_DTYPE_HALF,
                            .dtype_b = WEIR_DTYPE_HALF,
                            .dtype_c = WEIR_DTYPE_HALF,
                            .trans_b = WEIR_TRANS,
                            .m = 2,
                            .n = 2,
                            .k = 2,
                            .a = h,
                            .b = h,
                            .c = hc};
  assert_null(weir_gemm_any(NULL, &args));
  assert_true(weir_half_to_float(hc[0]) == 6.25f && weir_half_to_float(hc[1]) == 6.5f);
  args.dtype_c = WEIR_DTYPE_STRING;
  weir_status_t* status = weir_gemm_any(NULL, &args);
  assert_int_equal(weir_status_code(status), WEIR_UNIMPLEMENTED);
  weir_status_destroy(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_float),   cmocka_unit_test(test_beta_zero),
      cmocka_unit_test(test_threads), cmocka_unit_test(test_chains),
      cmocka_unit_test(test_complex), cmocka_unit_test(test_any),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
