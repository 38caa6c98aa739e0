// by_filter.cu — The gradient of a filter of few pixels, of floats whose products are TF32's.
//
// Defined are TAPS_Y and TAPS_X, the filter's lines and pixels; TILE_C, 16 or 32 channels, and
// TILE_K, 32 or 64 outputs, that a block has; LANE, an eighth of a line's pixels, which is odd; ROWS,
// the lines of dy that are added at a time; SPLIT, the warps that share their pixels.
//
// A block has its tile of the filter in registers, all taps of it, and goes down the lines of images:
// shared memory holds ROWS lines of dy and the lines of x under them, and the next ones are on their
// way meanwhile. A warp has one line of taps, 32 of the outputs and some of a line's pixels. The 8
// pixels of a fragment are LANE apart, so that a thread goes from pixel to pixel: what it has of x
// for the last tap of a line is what it needs for the one before at the next step, and so on. Which
// channel a row or column of a fragment is, is free: a thread's are neighbours, read at once.
enum {
  GROUPS = TILE_K / 32,  // of outputs, one a warp
  HALVES = TILE_C / 16,
  THREADS = TAPS_Y * GROUPS * SPLIT * 32,
  PIXELS = 8 * LANE,             // of dy, that a line in shared memory has
  WINDOW = PIXELS + TAPS_X - 1,  // and of x
  LINES = TAPS_Y - 1 + 2 * ROWS,
  STEPS = LANE / SPLIT,
  // Of pixels: 8 or 24 more than a multiple of 32, so that a fragment's are in different banks.
  PITCH_X = TILE_C + 8,
  PITCH_Y = TILE_K + 8,
  TILE = TAPS_Y * TAPS_X * TILE_C * TILE_K,
};

struct by_filter_t {
  int lines, pixels, channels;
  int out_lines, out_pixels, out_channels;
  int line_pad, pixel_pad;
  int chunks;  // that lines of dy are cut into
  int tiles, tiles_k;
  int parts;       // sums of a tile that are added in the end
  int64_t stages;  // of ROWS lines of a chunk, in all images
};

__device__ __forceinline__ void copy_pack(float* to, const float* from, bool is_there) {
  uint32_t address = (uint32_t)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
               "r"(is_there ? 16 : 0));
}

// COUNT pixels of |from|'s line, from |begin| on, which has |count| pixels of |stride| channels;
// what is not there, or beyond |channels|, is 0.
template <int WIDTH, int PITCH, int COUNT>
__device__ __forceinline__ void copy_line(float* to, const float* from, bool has_line, int begin,
                                          int count, int stride, int channels) {
  for (uint32_t i = threadIdx.x; i < COUNT * (WIDTH / 4); i += THREADS) {
    const uint32_t at = i / (WIDTH / 4), channel = i % (WIDTH / 4) * 4, pixel = begin + at;
    const bool is_there = has_line && pixel < (uint32_t)count && channel < (uint32_t)channels;
    copy_pack(to + at * PITCH + channel, is_there ? from + pixel * stride + channel : from,
              is_there);
  }
}

// The unit cuts off what TF32 has no bits for. So much more first, half of the last bit that is
// kept on average over mantissas, takes away what cutting takes; unlike adding half a bit it leaves
// NaN and infinities what they are, and numbers that TF32 has.
__device__ __forceinline__ float rounded(float v) { return v * 1.0003384f; }

// So many neighbours of a pixel, and as many of the one that is 4 * LANE further on.
template <int COUNT>
struct fragment_t {
  float at[2 * COUNT];
};
template <int COUNT, int PITCH>
__device__ __forceinline__ fragment_t<COUNT> load(const float* from) {
  typedef pack_t<float, COUNT> P;
  const P near = *(const P*)from, far = *(const P*)(from + 4 * LANE * PITCH);
  fragment_t<COUNT> made;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    made.at[i] = rounded(near.at[i]);
    made.at[COUNT + i] = rounded(far.at[i]);
  }
  return made;
}
typedef fragment_t<2 * HALVES> fragment_x_t;
__device__ __forceinline__ fragment_x_t load_x(const float* from) {
  return load<2 * HALVES, PITCH_X>(from);
}

// c += a b, of 16 by 8 and 8 by 8.
__device__ __forceinline__ void multiply(float* c, float a0, float a1, float a2, float a3, float b0,
                                         float b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)),
        "r"(__float_as_uint(a3)), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

// A warp's: of a line of taps, the halves of the channels and the quarters of its outputs.
struct sums_t {
  float at[TAPS_X][HALVES][4][4];
};

// The taps' share of one fragment of dy. |window| has the fragments of x before.
__device__ __forceinline__ void add_step(sums_t& sums, fragment_x_t* window, int i, const float* x,
                                         const float* y) {
  window[(i + TAPS_X - 1) % TAPS_X] = load_x(x + (i + TAPS_X - 1) * PITCH_X);
  const fragment_t<4> dy = load<4, PITCH_Y>(y + i * PITCH_Y);
#pragma unroll
  for (int s = 0; s < TAPS_X; ++s) {
    const float* w = window[(i + s) % TAPS_X].at;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int h = 0; h < HALVES; ++h)
        multiply(sums.at[s][h][j], w[2 * h], w[2 * h + 1], w[2 * HALVES + 2 * h],
                 w[2 * HALVES + 2 * h + 1], dy.at[j], dy.at[4 + j]);
    }
  }
}

// A line's: the pixels of the |split|-th warp.
__device__ __forceinline__ void add_line(sums_t& sums, const float* x, const float* y, int split) {
  const int first = split * LANE / SPLIT;
  fragment_x_t window[TAPS_X];
  x += first * PITCH_X;
  y += first * PITCH_Y;
#pragma unroll
  for (int s = 0; s < TAPS_X - 1; ++s) window[s] = load_x(x + s * PITCH_X);
#pragma unroll
  for (int i = 0; i < STEPS; ++i) add_step(sums, window, i, x, y);
  if (LANE % SPLIT != 0 && (split + 1) * LANE / SPLIT - first > STEPS)
    add_step(sums, window, STEPS, x, y);
}

__device__ __forceinline__ void store(const sums_t& sums, float* part, int row) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int s = 0; s < TAPS_X; ++s) {
#pragma unroll
    for (int m = 0; m < 2 * HALVES; ++m) {
      float* to = part + ((row * TAPS_X + s) * TILE_C + 2 * HALVES * g + m) * TILE_K + 8 * t;
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float(*c)[4] = sums.at[s][m / 2];
        const int k = m % 2 * 2 + n;
        *(float4*)(to + 4 * n) = make_float4(c[0][k], c[1][k], c[2][k], c[3][k]);
      }
    }
  }
}

// Grid: [shares of the images, tiles].
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    by_filter(const float* x, const float* dy, float* parts, by_filter_t f) {
  extern __shared__ float memory[];
  float* memory_y = memory + LINES * WINDOW * PITCH_X;
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int r = warp % TAPS_Y, group = warp / TAPS_Y % GROUPS, split = warp / TAPS_Y / GROUPS;
  const int c0 = blockIdx.y / f.tiles_k * TILE_C, k0 = blockIdx.y % f.tiles_k * TILE_K;
  const int stages = (f.out_lines + ROWS - 1) / ROWS;
  const int64_t end = f.stages * (blockIdx.x + 1) / gridDim.x;
  sums_t sums = {};
  bool is_ahead = false;  // the stage's lines are on their way
  int buffer = 0;
  for (int64_t at = f.stages * blockIdx.x / gridDim.x; at < end; ++at, buffer ^= 1) {
    const int64_t unit = at / stages, image = unit / f.chunks;
    const int row = (int)(at - unit * stages) * ROWS, begin = (int)(unit % f.chunks) * PIXELS;
    auto copy_x = [&](int line) {
      const int from = line - f.line_pad;
      const bool has_line = from >= 0 && from < f.lines;
      const int64_t first = (image * f.lines + (has_line ? from : 0)) * f.pixels;
      copy_line<TILE_C, PITCH_X, WINDOW>(memory + line % LINES * WINDOW * PITCH_X,
                                         x + first * f.channels + c0, has_line,
                                         begin - f.pixel_pad, f.pixels, f.channels,
                                         f.channels - c0);
    };
    auto copy_y = [&](int line, int to) {
      const int64_t first = (image * f.out_lines + line) * f.out_pixels;
      if (line < f.out_lines)
        copy_line<TILE_K, PITCH_Y, PIXELS>(memory_y + to * PIXELS * PITCH_Y,
                                           dy + first * f.out_channels + k0, true, begin,
                                           f.out_pixels, f.out_channels, f.out_channels - k0);
    };
    if (!is_ahead) {
      __syncthreads();
      for (int i = 0; i < TAPS_Y - 1 + ROWS; ++i) copy_x(row + i);
      for (int i = 0; i < ROWS; ++i) copy_y(row + i, buffer * ROWS + i);
    }
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    is_ahead = at + 1 < end && row + ROWS < f.out_lines;
    for (int i = 0; is_ahead && i < ROWS; ++i) {
      copy_x(row + TAPS_Y - 1 + ROWS + i);
      copy_y(row + ROWS + i, (buffer ^ 1) * ROWS + i);
    }
    // Shares are not equal: by turns the larger is another's.
    for (int i = 0; i < ROWS && row + i < f.out_lines; ++i)
      add_line(sums,
               memory + (row + i + r) % LINES * WINDOW * PITCH_X + t * LANE * PITCH_X +
                   2 * HALVES * g,
               memory_y + (buffer * ROWS + i) * PIXELS * PITCH_Y + t * LANE * PITCH_Y +
                   32 * group + 4 * g,
               (row + i) % 2 ? SPLIT - 1 - split : split);
  }
  int64_t part = (int64_t)(blockIdx.x * SPLIT + split) * f.tiles + blockIdx.y;
  store(sums, parts + part * TILE + 32 * group, r);
}

// The parts of each sum, always in the same order: 8 shares in threads of a block, [32, 8]. dw is in
// cuDNN's order: outputs, lines, pixels, channels.
extern "C" __global__ void add_parts(const float* parts, float* dw, by_filter_t f) {
  __shared__ float4 shares[8][32];
  const int packs = f.out_channels / 4;
  const int64_t count = (int64_t)TAPS_Y * TAPS_X * f.channels * packs;
  const int64_t at = (int64_t)blockIdx.x * 32 + threadIdx.x;
  const int k = (int)(at % packs) * 4, tap = (int)(at / packs / f.channels);
  const int c = (int)(at / packs % f.channels);
  float4 sum = make_float4(0, 0, 0, 0);
  auto add = [&](float4 v) { sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w; };
  if (at < count) {
    const int64_t tile = c / TILE_C * f.tiles_k + k / TILE_K;
    const float* from =
        parts + tile * TILE + (tap * TILE_C + c % TILE_C) * TILE_K + k % TILE_K;
#pragma unroll 4
    for (int p = threadIdx.y; p < f.parts; p += 8)
      add(*(const float4*)(from + (int64_t)p * f.tiles * TILE));
  }
  shares[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || at >= count) return;
  for (int i = 1; i < 8; ++i) add(shares[i][threadIdx.x]);
  const int64_t step = (int64_t)TAPS_Y * TAPS_X * f.channels;
  float* to = dw + k * step + tap * f.channels + c;
  to[0] = sum.x, to[step] = sum.y, to[2 * step] = sum.z, to[3 * step] = sum.w;
}
