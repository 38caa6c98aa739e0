// gemm_micro_avx.c — The tiles of x86-64: 8 x 32 with AVX-512, 6 x 16 with AVX2.
#include "kernel/gemm/gemm_micro.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdatomic.h>
#include <stdlib.h>

// Unrolled wholly: indices must be constants for the sums to be registers.
#define FOR_ROWS(i) _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; ++i)
#define FOR_HALVES(i) _Pragma("GCC unroll 2") for (int i = 0; i < 2; ++i)

#define NAME(x) x##_avx512
#define TARGET "avx512f"
#define ROWS 8
#define LANES 16
#define VEC __m512
#define V(f) _mm512_##f##_ps
#include "kernel/gemm/gemm_micro_avx.inc"
#define NAME(x) x##_avx2
#define TARGET "avx2,fma"
#define ROWS 6
#define LANES 8
#define VEC __m256
#define V(f) _mm256_##f##_ps
#include "kernel/gemm/gemm_micro_avx.inc"

static const weir_gemm_micro_t avx512 = {
    .rows = 8, .width = 32, .narrowest = 16, .run = run_avx512};
static const weir_gemm_micro_t avx2 = {.rows = 6, .width = 16, .narrowest = 8, .run = run_avx2};

// WEIR_GEMM=avx2 leaves AVX-512 aside: the narrower tile is to be tested on newer CPUs, too.
static bool may_use_avx512(void) {
  const char* wish = getenv("WEIR_GEMM");
  return !wish || strcmp(wish, "avx2") != 0;
}

const weir_gemm_micro_t* weir_gemm_micro(void) {
  static _Atomic(const weir_gemm_micro_t*) chosen;
  const weir_gemm_micro_t* micro = atomic_load_explicit(&chosen, memory_order_relaxed);
  if (micro) return micro;
  if (__builtin_cpu_supports("avx512f") && may_use_avx512()) micro = &avx512;
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) micro = &avx2;
  atomic_store_explicit(&chosen, micro, memory_order_relaxed);
  return micro;
}

#endif  // __x86_64__
