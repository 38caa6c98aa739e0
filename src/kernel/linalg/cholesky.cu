// cholesky.cu — Factors of positive definite matrices and their gradients, a block a matrix, as in
// linalg.inc and linalg.c. After matrix.cu and the definition of NO_FACTOR, the elements of what has
// no factor.

// False for a pivot that is not positive. Works on the conjugate transpose of the factor.
__device__ __forceinline__ bool factor(const T* a, T* u, int64_t n) {
  for (int64_t at = thread_of_block(); at < n * n; at += THREADS) {
    int64_t i = quotient_of(at, n), j = at - i * n;
    if (j >= i) u[at] = conj_of(a[j * n + i]);
  }
  for (int64_t k = 0; k < n; ++k) {
    T* row = u + k * n;
    __syncthreads();
    R pivot = real_of(row[k]);
    if (pivot <= 0) return false;
    pivot = sqrt(pivot);
    __syncthreads();
    for (int64_t j = k + thread_of_block(); j < n; j += THREADS)
      row[j] = j == k ? number_of(pivot) : row[j] / pivot;
    __syncthreads();
    for (int64_t i = k + 1 + threadIdx.y; i < n; i += STRIPES) {
      T by = conj_of(row[i]), *below = u + i * n;
      for (int64_t j = i + threadIdx.x; j < n; j += COLUMNS) below[j] = below[j] - by * row[j];
    }
  }
  __syncthreads();
  for (int64_t at = thread_of_block(); at < n * n; at += THREADS) {
    int64_t i = quotient_of(at, n), j = at - i * n;
    if (j <= i) continue;
    u[j * n + i] = conj_of(u[at]);
    u[at] = number_of(0);
  }
  return true;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    cholesky(const T* __restrict__ a, T* __restrict__ l, int64_t count, int64_t n) {
  for (int64_t m = blockIdx.x; m < count; m += gridDim.x) {
    T* to = l + m * n * n;
    if (factor(a + m * n * n, to, n)) continue;
    __syncthreads();
    for (int64_t at = thread_of_block(); at < n * n; at += THREADS) {
      int64_t i = quotient_of(at, n);
      to[at] = number_of(at - i * n > i ? (R)0 : (R)NO_FACTOR);
    }
  }
}

// ---- the gradient, of real numbers ----

// Solves l^T x = x. A thread has a column.
__device__ __forceinline__ void solve(const T* l, T* x, int64_t n) {
  for (int64_t j = thread_of_block(); j < n; j += THREADS) {
    for (int64_t i = n - 1; i >= 0; --i) {
      T value = x[i * n + j];
      for (int64_t k = n - 1; k > i; --k) value = value - l[k * n + i] * x[k * n + j];
      x[i * n + j] = value / l[i * n + i];
    }
  }
  __syncthreads();
}

__device__ __forceinline__ void transpose(T* x, int64_t n) {
  for (int64_t at = thread_of_block(); at < n * n; at += THREADS) {
    int64_t i = quotient_of(at, n), j = at - i * n;
    if (j <= i) continue;
    T upper = x[at];
    x[at] = x[j * n + i];
    x[j * n + i] = upper;
  }
  __syncthreads();
}

// The lower triangle of l^T dl, its diagonal halved.
__device__ __forceinline__ void halved_product(const T* l, const T* dl, T* x, int64_t n) {
  for (int64_t at = thread_of_block(); at < n * n; at += THREADS) {
    int64_t i = quotient_of(at, n), j = at - i * n;
    double sum = 0;
    for (int64_t k = i; j <= i && k < n; ++k)
      sum += (double)real_of(l[k * n + i]) * (double)real_of(dl[k * n + j]);
    x[at] = number_of((R)(i == j ? sum / 2 : sum));
  }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS)
    cholesky_grad(const T* __restrict__ l, const T* __restrict__ dl, T* __restrict__ da,
                  T* __restrict__ scratch, int64_t count, int64_t n) {
  for (int64_t m = blockIdx.x; m < count; m += gridDim.x) {
    const T *factor = l + m * n * n;
    T *x = scratch + m * n * n, *to = da + m * n * n;
    halved_product(factor, dl + m * n * n, x, n);
    solve(factor, x, n);
    transpose(x, n);
    solve(factor, x, n);
    for (int64_t at = thread_of_block(); at < n * n; at += THREADS) {
      int64_t i = quotient_of(at, n), j = at - i * n;
      to[at] = number_of((R)(((double)real_of(x[at]) + (double)real_of(x[j * n + i])) / 2));
    }
  }
}
