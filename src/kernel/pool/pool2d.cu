// pool2d.cu — Pooling of images with channels last, and its gradients, of elements T, a floating
// type. Images with channels first are as many images of one channel.
//
// A thread has one pixel of the result, N neighbouring channels of it. Gradients are gathered: a
// pixel looks at the windows that it is in, so that sums have an order.
enum { WIDTH = 16 / sizeof(T) };
typedef element_t<T>::acc_t ACC;
#define LOWEST (sizeof(ACC) == 8 ? (ACC)-0x1.fffffffffffffp1023 : (ACC)-0x1.fffffep127f)

struct pool_t {
  int64_t batch, in_h, in_w, channels;
  int64_t out_h, out_w;
  int64_t window_h, window_w;
  int64_t stride_h, stride_w;
  int64_t pad_top, pad_left;
};

__device__ __forceinline__ int64_t divide(int64_t& n, int64_t by) {
  int64_t all = n;
  n = (uint64_t)(all | by) >> 32 ? all / by : (int64_t)((uint32_t)all / (uint32_t)by);
  return all - n * by;
}

// Where the |i|-th thread's elements are, of images |h| by |w|.
struct place_t {
  int64_t image;
  int h, w, c;
};
template <int N>
__device__ __forceinline__ place_t place_of(const pool_t& p, int64_t i, int64_t h, int64_t w) {
  place_t at;
  at.c = (int)divide(i, p.channels / N) * N;
  at.w = (int)divide(i, w);
  at.h = (int)divide(i, h);
  at.image = i;
  return at;
}

// Pixels of the input in the window of an output, and windows of the output with a pixel of the
// input.
struct span_t {
  int top, bottom, left, right;
};
__device__ __forceinline__ span_t pixels_of(const pool_t& p, int h, int w) {
  int top = h * (int)p.stride_h - (int)p.pad_top, left = w * (int)p.stride_w - (int)p.pad_left;
  span_t s = {max(top, 0), min(top + (int)p.window_h, (int)p.in_h), max(left, 0),
              min(left + (int)p.window_w, (int)p.in_w)};
  return s;
}
__device__ __forceinline__ int first_window(int at, int window, int stride) {
  return at < window ? 0 : (at - window) / stride + 1;
}
__device__ __forceinline__ span_t windows_of(const pool_t& p, int h, int w) {
  int y = h + (int)p.pad_top, x = w + (int)p.pad_left;
  span_t s = {first_window(y, (int)p.window_h, (int)p.stride_h),
              min(y / (int)p.stride_h + 1, (int)p.out_h),
              first_window(x, (int)p.window_w, (int)p.stride_w),
              min(x / (int)p.stride_w + 1, (int)p.out_w)};
  return s;
}

template <int N>
__device__ __forceinline__ pack_t<T, N> at_input(const pool_t& p, const T* x, const place_t& at,
                                                 int h, int w) {
  return *(const pack_t<T, N>*)(x + ((at.image * p.in_h + h) * p.in_w + w) * p.channels + at.c);
}
__device__ __forceinline__ int64_t output_at(const pool_t& p, const place_t& at, int h, int w) {
  return ((at.image * p.out_h + h) * p.out_w + w) * p.channels + at.c;
}

template <int N>
__device__ __forceinline__ void put(T* y, int64_t i, const ACC* values) {
  pack_t<T, N> out;
#pragma unroll
  for (int k = 0; k < N; ++k) out.at[k] = element_t<T>::store(values[k]);
  ((pack_t<T, N>*)y)[i] = out;
}

// ---- forwards ----

// A NaN wins and stays.
template <int N>
__device__ __forceinline__ void max_windows(const pool_t& p, const T* x, T* y) {
  int64_t n = p.batch * p.out_h * p.out_w * (p.channels / N), step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < n; i += step) {
    place_t at = place_of<N>(p, i, p.out_h, p.out_w);
    span_t s = pixels_of(p, at.h, at.w);
    ACC best[N];
#pragma unroll
    for (int k = 0; k < N; ++k) best[k] = LOWEST;
    for (int h = s.top; h < s.bottom; ++h) {
      for (int w = s.left; w < s.right; ++w) {
        pack_t<T, N> in = at_input<N>(p, x, at, h, w);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          ACC v = element_t<T>::load(in.at[k]);
          best[k] = v > best[k] || v != v ? v : best[k];
        }
      }
    }
    put<N>(y, i, best);
  }
}
extern "C" __global__ void max_pool(pool_t p, const T* x, T* y) { max_windows<1>(p, x, y); }
extern "C" __global__ void max_pool_packs(pool_t p, const T* x, T* y) {
  max_windows<WIDTH>(p, x, y);
}

// Over the pixels within the image.
template <int N>
__device__ __forceinline__ void average_windows(const pool_t& p, const T* x, T* y) {
  int64_t n = p.batch * p.out_h * p.out_w * (p.channels / N), step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < n; i += step) {
    place_t at = place_of<N>(p, i, p.out_h, p.out_w);
    span_t s = pixels_of(p, at.h, at.w);
    ACC sums[N] = {};
    for (int h = s.top; h < s.bottom; ++h) {
      for (int w = s.left; w < s.right; ++w) {
        pack_t<T, N> in = at_input<N>(p, x, at, h, w);
#pragma unroll
        for (int k = 0; k < N; ++k) sums[k] += element_t<T>::load(in.at[k]);
      }
    }
    int count = (s.bottom - s.top) * (s.right - s.left);
#pragma unroll
    for (int k = 0; k < N && count > 0; ++k) sums[k] /= (ACC)count;
    put<N>(y, i, sums);
  }
}
extern "C" __global__ void avg_pool(pool_t p, const T* x, T* y) { average_windows<1>(p, x, y); }
extern "C" __global__ void avg_pool_packs(pool_t p, const T* x, T* y) {
  average_windows<WIDTH>(p, x, y);
}

// ---- backwards ----

template <int N>
__device__ __forceinline__ void average_gradients(const pool_t& p, const T* dy, T* dx) {
  int64_t n = p.batch * p.in_h * p.in_w * (p.channels / N), step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < n; i += step) {
    place_t at = place_of<N>(p, i, p.in_h, p.in_w);
    span_t windows = windows_of(p, at.h, at.w);
    ACC sums[N] = {};
    for (int h = windows.top; h < windows.bottom; ++h) {
      for (int w = windows.left; w < windows.right; ++w) {
        span_t s = pixels_of(p, h, w);
        ACC scale = (ACC)1 / (ACC)((s.bottom - s.top) * (s.right - s.left));
        pack_t<T, N> in = *(const pack_t<T, N>*)(dy + output_at(p, at, h, w));
#pragma unroll
        for (int k = 0; k < N; ++k) sums[k] += element_t<T>::load(in.at[k]) * scale;
      }
    }
    put<N>(dx, i, sums);
  }
}
extern "C" __global__ void avg_pool_grad(pool_t p, const T* dy, T* dx) {
  average_gradients<1>(p, dy, dx);
}
extern "C" __global__ void avg_pool_grad_packs(pool_t p, const T* dy, T* dx) {
  average_gradients<WIDTH>(p, dy, dx);
}

// The first maximum of each window: a number within the window as if none of it were outside. A
// first pixel that is NaN stays the maximum, a later one never is. S has one more number, for none.
template <typename S, int N>
__device__ __forceinline__ void find_spots(const pool_t& p, const T* x, S* spots) {
  int64_t n = p.batch * p.out_h * p.out_w * (p.channels / N), step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < n; i += step) {
    place_t at = place_of<N>(p, i, p.out_h, p.out_w);
    span_t s = pixels_of(p, at.h, at.w);
    int top = at.h * (int)p.stride_h - (int)p.pad_top;
    int left = at.w * (int)p.stride_w - (int)p.pad_left;
    ACC best[N];
    pack_t<S, N> spot;
#pragma unroll
    for (int k = 0; k < N; ++k) spot.at[k] = (S)-1;
    for (int h = s.top; h < s.bottom; ++h) {
      for (int w = s.left; w < s.right; ++w) {
        bool is_first = h == s.top && w == s.left;
        S here = (S)((h - top) * (int)p.window_w + w - left);
        pack_t<T, N> in = at_input<N>(p, x, at, h, w);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          ACC v = element_t<T>::load(in.at[k]);
          bool is_better = is_first || v > best[k];
          best[k] = is_better ? v : best[k];
          spot.at[k] = is_better ? here : spot.at[k];
        }
      }
    }
    ((pack_t<S, N>*)spots)[i] = spot;
  }
}
extern "C" __global__ void max_pool_spots(pool_t p, const T* x, uint8_t* spots) {
  find_spots<uint8_t, 1>(p, x, spots);
}
extern "C" __global__ void max_pool_spots_packs(pool_t p, const T* x, uint8_t* spots) {
  find_spots<uint8_t, WIDTH>(p, x, spots);
}
extern "C" __global__ void max_pool_spots_wide(pool_t p, const T* x, uint32_t* spots) {
  find_spots<uint32_t, 1>(p, x, spots);
}

template <typename S, int N>
__device__ __forceinline__ void max_gradients(const pool_t& p, const S* spots, const T* dy, T* dx) {
  int64_t n = p.batch * p.in_h * p.in_w * (p.channels / N), step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < n; i += step) {
    place_t at = place_of<N>(p, i, p.in_h, p.in_w);
    span_t windows = windows_of(p, at.h, at.w);
    ACC sums[N] = {};
    for (int h = windows.top; h < windows.bottom; ++h) {
      for (int w = windows.left; w < windows.right; ++w) {
        int row = at.h - h * (int)p.stride_h + (int)p.pad_top;
        int column = at.w - w * (int)p.stride_w + (int)p.pad_left;
        S here = (S)(row * (int)p.window_w + column);
        int64_t out = output_at(p, at, h, w);
        pack_t<S, N> spot = *(const pack_t<S, N>*)(spots + out);
        pack_t<T, N> in = *(const pack_t<T, N>*)(dy + out);
#pragma unroll
        for (int k = 0; k < N; ++k)
          if (spot.at[k] == here) sums[k] += element_t<T>::load(in.at[k]);
      }
    }
    put<N>(dx, i, sums);
  }
}
extern "C" __global__ void max_pool_grad(pool_t p, const uint8_t* spots, const T* dy, T* dx) {
  max_gradients<uint8_t, 1>(p, spots, dy, dx);
}
extern "C" __global__ void max_pool_grad_packs(pool_t p, const uint8_t* spots, const T* dy, T* dx) {
  max_gradients<uint8_t, WIDTH>(p, spots, dy, dx);
}
extern "C" __global__ void max_pool_grad_wide(pool_t p, const uint32_t* spots, const T* dy, T* dx) {
  max_gradients<uint32_t, 1>(p, spots, dy, dx);
}

// |grad| at the first pixel of each window that equals |y|, 0 where none does.
extern "C" __global__ void max_pool_grad_grad(pool_t p, const T* x, const T* y, const T* grad,
                                              T* ddy) {
  int64_t n = p.batch * p.out_h * p.out_w * p.channels, step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < n; i += step) {
    place_t at = place_of<1>(p, i, p.out_h, p.out_w);
    span_t s = pixels_of(p, at.h, at.w);
    ACC wanted = element_t<T>::load(y[i]);
    T found = element_t<T>::store(0);
    bool is_found = false;
    for (int h = s.top; h < s.bottom && !is_found; ++h) {
      for (int w = s.left; w < s.right && !is_found; ++w) {
        if (element_t<T>::load(at_input<1>(p, x, at, h, w).at[0]) != wanted) continue;
        found = at_input<1>(p, grad, at, h, w).at[0];
        is_found = true;
      }
    }
    ddy[i] = found;
  }
}
