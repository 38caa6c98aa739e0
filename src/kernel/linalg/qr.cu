// qr.cu — Orthogonal and triangular factors by Householder reflections, a block a matrix, as in
// linalg.inc. After matrix.cu and the definition of TINY, below which squares are nothing.

// The sum of all threads' values.
__device__ __forceinline__ R sum_of_block(R value) {
  __shared__ R shared[THREADS];
  int at = thread_of_block();
  shared[at] = value;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (at < half) shared[at] = shared[at] + shared[at + half];
    __syncthreads();
  }
  R sum = shared[0];
  __syncthreads();
  return sum;
}

// Makes of column |k| a multiple of the unit vector and, below, the reflector without its leading
// one. Returns its coefficient.
__device__ __forceinline__ T reflector(T* a, int64_t m, int64_t n, int64_t k) {
  T first = a[k * n + k], turned = first - number_of(real_of(first));
  R part = 0;
  for (int64_t i = k + 1 + thread_of_block(); i < m; i += THREADS) part += square_of(a[i * n + k]);
  R tail = sum_of_block(part);
  bool is_none = tail <= (R)TINY && square_of(turned) <= (R)TINY;
  R beta = sqrt(square_of(first) + tail);
  if (real_of(first) >= 0) beta = -beta;
  for (int64_t i = k + 1 + thread_of_block(); i < m; i += THREADS)
    a[i * n + k] = is_none ? number_of(0) : a[i * n + k] / (first - number_of(beta));
  if (thread_of_block() == 0) a[k * n + k] = number_of(is_none ? real_of(first) : beta);
  __syncthreads();
  return is_none ? number_of(0) : conj_of((number_of(beta) - first) / beta);
}

// Applies the reflection of column |k| of |v| (m x vn) to the columns of |a| (m x an) from |begin|
// on, some at a time, of which each warp has some rows.
__device__ __forceinline__ void reflect(const T* v, int64_t vn, int64_t k, T tau, T* a, int64_t m,
                                        int64_t an, int64_t begin) {
  __shared__ T parts[STRIPES][COLUMNS], product[COLUMNS];
  int x = threadIdx.x, y = threadIdx.y;
  for (int64_t from = begin; from < an; from += COLUMNS) {
    int64_t j = from + x;
    T sum = number_of(0);
    for (int64_t i = k + 1 + y; j < an && i < m; i += STRIPES)
      sum = sum + conj_of(v[i * vn + k]) * a[i * an + j];
    parts[y][x] = sum;
    __syncthreads();
    if (y == 0 && j < an) {
      sum = a[k * an + j];
      for (int s = 0; s < STRIPES; ++s) sum = sum + parts[s][x];
      product[x] = sum;
      a[k * an + j] = a[k * an + j] - tau * sum;
    }
    __syncthreads();
    for (int64_t i = k + 1 + y; j < an && i < m; i += STRIPES)
      a[i * an + j] = a[i * an + j] - tau * v[i * vn + k] * product[x];
  }
  __syncthreads();
}

// |work| has the reflectors and the coefficients of each matrix.
extern "C" __global__ void __launch_bounds__(THREADS)
    qr(const T* __restrict__ a, T* __restrict__ q, T* __restrict__ r, T* __restrict__ work,
       int64_t count, int64_t m, int64_t n, int is_full) {
  int64_t p = m < n ? m : n, inner = is_full ? m : p;
  for (int64_t matrix = blockIdx.x; matrix < count; matrix += gridDim.x) {
    T *v = work + matrix * (m * n + p), *taus = v + m * n, *own = q + matrix * m * inner;
    for (int64_t at = thread_of_block(); at < m * n; at += THREADS) v[at] = a[matrix * m * n + at];
    __syncthreads();
    for (int64_t k = 0; k < p; ++k) {
      T tau = reflector(v, m, n, k);
      if (thread_of_block() == 0) taus[k] = tau;
      reflect(v, n, k, tau, v, m, n, k + 1);
    }
    for (int64_t at = thread_of_block(); at < inner * n; at += THREADS) {
      int64_t i = quotient_of(at, n);
      r[matrix * inner * n + at] = at - i * n >= i ? v[at] : number_of(0);
    }
    for (int64_t at = thread_of_block(); at < m * inner; at += THREADS) {
      int64_t i = quotient_of(at, inner);
      own[at] = number_of(at - i * inner == i);
    }
    __syncthreads();
    for (int64_t k = p - 1; k >= 0; --k) reflect(v, n, k, conj_of(taus[k]), own, m, inner, 0);
  }
}
