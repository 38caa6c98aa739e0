// reduce.cu — Reductions over any set of dimensions. Before this text come the definitions of
//
//   T ACC     the elements' type, and what is computed in
//   IDENTITY  of the operation
//   LOAD      what an element is to it, of v, the element as ACC has it
//   COMBINE   of a and b
//   FINISH    the result, of a, which n elements were combined to
//   WIDTH     elements of a pack
//   ROWS, COLUMNS  if so, the kernels of an innermost run that is reduced, and of one that is kept
//
// Elements come from memory; or, where HAS_SOURCE is defined, from a source that is before this
// text: it has the words with which the text begins.
//
// The innermost run of dimensions is reduced, or kept. If reduced, the threads of a part of a warp,
// or of a block, go through the elements of one output. If kept, neighbouring threads have
// neighbouring outputs, and the block's rows of threads join at the end. Where outputs are few,
// their elements are cut into pieces, whose results another launch joins, in an order that depends
// on shapes and the GPU alone.
#ifndef HAS_SOURCE
enum { AHEAD = 4 };  // packs that a thread asks for before it takes the first
struct source_t {
  const T* x;
};
template <int N>
struct held_t {
  pack_t<T, N> x;
};
// Asks for the N elements from |at| on.
template <int N>
__device__ __forceinline__ void fetch(const source_t& source, int64_t at, held_t<N>& held) {
  held.x = *(const pack_t<T, N>*)(source.x + at);
}
// Has them.
template <int N>
__device__ __forceinline__ void take(const source_t& source, int64_t at, const held_t<N>& held,
                                     T* out) {
#pragma unroll
  for (int k = 0; k < N; ++k) out[k] = held.x.at[k];
}
#endif

enum { BLOCK = 256, WARP = 32, MAX_AXES = 8, AT_ONCE = 8 };

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

__device__ __forceinline__ int64_t offset_of(const axes_t& axes, int64_t index) {
  int64_t offset = 0;
#pragma unroll 1  // of a few; what is around it is unrolled
  for (int i = axes.count - 1; i > 0; --i) {
    int64_t rest = quotient_of(index, axes.dims[i]);
    offset += (index - rest * axes.dims[i]) * axes.strides[i];
    index = rest;
  }
  return axes.count ? offset + index * axes.strides[0] : 0;
}

// Combines |held| into |a|.
template <int N>
__device__ __forceinline__ void combine(const source_t& x, int64_t at, const held_t<N>& held,
                                        ACC* a) {
  T v[N];
  take<N>(x, at, held, v);
#pragma unroll
  for (int k = 0; k < N; ++k) a[k] = combined(a[k], loaded(v[k]));
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

// |count| packs from |at| on, |hop| elements apart; COUNT are asked for ahead.
template <int N, int COUNT>
__device__ __forceinline__ void hops_combined(const source_t& x, int64_t at, int64_t hop, int count,
                                              ACC* a) {
#pragma unroll 1
  for (; count > 0; count -= COUNT, at += COUNT * hop) {
    held_t<N> held[COUNT];
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
      if (u < count) fetch<N>(x, at + u * hop, held[u]);
    }
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
      if (u < count) combine<N>(x, at + u * hop, held[u], a);
    }
  }
}

// How many of [begin, end) there are, every |step|-th.
__device__ __forceinline__ int count_of(int64_t begin, int64_t end, int step) {
  return begin < end ? (int)quotient_of(end - begin + step - 1, step) : 0;
}

#ifdef ROWS
// |count| packs from |begin| on of an output whose elements begin at |base|, every |step|-th; of
// rows that are so far apart, or where the dimensions say.
template <int N, bool HAS_STRIDE>
__device__ __forceinline__ void walk_combined(const source_t& x, const reduction_t& r, int64_t base,
                                              int64_t begin, int step, int count, ACC* a) {
  enum { COUNT = HAS_STRIDE ? AHEAD : 1 };
  int64_t inner = r.inner / N, row = quotient_of(begin, inner), column = begin - row * inner;
  int64_t rows = quotient_of(step, inner), columns = step - rows * inner;  // of a step
#pragma unroll 1
  for (; count > 0; count -= COUNT) {
    held_t<N> held[COUNT];
    int64_t at[COUNT];
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
      if (u >= count) continue;
      at[u] = base + column * N;
      at[u] += HAS_STRIDE ? row * r.reduced.strides[0] : offset_of(r.reduced, row);
      fetch<N>(x, at[u], held[u]);
      row += rows;
      column += columns;
      if (column >= inner) {
        column -= inner;
        ++row;
      }
    }
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
      if (u < count) combine<N>(x, at[u], held[u], a);
    }
  }
}

// Packs [begin, end) of an output whose elements begin at |base|, every |step|-th.
template <int N>
__device__ __forceinline__ ACC packs_combined(const source_t& x, const reduction_t& r, int64_t base,
                                              int64_t begin, int64_t end, int step) {
  ACC a[N];
#pragma unroll
  for (int k = 0; k < N; ++k) a[k] = IDENTITY;
  int count = count_of(begin, end, step);
  if (count == 0) return IDENTITY;
  if (r.rows == 1) hops_combined<N, AHEAD>(x, base + begin * N, step * N, count, a);
  else if (r.reduced.count == 1) walk_combined<N, true>(x, r, base, begin, step, count, a);
  else walk_combined<N, false>(x, r, base, begin, step, count, a);
#pragma unroll
  for (int k = 1; k < N; ++k) a[0] = combined(a[0], a[k]);
  return a[0];
}

// Elements [begin, end) of those at |base|, by |step| threads of which this is the |first|; as
// packs, where |begin| is a multiple of WIDTH, and |end|, too, unless there is but one row.
__device__ __forceinline__ ACC row_combined(const source_t& x, const reduction_t& r, int64_t base,
                                            int64_t begin, int64_t end, int first, int step,
                                            int is_packed) {
  ACC a = IDENTITY;
  if (is_packed) {
    int64_t last = end / WIDTH;
    a = packs_combined<WIDTH>(x, r, base, begin / WIDTH + first, last, step);
    begin = last * WIDTH;
  }
  return combined(a, packs_combined<1>(x, r, base, begin + first, end, step));
}

// The innermost run is reduced, by |lanes| threads an output.
extern "C" __global__ void reduce_rows_by_lanes(const __grid_constant__ source_t x, T* y,
                                                const __grid_constant__ reduction_t r, int lanes,
                                                int is_packed) {
  int per_warp = WARP / lanes, lane = threadIdx.x % WARP;
  int64_t step = threads_of_grid() / WARP * per_warp;
  for (int64_t base = thread_of_grid() / WARP * per_warp; base < r.outputs; base += step) {
    int64_t out = base + lane / lanes;
    bool is_there = out < r.outputs;
    ACC a = IDENTITY;
    if (is_there)
      a = row_combined(x, r, offset_of(r.kept, out), 0, r.count, lane % lanes, lanes, is_packed);
    a = warp_combined(a, lanes);
    if (is_there && lane % lanes == 0) y[out] = finished(a, r.count);
  }
}

// The same by a block a piece of an output.
extern "C" __global__ void reduce_rows(const __grid_constant__ source_t x, T* y, ACC* partials,
                                       const __grid_constant__ reduction_t r, int is_packed) {
  for (int64_t item = blockIdx.x; item < r.outputs * r.pieces; item += gridDim.x) {
    int64_t out = quotient_of(item, r.pieces), begin = (item - out * r.pieces) * r.per_piece;
    int64_t end = begin + r.per_piece < r.count ? begin + r.per_piece : r.count;
    ACC a = row_combined(x, r, offset_of(r.kept, out), begin, end, threadIdx.x, BLOCK, is_packed);
    a = block_combined(a);
    if (threadIdx.x != 0) continue;
    if (partials) partials[item] = a;
    else y[out] = finished(a, r.count);
  }
}
#endif

#ifdef COLUMNS
// Over the |down| rows of threads; the first row has the result.
template <int N>
__device__ __forceinline__ void threads_combined(ACC* a, int across, int down, int row) {
  __shared__ ACC sums[N][BLOCK];
#pragma unroll
  for (int k = 0; k < N; ++k) sums[k][threadIdx.x] = a[k];
  while (down > 1) {
    int half = (down + 1) / 2;
    __syncthreads();
    if (row + half < down) {
#pragma unroll
      for (int k = 0; k < N; ++k) {
        a[k] = combined(a[k], sums[k][threadIdx.x + half * across]);
        sums[k][threadIdx.x] = a[k];
      }
    }
    down = half;
  }
  __syncthreads();
}

// |across| threads are neighbours in the innermost run; so many rows of them as the block has.
template <int N>
__device__ __forceinline__ void columns_combined(const source_t& x, T* y, ACC* partials,
                                                 const reduction_t& r, int across) {
  enum { COUNT = N < WIDTH ? 4 * AHEAD : AHEAD };  // what is not packed takes less room
  int row = threadIdx.x / across, column = threadIdx.x - row * across, down = blockDim.x / across;
  int64_t tiles = (r.inner / N + across - 1) / across;
  for (int64_t item = blockIdx.x; item < r.outputs * tiles * r.pieces; item += gridDim.x) {
    int64_t rest = quotient_of(item, r.pieces), piece = item - rest * r.pieces;
    int64_t out = quotient_of(rest, tiles), to = ((rest - out * tiles) * across + column) * N;
    int64_t end = (piece + 1) * r.per_piece < r.rows ? (piece + 1) * r.per_piece : r.rows;
    bool is_there = to < r.inner && row < down;
    ACC a[N];
#pragma unroll
    for (int k = 0; k < N; ++k) a[k] = IDENTITY;
    int64_t begin = is_there ? piece * r.per_piece + row : end;
    int64_t first = offset_of(r.kept, out) + to, stride = r.reduced.strides[0];
    if (r.reduced.count <= 1)
      hops_combined<N, COUNT>(x, first + begin * stride, down * stride, count_of(begin, end, down),
                              a);
    for (; r.reduced.count > 1 && begin < end; begin += down)
      hops_combined<N, 1>(x, first + offset_of(r.reduced, begin), 0, 1, a);
    threads_combined<N>(a, across, down, row);
    if (row > 0 || !is_there) continue;
    to += out * r.inner;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (partials) partials[(to + k) * r.pieces + piece] = a[k];
      else y[to + k] = finished(a[k], r.count);
    }
  }
}

extern "C" __global__ void reduce_columns(const __grid_constant__ source_t x, T* y, ACC* partials,
                                          const __grid_constant__ reduction_t r, int across) {
  columns_combined<1>(x, y, partials, r, across);
}
extern "C" __global__ void reduce_column_packs(const __grid_constant__ source_t x, T* y,
                                               ACC* partials,
                                               const __grid_constant__ reduction_t r, int across) {
  columns_combined<WIDTH>(x, y, partials, r, across);
}
#endif

// |pieces| of each output, by a warp.
extern "C" __global__ void reduce_join(const ACC* partials, T* y, int64_t outputs, int64_t pieces,
                                       int64_t count) {
  int64_t step = threads_of_grid() / WARP;
  for (int64_t out = thread_of_grid() / WARP; out < outputs; out += step) {
    ACC a = IDENTITY;
    for (int64_t i = threadIdx.x % WARP; i < pieces; i += AT_ONCE * WARP) {
      ACC b[AT_ONCE];
#pragma unroll
      for (int u = 0; u < AT_ONCE; ++u)
        b[u] = i + u * WARP < pieces ? partials[out * pieces + i + u * WARP] : (ACC)(IDENTITY);
#pragma unroll
      for (int u = 0; u < AT_ONCE; ++u) a = combined(a, b[u]);
    }
    a = warp_combined(a, WARP);
    if (threadIdx.x % WARP == 0) y[out] = finished(a, count);
  }
}
