// batch_norm.cu — Normalisation of channels over a batch, or its gradient. Defined before this text:
// T, a floating type of at most 4 bytes (moments are float); GRAD, 1 for the gradient; and MASK, for
// the gradient of a normalisation that a ReLU follows: 0 for none, 1 where x alone tells what the
// ReLU let pass, 2 where y does, since something was added before it.
//
// x is [outer, channels, inner]; inner is 1 where channels come last. A channel's sums are made of
// pieces, which are joined in an order that depends on the shape and the GPU alone. Moments are
// joined as count, mean and sum of squared deviations, none of which is the small difference of
// large numbers.
//
// Everything is read twice, first for the sums. Where channels come last, all blocks go through it
// side by side, for the sums from the end to the beginning and then the other way round: what was
// read last, or written last by the node before, is still in the second-level cache. A mask is
// never stored: with MASK 1 the sign of y is computed anew, to the bit, and y is not read.
enum {
  BLOCK = 256,
  WARP = 32,
  FINISH = 128,  // threads that join the pieces of a channel; cuda_batch_norm.c knows
  WIDTH = 16 / sizeof(T),
  SUM_ROWS = GRAD ? 2 : 4,  // read at once
  ROWS = 2,
  EACH = sizeof(T) == 4 ? 4 : 3,  // blocks of a multiprocessor; cuda_batch_norm.c knows
};

struct norm_t {
  int64_t outer, channels, inner;
  int64_t pieces;
  int64_t per_piece;  // elements, where inner is above 1
  float epsilon, factor;
  int is_training, is_relu;
};

struct tensors_t {
  const T* x;
  const T* other;  // dy, or what is added
  const T* y;      // of MASK 2
  T* out;          // y or dx
  T* masked;       // of MASK 2: dy where the ReLU let y pass
};

struct moments_t {
  const float *old_mean, *old_variance;  // may be NULL in training
  const float *scale, *offset;
  float *mean, *variance, *saved_mean, *saved_variance;
};
struct grads_t {
  const float *mean, *variance, *scale;
  const float* offset;  // of MASK 1
  float *dscale, *doffset;
};

template <int N>
using values_t = pack_t<T, N>;

__device__ __forceinline__ float loaded(T v) { return element_t<T>::load(v); }
__device__ __forceinline__ float rounded(float v) { return loaded(element_t<T>::store(v)); }

// ---- what becomes of an element ----

__device__ __forceinline__ float factor_of(const norm_t& p, float scale, float variance) {
  return scale / sqrtf(variance + p.epsilon);
}
// |d| is x - mean. The same to the bit wherever it is asked for.
__device__ __forceinline__ float normalised(float d, float factor, float offset) {
  return __fmaf_rn(d, factor, offset);
}
__device__ __forceinline__ float passed(float dy, float y) { return dy * (float)(y > 0); }

// Of a channel: what its sums need.
struct center_t {
  float mean, factor, offset;
};
__device__ __forceinline__ center_t center_of(const norm_t& p, const grads_t& g, int64_t c) {
  center_t center = {g.mean[c], 0, 0};
  if (MASK == 1) {
    center.factor = factor_of(p, g.scale[c], g.variance[c]);
    center.offset = g.offset[c];
  }
  return center;
}

// ---- sums ----

// Of some elements of a channel: their count, mean and sum of squared deviations; or the sums of dy
// and of dy * (x - mean).
struct sums_t {
  float n, a, b;
};

__device__ __forceinline__ sums_t joined(sums_t x, sums_t y) {
  sums_t z = {x.n + y.n, x.a + y.a, x.b + y.b};
  if (GRAD) return z;
  if (y.n == 0) return x;
  if (x.n == 0) return y;
  float shift = y.a - x.a, share = y.n / z.n;
  z.a = x.a + shift * share;
  z.b = x.b + y.b + shift * shift * x.n * share;
  return z;
}

// Sums as they are made: moments around one of the elements, the mean of |center|. Of |dy| that is
// left which a ReLU let pass.
struct running_t {
  float a, b;
};
__device__ __forceinline__ void add(running_t& r, const center_t& center, float x, float& dy,
                                    float y) {
  float d = x - center.mean;
  if (MASK == 1) dy = passed(dy, rounded(normalised(d, center.factor, center.offset)));
  if (MASK == 2) dy = passed(dy, y);
  r.a += GRAD ? dy : d;
  r.b = __fmaf_rn(GRAD ? dy : d, d, r.b);
}
__device__ __forceinline__ sums_t summed(const running_t& r, const center_t& center,
                                         int64_t count) {
  float n = (float)count;
  sums_t s = {n, r.a, r.b};
  if (GRAD || count == 0) return s;
  float mean = r.a / n;
  s.a = center.mean + mean;
  s.b = r.b - r.a * mean;
  return s;
}

__device__ __forceinline__ sums_t warp_joined(sums_t s) {
  for (int k = 1; k < WARP; k *= 2) {
    sums_t other;
    other.n = __shfl_xor_sync(0xffffffff, s.n, k);
    other.a = __shfl_xor_sync(0xffffffff, s.a, k);
    other.b = __shfl_xor_sync(0xffffffff, s.b, k);
    s = threadIdx.x & k ? joined(other, s) : joined(s, other);
  }
  return s;
}

// N neighbours of x, dy and y: into |r|, and to |masked|.
template <int N>
__device__ __forceinline__ void add_pack(const tensors_t& t, int64_t at, running_t* r,
                                         const center_t* centers, int step,
                                         const values_t<N>& xs, values_t<N>& dys) {
  values_t<N> ys;
  if (MASK == 2) ys = *(const values_t<N>*)(t.y + at);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    float dy = GRAD ? loaded(dys.at[k]) : 0;
    add(r[k * step], centers[k * step], loaded(xs.at[k]), dy, MASK == 2 ? loaded(ys.at[k]) : 0);
    if (MASK == 2) dys.at[k] = element_t<T>::store(dy);
  }
  if (MASK == 2) store_whole((values_t<N>*)(t.masked + at), dys);
}

// Channels last: |across| threads, a power of two, have N neighbouring channels each, the others
// other rows: every |pieces|-th of them, from the last one on. |partials| are [channels, pieces].
template <int N>
__device__ __forceinline__ void sum_columns(const norm_t& p, const tensors_t& t, const grads_t& g,
                                            sums_t* partials, int across) {
  __shared__ sums_t shared[N][BLOCK];
  int column = threadIdx.x % across, row = threadIdx.x / across, down = BLOCK / across;
  int64_t tiles = (p.channels / N + across - 1) / across;
  int64_t piece = blockIdx.x / tiles, first = ((blockIdx.x - piece * tiles) * across + column) * N;
  int64_t begin = piece * down + row, step = p.pieces * down;
  if (first >= p.channels) begin = p.outer;
  running_t r[N] = {};
  center_t centers[N] = {};
  if (GRAD && begin < p.outer) {
#pragma unroll
    for (int k = 0; k < N; ++k) centers[k] = center_of(p, g, first + k);
  } else if (begin < p.outer) {
    values_t<N> xs = *(const values_t<N>*)(t.x + (p.outer - 1 - begin) * p.channels + first);
#pragma unroll
    for (int k = 0; k < N; ++k) centers[k].mean = loaded(xs.at[k]);
  }
  for (int64_t i = begin; i < p.outer; i += SUM_ROWS * step) {
    values_t<N> xs[SUM_ROWS], dys[SUM_ROWS];
    int64_t at = (p.outer - 1 - i) * p.channels + first;
#pragma unroll
    for (int u = 0; u < SUM_ROWS; ++u) {
      if (i + u * step >= p.outer) continue;
      xs[u] = *(const values_t<N>*)(t.x + at - u * step * p.channels);
      if (GRAD) dys[u] = *(const values_t<N>*)(t.other + at - u * step * p.channels);
    }
#pragma unroll
    for (int u = 0; u < SUM_ROWS; ++u) {
      if (i + u * step < p.outer)
        add_pack<N>(t, at - u * step * p.channels, r, centers, 1, xs[u], dys[u]);
    }
  }
  int64_t count = begin < p.outer ? (p.outer - 1 - begin) / step + 1 : 0;
#pragma unroll
  for (int k = 0; k < N; ++k) shared[k][threadIdx.x] = summed(r[k], centers[k], count);
  for (int half = down / 2; half > 0; half /= 2) {
    __syncthreads();
    for (int k = 0; k < N && row < half; ++k)
      shared[k][threadIdx.x] =
          joined(shared[k][threadIdx.x], shared[k][threadIdx.x + half * across]);
  }
  for (int k = 0; k < N && row == 0 && first < p.channels; ++k)
    partials[(first + k) * p.pieces + piece] = shared[k][threadIdx.x];
}
extern "C" __global__ void norm_columns(norm_t p, tensors_t t, grads_t g, sums_t* partials,
                                        int across) {
  sum_columns<1>(p, t, g, partials, across);
}
extern "C" __global__ void __launch_bounds__(BLOCK, EACH)
    norm_columns_packs(norm_t p, tensors_t t, grads_t g, sums_t* partials, int across) {
  sum_columns<WIDTH>(p, t, g, partials, across);
}

// Channels first: a block has a piece of a channel, in packs of N. |per_piece| is a multiple of N.
template <int N>
__device__ __forceinline__ void sum_rows(const norm_t& p, const tensors_t& t, const grads_t& g,
                                         sums_t* partials) {
  __shared__ sums_t shared[BLOCK / WARP];
  int64_t all = p.outer * p.inner;
  for (int64_t item = blockIdx.x; item < p.channels * p.pieces; item += gridDim.x) {
    int64_t channel = item / p.pieces, begin = (item - channel * p.pieces) * p.per_piece;
    int64_t end = begin + p.per_piece < all ? begin + p.per_piece : all;
    running_t r = {};
    int64_t count = 0;
    center_t center = {};
    if (GRAD) center = center_of(p, g, channel);
#pragma unroll 4
    for (int64_t i = begin + threadIdx.x * N; i < end; i += BLOCK * N) {
      int64_t image =
          (uint64_t)(i | p.inner) >> 32 ? i / p.inner : (int64_t)((uint32_t)i / (uint32_t)p.inner);
      int64_t at = (image * (p.channels - 1) + channel) * p.inner + i;
      values_t<N> xs = *(const values_t<N>*)(t.x + at), dys;
      if (GRAD) dys = *(const values_t<N>*)(t.other + at);
      if (!GRAD && count == 0) center.mean = loaded(xs.at[0]);
      add_pack<N>(t, at, &r, &center, 0, xs, dys);
      count += N;
    }
    sums_t s = warp_joined(summed(r, center, count));
    if (threadIdx.x % WARP == 0) shared[threadIdx.x / WARP] = s;
    __syncthreads();
    for (int i = 1; i < BLOCK / WARP && threadIdx.x == 0; ++i) s = joined(s, shared[i]);
    if (threadIdx.x == 0) partials[item] = s;
    __syncthreads();
  }
}
extern "C" __global__ void norm_rows(norm_t p, tensors_t t, grads_t g, sums_t* partials,
                                     int across) {
  sum_rows<1>(p, t, g, partials);
}
extern "C" __global__ void norm_rows_packs(norm_t p, tensors_t t, grads_t g, sums_t* partials,
                                           int across) {
  sum_rows<WIDTH>(p, t, g, partials);
}

// ---- what a pixel is made of, for each channel: vectors in |by| ----

// The block's threads take pieces in turn; what comes out is the first thread's. There are hundreds
// of them, and whoever waits for a step waits for these loads.
__device__ __forceinline__ sums_t pieces_joined(const norm_t& p, const sums_t* partials,
                                                int64_t channel) {
  __shared__ sums_t shared[FINISH / WARP];
  sums_t s = {0, 0, 0};
  for (int64_t i = threadIdx.x; i < p.pieces; i += FINISH)
    s = joined(s, partials[channel * p.pieces + i]);
  s = warp_joined(s);
  __syncthreads();  // the channel before may still be read
  if (threadIdx.x % WARP == 0) shared[threadIdx.x / WARP] = s;
  __syncthreads();
  for (int i = 1; i < FINISH / WARP && threadIdx.x == 0; ++i) s = joined(s, shared[i]);
  return s;
}

#if !GRAD
// y = (x - by[0]) * by[1] + by[2].
extern "C" __global__ void norm_finish(norm_t p, moments_t m, const sums_t* partials, float* by) {
  for (int64_t c = blockIdx.x; c < p.channels; c += gridDim.x) {
    float mean, variance, n = (float)(p.outer * p.inner);
    if (p.is_training) {
      sums_t s = pieces_joined(p, partials, c);
      mean = s.a;
      variance = s.b / n;
    } else {
      mean = m.old_mean[c];
      variance = m.old_variance[c];
    }
    if (threadIdx.x != 0) continue;
    float unbiased = p.is_training ? variance * (n / (n > 1 ? n - 1 : 1)) : variance;
    bool is_mixed = p.is_training && p.factor != 1;
    m.mean[c] = is_mixed ? (1 - p.factor) * m.old_mean[c] + p.factor * mean : mean;
    m.variance[c] = is_mixed ? (1 - p.factor) * m.old_variance[c] + p.factor * unbiased : unbiased;
    m.saved_mean[c] = p.is_training ? mean : 0;
    m.saved_variance[c] = p.is_training ? variance : 0;
    by[c] = mean;
    by[p.channels + c] = factor_of(p, m.scale[c], variance);
    by[2 * p.channels + c] = m.offset[c];
  }
}
#else
// dx = (dy - by[3] - (x - by[0]) * by[4]) * by[1]; by[2] is for the mask.
extern "C" __global__ void norm_finish(norm_t p, grads_t g, const sums_t* partials, float* by) {
  for (int64_t c = blockIdx.x; c < p.channels; c += gridDim.x) {
    sums_t s = pieces_joined(p, partials, c);
    if (threadIdx.x != 0) continue;
    float n = (float)(p.outer * p.inner), inverse = 1 / (g.variance[c] + p.epsilon);
    g.doffset[c] = s.a;
    g.dscale[c] = s.b * sqrtf(inverse);
    by[c] = g.mean[c];
    by[p.channels + c] = factor_of(p, g.scale[c], g.variance[c]);
    if (MASK == 1) by[2 * p.channels + c] = g.offset[c];
    by[3 * p.channels + c] = p.is_training ? s.a / n : 0;
    by[4 * p.channels + c] = p.is_training ? s.b * inverse / n : 0;
  }
}
#endif

// ---- pixels ----

// Of N neighbouring channels, or of one.
template <int N>
struct factors_t {
  pack_t<float, N> mean, factor, offset, shift, slope;
};
template <int N>
__device__ __forceinline__ factors_t<N> factors_at(const norm_t& p, const float* by, int64_t c) {
  factors_t<N> f;
  f.mean = *(const pack_t<float, N>*)(by + c);
  f.factor = *(const pack_t<float, N>*)(by + p.channels + c);
  if (!GRAD || MASK == 1) f.offset = *(const pack_t<float, N>*)(by + 2 * p.channels + c);
  if (GRAD) {
    f.shift = *(const pack_t<float, N>*)(by + 3 * p.channels + c);
    f.slope = *(const pack_t<float, N>*)(by + 4 * p.channels + c);
  }
  return f;
}

// A side input is added to what was rounded, as a node of its own would.
template <int N>
__device__ __forceinline__ T pixel(const norm_t& p, const factors_t<N>& f, int k, float x,
                                   float other, bool has_other) {
  float d = x - f.mean.at[k], v;
  if (GRAD) {
    float dy = other;
    if (MASK == 1)
      dy = passed(dy, rounded(normalised(d, f.factor.at[k], f.offset.at[k])));
    v = __fmaf_rn(-d, f.slope.at[k], dy - f.shift.at[k]) * f.factor.at[k];
  } else {
    v = normalised(d, f.factor.at[k], f.offset.at[k]);
    if (has_other) v = rounded(v) + other;
    if (p.is_relu && v <= 0) v = 0;
  }
  return element_t<T>::store(v);
}

// Of the gradients that were masked for the sums, those; else |other|.
__device__ __forceinline__ const T* other_of(const tensors_t& t) {
  return MASK == 2 ? t.masked : t.other;
}

// Channels last, as the sums have them, from the first row on.
template <int N>
__device__ __forceinline__ void apply_columns(const norm_t& p, const tensors_t& t, const float* by,
                                              int across) {
  int column = threadIdx.x % across, row = threadIdx.x / across, down = BLOCK / across;
  int64_t tiles = (p.channels / N + across - 1) / across;
  int64_t piece = blockIdx.x / tiles, first = ((blockIdx.x - piece * tiles) * across + column) * N;
  int64_t step = p.pieces * down;
  const T* __restrict__ x = t.x;
  const T* __restrict__ other = other_of(t);
  T* __restrict__ out = t.out;
  if (first >= p.channels) return;
  factors_t<N> f = factors_at<N>(p, by, first);
  for (int64_t i = piece * down + row; i < p.outer; i += ROWS * step) {
    values_t<N> xs[ROWS], others[ROWS];
    int64_t at = i * p.channels + first;
#pragma unroll
    for (int u = 0; u < ROWS; ++u) {
      if (i + u * step >= p.outer) continue;
      xs[u] = *(const values_t<N>*)(x + at + u * step * p.channels);
      if (GRAD || other) others[u] = *(const values_t<N>*)(other + at + u * step * p.channels);
    }
#pragma unroll
    for (int u = 0; u < ROWS; ++u) {
      if (i + u * step >= p.outer) continue;
      values_t<N> ys;
#pragma unroll
      for (int k = 0; k < N; ++k)
        ys.at[k] = pixel<N>(p, f, k, loaded(xs[u].at[k]),
                            GRAD || other ? loaded(others[u].at[k]) : 0, other);
      store_whole((values_t<N>*)(out + at + u * step * p.channels), ys);
    }
  }
}
extern "C" __global__ void norm_apply_columns(norm_t p, tensors_t t, const float* by, int across) {
  apply_columns<1>(p, t, by, across);
}
extern "C" __global__ void __launch_bounds__(BLOCK, EACH)
    norm_apply_columns_packs(norm_t p, tensors_t t, const float* by, int across) {
  apply_columns<WIDTH>(p, t, by, across);
}

// Channels first: N neighbours are of one.
template <int N>
__device__ __forceinline__ void apply_rows(const norm_t& p, const tensors_t& t, const float* by) {
  int64_t n = p.outer * p.channels * p.inner / N, step = threads_of_grid();
  const T* other = other_of(t);
  for (int64_t i = thread_of_grid(); i < n; i += step) {
    int64_t at = i * N;
    int64_t c = (uint64_t)at >> 32
                    ? at / p.inner % p.channels
                    : (int64_t)((uint32_t)at / (uint32_t)p.inner % (uint32_t)p.channels);
    values_t<N> xs = ((const values_t<N>*)t.x)[i], others, ys;
    if (GRAD || other) others = ((const values_t<N>*)other)[i];
    factors_t<1> f = factors_at<1>(p, by, c);
#pragma unroll
    for (int k = 0; k < N; ++k)
      ys.at[k] = pixel<1>(p, f, 0, loaded(xs.at[k]), GRAD || other ? loaded(others.at[k]) : 0,
                          other);
    store_whole((values_t<N>*)t.out + i, ys);
  }
}
extern "C" __global__ void norm_apply_rows(norm_t p, tensors_t t, const float* by, int across) {
  apply_rows<1>(p, t, by);
}
extern "C" __global__ void norm_apply_rows_packs(norm_t p, tensors_t t, const float* by,
                                                 int across) {
  apply_rows<WIDTH>(p, t, by);
}
