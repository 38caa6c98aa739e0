// gemm_micro_neon.c — The tile of 64-bit ARM: 4 x 16.
#include "kernel/gemm_micro.h"

#if defined(__aarch64__)

enum { ROWS = 4, WIDTH = 16 };

// Registers of the tile: v0-v3 four products' worth of four rows of A, v4-v7 and v8-v11 a row of
// the panel each, in turn; sums of row i are v16+4i to v19+4i. No compiler keeps them so.
// clang-format off
#define FMLA(sum, b, a, lane) "fmla v" #sum ".4s, v" #b ".4s, v" #a ".s[" #lane "]\n\t"
#define ROW(s0, s1, s2, s3, b0, b1, b2, b3, a, lane) \
  FMLA(s0, b0, a, lane) FMLA(s1, b1, a, lane) FMLA(s2, b2, a, lane) FMLA(s3, b3, a, lane)
#define STEP(lane, b0, b1, b2, b3)             \
  ROW(16, 17, 18, 19, b0, b1, b2, b3, 0, lane) \
  ROW(20, 21, 22, 23, b0, b1, b2, b3, 1, lane) \
  ROW(24, 25, 26, 27, b0, b1, b2, b3, 2, lane) \
  ROW(28, 29, 30, 31, b0, b1, b2, b3, 3, lane)
#define MOVI(r) "movi v" #r ".4s, #0\n\t"
#define ZERO(r0, r1, r2, r3) MOVI(r0) MOVI(r1) MOVI(r2) MOVI(r3)
#define LDP(r0, r1, at) "ldp q" #r0 ", q" #r1 ", [%[b], #" #at "]\n\t"
#define STORE(r0, r1, at) "stp q" #r0 ", q" #r1 ", [%[sums], #" #at "]\n\t"

// sums[i][j] = a[i][0] * panel[0][j] + ... over |depth| products. Reads a row beyond the panel.
static void sum_products(const float* const* a, const float* panel, int64_t depth, float* sums) {
  const float *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3];
  int64_t fours = depth / 4;
  int64_t ones = depth % 4;
  __asm__ volatile(
      ZERO(16, 17, 18, 19) ZERO(20, 21, 22, 23) ZERO(24, 25, 26, 27) ZERO(28, 29, 30, 31)
      LDP(4, 5, 0) LDP(6, 7, 32)
      "cbz %[fours], 2f\n"
      "1:\n\t"
      "ldr q0, [%[a0]], #16\n\t"
      "ldr q1, [%[a1]], #16\n\t"
      "ldr q2, [%[a2]], #16\n\t"
      "ldr q3, [%[a3]], #16\n\t"
      LDP(8, 9, 64) LDP(10, 11, 96)
      STEP(0, 4, 5, 6, 7)
      LDP(4, 5, 128) LDP(6, 7, 160)
      STEP(1, 8, 9, 10, 11)
      LDP(8, 9, 192) LDP(10, 11, 224)
      "add %[b], %[b], #256\n\t"
      STEP(2, 4, 5, 6, 7)
      "subs %[fours], %[fours], #1\n\t"
      LDP(4, 5, 0) LDP(6, 7, 32)
      STEP(3, 8, 9, 10, 11)
      "b.ne 1b\n"
      "2:\n\t"
      "cbz %[ones], 4f\n"
      "3:\n\t"
      "ldr s0, [%[a0]], #4\n\t"
      "ldr s1, [%[a1]], #4\n\t"
      "ldr s2, [%[a2]], #4\n\t"
      "ldr s3, [%[a3]], #4\n\t"
      STEP(0, 4, 5, 6, 7)
      "add %[b], %[b], #64\n\t"
      LDP(4, 5, 0) LDP(6, 7, 32)
      "subs %[ones], %[ones], #1\n\t"
      "b.ne 3b\n"
      "4:\n\t"
      STORE(16, 17, 0) STORE(18, 19, 32) STORE(20, 21, 64) STORE(22, 23, 96)
      STORE(24, 25, 128) STORE(26, 27, 160) STORE(28, 29, 192) STORE(30, 31, 224)
      : [a0] "+r"(a0), [a1] "+r"(a1), [a2] "+r"(a2), [a3] "+r"(a3), [b] "+r"(panel),
        [fours] "+r"(fours), [ones] "+r"(ones)
      : [sums] "r"(sums)
      : "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
        "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",
        "v29", "v30", "v31");
}
// clang-format on

static void run(const float* const* a, int64_t step, const float* panel, int64_t depth, float alpha,
                float beta, float* c, int64_t ldc) {
  (void)step;
  float sums[ROWS * WIDTH];
  for (int i = 0; i < ROWS; ++i) __builtin_prefetch(c + i * ldc, 1);
  sum_products(a, panel, depth, sums);
  for (int i = 0; i < ROWS; ++i, c += ldc) {
    const float* row = sums + i * WIDTH;
    if (beta == 0) {
      for (int j = 0; j < WIDTH; ++j) c[j] = alpha * row[j];
    } else {
      for (int j = 0; j < WIDTH; ++j) c[j] = beta * c[j] + alpha * row[j];
    }
  }
}

const weir_gemm_micro_t* weir_gemm_micro(void) {
  static const weir_gemm_micro_t neon = {.rows = ROWS, .width = WIDTH, .narrowest = 2, .run = run};
  return &neon;
}

#elif !defined(__x86_64__)

const weir_gemm_micro_t* weir_gemm_micro(void) { return NULL; }

#endif
