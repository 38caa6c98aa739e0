// reduce.cu — Reductions over any set of dimensions. Before this text come the definitions of
//
//   T ACC     the elements' type, and what is computed in
//   IDENTITY  of the operation
//   LOAD      what an element is to it, of v, the element as ACC has it
//   COMBINE   of a and b
//   FINISH    the result, of a, which n elements were combined to
//
// The innermost run of dimensions is reduced, or kept. If reduced, the threads of a part of a warp,
// or of a block, go through the elements of one output. If kept, neighbouring threads have
// neighbouring outputs, and the block's rows of threads join at the end. Where outputs are few,
// their elements are cut into pieces, whose results another launch joins, in an order that depends
// on shapes and the GPU alone.
enum { BLOCK = 256, WARP = 32, WIDTH = 16 / sizeof(T), MAX_AXES = 8 };
typedef pack_t<T, WIDTH> P;

__device__ __forceinline__ ACC loaded(T x) {
  ACC v = (ACC)element_t<T>::load(x);
  return LOAD;
}
__device__ __forceinline__ ACC combined(ACC a, ACC b) { return COMBINE; }
__device__ __forceinline__ T finished(ACC a, int64_t n) { return element_t<T>::store(FINISH); }

struct axes_t {
  int64_t dims[MAX_AXES], strides[MAX_AXES];  // outermost first
  int count;
};

struct reduction_t {
  axes_t kept, reduced;  // without the innermost run
  int64_t outputs;       // the kept ones' count
  int64_t rows;          // the reduced ones'
  int64_t inner;         // elements of the innermost run
  int64_t count;         // elements that an output stands for
  int64_t pieces;
  int64_t per_piece;  // elements, or rows where the innermost run is kept
};

__device__ __forceinline__ int64_t quotient_of(int64_t n, int64_t by) {
  return (uint64_t)(n | by) >> 32 ? n / by : (int64_t)((uint32_t)n / (uint32_t)by);
}

__device__ __forceinline__ int64_t offset_of(const axes_t& axes, int64_t index) {
  int64_t offset = 0;
  for (int i = axes.count - 1; i > 0; --i) {
    int64_t rest = quotient_of(index, axes.dims[i]);
    offset += (index - rest * axes.dims[i]) * axes.strides[i];
    index = rest;
  }
  return axes.count ? offset + index * axes.strides[0] : 0;
}

// Over |lanes| neighbours, a power of two; each has the result.
__device__ __forceinline__ ACC warp_combined(ACC a, int lanes) {
  for (int k = lanes / 2; k > 0; k /= 2) {
    ACC b = __shfl_xor_sync(0xffffffff, a, k);
    a = combined(a, b);
  }
  return a;
}

// Over the block; thread 0 has the result.
__device__ __forceinline__ ACC block_combined(ACC a) {
  __shared__ ACC sums[BLOCK / WARP];
  a = warp_combined(a, WARP);
  if (threadIdx.x % WARP == 0) sums[threadIdx.x / WARP] = a;
  __syncthreads();
  if (threadIdx.x < WARP) {
    a = threadIdx.x < BLOCK / WARP ? sums[threadIdx.x] : (ACC)(IDENTITY);
    a = warp_combined(a, BLOCK / WARP);
  }
  __syncthreads();
  return a;
}

// Elements [begin, end) of those at |x|, every |step|-th from |first| on; as packs, where |begin|
// is a multiple of WIDTH, and |end|, too, unless there is but one row.
__device__ __forceinline__ ACC row_combined(const T* x, const reduction_t& r, int64_t begin,
                                            int64_t end, int first, int step, int is_packed) {
  ACC a = IDENTITY;
  if (is_packed) {
    int64_t last = end / WIDTH, inner = r.inner / WIDTH;
#pragma unroll 4
    for (int64_t i = begin / WIDTH + first; i < last; i += step) {
      int64_t row = r.rows == 1 ? 0 : quotient_of(i, inner);
      const T* at = r.rows == 1 ? x : x + offset_of(r.reduced, row) - row * r.inner;
      P in = ((const P*)at)[i];
#pragma unroll
      for (int k = 0; k < WIDTH; ++k) a = combined(a, loaded(in.at[k]));
    }
    begin = last * WIDTH;
  }
#pragma unroll 4
  for (int64_t i = begin + first; i < end; i += step) {
    int64_t row = r.rows == 1 ? 0 : quotient_of(i, r.inner);
    int64_t at = r.rows == 1 ? i : offset_of(r.reduced, row) + i - row * r.inner;
    a = combined(a, loaded(x[at]));
  }
  return a;
}

// The innermost run is reduced, by |lanes| threads an output.
extern "C" __global__ void reduce_rows_by_lanes(const T* x, T* y, reduction_t r, int lanes,
                                                int is_packed) {
  int per_warp = WARP / lanes, lane = threadIdx.x % WARP;
  int64_t step = threads_of_grid() / WARP * per_warp;
  for (int64_t base = thread_of_grid() / WARP * per_warp; base < r.outputs; base += step) {
    int64_t out = base + lane / lanes;
    bool is_there = out < r.outputs;
    ACC a = IDENTITY;
    if (is_there)
      a = row_combined(x + offset_of(r.kept, out), r, 0, r.count, lane % lanes, lanes, is_packed);
    a = warp_combined(a, lanes);
    if (is_there && lane % lanes == 0) y[out] = finished(a, r.count);
  }
}

// The same by a block a piece of an output.
extern "C" __global__ void reduce_rows(const T* x, T* y, ACC* partials, reduction_t r,
                                       int is_packed) {
  for (int64_t item = blockIdx.x; item < r.outputs * r.pieces; item += gridDim.x) {
    int64_t out = quotient_of(item, r.pieces), begin = (item - out * r.pieces) * r.per_piece;
    int64_t end = begin + r.per_piece < r.count ? begin + r.per_piece : r.count;
    ACC a = row_combined(x + offset_of(r.kept, out), r, begin, end, threadIdx.x, BLOCK, is_packed);
    a = block_combined(a);
    if (threadIdx.x != 0) continue;
    if (partials) partials[item] = a;
    else y[out] = finished(a, r.count);
  }
}

// Rows [begin, end) of those at |x|, every |step|-th, N columns of them: so far apart from each
// other, or as |axes| say.
template <int N>
__device__ __forceinline__ void rows_combined(const T* __restrict__ x, int64_t stride,
                                              int64_t begin, int64_t end, int step, ACC* a) {
  const T* at = x + begin * stride;
#pragma unroll 8
  for (int count = (int)((end - begin + step - 1) / step); count > 0; --count) {
    pack_t<T, N> in = *(const pack_t<T, N>*)at;
    at += step * stride;
#pragma unroll
    for (int k = 0; k < N; ++k) a[k] = combined(a[k], loaded(in.at[k]));
  }
}
template <int N>
__device__ __forceinline__ void rows_combined(const T* x, const axes_t& axes, int64_t begin,
                                              int64_t end, int step, ACC* a) {
  for (int64_t i = begin; i < end; i += step) {
    pack_t<T, N> in = *(const pack_t<T, N>*)(x + offset_of(axes, i));
#pragma unroll
    for (int k = 0; k < N; ++k) a[k] = combined(a[k], loaded(in.at[k]));
  }
}

template <int N>
__device__ __forceinline__ void columns_combined(const T* x, T* y, ACC* partials,
                                                 const reduction_t& r, int across) {
  __shared__ ACC sums[BLOCK * N];
  int column = threadIdx.x % across, row = threadIdx.x / across, down = BLOCK / across;
  int64_t tiles = (r.inner / N + across - 1) / across;
  for (int64_t item = blockIdx.x; item < r.outputs * tiles * r.pieces; item += gridDim.x) {
    int64_t rest = quotient_of(item, r.pieces), piece = item - rest * r.pieces;
    int64_t out = quotient_of(rest, tiles), first = ((rest - out * tiles) * across + column) * N;
    int64_t end = (piece + 1) * r.per_piece < r.rows ? (piece + 1) * r.per_piece : r.rows;
    bool is_there = first < r.inner;
    const T* from = x + offset_of(r.kept, out) + first;
    ACC a[N];
#pragma unroll
    for (int k = 0; k < N; ++k) a[k] = IDENTITY;
    int64_t begin = is_there ? piece * r.per_piece + row : end;
    if (r.reduced.count == 1) rows_combined<N>(from, r.reduced.strides[0], begin, end, down, a);
    else rows_combined<N>(from, r.reduced, begin, end, down, a);
#pragma unroll
    for (int k = 0; k < N; ++k) sums[k * BLOCK + threadIdx.x] = a[k];
    for (int half = down / 2; half > 0; half /= 2) {
      __syncthreads();
#pragma unroll
      for (int k = 0; k < N; ++k) {
        int at = k * BLOCK + threadIdx.x;
        if (row < half) sums[at] = combined(sums[at], sums[at + half * across]);
      }
    }
    for (int k = 0; k < N && row == 0 && is_there; ++k) {
      int64_t to = out * r.inner + first + k;
      ACC sum = sums[k * BLOCK + threadIdx.x];
      if (partials) partials[to * r.pieces + piece] = sum;
      else y[to] = finished(sum, r.count);
    }
    __syncthreads();
  }
}

// The innermost run is kept: |across| threads, a power of two, are neighbours in it.
extern "C" __global__ void reduce_columns(const T* x, T* y, ACC* partials, reduction_t r,
                                          int across) {
  columns_combined<1>(x, y, partials, r, across);
}
extern "C" __global__ void reduce_column_packs(const T* x, T* y, ACC* partials, reduction_t r,
                                               int across) {
  columns_combined<WIDTH>(x, y, partials, r, across);
}

// |pieces| of each output, by a warp.
extern "C" __global__ void reduce_join(const ACC* partials, T* y, int64_t outputs, int64_t pieces,
                                       int64_t count) {
  int64_t step = threads_of_grid() / WARP;
  for (int64_t out = thread_of_grid() / WARP; out < outputs; out += step) {
    ACC a = IDENTITY;
#pragma unroll 8
    for (int64_t i = threadIdx.x % WARP; i < pieces; i += WARP)
      a = combined(a, partials[out * pieces + i]);
    a = warp_combined(a, WARP);
    if (threadIdx.x % WARP == 0) y[out] = finished(a, count);
  }
}
