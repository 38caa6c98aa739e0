// resize.cu — Images resized, by interpolating or to the nearest pixel, and the gradients. Before
// this text comes the definition of T: the type of the original images, and of nearest pixels.
//
// A gradient is gathered, not scattered: places in the original never decrease from one resized
// element to the next, so those that touch one lie in a row, and are added in the CPU's order.
#define NO_CONTRACTION
typedef element_t<T> of;

struct axis_t {
  int64_t in, out;  // elements of the original and of the resized image
  float scale;      // elements of |in| for one of |out|
};
struct resize_t {
  axis_t y, x;
  int64_t channels, count;  // count: of the elements written
  int is_aligned, has_half_pixels;
};

// Between which two elements of an axis one element of the resized axis lies.
struct spot_t {
  int64_t lower, upper;
  float weight;  // of |upper|; the rest is that of |lower|
};

__device__ __forceinline__ spot_t spot_of(const resize_t& r, const axis_t& axis, int64_t i) {
  float at = r.has_half_pixels ? ((float)i + 0.5f) * axis.scale - 0.5f : (float)i * axis.scale;
  float floor_at = floorf(at);
  spot_t spot;
  spot.upper = min((int64_t)ceilf(at), axis.in - 1);
  spot.lower = min(max((int64_t)floor_at, (int64_t)0), spot.upper);
  spot.weight = at - floor_at;
  return spot;
}

__device__ __forceinline__ int64_t nearest_of(const resize_t& r, const axis_t& axis, int64_t i) {
  float at = (r.has_half_pixels ? (float)i + 0.5f : (float)i) * axis.scale;
  return min((int64_t)(r.is_aligned ? roundf(at) : floorf(at)), axis.in - 1);
}

// Element |i| of images of |h| by |w| pixels.
struct place_t {
  int64_t image, y, x, channel;
};
__device__ __forceinline__ place_t place_of(int64_t i, int64_t h, int64_t w, int64_t channels) {
  int64_t pixel = quotient_of(i, channels), line = quotient_of(pixel, w);
  int64_t image = quotient_of(line, h);
  return {image, line - image * h, pixel - line * w, i - pixel * channels};
}

// ---- values ----
__device__ __forceinline__ float blend(const resize_t& r, const T* line, const spot_t& s) {
  float left = (float)of::load(line[s.lower * r.channels]);
  float right = (float)of::load(line[s.upper * r.channels]);
  return left + (right - left) * s.weight;
}

extern "C" __global__ void bilinear(resize_t r, const T* __restrict__ src,
                                    float* __restrict__ dst) {
  bool is_copy = r.y.in == r.y.out && r.x.in == r.x.out;  // at any alignment
  int64_t line_size = r.x.in * r.channels;
  for (int64_t i = thread_of_grid(); i < r.count; i += threads_of_grid()) {
    if (is_copy) {
      dst[i] = (float)of::load(src[i]);
      continue;
    }
    place_t at = place_of(i, r.y.out, r.x.out, r.channels);
    spot_t y = spot_of(r, r.y, at.y), x = spot_of(r, r.x, at.x);
    const T* image = src + at.image * r.y.in * line_size + at.channel;
    float above = blend(r, image + y.lower * line_size, x);
    float below = blend(r, image + y.upper * line_size, x);
    dst[i] = above + (below - above) * y.weight;
  }
}

extern "C" __global__ void nearest(resize_t r, const T* __restrict__ src, T* __restrict__ dst) {
  for (int64_t i = thread_of_grid(); i < r.count; i += threads_of_grid()) {
    place_t at = place_of(i, r.y.out, r.x.out, r.channels);
    int64_t line = at.image * r.y.in + nearest_of(r, r.y, at.y);
    int64_t pixel = line * r.x.in + nearest_of(r, r.x, at.x);
    dst[i] = src[pixel * r.channels + at.channel];
  }
}

// ---- gradients ----
// Resized elements [begin, end) of an axis.
struct range_t {
  int64_t begin, end;
};

typedef int64_t (*place_fn_t)(const resize_t&, const axis_t&, int64_t);

// The first resized element whose place is above |at|.
template <place_fn_t place>
__device__ __forceinline__ int64_t first_above(const resize_t& r, const axis_t& axis, int64_t at) {
  int64_t begin = 0, end = axis.out;
  while (begin < end) {
    int64_t middle = (begin + end) / 2;
    if (place(r, axis, middle) > at) end = middle;
    else begin = middle + 1;
  }
  return begin;
}
__device__ __forceinline__ int64_t lower_of(const resize_t& r, const axis_t& axis, int64_t i) {
  return spot_of(r, axis, i).lower;
}
__device__ __forceinline__ int64_t upper_of(const resize_t& r, const axis_t& axis, int64_t i) {
  return spot_of(r, axis, i).upper;
}

// How much a resized element takes of element |at| of the original as its lower and as its upper
// one; negative: nothing.
struct shares_t {
  float of[2];
};
__device__ __forceinline__ shares_t shares_of(const resize_t& r, const axis_t& axis, int64_t i,
                                              int64_t at) {
  spot_t spot = spot_of(r, axis, i);
  return {{spot.lower == at ? 1.0f - spot.weight : -1.0f, spot.upper == at ? spot.weight : -1.0f}};
}

// One line's part of a sum, whose share is |share|.
__device__ __forceinline__ of::acc_t add_line(const resize_t& r, const range_t& columns, int64_t x,
                                              const float* line, float share, of::acc_t sum) {
  for (int64_t i = columns.begin; i < columns.end; ++i) {
    shares_t shares = shares_of(r, r.x, i, x);
    float dy = line[i * r.channels];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      if (shares.of[k] >= 0) sum += (of::acc_t)(dy * share * shares.of[k]);
    }
  }
  return sum;
}

extern "C" __global__ void bilinear_grad(resize_t r, const float* __restrict__ dy,
                                         T* __restrict__ dx) {
  for (int64_t i = thread_of_grid(); i < r.count; i += threads_of_grid()) {
    place_t at = place_of(i, r.y.in, r.x.in, r.channels);
    range_t rows = {first_above<upper_of>(r, r.y, at.y - 1), first_above<lower_of>(r, r.y, at.y)};
    range_t columns = {first_above<upper_of>(r, r.x, at.x - 1),
                       first_above<lower_of>(r, r.x, at.x)};
    const float* image = dy + at.image * r.y.out * r.x.out * r.channels + at.channel;
    of::acc_t sum = 0;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      shares_t shares = shares_of(r, r.y, row, at.y);
      const float* line = image + row * r.x.out * r.channels;
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        if (shares.of[k] >= 0) sum = add_line(r, columns, at.x, line, shares.of[k], sum);
      }
    }
    dx[i] = of::store(sum);
  }
}

// Sums are rounded to the type of the elements, as the CPU's are.
extern "C" __global__ void nearest_grad(resize_t r, const T* __restrict__ dy, T* __restrict__ dx) {
  for (int64_t i = thread_of_grid(); i < r.count; i += threads_of_grid()) {
    place_t at = place_of(i, r.y.in, r.x.in, r.channels);
    range_t rows = {first_above<nearest_of>(r, r.y, at.y - 1),
                    first_above<nearest_of>(r, r.y, at.y)};
    range_t columns = {first_above<nearest_of>(r, r.x, at.x - 1),
                       first_above<nearest_of>(r, r.x, at.x)};
    const T* image = dy + at.image * r.y.out * r.x.out * r.channels + at.channel;
    of::acc_t sum = 0;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        T value = image[(row * r.x.out + column) * r.channels];
        sum = of::load(of::store(sum + of::load(value)));
      }
    }
    dx[i] = of::store(sum);
  }
}
