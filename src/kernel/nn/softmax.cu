// softmax.cu — Softmax over rows, and the cross entropies built on it. Before this text come the
// definitions of
//
//   T L   the elements' type, and that of labels that are classes
//   KIND  SOFTMAX, LOG_SOFTMAX, or the loss and its gradient from rows of probabilities
//         (DENSE_LOSS) or classes (SPARSE_LOSS)
//
// A warp has a row of up to 1024 elements in its registers; for longer ones a block reads the row
// three times, of which the memory sees one.
enum { SOFTMAX, LOG_SOFTMAX, DENSE_LOSS, SPARSE_LOSS };
enum { BLOCK = 256, WARP = 32 };
typedef element_t<T>::acc_t ACC;

struct rows_t {
  const T* x;
  const T* labels;   // of DENSE_LOSS
  const L* classes;  // of SPARSE_LOSS
  T* loss;
  T* y;
  int64_t rows, columns;
  int64_t x_row, x_column, label_row, label_column;  // strides; 0 where a row or column repeats
};

__device__ __forceinline__ ACC larger(ACC a, ACC b) { return b > a ? b : a; }
__device__ __forceinline__ ACC warp_max(ACC a) {
  for (int k = WARP / 2; k > 0; k /= 2) a = larger(a, __shfl_xor_sync(0xffffffff, a, k));
  return a;
}
__device__ __forceinline__ ACC warp_sum(ACC a) {
  for (int k = WARP / 2; k > 0; k /= 2) a += __shfl_xor_sync(0xffffffff, a, k);
  return a;
}

// Over the block; every thread has the result.
__device__ __forceinline__ ACC block_max(ACC a, ACC* scratch) {
  a = warp_max(a);
  if (threadIdx.x % WARP == 0) scratch[threadIdx.x / WARP] = a;
  __syncthreads();
  a = scratch[0];
  for (int i = 1; i < BLOCK / WARP; ++i) a = larger(a, scratch[i]);
  __syncthreads();
  return a;
}
__device__ __forceinline__ ACC block_sum(ACC a, ACC* scratch) {
  a = warp_sum(a);
  if (threadIdx.x % WARP == 0) scratch[threadIdx.x / WARP] = a;
  __syncthreads();
  a = scratch[0];
  for (int i = 1; i < BLOCK / WARP; ++i) a += scratch[i];
  __syncthreads();
  return a;
}

// What is known of a row after two passes.
struct row_t {
  const T* labels;
  T* y;
  ACC log_sum, scale;  // of the sum of exponentials: logarithm, reciprocal
  int64_t label;
  bool is_bad;  // the label is no class
};

__device__ __forceinline__ row_t row_of(const rows_t& p, int64_t row, ACC sum) {
  row_t r;
  r.y = p.y + row * p.columns;
  r.scale = (ACC)1 / sum;
  r.log_sum = KIND == SOFTMAX ? (ACC)0 : log(sum);
  r.labels = KIND == DENSE_LOSS ? p.labels + row * p.label_row : (const T*)0;
  r.label = KIND == SPARSE_LOSS ? (int64_t)p.classes[row] : 0;
  r.is_bad = r.label < 0 || r.label >= p.columns;
  return r;
}

// Writes column |j|, whose element was |v| above the largest; its part of the loss.
__device__ __forceinline__ ACC put(const rows_t& p, const row_t& r, int64_t j, ACC v) {
  ACC out, loss = 0;
  if (KIND == SOFTMAX) {
    out = exp(v) * r.scale;
  } else if (KIND == LOG_SOFTMAX) {
    out = v - r.log_sum;
  } else {
    ACC label = KIND == DENSE_LOSS ? (ACC)element_t<T>::load(r.labels[j * p.label_column])
                                   : (ACC)(j == r.label);
    out = r.is_bad ? (ACC)NAN : exp(v) * r.scale - label;
    if (KIND == DENSE_LOSS || j == r.label) loss = label * (r.log_sum - v);
  }
  r.y[j] = element_t<T>::store(out);
  return loss;
}

template <int PER>
__device__ __forceinline__ void rows_by_warps(const rows_t& p) {
  int lane = threadIdx.x % WARP;
  int64_t step = threads_of_grid() / WARP;
  for (int64_t row = thread_of_grid() / WARP; row < p.rows; row += step) {
    const T* x = p.x + row * p.x_row;
    ACC v[PER], most = -INFINITY, sum = 0, loss = 0;
#pragma unroll
    for (int k = 0; k < PER; ++k) {
      int64_t j = lane + WARP * k;
      v[k] = j < p.columns ? (ACC)element_t<T>::load(x[j * p.x_column]) : (ACC)-INFINITY;
      most = larger(most, v[k]);
    }
    most = warp_max(most);
#pragma unroll
    for (int k = 0; k < PER; ++k) {
      v[k] -= most;
      if (lane + WARP * k < p.columns) sum += exp(v[k]);
    }
    row_t r = row_of(p, row, warp_sum(sum));
#pragma unroll
    for (int k = 0; k < PER; ++k) {
      if (lane + WARP * k < p.columns) loss += put(p, r, lane + WARP * k, v[k]);
    }
    if (KIND < DENSE_LOSS) continue;
    loss = warp_sum(loss);
    if (lane == 0) p.loss[row] = element_t<T>::store(r.is_bad ? (ACC)NAN : loss);
  }
}

extern "C" __global__ void softmax_short(rows_t p) { rows_by_warps<4>(p); }
extern "C" __global__ void softmax_medium(rows_t p) { rows_by_warps<32>(p); }

extern "C" __global__ void softmax_long(rows_t p) {
  __shared__ ACC scratch[BLOCK / WARP];
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const T* x = p.x + row * p.x_row;
    ACC most = -INFINITY, sum = 0, loss = 0;
#pragma unroll 4
    for (int64_t j = threadIdx.x; j < p.columns; j += BLOCK)
      most = larger(most, element_t<T>::load(x[j * p.x_column]));
    most = block_max(most, scratch);
#pragma unroll 4
    for (int64_t j = threadIdx.x; j < p.columns; j += BLOCK)
      sum += exp(element_t<T>::load(x[j * p.x_column]) - most);
    row_t r = row_of(p, row, block_sum(sum, scratch));
#pragma unroll 4
    for (int64_t j = threadIdx.x; j < p.columns; j += BLOCK)
      loss += put(p, r, j, element_t<T>::load(x[j * p.x_column]) - most);
    if (KIND < DENSE_LOSS) continue;
    loss = block_sum(loss, scratch);
    if (threadIdx.x == 0) p.loss[row] = element_t<T>::store(r.is_bad ? (ACC)NAN : loss);
  }
}
