// arg_reduce.cu — The index of the largest or smallest element along a dimension. Before this text
// come the definitions of
//
//   T OUT     the elements' type and the index's
//   BETTER    > or <
//   WORST     what an element must beat: NaN is never chosen
//
// The first of equals is taken.
enum { BLOCK = 256, WARP = 32 };
typedef element_t<T>::acc_t ACC;

struct best_t {
  ACC value;
  int64_t index;
};

__device__ __forceinline__ best_t better_of(best_t a, best_t b) {
  return b.value BETTER a.value || (b.value == a.value && b.index < a.index) ? b : a;
}

__device__ __forceinline__ best_t warp_best(best_t a) {
  for (int k = WARP / 2; k > 0; k /= 2) {
    best_t b;
    b.value = __shfl_xor_sync(0xffffffff, a.value, k);
    b.index = __shfl_xor_sync(0xffffffff, a.index, k);
    a = better_of(a, b);
  }
  return a;
}

__device__ __forceinline__ best_t best_of(const T* x, int64_t length, int64_t stride, int64_t first,
                                          int step) {
  best_t a = {WORST, 0};
#pragma unroll 4
  for (int64_t i = first; i < length; i += step) {
    ACC v = element_t<T>::load(x[i * stride]);
    if (v BETTER a.value) {
      a.value = v;
      a.index = i;
    }
  }
  return a;
}

// Rows of |length| neighbours: a warp each, or a block where |is_long|.
extern "C" __global__ void arg_rows(const T* x, OUT* y, int64_t rows, int64_t length, int is_long) {
  __shared__ best_t all[BLOCK / WARP];
  if (!is_long) {
    int64_t step = threads_of_grid() / WARP;
    for (int64_t row = thread_of_grid() / WARP; row < rows; row += step) {
      best_t a = warp_best(best_of(x + row * length, length, 1, threadIdx.x % WARP, WARP));
      if (threadIdx.x % WARP == 0) y[row] = (OUT)a.index;
    }
    return;
  }
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    best_t a = warp_best(best_of(x + row * length, length, 1, threadIdx.x, BLOCK));
    if (threadIdx.x % WARP == 0) all[threadIdx.x / WARP] = a;
    __syncthreads();
    for (int i = 1; i < BLOCK / WARP && threadIdx.x == 0; ++i) a = better_of(a, all[i]);
    if (threadIdx.x == 0) y[row] = (OUT)a.index;
    __syncthreads();
  }
}

// |inner| elements are behind each of the dimension: a thread an output.
extern "C" __global__ void arg_columns(const T* x, OUT* y, int64_t outputs, int64_t length,
                                       int64_t inner) {
  int64_t step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < outputs; i += step) {
    int64_t outer = i / inner;
    y[i] =
        (OUT)best_of(x + outer * inner * length + (i - outer * inner), length, inner, 0, 1).index;
  }
}
