// cross.cu — The vector product of pairs of 3-vectors. T, the elements' type, is defined before this
// text. Products are rounded before they are subtracted, so that those of parallel vectors vanish.
#define NO_CONTRACTION
typedef element_t<T> of;

__device__ __forceinline__ of::acc_t product(T a, T b) {
  return of::load(of::store(of::load(a) * of::load(b)));
}

extern "C" __global__ void cross_product(const T* __restrict__ x, const T* __restrict__ y,
                                         T* __restrict__ z, int64_t vectors) {
  for (int64_t v = thread_of_grid(); v < vectors; v += threads_of_grid()) {
    const T *a = x + 3 * v, *b = y + 3 * v;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      int i = (k + 1) % 3, j = (k + 2) % 3;
      z[3 * v + k] = of::store(product(a[i], b[j]) - product(a[j], b[i]));
    }
  }
}
