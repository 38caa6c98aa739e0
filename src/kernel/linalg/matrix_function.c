// matrix_function.c — Square roots and logarithms of matrices by their triangular form, and
// exponentials by scaling and squaring.
#include <float.h>
#include <math.h>

#include "base/interrupt.h"
#include "kernel/gemm/gemm.h"
#include "kernel/linalg/lu.h"
#include "kernel/linalg/product.h"
#include "kernel/linalg/schur.h"

typedef weir_complex128_t number_t;
#define MUL weir_product_complex128_

static void multiply(int64_t n, weir_trans_t trans_b, const number_t* a, const number_t* b,
                     number_t* out) {
  weir_gemm_complex128(NULL, WEIR_NO_TRANS, trans_b, n, n, n, 1, a, n, b, n, 0, out, n);
}

static void fill(int64_t count, number_t* a) {
  for (int64_t i = 0; i < count; ++i) a[i] = __builtin_complex(NAN, NAN);
}

// The largest sum of moduli of a column.
static double norm_of(int64_t n, const number_t* a) {
  double largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += cabs(a[i * n + j]);
    largest = sum > largest ? sum : largest;
  }
  return largest;
}

// The square root of the upper triangular |t|, column by column from the diagonal up.
static void triangular_sqrt(int64_t n, const number_t* t, number_t* r) {
  for (int64_t i = 0; i < n * n; ++i) r[i] = 0;
  for (int64_t j = 0; j < n && !weir_is_interrupted(); ++j) {
    r[j * n + j] = csqrt(t[j * n + j]);
    for (int64_t i = j - 1; i >= 0; --i) {
      number_t sum = t[i * n + j];
      for (int64_t k = i + 1; k < j; ++k) sum -= MUL(r[i * n + k], r[k * n + j]);
      r[i * n + j] = sum / (r[i * n + i] + r[j * n + j]);
    }
  }
}

// a = q t q^H.
static void turn_back(int64_t n, const number_t* q, const number_t* t, number_t* a,
                      number_t* scratch) {
  multiply(n, WEIR_NO_TRANS, q, t, scratch);
  multiply(n, WEIR_CONJ_TRANS, scratch, q, a);
}

// Whether an eigenvalue is a negative number, beyond rounding; one that is nothing but rounding
// becomes 0.
static bool has_negative(int64_t n, double epsilon, number_t* t) {
  const double least = 10 * epsilon * norm_of(n, t);
  for (int64_t i = 0; i < n * n; i += n + 1) {
    if (cabs(t[i]) <= least) t[i] = 0;
    if (fabs(cimag(t[i])) <= least && creal(t[i]) < 0) return true;
  }
  return false;
}

void weir_matrix_sqrt(int64_t n, double real_epsilon, number_t* a, number_t* scratch) {
  number_t* q = scratch;
  number_t* r = q + n * n;
  if (!weir_schur(n, a, q) || (real_epsilon > 0 && has_negative(n, real_epsilon, a))) {
    fill(n * n, a);
    return;
  }
  triangular_sqrt(n, a, r);
  turn_back(n, q, r, a, r + n * n);
}

// ---- logarithm ----

// Gauss and Legendre's rule of seven points on [0, 1].
static const double kPoints[] = {0.5,
                                 0.29707742431130141655,
                                 0.70292257568869858345,
                                 0.12923440720030278007,
                                 0.87076559279969721993,
                                 0.02544604382862073774,
                                 0.97455395617137926226};
static const double kWeights[] = {
    0.20897959183673469388, 0.19091502525255947248, 0.19091502525255947248, 0.13985269574463833395,
    0.13985269574463833395, 0.06474248308443484664, 0.06474248308443484664};

static double distance_to_one(int64_t n, const number_t* t) {
  double largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (int64_t i = 0; i <= j; ++i) sum += cabs(t[i * n + j] - (i == j));
    largest = sum > largest ? sum : largest;
  }
  return largest;
}

// out += weight * (1 + point x)^-1 x with x = t - 1, upper triangular all of them.
static void add_fraction(int64_t n, double point, double weight, const number_t* t,
                         number_t* column, number_t* out) {
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i >= 0; --i) {
      number_t sum = t[i * n + j] - (i == j);
      for (int64_t k = i + 1; k <= j; ++k) sum -= point * MUL(t[i * n + k], column[k]);
      column[i] = sum / (1 + point * (t[i * n + i] - 1));
      out[i * n + j] += weight * column[i];
    }
  }
}

// log t = 2^k log t^(1/2^k): roots until what is left is near 1, where the rule is exact to
// rounding.
void weir_matrix_log(int64_t n, number_t* a, number_t* scratch) {
  number_t* q = scratch;
  number_t* root = q + n * n;
  number_t* spare = root + n * n;
  bool is_regular = weir_schur(n, a, q);
  for (int64_t i = 0; is_regular && i < n * n; i += n + 1) is_regular = a[i] != 0;
  if (!is_regular) {
    fill(n * n, a);
    return;
  }
  number_t* exact = spare + n * n;  // of its diagonal
  for (int64_t i = 0; i < n; ++i) exact[i] = clog(a[i * n + i]);
  double scale = 1;
  for (int k = 0; k < 100 && distance_to_one(n, a) > 0.25 && !weir_is_interrupted(); ++k) {
    triangular_sqrt(n, a, root);
    for (int64_t i = 0; i < n * n; ++i) a[i] = root[i];
    scale *= 2;
  }
  for (int64_t i = 0; i < n * n; ++i) root[i] = 0;
  for (int p = 0; p < 7; ++p) add_fraction(n, kPoints[p], kWeights[p] * scale, a, spare, root);
  for (int64_t i = 0; i < n; ++i) root[i * n + i] = exact[i];
  turn_back(n, q, root, a, spare);
}

// ---- exponential ----

// The coefficients of Pade's approximant of degree 13, over the last one's.
static const double kPade[] = {64764752532480000,
                               32382376266240000,
                               7771770303897600,
                               1187353796428800,
                               129060195264000,
                               10559470521600,
                               670442572800,
                               33522128640,
                               1323241920,
                               40840800,
                               960960,
                               16380,
                               182,
                               1};

// out = sum of the coefficients from |first| on, by twos, times powers of |square|.
static void polynomial(int64_t n, int first, const number_t* square, number_t* out,
                       number_t* spare) {
  const int64_t count = n * n;
  for (int64_t i = 0; i < count; ++i) out[i] = i % (n + 1) == 0 ? kPade[first + 12] : 0;
  for (int k = first + 10; k >= 0; k -= 2) {
    multiply(n, WEIR_NO_TRANS, out, square, spare);
    for (int64_t i = 0; i < count; ++i) out[i] = spare[i];
    for (int64_t i = 0; i < n; ++i) out[i * n + i] += kPade[k];
  }
}

void weir_matrix_exp(int64_t n, number_t* a, number_t* scratch, int64_t* order) {
  const int64_t count = n * n;
  number_t* square = scratch;
  number_t* even = square + count;
  number_t* odd = even + count;
  number_t* spare = odd + count;
  const double norm = norm_of(n, a);
  int halvings = 0;
  if (norm > 5 && norm <= DBL_MAX) halvings = (int)ceil(log2(norm / 5));
  for (int64_t i = 0; i < count; ++i) a[i] *= ldexp(1, -halvings);
  multiply(n, WEIR_NO_TRANS, a, a, square);
  polynomial(n, 0, square, even, spare);
  polynomial(n, 1, square, spare, odd);
  multiply(n, WEIR_NO_TRANS, a, spare, odd);
  for (int64_t i = 0; i < count; ++i) {
    const number_t u = odd[i], v = even[i];
    even[i] = v - u;
    odd[i] = v + u;
  }
  weir_lu(WEIR_DTYPE_COMPLEX128, NULL, n, even, order);
  weir_lu_solve(WEIR_DTYPE_COMPLEX128, NULL, n, even, order, n, odd, a);
  for (int k = 0; k < halvings && !weir_is_interrupted(); ++k) {
    multiply(n, WEIR_NO_TRANS, a, a, spare);
    for (int64_t i = 0; i < count; ++i) a[i] = spare[i];
  }
}

// ---- types ----

void weir_widen(weir_dtype_t dtype, int64_t count, const void* source, number_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    switch (dtype) {
      case WEIR_DTYPE_FLOAT: out[i] = ((const float*)source)[i]; break;
      case WEIR_DTYPE_DOUBLE: out[i] = ((const double*)source)[i]; break;
      case WEIR_DTYPE_COMPLEX64: out[i] = ((const weir_complex64_t*)source)[i]; break;
      default: out[i] = ((const number_t*)source)[i]; break;
    }
  }
}

void weir_narrow(weir_dtype_t dtype, int64_t count, const number_t* source, void* out) {
  for (int64_t i = 0; i < count; ++i) {
    switch (dtype) {
      case WEIR_DTYPE_FLOAT: ((float*)out)[i] = (float)creal(source[i]); break;
      case WEIR_DTYPE_DOUBLE: ((double*)out)[i] = creal(source[i]); break;
      case WEIR_DTYPE_COMPLEX64: ((weir_complex64_t*)out)[i] = (weir_complex64_t)source[i]; break;
      default: ((number_t*)out)[i] = source[i]; break;
    }
  }
}
