// gemm_micro_avx.c — The tile of x86-64 with AVX-512: 8 x 32.
#include "kernel/gemm_micro.h"

#if defined(__x86_64__)

#include <immintrin.h>

enum { ROWS = 8, WIDTH = 32, LANES = 16 };

// Unrolled wholly: indices must be constants for the sums to be registers.
#define FOR_ROWS(i) _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; ++i)

__attribute__((target("avx512f"))) static void run(const float* const* a, int64_t step,
                                                   const float* panel, int64_t depth, float alpha,
                                                   float beta, float* c, int64_t ldc) {
  __m512 sums[ROWS][2];
  const float* row[ROWS];
  FOR_ROWS(i) {
    __builtin_prefetch(c + i * ldc, 1);
    row[i] = a[i];
    sums[i][0] = sums[i][1] = _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < depth; ++k, panel += WIDTH) {
    __m512 left = _mm512_loadu_ps(panel), right = _mm512_loadu_ps(panel + LANES);
    FOR_ROWS(i) {
      __m512 factor = _mm512_set1_ps(row[i][k * step]);
      sums[i][0] = _mm512_fmadd_ps(factor, left, sums[i][0]);
      sums[i][1] = _mm512_fmadd_ps(factor, right, sums[i][1]);
    }
  }
  __m512 scale = _mm512_set1_ps(alpha), keep = _mm512_set1_ps(beta);
  FOR_ROWS(i) {
    for (int half = 0; half < 2; ++half) {
      float* to = c + i * ldc + half * LANES;
      __m512 sum = _mm512_mul_ps(scale, sums[i][half]);
      if (beta != 0) sum = _mm512_add_ps(_mm512_mul_ps(keep, _mm512_loadu_ps(to)), sum);
      _mm512_storeu_ps(to, sum);
    }
  }
}

const weir_gemm_micro_t* weir_gemm_micro(void) {
  static const weir_gemm_micro_t avx512 = {
      .rows = ROWS, .width = WIDTH, .narrowest = WIDTH / 2, .takes_columns = true, .run = run};
  return __builtin_cpu_supports("avx512f") ? &avx512 : NULL;
}

#endif  // __x86_64__
