// gemm_micro_avx.c — The tile of x86-64 with AVX-512: 8 x 32.
#include "kernel/gemm_micro.h"

#if defined(__x86_64__)

#include <immintrin.h>

enum { ROWS = 8, WIDTH = 32, LANES = 16 };

// Unrolled wholly: indices must be constants for the sums to be registers.
#define FOR_ROWS(i) _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; ++i)
#define FOR_HALVES(i) _Pragma("GCC unroll 2") for (int i = 0; i < 2; ++i)

__attribute__((target("avx512f"))) static void run(const float* const* a,
                                                   const weir_gemm_runs_t* runs, const float* panel,
                                                   float alpha, float beta, float* c, int64_t ldc) {
  __m512 sums[ROWS][2];
  FOR_ROWS(i) {
    __builtin_prefetch(c + i * ldc, 1);
    __builtin_prefetch(c + i * ldc + LANES, 1);
    sums[i][0] = sums[i][1] = _mm512_setzero_ps();
  }
  for (int64_t r = 0; r < runs->count; ++r) {
    const float* row[ROWS];
    FOR_ROWS(i) row[i] = a[i] + runs->offset[r];
    const int64_t end = runs->length * runs->step, step = runs->step;
    for (int64_t k = 0; k != end; k += step, panel += WIDTH) {
      __m512 left = _mm512_loadu_ps(panel), right = _mm512_loadu_ps(panel + LANES);
      FOR_ROWS(i) {
        __m512 factor = _mm512_set1_ps(row[i][k]);
        sums[i][0] = _mm512_fmadd_ps(factor, left, sums[i][0]);
        sums[i][1] = _mm512_fmadd_ps(factor, right, sums[i][1]);
      }
    }
  }
  const __m512 scale = _mm512_set1_ps(alpha), keep = _mm512_set1_ps(beta);
  if (alpha == 1 && beta == 0) {
    FOR_ROWS(i) {
      _mm512_storeu_ps(c + i * ldc, sums[i][0]);
      _mm512_storeu_ps(c + i * ldc + LANES, sums[i][1]);
    }
  } else if (alpha == 1 && beta == 1) {
    FOR_ROWS(i) {
      float *left = c + i * ldc, *right = left + LANES;
      _mm512_storeu_ps(left, _mm512_add_ps(_mm512_loadu_ps(left), sums[i][0]));
      _mm512_storeu_ps(right, _mm512_add_ps(_mm512_loadu_ps(right), sums[i][1]));
    }
  } else {
    FOR_ROWS(i) FOR_HALVES(half) {
      float* to = c + i * ldc + half * LANES;
      __m512 sum = _mm512_mul_ps(scale, sums[i][half]);
      if (beta != 0) sum = _mm512_add_ps(_mm512_mul_ps(keep, _mm512_loadu_ps(to)), sum);
      _mm512_storeu_ps(to, sum);
    }
  }
}

const weir_gemm_micro_t* weir_gemm_micro(void) {
  static const weir_gemm_micro_t avx512 = {
      .rows = ROWS, .width = WIDTH, .narrowest = WIDTH / 2, .run = run};
  return __builtin_cpu_supports("avx512f") ? &avx512 : NULL;
}

#endif  // __x86_64__
