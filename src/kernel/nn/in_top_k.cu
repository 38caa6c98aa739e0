// in_top_k.cu — Whether targets are among the k likeliest predictions. L, the targets' type, is
// defined before this text. A warp has a row.
enum { WARP = 32 };

__device__ __forceinline__ bool is_finite(float v) { return fabsf(v) < INFINITY; }

// False, too, where nothing can be said: a target that is no class, or a prediction that is not
// finite.
extern "C" __global__ void in_top_k(const float* __restrict__ predictions,
                                    const L* __restrict__ targets, bool* __restrict__ y,
                                    int64_t rows, int64_t classes, int64_t k) {
  int64_t step = threads_of_grid() / WARP;
  for (int64_t row = thread_of_grid() / WARP; row < rows; row += step) {
    const float* x = predictions + row * classes;
    int64_t target = targets[row], likelier = 0;
    bool is_class = target >= 0 && target < classes;
    float value = is_class ? x[target] : 0.0f;
    int is_bad = !is_class;
    for (int64_t c = threadIdx.x % WARP; c < classes; c += WARP) {
      is_bad |= !is_finite(x[c]);
      likelier += x[c] > value;
    }
    for (int i = WARP / 2; i > 0; i /= 2) {
      likelier += __shfl_xor_sync(0xffffffff, likelier, i);
      is_bad |= __shfl_xor_sync(0xffffffff, is_bad, i);
    }
    if (threadIdx.x % WARP == 0) y[row] = !is_bad && likelier < k;
  }
}
