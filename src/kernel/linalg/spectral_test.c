// spectral_test.c — Singular and eigenvalues: the factors give back the matrix, and are unitary.
#include "kernel/linalg/spectral.h"

#include <math.h>

#include "kernel/linalg/schur.h"
#include "testing/cmocka.h"

typedef weir_complex128_t number_t;
enum { N = 7, M = 9 };

static number_t wave(int i) {
  return __builtin_complex(sin(1.7 * i + 0.3) + 0.1 * cos(5.1 * i), cos(2.3 * i));
}

// The largest difference between u * diag(s) * v^H and |a|, m x n.
static double distance(int m, int n, int p, const number_t* u, int u_columns, const number_t* s,
                       const number_t* v, int v_columns, const number_t* a) {
  double largest = 0;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      number_t sum = 0;
      for (int k = 0; k < p; ++k) sum += u[i * u_columns + k] * s[k] * conj(v[j * v_columns + k]);
      largest = fmax(largest, cabs(sum - a[i * n + j]));
    }
  }
  return largest;
}

static double distance_to_unitary(int m, int n, const number_t* u) {
  double largest = 0;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      number_t sum = 0;
      for (int k = 0; k < m; ++k) sum += conj(u[k * n + i]) * u[k * n + j];
      largest = fmax(largest, cabs(sum - (i == j)));
    }
  }
  return largest;
}

static void check_svd(int m, int n, bool is_full, int rank) {
  number_t a[M * M], s[M], u[M * M], v[M * M], scratch[20 * M * M];
  const int p = WEIR_MIN(m, n);
  assert_true(weir_svd_scratch_count(m, n, is_full) <= (int64_t)WEIR_COUNT_OF(scratch));
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      a[i * n + j] = 0;
      for (int k = 0; k < rank; ++k) a[i * n + j] += wave(i * 31 + k) * wave(j * 17 + 100 * k);
    }
  }
  weir_svd(WEIR_DTYPE_COMPLEX128, &(weir_svd_t){m, n, is_full, a, s, u, v, scratch});
  assert_true(distance(m, n, p, u, is_full ? m : p, s, v, is_full ? n : p, a) < 1e-12);
  assert_true(distance_to_unitary(m, is_full ? m : p, u) < 1e-13);
  assert_true(distance_to_unitary(n, is_full ? n : p, v) < 1e-13);
  for (int k = 1; k < p; ++k) assert_true(creal(s[k]) <= creal(s[k - 1]) && creal(s[k]) >= 0);
}

static void test_svd(void** state) {
  (void)state;
  for (int is_full = 0; is_full < 2; ++is_full) {
    for (int rank = 0; rank < 5; ++rank) {
      check_svd(N, N, is_full, rank);
      check_svd(M, N, is_full, rank);
      check_svd(N, M, is_full, rank);
      check_svd(1, M, is_full, rank);
    }
  }
}

static void test_eigh(void** state) {
  (void)state;
  number_t a[N * N], e[N], v[N * N], scratch[20 * N * N];
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j <= i; ++j) {
      a[i * N + j] = i == j ? creal(wave(i)) : wave(i * N + j);
      a[j * N + i] = conj(a[i * N + j]);
    }
  }
  assert_true(weir_eigh(WEIR_DTYPE_COMPLEX128, N, a, e, v, scratch));
  assert_true(distance(N, N, N, v, N, e, v, N, a) < 1e-13);
  assert_true(distance_to_unitary(N, N, v) < 1e-13);
  a[N] = NAN;
  assert_false(weir_eigh(WEIR_DTYPE_COMPLEX128, N, a, e, v, scratch));
}

static void test_schur(void** state) {
  (void)state;
  number_t a[N * N], t[N * N], q[N * N], product[N * N], one[N];
  for (int i = 0; i < N * N; ++i) t[i] = a[i] = wave(i * i);
  assert_true(weir_schur(N, t, q));
  assert_true(distance_to_unitary(N, N, q) < 1e-13);
  for (int i = 0; i < N; ++i) {
    one[i] = 1;
    for (int j = 0; j < i; ++j) assert_true(t[i * N + j] == 0);
    for (int j = 0; j < N; ++j) {
      product[i * N + j] = 0;
      for (int k = 0; k < N; ++k) product[i * N + j] += q[i * N + k] * t[k * N + j];
    }
  }
  assert_true(distance(N, N, N, product, N, one, q, N, a) < 1e-12);
}

// exp(log(a)) and sqrt(a)^2 are a.
static void test_functions(void** state) {
  (void)state;
  number_t a[N * N], x[N * N], scratch[8 * N * N], one[N], adjoint[N * N];
  int64_t order[N];
  for (int i = 0; i < N * N; ++i) x[i] = a[i] = wave(i * i) + (i % (N + 1) == 0 ? 4 : 0);
  weir_matrix_log(N, x, scratch);
  weir_matrix_exp(N, x, scratch, order);
  for (int i = 0; i < N * N; ++i) assert_true(cabs(x[i] - a[i]) < 1e-11);
  weir_matrix_sqrt(N, 0, x, scratch);
  for (int i = 0; i < N; ++i) {
    one[i] = 1;
    for (int j = 0; j < N; ++j) adjoint[i * N + j] = conj(x[j * N + i]);
  }
  assert_true(distance(N, N, N, x, N, one, adjoint, N, a) < 1e-11);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_svd), cmocka_unit_test(test_eigh),
                                     cmocka_unit_test(test_schur),
                                     cmocka_unit_test(test_functions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
