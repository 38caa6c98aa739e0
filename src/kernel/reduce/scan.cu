// scan.cu — Running sums and the like along a dimension. Before this text come the definitions of
//
//   T         the elements' type
//   IDENTITY  what changes nothing
//   COMBINE   of a, all that came before, and b, what comes next
//
// Few elements of many rows are a thread's each. Long rows are blocks': a tile after the other with
// what came before carried on, and where there are few of them, in chunks whose totals are summed up
// before. The order in which elements are combined is that of the shape alone.
enum { BLOCK = 256, WARP = 32, EACH = 4, TILE = BLOCK * EACH };
typedef element_t<T>::acc_t ACC;

struct scan_t {
  int64_t rows, length, inner;  // |inner| rows lie side by side: a row's elements are that far apart
  int64_t chunk, chunks;        // of a row: elements of one, and how many
  int is_exclusive, is_reverse;
};

__device__ __forceinline__ ACC combine(ACC a, ACC b) { return COMBINE; }

// Where the elements of a row are, in the order of the scan.
struct line_t {
  int64_t first, step;
};
__device__ __forceinline__ line_t line_of(const scan_t& s, int64_t row) {
  int64_t outer = s.inner == 1 ? row : row / s.inner;
  line_t line = {outer * s.inner * s.length + (row - outer * s.inner), s.inner};
  if (s.is_reverse) {
    line.first += (s.length - 1) * s.inner;
    line.step = -s.inner;
  }
  return line;
}

// What the threads before this one have of |own|, and all of the block.
__device__ __forceinline__ ACC block_before(ACC own, ACC* scratch, ACC* all) {
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  ACC sum = own;
  for (int k = 1; k < WARP; k *= 2) {
    ACC other = __shfl_up_sync(0xffffffff, sum, k);
    if (lane >= k) sum = combine(other, sum);
  }
  ACC in_warp = __shfl_up_sync(0xffffffff, sum, 1), before = IDENTITY, total = IDENTITY;
  if (lane == WARP - 1) scratch[warp] = sum;
  __syncthreads();
  for (int i = 0; i < BLOCK / WARP; ++i) {
    if (i == warp) before = total;
    total = combine(total, scratch[i]);
  }
  __syncthreads();
  *all = total;
  return lane == 0 ? before : combine(before, in_warp);
}

// A thread has a row.
extern "C" __global__ void scan_columns(const T* __restrict__ x, T* __restrict__ y, scan_t s) {
  for (int64_t row = thread_of_grid(); row < s.rows; row += threads_of_grid()) {
    line_t line = line_of(s, row);
    ACC sum = IDENTITY;
#pragma unroll 4
    for (int64_t i = 0; i < s.length; ++i) {
      int64_t at = line.first + i * line.step;
      ACC next = combine(sum, element_t<T>::load(x[at]));
      y[at] = element_t<T>::store(s.is_exclusive ? sum : next);
      sum = next;
    }
  }
}

// A block has a chunk of a row. |carries|: what came before each, where there are several.
extern "C" __global__ void scan_rows(const T* __restrict__ x, T* __restrict__ y,
                                     const ACC* __restrict__ carries, scan_t s) {
  __shared__ ACC scratch[BLOCK / WARP];
  for (int64_t unit = blockIdx.x; unit < s.rows * s.chunks; unit += gridDim.x) {
    int64_t row = unit / s.chunks, begin = (unit - row * s.chunks) * s.chunk;
    int64_t end = begin + s.chunk < s.length ? begin + s.chunk : s.length;
    line_t line = line_of(s, row);
    ACC carry = carries ? carries[unit] : (ACC)IDENTITY;
    for (; begin < end; begin += TILE) {
      int64_t first = begin + threadIdx.x * EACH;
      ACC v[EACH], own = IDENTITY, all;
#pragma unroll
      for (int k = 0; k < EACH; ++k) {
        v[k] = IDENTITY;
        if (first + k < end) v[k] = element_t<T>::load(x[line.first + (first + k) * line.step]);
      }
#pragma unroll
      for (int k = 0; k < EACH; ++k) own = combine(own, v[k]);
      ACC sum = combine(carry, block_before(own, scratch, &all));
#pragma unroll
      for (int k = 0; k < EACH; ++k) {
        ACC next = combine(sum, v[k]);
        if (first + k < end)
          y[line.first + (first + k) * line.step] =
              element_t<T>::store(s.is_exclusive ? sum : next);
        sum = next;
      }
      carry = combine(carry, all);
    }
  }
}

// All of each chunk.
extern "C" __global__ void scan_totals(const T* __restrict__ x, ACC* __restrict__ totals,
                                       scan_t s) {
  __shared__ ACC scratch[BLOCK / WARP];
  for (int64_t unit = blockIdx.x; unit < s.rows * s.chunks; unit += gridDim.x) {
    int64_t row = unit / s.chunks, begin = (unit - row * s.chunks) * s.chunk;
    int64_t end = begin + s.chunk < s.length ? begin + s.chunk : s.length;
    line_t line = line_of(s, row);
    ACC own = IDENTITY, all;
#pragma unroll 4
    for (int64_t i = begin + threadIdx.x; i < end; i += BLOCK)
      own = combine(own, element_t<T>::load(x[line.first + i * line.step]));
    block_before(own, scratch, &all);
    if (threadIdx.x == 0) totals[unit] = all;
  }
}

// Totals of a row's chunks become what came before each.
extern "C" __global__ void scan_carries(ACC* totals, scan_t s) {
  __shared__ ACC scratch[BLOCK / WARP];
  for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    ACC carry = IDENTITY, all;
    for (int64_t begin = 0; begin < s.chunks; begin += BLOCK) {
      int64_t i = begin + threadIdx.x, at = row * s.chunks + i;
      ACC before = block_before(i < s.chunks ? totals[at] : (ACC)IDENTITY, scratch, &all);
      if (i < s.chunks) totals[at] = combine(carry, before);
      carry = combine(carry, all);
    }
  }
}
