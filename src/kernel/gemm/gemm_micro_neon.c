// gemm_micro_neon.c — The tile of 64-bit ARM: 4 x 16.
#include "kernel/gemm/gemm_micro.h"

#if defined(__aarch64__)

enum { ROWS = 4, WIDTH = 16 };

// Registers of the tile: v0-v3 elements of four rows of A, four of each or one; v12-v15 one more of
// each; v4-v7 and v8-v11 a row of the panel each, in turn; sums of row i are v16+4i to v19+4i. No
// compiler keeps them so.
// clang-format off
#define FMLA(sum, b, a, lane) "fmla v" #sum ".4s, v" #b ".4s, v" #a ".s[" #lane "]\n\t"
#define ROW(s0, s1, s2, s3, b0, b1, b2, b3, a, lane) \
  FMLA(s0, b0, a, lane) FMLA(s1, b1, a, lane) FMLA(s2, b2, a, lane) FMLA(s3, b3, a, lane)
#define STEP_OF(a0, a1, a2, a3, lane, b0, b1, b2, b3) \
  ROW(16, 17, 18, 19, b0, b1, b2, b3, a0, lane)       \
  ROW(20, 21, 22, 23, b0, b1, b2, b3, a1, lane)       \
  ROW(24, 25, 26, 27, b0, b1, b2, b3, a2, lane)       \
  ROW(28, 29, 30, 31, b0, b1, b2, b3, a3, lane)
#define STEP(lane, b0, b1, b2, b3) STEP_OF(0, 1, 2, 3, lane, b0, b1, b2, b3)
#define MOVI(r) "movi v" #r ".4s, #0\n\t"
#define ZERO(r0, r1, r2, r3) MOVI(r0) MOVI(r1) MOVI(r2) MOVI(r3)
#define ZERO_SUMS ZERO(16, 17, 18, 19) ZERO(20, 21, 22, 23) ZERO(24, 25, 26, 27) ZERO(28, 29, 30, 31)
#define LDP(r0, r1, at) "ldp q" #r0 ", q" #r1 ", [%[b], #" #at "]\n\t"
// A row of sums into C, or added to it; on to the next.
#define STORE_ROW(s0, s1, s2, s3)           \
  "stp q" #s0 ", q" #s1 ", [%[c]]\n\t"      \
  "stp q" #s2 ", q" #s3 ", [%[c], #32]\n\t" \
  "add %[c], %[c], %[ldc]\n\t"
#define ADD(sum, c) "fadd v" #sum ".4s, v" #sum ".4s, v" #c ".4s\n\t"
#define ADD_ROW(s0, s1, s2, s3)                                \
  "ldp q0, q1, [%[c]]\n\t"                                     \
  "ldp q2, q3, [%[c], #32]\n\t"                                \
  ADD(s0, 0) ADD(s1, 1) ADD(s2, 2) ADD(s3, 3) STORE_ROW(s0, s1, s2, s3)
#define STORE_SUMS                                           \
  "cbz %[adds], 5f\n\t"                                     \
  ADD_ROW(16, 17, 18, 19) ADD_ROW(20, 21, 22, 23)            \
  ADD_ROW(24, 25, 26, 27) ADD_ROW(28, 29, 30, 31)            \
  "b 6f\n"                                                   \
  "5:\n\t"                                                   \
  STORE_ROW(16, 17, 18, 19) STORE_ROW(20, 21, 22, 23)        \
  STORE_ROW(24, 25, 26, 27) STORE_ROW(28, 29, 30, 31)        \
  "6:\n\t"
// Element |k| (a register: in bytes) of each row.
#define LOAD_ELEMENTS(a0, a1, a2, a3)     \
  "ldr s" #a0 ", [%[a0], %[k]]\n\t"      \
  "ldr s" #a1 ", [%[a1], %[k]]\n\t"      \
  "ldr s" #a2 ", [%[a2], %[k]]\n\t"      \
  "ldr s" #a3 ", [%[a3], %[k]]\n\t"      \
  "add %[k], %[k], %[step]\n\t"
#define CLOBBERS                                                                                 \
  "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",      \
  "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",     \
  "v25", "v26", "v27", "v28", "v29", "v30", "v31"

// c[i][j] = a[i][0] * panel[0][j] + ... over all runs, of elements side by side; or adds that to C.
// Reads a row beyond the panel.
static void sum_rows(const float* const* a, const weir_gemm_runs_t* runs, const float* panel,
                     bool adds, float* c, int64_t ldc) {
  const int64_t* offset = runs->offset;
  int64_t count = runs->count, fours, ones;
  const float *a0, *a1, *a2, *a3;
  __asm__ volatile(
      ZERO_SUMS LDP(4, 5, 0) LDP(6, 7, 32)
      "0:\n\t"
      "ldr %[ones], [%[offset]], #8\n\t"
      "ldp %[a0], %[a1], [%[a]]\n\t"
      "ldp %[a2], %[a3], [%[a], #16]\n\t"
      "add %[a0], %[a0], %[ones], lsl #2\n\t"
      "add %[a1], %[a1], %[ones], lsl #2\n\t"
      "add %[a2], %[a2], %[ones], lsl #2\n\t"
      "add %[a3], %[a3], %[ones], lsl #2\n\t"
      "and %[ones], %[length], #3\n\t"
      "lsr %[fours], %[length], #2\n\t"
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
      "subs %[count], %[count], #1\n\t"
      "b.ne 0b\n\t"
      STORE_SUMS
      : [a0] "=&r"(a0), [a1] "=&r"(a1), [a2] "=&r"(a2), [a3] "=&r"(a3), [b] "+r"(panel),
        [fours] "=&r"(fours), [ones] "=&r"(ones), [offset] "+r"(offset), [count] "+r"(count),
        [c] "+r"(c)
      : [a] "r"(a), [length] "r"(runs->length), [adds] "r"((int64_t)adds), [ldc] "r"(ldc * 4)
      : CLOBBERS);
}

// The same for elements |step| apart.
static void sum_columns(const float* const* a, const weir_gemm_runs_t* runs, const float* panel,
                        bool adds, float* c, int64_t ldc) {
  const int64_t* offset = runs->offset;
  int64_t count = runs->count, pairs, k;
  __asm__ volatile(
      ZERO_SUMS LDP(4, 5, 0) LDP(6, 7, 32)
      "0:\n\t"
      "ldr %[k], [%[offset]], #8\n\t"
      "lsl %[k], %[k], #2\n\t"
      "lsr %[pairs], %[length], #1\n\t"
      "cbz %[pairs], 2f\n"
      "1:\n\t"
      LOAD_ELEMENTS(0, 1, 2, 3)
      LDP(8, 9, 64) LDP(10, 11, 96)
      "add %[b], %[b], #128\n\t"
      STEP_OF(0, 1, 2, 3, 0, 4, 5, 6, 7)
      LOAD_ELEMENTS(12, 13, 14, 15)
      LDP(4, 5, 0) LDP(6, 7, 32)
      "subs %[pairs], %[pairs], #1\n\t"
      STEP_OF(12, 13, 14, 15, 0, 8, 9, 10, 11)
      "b.ne 1b\n"
      "2:\n\t"
      "tbz %[length], #0, 4f\n\t"
      LOAD_ELEMENTS(0, 1, 2, 3)
      STEP_OF(0, 1, 2, 3, 0, 4, 5, 6, 7)
      "add %[b], %[b], #64\n\t"
      LDP(4, 5, 0) LDP(6, 7, 32)
      "4:\n\t"
      "subs %[count], %[count], #1\n\t"
      "b.ne 0b\n\t"
      STORE_SUMS
      : [b] "+r"(panel), [pairs] "=&r"(pairs), [k] "=&r"(k), [offset] "+r"(offset),
        [count] "+r"(count), [c] "+r"(c)
      : [a0] "r"(a[0]), [a1] "r"(a[1]), [a2] "r"(a[2]), [a3] "r"(a[3]), [step] "r"(runs->step * 4),
        [length] "r"(runs->length), [adds] "r"((int64_t)adds), [ldc] "r"(ldc * 4)
      : CLOBBERS);
}
// clang-format on

static void sum_products(const float* const* row, const weir_gemm_runs_t* runs, const float* panel,
                         bool adds, float* c, int64_t ldc) {
  if (runs->step == 1) sum_rows(row, runs, panel, adds, c, ldc);
  else sum_columns(row, runs, panel, adds, c, ldc);
}

static void run(const float* const* row, const weir_gemm_runs_t* runs, const float* panel,
                float alpha, float beta, float* c, int64_t ldc) {
  for (int i = 0; i < ROWS; ++i) __builtin_prefetch(c + i * ldc, 1);
  if (alpha == 1 && (beta == 0 || beta == 1)) {
    sum_products(row, runs, panel, beta == 1, c, ldc);
    return;
  }
  float sums[ROWS * WIDTH];
  sum_products(row, runs, panel, false, sums, WIDTH);
  for (int i = 0; i < ROWS; ++i, c += ldc) {
    const float* from = sums + i * WIDTH;
    if (beta == 0) {
      for (int j = 0; j < WIDTH; ++j) c[j] = alpha * from[j];
    } else {
      for (int j = 0; j < WIDTH; ++j) c[j] = beta * c[j] + alpha * from[j];
    }
  }
}

const weir_gemm_micro_t* weir_gemm_micro(void) {
  static const weir_gemm_micro_t neon = {
      .rows = ROWS, .width = WIDTH, .narrowest = 2, .prefers_adjacent = true, .run = run};
  return &neon;
}

#elif !defined(__x86_64__)

const weir_gemm_micro_t* weir_gemm_micro(void) { return NULL; }

#endif
