// lrn.cu — Local response normalisation over neighbouring channels, channels last, and its
// gradient. T is defined before this text.
enum { BLOCK = 256, MAX_SHARED_RADIUS = 64 };

struct lrn_t {
  int64_t rows, channels, radius;
  float bias, alpha, beta;
};

// The first and the last of the channels around |c|.
__device__ __forceinline__ int64_t first_of(const lrn_t& l, int64_t c) {
  return c > l.radius ? c - l.radius : 0;
}
__device__ __forceinline__ int64_t last_of(const lrn_t& l, int64_t c) {
  return l.channels - 1 - c > l.radius ? c + l.radius : l.channels - 1;
}

__device__ __forceinline__ float norm_of(const lrn_t& l, const T* row, int64_t c) {
  float sum = 0;
  int64_t last = last_of(l, c);
#pragma unroll 4
  for (int64_t j = first_of(l, c); j <= last; ++j) {
    float v = element_t<T>::load(row[j]);
    sum += v * v;
  }
  return l.bias + l.alpha * sum;
}

// To the power of -beta.
__device__ __forceinline__ float power_of(const lrn_t& l, float norm) {
  if (l.beta == 0.5f) return 1 / sqrtf(norm);
  if (l.beta == 0.75f) return 1 / (sqrtf(norm) * sqrtf(sqrtf(norm)));
  return l.beta == 1 ? 1 / norm : expf(-l.beta * logf(norm));
}

__device__ __forceinline__ int64_t row_of(const lrn_t& l, int64_t i) {
  return (uint64_t)(i | l.channels) >> 32 ? i / l.channels
                                          : (int64_t)((uint32_t)i / (uint32_t)l.channels);
}

extern "C" __global__ void lrn(lrn_t l, const T* x, T* y) {
  int64_t n = l.rows * l.channels, step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < n; i += step) {
    int64_t first = row_of(l, i) * l.channels;
    float power = power_of(l, norm_of(l, x + first, i - first));
    y[i] = element_t<T>::store(element_t<T>::load(x[i]) * power);
  }
}

__device__ __forceinline__ float part_of(const lrn_t& l, const T* dy, const T* x, const T* y,
                                         int64_t first, int64_t c) {
  int64_t i = first + c;
  return element_t<T>::load(dy[i]) * element_t<T>::load(y[i]) / norm_of(l, x + first, c);
}

__device__ __forceinline__ void put(const lrn_t& l, const T* dy, const T* x, T* dx, int64_t first,
                                    int64_t i, float sum) {
  float power = power_of(l, norm_of(l, x + first, i - first));
  float factor = -2 * l.alpha * l.beta;
  dx[i] = element_t<T>::store(element_t<T>::load(dy[i]) * power +
                              factor * element_t<T>::load(x[i]) * sum);
}

// dx = dy norm^-beta - 2 alpha beta x * sum over the neighbours of dy y / norm. The block's parts
// of that sum, and those of its neighbours, are in shared memory.
extern "C" __global__ void lrn_grad(lrn_t l, const T* dy, const T* x, const T* y, T* dx) {
  __shared__ float parts[BLOCK + 2 * MAX_SHARED_RADIUS];
  int64_t n = l.rows * l.channels;
  int radius = (int)l.radius;
  for (int64_t base = (int64_t)blockIdx.x * BLOCK; base < n; base += (int64_t)gridDim.x * BLOCK) {
    for (int k = threadIdx.x; k < BLOCK + 2 * radius; k += BLOCK) {
      int64_t i = base + k - radius;
      if (i < 0 || i >= n) continue;
      int64_t first = row_of(l, i) * l.channels;
      parts[k] = part_of(l, dy, x, y, first, i - first);
    }
    __syncthreads();
    int64_t i = base + threadIdx.x;
    if (i < n) {
      int64_t first = row_of(l, i) * l.channels, shift = first - base + radius;
      int last = (int)(last_of(l, i - first) + shift);
      float sum = 0;
      for (int k = (int)(first_of(l, i - first) + shift); k <= last; ++k) sum += parts[k];
      put(l, dy, x, dx, first, i, sum);
    }
    __syncthreads();
  }
}

// The same for any radius.
extern "C" __global__ void lrn_grad_far(lrn_t l, const T* dy, const T* x, const T* y, T* dx) {
  int64_t n = l.rows * l.channels, step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < n; i += step) {
    int64_t first = row_of(l, i) * l.channels, last = last_of(l, i - first);
    float sum = 0;
    for (int64_t c = first_of(l, i - first); c <= last; ++c) sum += part_of(l, dy, x, y, first, c);
    put(l, dy, x, dx, first, i, sum);
  }
}
