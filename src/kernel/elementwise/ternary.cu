// ternary.cu — One operation of three operands. Before this text come the definitions of
//
//   X T      the type of the first operand, and that of the others and the result
//   FORMULA  the value at |x|, |a| and |b|, as they are in memory

// |x|, at most |high| and at least |low|. A NaN stays.
template <typename V>
__device__ __forceinline__ V clamped(V x, V low, V high) {
  typename element_t<V>::acc_t v = element_t<V>::load(x);
  typename element_t<V>::acc_t most = element_t<V>::load(high), least = element_t<V>::load(low);
  v = v < most || v != v ? v : most;
  return element_t<V>::store(v > least || v != v ? v : least);
}

__device__ __forceinline__ T value_of(X x, T a, T b) { return FORMULA; }

enum { WIDTH = 16 / (sizeof(T) > sizeof(X) ? sizeof(T) : sizeof(X)) };

// Steps are 1, or 0 of an operand that is one element.
extern "C" __global__ void ternary(const X* x, const T* a, const T* b, T* y, int64_t n, int x_step,
                                   int a_step, int b_step, int is_aligned) {
  int64_t first = thread_of_grid(), step = threads_of_grid();
  int64_t packs = is_aligned ? n / WIDTH : 0;
  for (int64_t i = first; i < packs; i += step) {
    pack_t<X, WIDTH> xs;
    pack_t<T, WIDTH> as, bs, ys;
    if (x_step) xs = ((const pack_t<X, WIDTH>*)x)[i];
    if (a_step) as = ((const pack_t<T, WIDTH>*)a)[i];
    if (b_step) bs = ((const pack_t<T, WIDTH>*)b)[i];
#pragma unroll
    for (int k = 0; k < WIDTH; ++k)
      ys.at[k] = value_of(x_step ? xs.at[k] : *x, a_step ? as.at[k] : *a, b_step ? bs.at[k] : *b);
    store_whole((pack_t<T, WIDTH>*)y + i, ys);
  }
  for (int64_t i = packs * WIDTH + first; i < n; i += step)
    y[i] = value_of(x[i * x_step], a[i * a_step], b[i * b_step]);
}

// Dimensions, innermost last, and how far the operands' elements are apart in each.
struct spread_t {
  int64_t dims[8], strides[3][8];
  int rank;
};

extern "C" __global__ void ternary_spread(const X* x, const T* a, const T* b, T* y, int64_t n,
                                          spread_t by) {
  int64_t step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < n; i += step) {
    int64_t rest = i, at_x = 0, at_a = 0, at_b = 0;
    for (int d = by.rank - 1; d >= 0; --d) {
      int64_t dim = by.dims[d];
      int64_t quotient = n <= 0xffffffff ? (int64_t)((uint32_t)rest / (uint32_t)dim) : rest / dim;
      int64_t position = rest - quotient * dim;
      at_x += position * by.strides[0][d];
      at_a += position * by.strides[1][d];
      at_b += position * by.strides[2][d];
      rest = quotient;
    }
    y[i] = value_of(x[at_x], a[at_a], b[at_b]);
  }
}
