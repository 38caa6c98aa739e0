// check_numerics.cu — What is not finite among elements of type T, which is defined before this
// text.
enum { WARP = 32, NEGATIVE_INFINITY = 1, POSITIVE_INFINITY = 2, NOT_A_NUMBER = 4 };

extern "C" __global__ void check_numerics(const T* __restrict__ x, int64_t count,
                                          unsigned long long* found) {
  int own = 0;
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    element_t<T>::acc_t v = element_t<T>::load(x[i]);
    if (!(v - v == 0)) own |= v != v ? NOT_A_NUMBER : v < 0 ? NEGATIVE_INFINITY : POSITIVE_INFINITY;
  }
  for (int k = WARP / 2; k > 0; k /= 2) own |= __shfl_xor_sync(0xffffffff, own, k);
  if (own && threadIdx.x % WARP == 0) atomicOr(found, (unsigned long long)own);
}
