// conv_layout.cu — What convolutions move before and after cuDNN's kernels. T is an unsigned integer
// as large as an element.

// [rows, columns] to [columns, rows]: through tiles, so that both sides are read in lines.
extern "C" __global__ void transpose(const T* from, T* to, int64_t rows, int64_t columns) {
  __shared__ T tile[32][33];
  int64_t tiles_x = (columns + 31) / 32, tiles = tiles_x * ((rows + 31) / 32);
  for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    int64_t row = t / tiles_x * 32, column = t % tiles_x * 32;
    for (int i = threadIdx.y; i < 32; i += blockDim.y) {
      if (row + i < rows && column + threadIdx.x < columns)
        tile[i][threadIdx.x] = from[(row + i) * columns + column + threadIdx.x];
    }
    __syncthreads();
    for (int i = threadIdx.y; i < 32; i += blockDim.y) {
      if (column + i < columns && row + threadIdx.x < rows)
        to[(column + i) * rows + row + threadIdx.x] = tile[threadIdx.x][i];
    }
    __syncthreads();
  }
}

// [a, b, c] to [c, b, a].
extern "C" __global__ void turn(const T* from, T* to, int64_t a, int64_t b, int64_t c) {
  int64_t n = a * b * c, step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < n; i += step) {
    int64_t k = i / (a * b), rest = i % (a * b);
    to[i] = from[(rest % a * b + rest / a) * c + k];
  }
}

// A volume, whose pixels have |channels| elements (channels first: |batch| has them, and |channels|
// is 1), in a larger one that is 0 around it.
struct frame_t {
  int64_t batch, sizes[3], channels;
  int64_t large[3], begin[3];  // where it begins in the larger
};

// The place in the other of place |i| in one of the two; below 0: it is not there.
__device__ __forceinline__ int64_t moved(const frame_t& f, int64_t i, const int64_t* from,
                                         const int64_t* to, int sign) {
  int64_t channel = i % f.channels, rest = i / f.channels, at[3];
  for (int axis = 2; axis >= 0; --axis) {
    at[axis] = rest % from[axis] + sign * f.begin[axis];
    rest /= from[axis];
    if (at[axis] < 0 || at[axis] >= to[axis]) return -1;
  }
  return (((rest * to[0] + at[0]) * to[1] + at[1]) * to[2] + at[2]) * f.channels + channel;
}

extern "C" __global__ void pad(const T* from, T* to, frame_t f) {
  int64_t n = f.batch * f.large[0] * f.large[1] * f.large[2] * f.channels;
  for (int64_t i = thread_of_grid(); i < n; i += threads_of_grid()) {
    int64_t at = moved(f, i, f.large, f.sizes, -1);
    to[i] = at < 0 ? 0 : from[at];
  }
}

extern "C" __global__ void crop(const T* from, T* to, frame_t f) {
  int64_t n = f.batch * f.sizes[0] * f.sizes[1] * f.sizes[2] * f.channels;
  for (int64_t i = thread_of_grid(); i < n; i += threads_of_grid())
    to[i] = from[moved(f, i, f.sizes, f.large, 1)];
}

// Squares of |stride| by |stride| pixels become pixels of as many times the channels, and then some
// that are 0: |folded_channels|, a multiple of WIDTH, so that a pack is written at once. The first
// square begins so many lines and pixels before the image, where everything is 0, as it is behind.
enum { WIDTH = 16 / sizeof(T) };

struct fold_t {
  int64_t batch, lines, pixels, channels;
  int64_t folded_lines, folded_pixels, folded_channels;
  int64_t stride, line, pixel;
};

// I counts elements: divisions of 32 bits take a fraction of the time of others.
template <typename I>
__device__ __forceinline__ void fold_all(const T* from, T* to, const fold_t& f, int64_t count) {
  typedef pack_t<T, WIDTH> P;
  const int channels = (int)f.channels, stride = (int)f.stride;
  const I packs = (I)(f.folded_channels / WIDTH), pixels = (I)f.folded_pixels;
  const I lines = (I)f.folded_lines, step = (I)threads_of_grid();
  for (I i = (I)thread_of_grid(); i < (I)count; i += step) {
    I rest = i / packs;
    const int first = (int)(i - rest * packs) * WIDTH;
    const int64_t x = (int64_t)(rest % pixels) * stride - f.pixel;
    rest /= pixels;
    const I image = rest / lines;
    const int64_t y = (int64_t)(rest - image * lines) * stride - f.line;
    P pack;
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) {
      int spot = (first + k) / channels, channel = first + k - spot * channels;
      int64_t line = y + spot / stride, pixel = x + spot % stride;
      bool is_inside = spot < stride * stride && line >= 0 && line < f.lines && pixel >= 0 &&
                       pixel < f.pixels;
      pack.at[k] =
          is_inside
              ? from[(((int64_t)image * f.lines + line) * f.pixels + pixel) * channels + channel]
              : (T)0;
    }
    store_whole((P*)to + i, pack);
  }
}

extern "C" __global__ void fold(const T* from, T* to, fold_t f) {
  const int64_t n = f.batch * f.folded_lines * f.folded_pixels * (f.folded_channels / WIDTH);
  const int64_t most = 0x7fffffff;  // and a step more is below 2^32
  if (n <= most) fold_all<uint32_t>(from, to, f, n);
  else fold_all<int64_t>(from, to, f, n);
}

// And back, where nothing is before the image.
extern "C" __global__ void unfold(const T* from, T* to, fold_t f) {
  int64_t n = f.batch * f.lines * f.pixels * f.channels, step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < n; i += step) {
    int64_t rest = i / f.channels, channel = i - rest * f.channels;
    int64_t x = rest % f.pixels;
    rest /= f.pixels;
    int64_t y = rest % f.lines, image = rest / f.lines;
    int64_t at = (image * f.folded_lines + y / f.stride) * f.folded_pixels + x / f.stride;
    int64_t spot = y % f.stride * f.stride + x % f.stride;
    to[i] = from[at * f.folded_channels + spot * f.channels + channel];
  }
}
