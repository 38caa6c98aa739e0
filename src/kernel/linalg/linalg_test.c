// linalg_test.c — Factors and triangular systems: products give back what was factored.
#include "kernel/linalg/linalg.h"

#include <math.h>

#include "testing/cmocka.h"

enum { N = 4, M = 6 };

static double wave(int i) { return sin(1.7 * i + 0.3) + 0.1 * cos(5.1 * i); }

// out = a * b, of sizes (m, k) and (k, n); |transpose_b|: b is (n, k).
static void multiply(int m, int n, int k, const double* a, const double* b, bool transpose_b,
                     double* out) {
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) sum += a[i * k + l] * (transpose_b ? b[j * k + l] : b[l * n + j]);
      out[i * n + j] = sum;
    }
  }
}

static void assert_near(const double* a, const double* b, int count) {
  for (int i = 0; i < count; ++i) assert_true(fabs(a[i] - b[i]) < 1e-12);
}

static void make_positive(double* a) {
  double b[N * N];
  for (int i = 0; i < N * N; ++i) b[i] = wave(i);
  multiply(N, N, N, b, b, true, a);
  for (int i = 0; i < N; ++i) a[i * N + i] += 1;
}

static void test_cholesky(void** state) {
  (void)state;
  double a[N * N], l[N * N], product[N * N];
  make_positive(a);
  weir_cholesky(WEIR_DTYPE_DOUBLE, N, a, l);
  multiply(N, N, N, l, l, true, product);
  assert_near(product, a, N * N);
  for (int i = 0; i < N; ++i) {
    for (int j = i + 1; j < N; ++j) assert_true(l[i * N + j] == 0);
  }
  a[0] = -1;
  weir_cholesky(WEIR_DTYPE_DOUBLE, N, a, l);
  assert_true(isnan(l[0]) && isnan(l[N * N - 1]) && l[1] == 0);
}

// The gradient against central differences along a symmetric direction.
static void test_cholesky_grad(void** state) {
  (void)state;
  double a[N * N], l[N * N], dl[N * N], da[N * N], scratch[N * N], moved[N * N], factor[N * N];
  make_positive(a);
  weir_cholesky(WEIR_DTYPE_DOUBLE, N, a, l);
  for (int i = 0; i < N * N; ++i) dl[i] = wave(100 + i);
  weir_cholesky_grad(WEIR_DTYPE_DOUBLE, N, l, dl, da, scratch);
  double expected = 0, numeric = 0;
  const double step = 1e-5;
  for (int sign = -1; sign <= 1; sign += 2) {
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j < N; ++j)
        moved[i * N + j] = a[i * N + j] + sign * step * (wave(50 + i + j) + wave(70 + i * j));
    }
    weir_cholesky(WEIR_DTYPE_DOUBLE, N, moved, factor);
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j <= i; ++j) numeric += sign * dl[i * N + j] * factor[i * N + j];
    }
  }
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) expected += da[i * N + j] * (wave(50 + i + j) + wave(70 + i * j));
  }
  assert_true(fabs(numeric / (2 * step) - expected) < 1e-6);
}

static void test_triangular_solve(void** state) {
  (void)state;
  for (int kind = 0; kind < 4; ++kind) {
    const bool is_lower = kind & 1, is_adjoint = kind & 2;
    double a[N * N], op[N * N], b[N * M], x[N * M], product[N * M];
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j < N; ++j) {
        a[i * N + j] = i == j ? 2 + wave(i) : wave(10 + i * N + j);
        const bool is_used = is_lower ? j <= i : j >= i;
        op[is_adjoint ? j * N + i : i * N + j] = is_used ? a[i * N + j] : 0;
      }
    }
    for (int i = 0; i < N * M; ++i) b[i] = wave(40 + i);
    const weir_triangle_t triangle = {a, N, is_lower, is_adjoint};
    weir_triangular_solve(WEIR_DTYPE_DOUBLE, &triangle, M, b, x);
    multiply(N, M, N, op, x, false, product);
    assert_near(product, b, N * M);
  }
}

static void check_qr(int m, int n, bool is_full) {
  const int inner = is_full || m < n ? m : n;
  double a[M * M], q[M * M], r[M * M], product[M * M], scratch[8 * M * M];
  assert_true(weir_qr_scratch_count(m, n) <= (int64_t)(sizeof(scratch) / sizeof(*scratch)));
  for (int i = 0; i < m * n; ++i) a[i] = wave(i);
  weir_qr(WEIR_DTYPE_DOUBLE, &(weir_qr_t){m, n, is_full, a, q, r, scratch});
  multiply(m, n, inner, q, r, false, product);
  assert_near(product, a, m * n);
  for (int i = 0; i < inner; ++i) {
    for (int j = 0; j < inner; ++j) {
      double dot = 0;
      for (int k = 0; k < m; ++k) dot += q[k * inner + i] * q[k * inner + j];
      assert_true(fabs(dot - (i == j)) < 1e-12);
    }
    for (int j = 0; j < i && j < n; ++j) assert_true(r[i * n + j] == 0);
  }
}

static void test_qr(void** state) {
  (void)state;
  for (int is_full = 0; is_full < 2; ++is_full) {
    check_qr(N, N, is_full);
    check_qr(M, N, is_full);
    check_qr(N, M, is_full);
    check_qr(1, M, is_full);
    check_qr(M, 1, is_full);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cholesky), cmocka_unit_test(test_cholesky_grad),
      cmocka_unit_test(test_triangular_solve), cmocka_unit_test(test_qr)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
