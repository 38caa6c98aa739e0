// schur.c — The triangular form of complex matrices: reflections to a Hessenberg matrix, then QR
// steps with implicit shifts; and eigenvectors by substitution.
#include "kernel/linalg/schur.h"

#include <float.h>
#include <math.h>

#include "base/interrupt.h"
#include "kernel/linalg/product.h"

typedef weir_complex128_t number_t;
#define MUL weir_product_complex128_

enum { MAX_STEPS = 60 };  // for an eigenvalue

// |x| + |y|: as good as the modulus where sizes are compared.
static double size_of(number_t z) { return fabs(creal(z)) + fabs(cimag(z)); }

static bool is_finite(int64_t count, const number_t* a) {
  for (int64_t i = 0; i < count; ++i) {
    if (!isfinite(creal(a[i])) || !isfinite(cimag(a[i]))) return false;
  }
  return true;
}

// Clears column |k| below the subdiagonal by a reflection of rows and columns from k + 1 on.
static void reflect(int64_t n, int64_t k, number_t* a, number_t* q) {
  double tail = 0;
  for (int64_t i = k + 2; i < n; ++i) {
    tail += creal(a[i * n + k] * conj(a[i * n + k]));
  }
  if (tail == 0) return;
  const number_t first = a[(k + 1) * n + k];
  const double size = cabs(first), length = hypot(size, sqrt(tail));
  const number_t beta = size > 0 ? -(first / size) * length : -length;
  // x = a - beta e1, over its first element; the reflection is 1 - tau x x^H, which is
  // self-adjoint.
  const number_t top = first - beta;
  const double tau = creal(top * conj(top)) / (length * (length + size));
  for (int64_t i = k + 2; i < n; ++i) a[i * n + k] /= top;
  for (int64_t j = k + 1; j < n; ++j) {
    number_t sum = a[(k + 1) * n + j];
    for (int64_t i = k + 2; i < n; ++i) sum += MUL(conj(a[i * n + k]), a[i * n + j]);
    sum *= tau;
    a[(k + 1) * n + j] -= sum;
    for (int64_t i = k + 2; i < n; ++i) a[i * n + j] -= MUL(sum, a[i * n + k]);
  }
  for (int which = 0; which < 2; ++which) {
    number_t* target = which == 0 ? a : q;
    for (int64_t r = 0; target && r < n; ++r) {
      number_t* row = target + r * n;
      number_t sum = row[k + 1];
      // Column k holds the reflector below row k + 1 still: rows are read before anything is
      // cleared.
      for (int64_t i = k + 2; i < n; ++i) sum += MUL(row[i], a[i * n + k]);
      sum *= tau;
      row[k + 1] -= sum;
      for (int64_t i = k + 2; i < n; ++i) row[i] -= MUL(sum, conj(a[i * n + k]));
    }
  }
  a[(k + 1) * n + k] = beta;
  for (int64_t i = k + 2; i < n; ++i) a[i * n + k] = 0;
}

// Of the last two rows and columns of [.., high]: the eigenvalue nearer to the last element.
static number_t find_shift(int64_t n, int64_t high, const number_t* a) {
  const number_t p = a[(high - 1) * n + high - 1], q = a[(high - 1) * n + high];
  const number_t r = a[high * n + high - 1], s = a[high * n + high];
  const number_t half = (p - s) / 2, root = csqrt(half * half + q * r);
  const number_t sum = cabs(half + root) > cabs(half - root) ? half + root : half - root;
  return sum == 0 ? s : s - q * r / sum;
}

typedef struct turn_t {
  double c;
  number_t s;
} turn_t;

// The rotation that takes (x, z) to (r, 0).
static turn_t find_turn(number_t x, number_t z) {
  const double size = cabs(x), r = hypot(size, cabs(z));
  if (r == 0) return (turn_t){1, 0};
  if (size == 0) return (turn_t){0, conj(z) / r};
  return (turn_t){size / r, x / size * conj(z) / r};
}

static void turn_rows(turn_t t, number_t* p, number_t* q, int64_t count) {
  for (int64_t j = 0; j < count; ++j) {
    const number_t x = p[j], y = q[j];
    p[j] = t.c * x + MUL(t.s, y);
    q[j] = t.c * y - MUL(conj(t.s), x);
  }
}

// Columns |k| and k + 1 of the first |rows| rows.
static void turn_columns(turn_t t, int64_t n, int64_t rows, int64_t k, number_t* a) {
  for (int64_t i = 0; i < rows; ++i) {
    number_t* at = a + i * n + k;
    const number_t x = at[0], y = at[1];
    at[0] = t.c * x + MUL(conj(t.s), y);
    at[1] = t.c * y - MUL(t.s, x);
  }
}

static void qr_step(int64_t n, int64_t low, int64_t high, number_t shift, number_t* a,
                    number_t* q) {
  number_t x = a[low * n + low] - shift, z = a[(low + 1) * n + low];
  for (int64_t k = low; k < high; ++k) {
    const turn_t t = find_turn(x, z);
    const int64_t from = k > low ? k - 1 : low;
    turn_rows(t, a + k * n + from, a + (k + 1) * n + from, n - from);
    turn_columns(t, n, WEIR_MIN(k + 3, high + 1), k, a);
    if (q) turn_columns(t, n, n, k, q);
    if (k > low) a[(k + 1) * n + k - 1] = 0;
    if (k + 1 < high) {
      x = a[(k + 1) * n + k];
      z = a[(k + 2) * n + k];
    }
  }
}

// The first row of the block that ends with |high|: what is below the diagonal before it is
// nothing.
static int64_t find_low(int64_t n, int64_t high, number_t* a) {
  int64_t low = high;
  for (; low > 0; --low) {
    const double beside = size_of(a[low * n + low]) + size_of(a[(low - 1) * n + low - 1]);
    const double below = size_of(a[low * n + low - 1]);
    if (below <= DBL_EPSILON * beside || below < DBL_MIN) {
      a[low * n + low - 1] = 0;
      break;
    }
  }
  return low;
}

bool weir_schur(int64_t n, number_t* a, number_t* q) {
  if (!is_finite(n * n, a)) return false;
  for (int64_t i = 0; q && i < n * n; ++i) q[i] = i % (n + 1) == 0;
  for (int64_t k = 0; k + 2 < n && !weir_is_interrupted(); ++k) reflect(n, k, a, q);
  int64_t high = n - 1;
  for (int steps = 0; high > 0;) {
    if (weir_is_interrupted()) return true;
    const int64_t low = find_low(n, high, a);
    if (low == high) {
      --high;
      steps = 0;
      continue;
    }
    if (++steps > MAX_STEPS) return false;
    number_t shift = find_shift(n, high, a);
    if (steps % 10 == 0)
      shift = size_of(a[high * n + high - 1]) + size_of(a[(high - 1) * n + WEIR_MAX(0, high - 2)]);
    qr_step(n, low, high, shift, a, q);
  }
  return true;
}

// ---- eigenvectors ----

// Column |k| of |x|: the eigenvector of the triangular |t| to its k-th value.
static void substitute(int64_t n, int64_t k, const number_t* t, double norm, number_t* x) {
  const double least = WEIR_MAX(DBL_EPSILON * norm, DBL_MIN);
  for (int64_t i = n - 1; i > k; --i) x[i] = 0;
  x[k] = 1;
  for (int64_t i = k - 1; i >= 0; --i) {
    number_t sum = 0;
    for (int64_t j = i + 1; j <= k; ++j) sum += MUL(t[i * n + j], x[j]);
    number_t difference = t[i * n + i] - t[k * n + k];
    if (size_of(difference) < least) difference = least;
    x[i] = -sum / difference;
  }
}

static double norm_of(int64_t count, const number_t* a) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += creal(a[i] * conj(a[i]));
  return sqrt(sum);
}

bool weir_eig(int64_t n, number_t* a, number_t* e, number_t* v, number_t* scratch) {
  number_t* q = v ? scratch : NULL;
  if (!weir_schur(n, a, q)) return false;
  for (int64_t i = 0; i < n; ++i) e[i] = a[i * n + i];
  const double norm = norm_of(n * n, a);
  number_t* x = e;  // in its place for a while
  for (int64_t k = 0; v && k < n && !weir_is_interrupted(); ++k) {
    substitute(n, k, a, norm, x);
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      number_t at = 0;
      for (int64_t j = 0; j <= k; ++j) at += MUL(q[i * n + j], x[j]);
      v[i * n + k] = at;
      sum += creal(at * conj(at));
    }
    for (int64_t i = 0; i < n; ++i) v[i * n + k] /= sqrt(sum);
  }
  for (int64_t i = 0; i < n; ++i) e[i] = a[i * n + i];
  return true;
}
