// dilation2d.cu — Greyscale dilation over NHWC memory, and its gradients. Before this text come the
// definitions of T, the elements' type, and LOWEST, its lowest finite number.
#define NO_CONTRACTION
typedef element_t<T> of;
typedef of::acc_t ACC;

enum { BLOCK = 256 };

// As weir_dilation2d_t.
struct dilation_t {
  int64_t batch, in_h, in_w, depth;
  int64_t filter_h, filter_w;
  int64_t out_h, out_w;
  int64_t stride_h, stride_w;
  int64_t rate_h, rate_w;
  int64_t pad_top, pad_left;
};

__device__ __forceinline__ ACC sum_of(ACC a, ACC b) { return of::load(of::store(a + b)); }

// Where the window of one output element lies, maybe in part outside of the image.
struct window_t {
  int64_t image, top, left, channel;
};
__device__ __forceinline__ window_t window_at(const dilation_t& g, int64_t i) {
  int64_t pixel = quotient_of(i, g.depth), line = quotient_of(pixel, g.out_w);
  int64_t image = quotient_of(line, g.out_h);
  return {image, (line - image * g.out_h) * g.stride_h - g.pad_top,
          (pixel - line * g.out_w) * g.stride_w - g.pad_left, i - pixel * g.depth};
}

// The largest sum under a window, and the tap of the filter that it is of: the first of equals, -1
// where none is above the lowest number.
struct best_t {
  ACC value;
  int32_t tap;
};
__device__ __forceinline__ best_t best_of(const dilation_t& g, const T* in, const T* filter,
                                          const window_t& w) {
  const T* image = in + w.image * g.in_h * g.in_w * g.depth + w.channel;
  best_t best = {LOWEST, -1};
  for (int64_t kh = 0; kh < g.filter_h; ++kh) {
    int64_t y = w.top + kh * g.rate_h;
    if (y < 0 || y >= g.in_h) continue;
    for (int64_t kw = 0; kw < g.filter_w; ++kw) {
      int64_t x = w.left + kw * g.rate_w, tap = kh * g.filter_w + kw;
      if (x < 0 || x >= g.in_w) continue;
      ACC value = sum_of(of::load(image[(y * g.in_w + x) * g.depth]),
                         of::load(filter[tap * g.depth + w.channel]));
      if (value > best.value) best = {value, (int32_t)tap};
    }
  }
  return best;
}

__device__ __forceinline__ int64_t outputs_of(const dilation_t& g) {
  return g.batch * g.out_h * g.out_w * g.depth;
}

extern "C" __global__ void forward(dilation_t g, const T* __restrict__ in,
                                   const T* __restrict__ filter, T* __restrict__ out) {
  int64_t count = outputs_of(g);
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid())
    out[i] = of::store(best_of(g, in, filter, window_at(g, i)).value);
}

extern "C" __global__ void winners(dilation_t g, const T* __restrict__ in,
                                   const T* __restrict__ filter, int32_t* __restrict__ taps) {
  int64_t count = outputs_of(g);
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid())
    taps[i] = best_of(g, in, filter, window_at(g, i)).tap;
}

// Output elements [begin, end) of an axis, whose windows reach element |at| of the input.
struct range_t {
  int64_t begin, end;
};
__device__ __forceinline__ range_t range_of(int64_t at, int64_t pad, int64_t reach, int64_t stride,
                                            int64_t out) {
  int64_t last = at + pad, first = max(last - reach, (int64_t)0);
  return {quotient_of(first + stride - 1, stride), min(quotient_of(last, stride) + 1, out)};
}

// Which element of an axis the winner of a window from |first| on is: of one without, the first
// inside.
__device__ __forceinline__ int64_t won_at(int64_t first, int32_t tap, int64_t k, int64_t rate) {
  return tap < 0 ? max(first, (int64_t)0) : first + k * rate;
}

// Gathers, in the order of the outputs. Sums are rounded to the elements' type, as the CPU's are.
extern "C" __global__ void input_grad(dilation_t g, const int32_t* __restrict__ taps,
                                      const T* __restrict__ dy, T* __restrict__ dx) {
  int64_t count = g.batch * g.in_h * g.in_w * g.depth;
  int32_t filter_w = (int32_t)g.filter_w;
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t pixel = quotient_of(i, g.depth), line = quotient_of(pixel, g.in_w);
    int64_t image = quotient_of(line, g.in_h), channel = i - pixel * g.depth;
    int64_t y = line - image * g.in_h, x = pixel - line * g.in_w;
    range_t rows = range_of(y, g.pad_top, (g.filter_h - 1) * g.rate_h, g.stride_h, g.out_h);
    range_t columns = range_of(x, g.pad_left, (g.filter_w - 1) * g.rate_w, g.stride_w, g.out_w);
    ACC sum = 0;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        int64_t out = ((image * g.out_h + row) * g.out_w + column) * g.depth + channel;
        int32_t tap = taps[out], kh = tap / filter_w, kw = tap % filter_w;
        if (won_at(row * g.stride_h - g.pad_top, tap, kh, g.rate_h) == y &&
            won_at(column * g.stride_w - g.pad_left, tap, kw, g.rate_w) == x)
          sum = sum_of(sum, of::load(dy[out]));
      }
    }
    dx[i] = of::store(sum);
  }
}

// A block for each element of the filter. Where nothing won, its first tap did.
extern "C" __global__ void filter_grad(dilation_t g, const int32_t* __restrict__ taps,
                                       const T* __restrict__ dy, T* __restrict__ dw) {
  __shared__ ACC shared[BLOCK];
  int64_t count = g.filter_h * g.filter_w * g.depth, pixels = g.batch * g.out_h * g.out_w;
  for (int64_t item = blockIdx.x; item < count; item += gridDim.x) {
    int64_t tap = quotient_of(item, g.depth), channel = item - tap * g.depth;
    ACC sum = 0;
    for (int64_t pixel = threadIdx.x; pixel < pixels; pixel += BLOCK) {
      int64_t i = pixel * g.depth + channel;
      if (max(taps[i], 0) == tap) sum += of::load(dy[i]);
    }
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0) dw[item] = of::store(shared[0]);
  }
}
