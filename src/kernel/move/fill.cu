// fill.cu — Many elements of one value. T, a type of the elements' size, is defined before this
// text.
enum { WIDTH = 16 / sizeof(T) };

__device__ __forceinline__ void fill_all(T* y, int64_t n, T value) {
  int64_t first = thread_of_grid(), step = threads_of_grid();
  int64_t packs = ((uint64_t)y & 15) == 0 ? n / WIDTH : 0;
  pack_t<T, WIDTH> pack;
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) pack.at[k] = value;
  for (int64_t i = first; i < packs; i += step) store_whole((pack_t<T, WIDTH>*)y + i, pack);
  for (int64_t i = packs * WIDTH + first; i < n; i += step) y[i] = value;
}

extern "C" __global__ void fill(T* y, int64_t n, const T* value) { fill_all(y, n, *value); }
extern "C" __global__ void fill_with(T* y, int64_t n, T value) { fill_all(y, n, value); }
