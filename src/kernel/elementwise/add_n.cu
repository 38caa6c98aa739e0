// add_n.cu — The sum of up to 8 tensors of one shape, rounded once. T is defined before this text.
typedef element_t<T>::acc_t ACC;
enum { MOST = 8, WIDTH = 16 / sizeof(T) };
typedef pack_t<T, WIDTH> P;

struct inputs_t {
  const T* at[MOST];
  int count;
};

extern "C" __global__ void add_n(inputs_t inputs, T* y, int64_t n, int is_aligned) {
  int64_t first = thread_of_grid(), step = threads_of_grid();
  int64_t packs = is_aligned ? n / WIDTH : 0;
  for (int64_t i = first; i < packs; i += step) {
    P in[MOST], out;
    ACC sums[WIDTH] = {};
#pragma unroll
    for (int j = 0; j < MOST; ++j)
      if (j < inputs.count) in[j] = ((const P*)inputs.at[j])[i];
#pragma unroll
    for (int j = 0; j < MOST; ++j) {
      if (j < inputs.count) {
#pragma unroll
        for (int k = 0; k < WIDTH; ++k)
          sums[k] = j ? sums[k] + element_t<T>::load(in[j].at[k]) : element_t<T>::load(in[j].at[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) out.at[k] = element_t<T>::store(sums[k]);
    store_whole((P*)y + i, out);
  }
  for (int64_t i = packs * WIDTH + first; i < n; i += step) {
    ACC sum = element_t<T>::load(inputs.at[0][i]);
    for (int j = 1; j < inputs.count; ++j) sum = sum + element_t<T>::load(inputs.at[j][i]);
    y[i] = element_t<T>::store(sum);
  }
}
