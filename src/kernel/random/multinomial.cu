// multinomial.cu — Classes drawn by unnormalised log-probabilities, with the CPU's numbers. After
// philox.cu and the definitions of T, the type of the logits, and OUT, that of the classes.
#define NO_CONTRACTION
typedef element_t<T> of;

enum { BLOCK = 256 };

__device__ __forceinline__ double highest_of(const T* row, int64_t classes, double* shared) {
  double highest = -INFINITY;
  for (int64_t j = threadIdx.x; j < classes; j += BLOCK) {
    double value = (double)of::load(row[j]);
    if (isfinite(value) && value > highest) highest = value;
  }
  shared[threadIdx.x] = highest;
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      shared[threadIdx.x] = fmax(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  highest = shared[0];
  __syncthreads();
  return highest;
}

// Running sums of exp(logit - highest) over the finite logits of each row, a block a row. Each
// thread has a segment: sums within it go on from what those before it have in all, so that they
// never decrease, and stay as they are where a class cannot be drawn.
extern "C" __global__ void cumulate(const T* __restrict__ logits, double* __restrict__ sums,
                                    int64_t rows, int64_t classes) {
  __shared__ double shared[BLOCK];
  int64_t segment = (classes + BLOCK - 1) / BLOCK;
  int64_t begin = min(threadIdx.x * segment, classes), end = min(begin + segment, classes);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = logits + row * classes;
    double* to = sums + row * classes;
    double highest = highest_of(from, classes, shared), sum = 0;
    for (int64_t j = begin; j < end; ++j) {
      double value = (double)of::load(from[j]);
      if (isfinite(value)) sum += exp(value - highest);
      to[j] = sum;
    }
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      double before = 0;
      for (int k = 0; k < BLOCK; ++k) {
        double own = shared[k];
        shared[k] = before;
        before += own;
      }
    }
    __syncthreads();
    for (int64_t j = begin; j < end; ++j) to[j] += shared[threadIdx.x];
    __syncthreads();
  }
}

// The first sum above |value|.
__device__ __forceinline__ int64_t upper_bound(const double* sums, int64_t count, double value) {
  int64_t begin = 0, end = count;
  while (begin < end) {
    int64_t middle = begin + (end - begin) / 2;
    if (value < sums[middle]) end = middle;
    else begin = middle + 1;
  }
  return begin;
}

// |anew| goes before |philox|. Each draw takes two words.
extern "C" __global__ void draw(const double* __restrict__ sums, OUT* __restrict__ out,
                                int64_t rows, int64_t classes, int64_t samples, philox_t philox,
                                const philox_t* anew) {
  if (anew) philox = *anew;
  for (int64_t i = thread_of_grid(); i < rows * samples; i += threads_of_grid()) {
    const double* row = sums + quotient_of(i, samples) * classes;
    words_t words = words_of(philox, (uint64_t)i / 2);
    double u =
        i % 2 ? unit_double(words.at[2], words.at[3]) : unit_double(words.at[0], words.at[1]);
    out[i] = (OUT)upper_bound(row, classes, u * row[classes - 1]);
  }
}
