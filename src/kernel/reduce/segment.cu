// segment.cu — Reductions of runs of rows whose ids are equal. Before this text come the
// definitions of
//
//   T      the elements' type
//   ID     that of the ids, which do not decrease
//   INDEX  that of the indices, where rows are picked by them
//   JOIN   of a, all that came before, and b, what comes next
//   GAP    what there is for ids that do not occur
//
// Every element is joined in an order that the shapes and ids give, so that results repeat. A row
// that is out of range is left out, and ids out of order make wrong sums, of nothing but rows.
enum { BLOCK = 256, MEAN = 1, SQRT = 2 };
typedef element_t<T>::acc_t ACC;

struct segments_t {
  int64_t ids, segments;  // how many
  int64_t rows, inner;    // of the data, and elements of one
  int norm;
  int columns;  // that a block takes at a time, a power of two
};

__device__ __forceinline__ ACC joined(ACC a, ACC b) { return JOIN; }

// The first place from |low| on whose id is not below |id|.
__device__ __forceinline__ int64_t first_of(const ID* ids, int64_t low, int64_t count, int64_t id) {
  while (low < count) {
    int64_t middle = low + (count - low) / 2;
    if ((int64_t)ids[middle] < id) low = middle + 1;
    else count = middle;
  }
  return low;
}

// Joins a column's elements of the rows |begin|, |begin| + |step|, … before |end|. False: none.
__device__ __forceinline__ bool join_rows(const T* __restrict__ x,
                                          const INDEX* __restrict__ indices, const segments_t& s,
                                          int64_t column, int64_t begin, int64_t end, int step,
                                          ACC* out) {
  bool has_any = false;
  ACC sum = GAP;
#pragma unroll 4
  for (int64_t i = begin; i < end; i += step) {
    int64_t row = indices ? (int64_t)indices[i] : i;
    if ((uint64_t)row >= (uint64_t)s.rows) continue;
    ACC value = element_t<T>::load(x[row * s.inner + column]);
    sum = has_any ? joined(sum, value) : value;
    has_any = true;
  }
  *out = sum;
  return has_any;
}

__device__ __forceinline__ T finished(ACC sum, int64_t count, int norm) {
  if (norm == MEAN && count > 1) sum = sum / (ACC)count;
  if (norm == SQRT && count > 1) sum = sum / (ACC)sqrt((double)count);
  return element_t<T>::store(sum);
}

// A thread has an element of the result.
extern "C" __global__ void segments(const T* __restrict__ x, const INDEX* __restrict__ indices,
                                    const ID* __restrict__ ids, T* __restrict__ y, segments_t s) {
  int64_t count = s.segments * s.inner;
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t segment = quotient_of(i, s.inner);
    int64_t begin = first_of(ids, 0, s.ids, segment);
    int64_t end = first_of(ids, begin, s.ids, segment + 1);
    ACC sum;
    join_rows(x, indices, s, i - segment * s.inner, begin, end, 1, &sum);
    y[i] = finished(sum, end - begin, s.norm);
  }
}

// A block has a few columns of a long segment: its threads take rows in turns.
extern "C" __global__ void long_segments(const T* __restrict__ x, const INDEX* __restrict__ indices,
                                         const ID* __restrict__ ids, T* __restrict__ y,
                                         segments_t s) {
  __shared__ ACC sums[BLOCK];
  __shared__ bool has[BLOCK];
  int me = threadIdx.x, lanes = BLOCK / s.columns, lane = me / s.columns;
  int64_t tiles = (s.inner + s.columns - 1) / s.columns;
  for (int64_t unit = blockIdx.x; unit < s.segments * tiles; unit += gridDim.x) {
    int64_t segment = quotient_of(unit, tiles);
    int64_t column = (unit - segment * tiles) * s.columns + me % s.columns;
    int64_t begin = first_of(ids, 0, s.ids, segment);
    int64_t end = first_of(ids, begin, s.ids, segment + 1);
    ACC sum = GAP;
    has[me] = column < s.inner && join_rows(x, indices, s, column, begin + lane, end, lanes, &sum);
    sums[me] = sum;
    for (int step = lanes / 2; step > 0; step /= 2) {
      int other = me + step * s.columns;
      __syncthreads();
      if (lane >= step || !has[other]) continue;
      sums[me] = has[me] ? joined(sums[me], sums[other]) : sums[other];
      has[me] = true;
    }
    if (lane == 0 && column < s.inner)
      y[segment * s.inner + column] = finished(sums[me], end - begin, s.norm);
    __syncthreads();
  }
}
