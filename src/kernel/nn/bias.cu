// bias.cu — A vector added along one dimension. T is defined before this text, and RELU, 1 where the
// ReLU of that is wanted.
//
// x and y are [outer, channels, inner]. Packs are of one channel, or of neighbouring channels where
// inner is 1.
enum { WIDTH = 16 / sizeof(T) };
typedef pack_t<T, WIDTH> P;

__device__ __forceinline__ T sum_of(T x, T b) {
  typename element_t<T>::acc_t sum = element_t<T>::load(x) + element_t<T>::load(b);
  return element_t<T>::store(RELU && sum <= 0 ? 0 : sum);
}

template <typename I>
__device__ __forceinline__ void add_packs(const P* x, const T* bias, P* y, I packs, I channels,
                                          I inner) {
  I step = (I)threads_of_grid();
  for (I i = (I)thread_of_grid(); i < packs; i += step) {
    P in = x[i], to_add, out;
    if (inner == 1) {
      to_add = ((const P*)bias)[i % (channels / WIDTH)];
    } else {
      T one = bias[i / (inner / WIDTH) % channels];
#pragma unroll
      for (int k = 0; k < WIDTH; ++k) to_add.at[k] = one;
    }
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) out.at[k] = sum_of(in.at[k], to_add.at[k]);
    store_whole(y + i, out);
  }
}

template <typename I>
__device__ __forceinline__ void add_each(const T* x, const T* bias, T* y, I n, I channels,
                                         I inner) {
  I step = (I)threads_of_grid();
  for (I i = (I)thread_of_grid(); i < n; i += step) y[i] = sum_of(x[i], bias[i / inner % channels]);
}

// |is_packed|: pointers are aligned, and channels, or inner if above 1, is a multiple of WIDTH.
extern "C" __global__ void bias_add(const T* x, const T* bias, T* y, int64_t n, int64_t channels,
                                    int64_t inner, int is_packed) {
  if (n >= 0x7fffffff) {
    if (is_packed) add_packs<int64_t>((const P*)x, bias, (P*)y, n / WIDTH, channels, inner);
    else add_each<int64_t>(x, bias, y, n, channels, inner);
  } else if (is_packed) {
    add_packs<uint32_t>((const P*)x, bias, (P*)y, n / WIDTH, channels, inner);
  } else {
    add_each<uint32_t>(x, bias, y, n, channels, inner);
  }
}
