// pool2d.cu — Pooling of images with channels last, and its gradients, of elements T, a floating
// type. Images with channels first are as many images of one channel. Where WINDOW and STRIDE are
// defined, windows are squares of that size, that far apart: all loads of a window are under way at
// once then. So that none waits for a branch, what is outside is loaded, too, from the nearest
// place inside, and not looked at.
//
// A thread has one pixel of the result, N neighbouring channels of it. Gradients are gathered: a
// pixel looks at the windows that it is in, so that sums have an order. A launch has less than 2^31
// elements of input and of output.
enum { WIDTH = 16 / sizeof(T) };
typedef element_t<T>::acc_t ACC;
#define LOWEST (sizeof(ACC) == 8 ? (ACC)-0x1.fffffffffffffp1023 : (ACC)-0x1.fffffep127f)

struct pool_t {
  int in_h, in_w, out_h, out_w;
  int window_h, window_w;
  int stride_h, stride_w;
  int pad_top, pad_left;
  int channels;
  uint32_t count;                  // of threads that have something to do
  divisor_t by_packs, by_w, by_h;  // what a thread's number is divided by: packs of channels, and
                                   // the pixels and lines of an image that it is of
};

#ifdef WINDOW
#define WINDOW_H WINDOW
#define WINDOW_W WINDOW
#define STRIDE_H STRIDE
#define STRIDE_W STRIDE
#define UNROLLED _Pragma("unroll")
#else
#define WINDOW_H p.window_h
#define WINDOW_W p.window_w
#define STRIDE_H p.stride_h
#define STRIDE_W p.stride_w
#define UNROLLED _Pragma("unroll 1")
#endif
#define EACH_CHANNEL _Pragma("unroll") for (int k = 0; k < N; ++k)

// Where the |i|-th thread's elements are.
struct place_t {
  int image, h, w, c;
};
template <int N>
__device__ __forceinline__ place_t place_of(const pool_t& p, uint32_t i) {
  uint32_t pixel = quotient_of(i, p.by_packs), line = quotient_of(pixel, p.by_w);
  uint32_t image = quotient_of(line, p.by_h);
  place_t at = {(int)image, (int)(line - image * p.by_h.size), (int)(pixel - line * p.by_w.size),
                (int)(i - pixel * p.by_packs.size) * N};
  return at;
}

__device__ __forceinline__ bool is_within(int at, int size) {
  return (uint32_t)at < (uint32_t)size;
}
__device__ __forceinline__ int nearest(int at, int size) { return max(min(at, size - 1), 0); }

// The window of an output: its first pixel, which may be outside, and where its image begins.
struct window_t {
  int top, left;
  int64_t image;
};
__device__ __forceinline__ window_t window_of(const pool_t& p, const place_t& at) {
  window_t w = {at.h * STRIDE_H - p.pad_top, at.w * STRIDE_W - p.pad_left,
                (int64_t)(at.image * p.in_h * p.in_w) * p.channels + at.c};
  return w;
}
__device__ __forceinline__ bool is_inside(const pool_t& p, const window_t& w, int dh, int dw) {
  return is_within(w.top + dh, p.in_h) & is_within(w.left + dw, p.in_w);
}
__device__ __forceinline__ int64_t pixel_at(const pool_t& p, const window_t& w, int dh, int dw) {
  int h = nearest(w.top + dh, p.in_h), x = nearest(w.left + dw, p.in_w);
  return w.image + (h * p.in_w + x) * p.channels;
}

template <int N, typename E>
__device__ __forceinline__ pack_t<E, N> pack_at(const E* from, int64_t at) {
  return *(const pack_t<E, N>*)(from + at);
}

template <int N>
__device__ __forceinline__ void put(T* y, int64_t at, const ACC* values) {
  pack_t<T, N> out;
  EACH_CHANNEL out.at[k] = element_t<T>::store(values[k]);
  store_whole((pack_t<T, N>*)(y + at), out);
}

#define EACH_PLACE \
  for (uint32_t i = (uint32_t)thread_of_grid(); i < p.count; i += (uint32_t)threads_of_grid())
#define EACH_PIXEL \
  UNROLLED for (int dh = 0; dh < WINDOW_H; ++dh) UNROLLED for (int dw = 0; dw < WINDOW_W; ++dw)

// ---- forwards ----

// A NaN wins and stays.
template <int N>
__device__ __forceinline__ void max_windows(const pool_t& p, const T* __restrict__ x, T* y) {
  EACH_PLACE {
    window_t w = window_of(p, place_of<N>(p, i));
    ACC best[N];
    EACH_CHANNEL best[k] = LOWEST;
    EACH_PIXEL {
      bool is_there = is_inside(p, w, dh, dw);
      pack_t<T, N> in = pack_at<N>(x, pixel_at(p, w, dh, dw));
      EACH_CHANNEL {
        ACC v = element_t<T>::load(in.at[k]);
        best[k] = is_there & ((v > best[k]) | (v != v)) ? v : best[k];
      }
    }
    put<N>(y, (int64_t)i * N, best);
  }
}
extern "C" __global__ void max_pool(pool_t p, const T* __restrict__ x, T* y) {
  max_windows<1>(p, x, y);
}
extern "C" __global__ void max_pool_packs(pool_t p, const T* __restrict__ x, T* y) {
  max_windows<WIDTH>(p, x, y);
}

// How many of |window| pixels from |first| on are among |size|.
__device__ __forceinline__ int count_within(int first, int window, int size) {
  return min(first + window, size) - max(first, 0);
}
__device__ __forceinline__ int pixels_in(const pool_t& p, int top, int left) {
  return count_within(top, WINDOW_H, p.in_h) * count_within(left, WINDOW_W, p.in_w);
}

// Over the pixels within the image.
template <int N>
__device__ __forceinline__ void average_windows(const pool_t& p, const T* __restrict__ x, T* y) {
  EACH_PLACE {
    window_t w = window_of(p, place_of<N>(p, i));
    ACC sums[N] = {};
    EACH_PIXEL {
      bool is_there = is_inside(p, w, dh, dw);
      pack_t<T, N> in = pack_at<N>(x, pixel_at(p, w, dh, dw));
      EACH_CHANNEL sums[k] = is_there ? sums[k] + element_t<T>::load(in.at[k]) : sums[k];
    }
    int count = pixels_in(p, w.top, w.left);
    EACH_CHANNEL if (count > 0) sums[k] /= (ACC)count;
    put<N>(y, (int64_t)i * N, sums);
  }
}
extern "C" __global__ void avg_pool(pool_t p, const T* __restrict__ x, T* y) {
  average_windows<1>(p, x, y);
}
extern "C" __global__ void avg_pool_packs(pool_t p, const T* __restrict__ x, T* y) {
  average_windows<WIDTH>(p, x, y);
}

// ---- backwards ----

// The windows that a pixel of the input is in, from the first to the last: at most MOST along an
// axis, of which some are not there.
#define MOST_H ((WINDOW_H + STRIDE_H - 1) / STRIDE_H)
#define MOST_W ((WINDOW_W + STRIDE_W - 1) / STRIDE_W)
#define EACH_WINDOW UNROLLED for (int a = MOST_H; a-- > 0;) UNROLLED for (int b = MOST_W; b-- > 0;)

struct holder_t {
  bool is_there;
  int row, column;  // of the pixel in the window
  int64_t at;       // the window's output
};
__device__ __forceinline__ holder_t holder_of(const pool_t& p, const place_t& at, int a, int b) {
  int y = at.h + p.pad_top, x = at.w + p.pad_left;
  int h = y / STRIDE_H - a, w = x / STRIDE_W - b;
  holder_t holder = {false, y - h * STRIDE_H, x - w * STRIDE_W, 0};
  holder.is_there = is_within(h, p.out_h) & is_within(w, p.out_w) & (holder.row < WINDOW_H) &
                    (holder.column < WINDOW_W);
  holder.at = (int64_t)(at.image * p.out_h * p.out_w) * p.channels + at.c +
              (nearest(h, p.out_h) * p.out_w + nearest(w, p.out_w)) * p.channels;
  return holder;
}

template <int N>
__device__ __forceinline__ void average_gradients(const pool_t& p, const T* __restrict__ dy,
                                                  T* dx) {
  EACH_PLACE {
    place_t at = place_of<N>(p, i);
    ACC sums[N] = {};
    EACH_WINDOW {
      holder_t holder = holder_of(p, at, a, b);
      int count = pixels_in(p, at.h - holder.row, at.w - holder.column);
      ACC scale =
          count == WINDOW_H * WINDOW_W ? (ACC)1 / (ACC)(WINDOW_H * WINDOW_W) : (ACC)1 / (ACC)count;
      pack_t<T, N> in = pack_at<N>(dy, holder.at);
      EACH_CHANNEL {
        ACC v = element_t<T>::load(in.at[k]) * scale;
        sums[k] = holder.is_there ? sums[k] + v : sums[k];
      }
    }
    put<N>(dx, (int64_t)i * N, sums);
  }
}
extern "C" __global__ void avg_pool_grad(pool_t p, const T* __restrict__ dy, T* dx) {
  average_gradients<1>(p, dy, dx);
}
extern "C" __global__ void avg_pool_grad_packs(pool_t p, const T* __restrict__ dy, T* dx) {
  average_gradients<WIDTH>(p, dy, dx);
}

// The first maximum of a window: a number within the window as if none of it were outside. A first
// pixel that is NaN stays the maximum, a later one never is. S has one more number, for none.
template <typename S, int N>
__device__ __forceinline__ pack_t<S, N> first_maxima(const pool_t& p, const window_t& w,
                                                     const T* x) {
  ACC best[N] = {};
  pack_t<S, N> spot;
  bool has_first = false;
  EACH_CHANNEL spot.at[k] = (S)-1;
  EACH_PIXEL {
    bool is_there = is_inside(p, w, dh, dw);
    pack_t<T, N> in = pack_at<N>(x, pixel_at(p, w, dh, dw));
    EACH_CHANNEL {
      ACC v = element_t<T>::load(in.at[k]);
      bool is_better = is_there & (!has_first | (v > best[k]));
      best[k] = is_better ? v : best[k];
      spot.at[k] = is_better ? (S)(dh * WINDOW_W + dw) : spot.at[k];
    }
    has_first = has_first | is_there;
  }
  return spot;
}

template <typename S, int N>
__device__ __forceinline__ void find_spots(const pool_t& p, const T* __restrict__ x, S* spots) {
  EACH_PLACE {
    window_t w = window_of(p, place_of<N>(p, i));
    store_whole((pack_t<S, N>*)spots + i, first_maxima<S, N>(p, w, x));
  }
}
extern "C" __global__ void max_pool_spots(pool_t p, const T* __restrict__ x, uint8_t* spots) {
  find_spots<uint8_t, 1>(p, x, spots);
}
extern "C" __global__ void max_pool_spots_packs(pool_t p, const T* __restrict__ x, uint8_t* spots) {
  find_spots<uint8_t, WIDTH>(p, x, spots);
}

template <typename S, int N>
__device__ __forceinline__ void max_gradients(const pool_t& p, const S* spots,
                                              const T* __restrict__ dy, T* dx) {
  EACH_PLACE {
    place_t at = place_of<N>(p, i);
    ACC sums[N] = {};
    EACH_WINDOW {
      holder_t holder = holder_of(p, at, a, b);
      // A window that is not there has its maximum nowhere.
      int here = holder.is_there ? holder.row * WINDOW_W + holder.column : -2;
      pack_t<S, N> spot = pack_at<N>(spots, holder.at);
      pack_t<T, N> in = pack_at<N>(dy, holder.at);
      EACH_CHANNEL {
        ACC v = element_t<T>::load(in.at[k]);
        sums[k] = (int)spot.at[k] == here ? sums[k] + v : sums[k];
      }
    }
    put<N>(dx, (int64_t)i * N, sums);
  }
}
extern "C" __global__ void max_pool_grad(pool_t p, const uint8_t* spots, const T* __restrict__ dy,
                                         T* dx) {
  max_gradients<uint8_t, 1>(p, spots, dy, dx);
}
extern "C" __global__ void max_pool_grad_packs(pool_t p, const uint8_t* spots,
                                               const T* __restrict__ dy, T* dx) {
  max_gradients<uint8_t, WIDTH>(p, spots, dy, dx);
}

#ifndef WINDOW  // numbers of windows larger than a byte counts
extern "C" __global__ void max_pool_spots_wide(pool_t p, const T* __restrict__ x, uint32_t* spots) {
  find_spots<uint32_t, 1>(p, x, spots);
}
extern "C" __global__ void max_pool_grad_wide(pool_t p, const uint32_t* spots,
                                              const T* __restrict__ dy, T* dx) {
  max_gradients<uint32_t, 1>(p, spots, dy, dx);
}
#elif STRIDE >= WINDOW
// Windows that share no pixel: each is read, and written, as a whole. Pixels between windows are
// not written.
template <int N>
__device__ __forceinline__ void separate_gradients(const pool_t& p, const T* __restrict__ x,
                                                   const T* dy, T* dx) {
  EACH_PLACE {
    window_t w = window_of(p, place_of<N>(p, i));
    pack_t<T, N> in = pack_at<N>(dy, (int64_t)i * N);
    pack_t<uint8_t, N> spot = first_maxima<uint8_t, N>(p, w, x);
    EACH_PIXEL {
      pack_t<T, N> out;
      EACH_CHANNEL
      out.at[k] = spot.at[k] == dh * WINDOW_W + dw ? in.at[k] : element_t<T>::store(0);
      if (is_inside(p, w, dh, dw))
        store_whole((pack_t<T, N>*)(dx + pixel_at(p, w, dh, dw)), out);
    }
  }
}
extern "C" __global__ void max_pool_grad_separate(pool_t p, const T* __restrict__ x,
                                                  const T* __restrict__ dy, T* dx) {
  separate_gradients<1>(p, x, dy, dx);
}
extern "C" __global__ void max_pool_grad_separate_packs(pool_t p, const T* __restrict__ x,
                                                        const T* __restrict__ dy, T* dx) {
  separate_gradients<WIDTH>(p, x, dy, dx);
}
#endif

// |grad| at the first pixel of each window that equals |y|, 0 where none does.
extern "C" __global__ void max_pool_grad_grad(pool_t p, const T* __restrict__ x, const T* y,
                                              const T* grad, T* ddy) {
  EACH_PLACE {
    window_t w = window_of(p, place_of<1>(p, i));
    ACC wanted = element_t<T>::load(y[i]);
    T found = element_t<T>::store(0);
    bool is_found = false;
    EACH_PIXEL {
      if (is_found || !is_inside(p, w, dh, dw)) continue;
      int64_t at = pixel_at(p, w, dh, dw);
      if (element_t<T>::load(x[at]) != wanted) continue;
      found = grad[at];
      is_found = true;
    }
    ddy[i] = found;
  }
}
