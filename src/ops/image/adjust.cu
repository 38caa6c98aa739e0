// adjust.cu — Contrast, hue and saturation of images. After colour.inc, before which T, the
// elements' type, is defined, and "static" as __device__.
#undef static
#define NO_CONTRACTION
typedef element_t<T> of;

enum { BLOCK = 256 };

struct contrast_t {
  int64_t images, pixels, channels;  // pixels: of one image
  int64_t chunks, chunk_size;        // of an image's pixels, each a block's work at a time
};

// The sums of every channel, chunk by chunk: |parts| are [images, channels, chunks].
extern "C" __global__ void sums(contrast_t c, const T* __restrict__ src,
                                double* __restrict__ parts) {
  __shared__ double shared[BLOCK];
  int64_t count = c.images * c.channels * c.chunks;
  for (int64_t item = blockIdx.x; item < count; item += gridDim.x) {
    int64_t row = quotient_of(item, c.chunks), image = quotient_of(row, c.channels);
    const T* first = src + image * c.pixels * c.channels + (row - image * c.channels);
    int64_t begin = (item - row * c.chunks) * c.chunk_size;
    int64_t end = min(begin + c.chunk_size, c.pixels);
    double sum = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += BLOCK)
      sum += (double)of::load(first[i * c.channels]);
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0) parts[item] = shared[0];
  }
}

// What is added to every element of a channel: [images, channels].
extern "C" __global__ void offsets(contrast_t c, const double* __restrict__ parts,
                                   const float* __restrict__ factor, float* __restrict__ by) {
  for (int64_t i = thread_of_grid(); i < c.images * c.channels; i += threads_of_grid()) {
    double sum = 0;
    for (int64_t k = 0; k < c.chunks; ++k) sum += parts[i * c.chunks + k];
    by[i] = (float)(sum / (double)c.pixels) * (1.0f - *factor);
  }
}

// |dst| may be |src|.
extern "C" __global__ void contrast(contrast_t c, const T* src, const float* __restrict__ by,
                                    const float* __restrict__ factor, T* dst) {
  float scale = *factor;
  int64_t size = c.pixels * c.channels, count = c.images * size;
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t image = quotient_of(i, size), channel = i - quotient_of(i, c.channels) * c.channels;
    float value = of::load(src[i]);
    dst[i] = of::store(by[image * c.channels + channel] + value * scale);
  }
}

typedef void (*pixel_fn_t)(const float*, float, float*);

template <pixel_fn_t fn>
__device__ __forceinline__ void each_pixel(const T* src, float amount, T* dst, int64_t pixels) {
  for (int64_t i = thread_of_grid(); i < pixels; i += threads_of_grid()) {
    float in[3], out[3];
#pragma unroll
    for (int k = 0; k < 3; ++k) in[k] = of::load(src[3 * i + k]);
    fn(in, amount, out);
#pragma unroll
    for (int k = 0; k < 3; ++k) dst[3 * i + k] = of::store(out[k]);
  }
}

extern "C" __global__ void hue(const T* src, const float* __restrict__ delta, T* dst,
                               int64_t pixels) {
  each_pixel<turn_hue>(src, *delta * 6.0f, dst, pixels);
}

extern "C" __global__ void saturation(const T* src, const float* __restrict__ scale, T* dst,
                                      int64_t pixels) {
  each_pixel<scale_saturation>(src, *scale, dst, pixels);
}
