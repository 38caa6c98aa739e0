// batch_norm.cu — Normalisation of channels over a batch, and its gradient. T, a floating type of
// at most 4 bytes, is defined before this text; moments are float.
//
// x is [outer, channels, inner]; inner is 1 where channels come last. A channel's sums are made of
// pieces, which are joined in an order that depends on the shape and the GPU alone. Moments are
// joined as count, mean and sum of squared deviations, none of which is the small difference of
// large numbers.
enum { BLOCK = 256, WARP = 32, WIDTH = 16 / sizeof(T) };

struct norm_t {
  int64_t outer, channels, inner;
  int64_t pieces;
  int64_t per_piece;  // rows, or elements where inner is above 1
  float epsilon, factor;
  int is_training, is_relu;
};

// Of some elements of a channel: their count, mean and sum of squared deviations; or the sums of dy
// and of dy * (x - mean).
struct sums_t {
  float n, a, b;
};

template <bool IS_GRAD>
__device__ __forceinline__ sums_t joined(sums_t x, sums_t y) {
  sums_t z = {x.n + y.n, x.a + y.a, x.b + y.b};
  if (IS_GRAD) return z;
  if (y.n == 0) return x;
  if (x.n == 0) return y;
  float shift = y.a - x.a, share = y.n / z.n;
  z.a = x.a + shift * share;
  z.b = x.b + y.b + shift * shift * x.n * share;
  return z;
}

// Sums as they are made, for moments around the first element.
struct running_t {
  float first, a, b;
};
template <bool IS_GRAD>
__device__ __forceinline__ void add(running_t& r, bool is_first, float x, float dy, float mean) {
  if (IS_GRAD) {
    r.a += dy;
    r.b += dy * (x - mean);
  } else {
    if (is_first) r.first = x;
    float d = x - r.first;
    r.a += d;
    r.b += d * d;
  }
}
template <bool IS_GRAD>
__device__ __forceinline__ sums_t summed(const running_t& r, int64_t count) {
  float n = (float)count;
  sums_t s = {n, r.a, r.b};
  if (IS_GRAD || count == 0) return s;
  float mean = r.a / n;
  s.a = r.first + mean;
  s.b = r.b - r.a * mean;
  return s;
}

template <bool IS_GRAD>
__device__ __forceinline__ sums_t warp_joined(sums_t s) {
  for (int k = 1; k < WARP; k *= 2) {
    sums_t other;
    other.n = __shfl_xor_sync(0xffffffff, s.n, k);
    other.a = __shfl_xor_sync(0xffffffff, s.a, k);
    other.b = __shfl_xor_sync(0xffffffff, s.b, k);
    s = threadIdx.x & k ? joined<IS_GRAD>(other, s) : joined<IS_GRAD>(s, other);
  }
  return s;
}

// Channels last: |across| threads, a power of two, have N neighbouring channels each, the others
// other rows. |partials| are [channels, pieces].
template <int N, bool IS_GRAD>
__device__ __forceinline__ void sum_columns(const norm_t& p, const T* x, const T* dy,
                                            const float* mean, sums_t* partials, int across) {
  __shared__ sums_t shared[BLOCK];
  int column = threadIdx.x % across, row = threadIdx.x / across, down = BLOCK / across;
  int64_t tiles = (p.channels / N + across - 1) / across;
  for (int64_t item = blockIdx.x; item < tiles * p.pieces; item += gridDim.x) {
    int64_t piece = item / tiles, first = ((item - piece * tiles) * across + column) * N;
    int64_t begin = piece * p.per_piece + row;
    int64_t end = (piece + 1) * p.per_piece < p.outer ? (piece + 1) * p.per_piece : p.outer;
    bool is_there = first < p.channels;
    running_t r[N] = {};
    float means[N] = {};
    int64_t count = 0;
#pragma unroll
    for (int k = 0; k < N; ++k)
      if (IS_GRAD && is_there) means[k] = mean[first + k];
#pragma unroll 4
    for (int64_t i = is_there ? begin : end; i < end; i += down) {
      pack_t<T, N> xs = *(const pack_t<T, N>*)(x + i * p.channels + first), dys;
      if (IS_GRAD) dys = *(const pack_t<T, N>*)(dy + i * p.channels + first);
#pragma unroll
      for (int k = 0; k < N; ++k)
        add<IS_GRAD>(r[k], i == begin, element_t<T>::load(xs.at[k]),
                     IS_GRAD ? (float)element_t<T>::load(dys.at[k]) : 0, means[k]);
      ++count;
    }
#pragma unroll
    for (int k = 0; k < N; ++k) {
      shared[threadIdx.x] = summed<IS_GRAD>(r[k], count);
      for (int half = down / 2; half > 0; half /= 2) {
        __syncthreads();
        if (row < half)
          shared[threadIdx.x] =
              joined<IS_GRAD>(shared[threadIdx.x], shared[threadIdx.x + half * across]);
      }
      if (row == 0 && is_there) partials[(first + k) * p.pieces + piece] = shared[threadIdx.x];
      __syncthreads();
    }
  }
}
extern "C" __global__ void norm_columns(norm_t p, const T* x, const T* dy, const float* mean,
                                        sums_t* partials, int across) {
  sum_columns<1, false>(p, x, dy, mean, partials, across);
}
extern "C" __global__ void norm_columns_packs(norm_t p, const T* x, const T* dy, const float* mean,
                                              sums_t* partials, int across) {
  sum_columns<WIDTH, false>(p, x, dy, mean, partials, across);
}
extern "C" __global__ void norm_grad_columns(norm_t p, const T* x, const T* dy, const float* mean,
                                             sums_t* partials, int across) {
  sum_columns<1, true>(p, x, dy, mean, partials, across);
}
extern "C" __global__ void norm_grad_columns_packs(norm_t p, const T* x, const T* dy,
                                                   const float* mean, sums_t* partials,
                                                   int across) {
  sum_columns<WIDTH, true>(p, x, dy, mean, partials, across);
}

// Channels first: a block has a piece of a channel, in packs of N. |per_piece| is a multiple of N.
template <int N, bool IS_GRAD>
__device__ __forceinline__ void sum_rows(const norm_t& p, const T* x, const T* dy,
                                         const float* mean, sums_t* partials) {
  __shared__ sums_t shared[BLOCK / WARP];
  int64_t all = p.outer * p.inner;
  for (int64_t item = blockIdx.x; item < p.channels * p.pieces; item += gridDim.x) {
    int64_t channel = item / p.pieces, begin = (item - channel * p.pieces) * p.per_piece;
    int64_t end = begin + p.per_piece < all ? begin + p.per_piece : all;
    running_t r = {};
    int64_t count = 0;
    float center = IS_GRAD ? mean[channel] : 0;
#pragma unroll 4
    for (int64_t i = begin + threadIdx.x * N; i < end; i += BLOCK * N) {
      int64_t image =
          (uint64_t)(i | p.inner) >> 32 ? i / p.inner : (int64_t)((uint32_t)i / (uint32_t)p.inner);
      int64_t at = (image * (p.channels - 1) + channel) * p.inner + i;
      pack_t<T, N> xs = *(const pack_t<T, N>*)(x + at), dys;
      if (IS_GRAD) dys = *(const pack_t<T, N>*)(dy + at);
#pragma unroll
      for (int k = 0; k < N; ++k)
        add<IS_GRAD>(r, count == 0 && k == 0, element_t<T>::load(xs.at[k]),
                     IS_GRAD ? (float)element_t<T>::load(dys.at[k]) : 0, center);
      count += N;
    }
    sums_t s = warp_joined<IS_GRAD>(summed<IS_GRAD>(r, count));
    if (threadIdx.x % WARP == 0) shared[threadIdx.x / WARP] = s;
    __syncthreads();
    for (int i = 1; i < BLOCK / WARP && threadIdx.x == 0; ++i) s = joined<IS_GRAD>(s, shared[i]);
    if (threadIdx.x == 0) partials[item] = s;
    __syncthreads();
  }
}
extern "C" __global__ void norm_rows(norm_t p, const T* x, const T* dy, const float* mean,
                                     sums_t* partials, int across) {
  sum_rows<1, false>(p, x, dy, mean, partials);
}
extern "C" __global__ void norm_rows_packs(norm_t p, const T* x, const T* dy, const float* mean,
                                           sums_t* partials, int across) {
  sum_rows<WIDTH, false>(p, x, dy, mean, partials);
}
extern "C" __global__ void norm_grad_rows(norm_t p, const T* x, const T* dy, const float* mean,
                                          sums_t* partials, int across) {
  sum_rows<1, true>(p, x, dy, mean, partials);
}
extern "C" __global__ void norm_grad_rows_packs(norm_t p, const T* x, const T* dy,
                                                const float* mean, sums_t* partials, int across) {
  sum_rows<WIDTH, true>(p, x, dy, mean, partials);
}

template <bool IS_GRAD>
__device__ __forceinline__ sums_t pieces_joined(const norm_t& p, const sums_t* partials,
                                                int64_t channel) {
  sums_t s = {0, 0, 0};
  for (int64_t i = threadIdx.x % WARP; i < p.pieces; i += WARP)
    s = joined<IS_GRAD>(s, partials[channel * p.pieces + i]);
  return warp_joined<IS_GRAD>(s);
}

// What a pixel is made of, for each channel: three vectors in |by|. y = (x - by[0]) * by[1] +
// by[2].
struct moments_t {
  const float *old_mean, *old_variance;  // may be NULL in training
  const float *scale, *offset;
  float *mean, *variance, *saved_mean, *saved_variance;
};
extern "C" __global__ void norm_finish(norm_t p, moments_t m, const sums_t* partials, float* by) {
  int64_t step = threads_of_grid() / WARP;
  for (int64_t c = thread_of_grid() / WARP; c < p.channels; c += step) {
    float mean, variance, n = (float)(p.outer * p.inner);
    if (p.is_training) {
      sums_t s = pieces_joined<false>(p, partials, c);
      mean = s.a;
      variance = s.b / n;
    } else {
      mean = m.old_mean[c];
      variance = m.old_variance[c];
    }
    if (threadIdx.x % WARP != 0) continue;
    float unbiased = p.is_training ? variance * (n / (n > 1 ? n - 1 : 1)) : variance;
    bool is_mixed = p.is_training && p.factor != 1;
    m.mean[c] = is_mixed ? (1 - p.factor) * m.old_mean[c] + p.factor * mean : mean;
    m.variance[c] = is_mixed ? (1 - p.factor) * m.old_variance[c] + p.factor * unbiased : unbiased;
    m.saved_mean[c] = p.is_training ? mean : 0;
    m.saved_variance[c] = p.is_training ? variance : 0;
    by[c] = mean;
    by[p.channels + c] = m.scale[c] / sqrtf(variance + p.epsilon);
    by[2 * p.channels + c] = m.offset[c];
  }
}

// dx = (dy - by[1] - (x - by[0]) * by[2]) * by[3].
struct grads_t {
  const float *mean, *variance, *scale;
  float *dscale, *doffset;
};
extern "C" __global__ void norm_grad_finish(norm_t p, grads_t g, const sums_t* partials,
                                            float* by) {
  int64_t step = threads_of_grid() / WARP;
  for (int64_t c = thread_of_grid() / WARP; c < p.channels; c += step) {
    sums_t s = pieces_joined<true>(p, partials, c);
    if (threadIdx.x % WARP != 0) continue;
    float n = (float)(p.outer * p.inner), inverse = 1 / (g.variance[c] + p.epsilon);
    g.doffset[c] = s.a;
    g.dscale[c] = s.b * sqrtf(inverse);
    by[c] = g.mean[c];
    by[p.channels + c] = p.is_training ? s.a / n : 0;
    by[2 * p.channels + c] = p.is_training ? s.b * inverse / n : 0;
    by[3 * p.channels + c] = g.scale[c] * sqrtf(inverse);
  }
}

// Of N neighbours, from channel |c| on: of that one alone, or of as many where channels come last.
template <int N>
__device__ __forceinline__ pack_t<float, N> factors(const norm_t& p, const float* by, int64_t c) {
  if (p.inner == 1) return *(const pack_t<float, N>*)(by + c);
  pack_t<float, N> same;
#pragma unroll
  for (int k = 0; k < N; ++k) same.at[k] = by[c];
  return same;
}

template <int N, bool IS_GRAD>
__device__ __forceinline__ void apply(const norm_t& p, const T* x, const T* other, T* y,
                                      const float* by) {
  int64_t n = p.outer * p.channels * p.inner / N, step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < n; i += step) {
    int64_t at = i * N;
    int64_t c = (uint64_t)at >> 32
                    ? at / p.inner % p.channels
                    : (int64_t)((uint32_t)at / (uint32_t)p.inner % (uint32_t)p.channels);
    pack_t<T, N> xs = ((const pack_t<T, N>*)x)[i], others, out;
    if (other) others = ((const pack_t<T, N>*)other)[i];
    pack_t<float, N> f0 = factors<N>(p, by, c), f1 = factors<N>(p, by + p.channels, c);
    pack_t<float, N> f2 = factors<N>(p, by + 2 * p.channels, c), f3;
    if (IS_GRAD) f3 = factors<N>(p, by + 3 * p.channels, c);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float v = (float)element_t<T>::load(xs.at[k]) - f0.at[k];
      if (IS_GRAD) {
        float dy = element_t<T>::load(others.at[k]);
        v = (dy - f1.at[k] - v * f2.at[k]) * f3.at[k];
      } else {
        v = v * f1.at[k] + f2.at[k];
        if (other) v += element_t<T>::load(others.at[k]);
        v = p.is_relu && v < 0 ? 0 : v;
      }
      out.at[k] = element_t<T>::store(v);
    }
    ((pack_t<T, N>*)y)[i] = out;
  }
}
extern "C" __global__ void norm_apply(norm_t p, const T* x, const T* side, T* y, const float* by) {
  apply<1, false>(p, x, side, y, by);
}
extern "C" __global__ void norm_apply_packs(norm_t p, const T* x, const T* side, T* y,
                                            const float* by) {
  apply<WIDTH, false>(p, x, side, y, by);
}
extern "C" __global__ void norm_grad_apply(norm_t p, const T* x, const T* dy, T* dx,
                                           const float* by) {
  apply<1, true>(p, x, dy, dx, by);
}
extern "C" __global__ void norm_grad_apply_packs(norm_t p, const T* x, const T* dy, T* dx,
                                                 const float* by) {
  apply<WIDTH, true>(p, x, dy, dx, by);
}
