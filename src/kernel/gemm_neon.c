// gemm_neon.c — Float products on 64-bit ARM: packing, and a tile of 4 x 16 sums in registers.
//
// Rows of A are read four at a time, four products deep, mostly where they are. B is packed, a
// panel of 16 columns and one chain of products at a time, which fits the first cache beside them.
#include "kernel/gemm_neon.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "base/alloc.h"

enum {
  TILE_ROWS = 4,
  PANEL = 16,  // columns of the tile
  LONGEST_CHAIN = 200,
  MANY_COLUMNS = 256,  // for which packing A pays
  ROW_BLOCK = 240,     // rows of A that stay in the second cache while panels of B pass
};

// TensorFlow sums up 200 products where it gives the work to several threads, else as many chains
// of nearly equal length, multiples of 8.
int64_t weir_gemm_neon_chain(int64_t m, int64_t n, int64_t k) {
  enum { STEP = 8, NARROW_ROWS = 12, NARROW_COLS = 8 };
  if (k % LONGEST_CHAIN == 0 || k < LONGEST_CHAIN) return WEIR_MIN(k, LONGEST_CHAIN);
  // Its estimate in cycles: a chain of each element, the element stored, A packed.
  double cycles_a_product = m < NARROW_ROWS || n < NARROW_COLS ? 0.5 : 0.125;
  double cycles_a_float = 4.0 * 11.0 / 64.0;
  double cost = (double)m * (double)n * (LONGEST_CHAIN * cycles_a_product + cycles_a_float) +
                (double)m * LONGEST_CHAIN * cycles_a_float;
  if (cost >= 2.1e5) return LONGEST_CHAIN;
  int64_t spare = LONGEST_CHAIN - 1 - k % LONGEST_CHAIN;
  return LONGEST_CHAIN - spare / (STEP * (k / LONGEST_CHAIN + 1)) * STEP;
}

// ---- packing ----

static void transpose_4x4(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  float32x4x2_t low = vtrnq_f32(vld1q_f32(from), vld1q_f32(from + from_stride));
  float32x4x2_t high =
      vtrnq_f32(vld1q_f32(from + 2 * from_stride), vld1q_f32(from + 3 * from_stride));
  vst1q_f32(to, vcombine_f32(vget_low_f32(low.val[0]), vget_low_f32(high.val[0])));
  vst1q_f32(to + to_stride, vcombine_f32(vget_low_f32(low.val[1]), vget_low_f32(high.val[1])));
  vst1q_f32(to + 2 * to_stride,
            vcombine_f32(vget_high_f32(low.val[0]), vget_high_f32(high.val[0])));
  vst1q_f32(to + 3 * to_stride,
            vcombine_f32(vget_high_f32(low.val[1]), vget_high_f32(high.val[1])));
}

// to[j][i] = from[i][j]
static void transpose(int64_t rows, int64_t cols, const float* from, int64_t from_stride, float* to,
                      int64_t to_stride) {
  int64_t whole_rows = rows / 4 * 4;
  int64_t whole_cols = cols / 4 * 4;
  for (int64_t i = 0; i < whole_rows; i += 4) {
    for (int64_t j = 0; j < whole_cols; j += 4)
      transpose_4x4(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i < whole_rows ? whole_cols : 0; j < cols; ++j)
      to[j * to_stride + i] = from[i * from_stride + j];
  }
}

// Rows [k0, k0 + depth) of op(B) and columns [j0, j0 + width), a row of the panel each. Columns
// beyond the width have any finite values: their sums are not stored.
static void pack_b(const weir_gemm_neon_t* p, int64_t k0, int64_t depth, int64_t j0, int64_t width,
                   float* panel) {
  if (width < PANEL) memset(panel, 0, (size_t)(depth * PANEL) * sizeof(float));
  if (p->is_b_transposed) {
    transpose(width, depth, p->b + j0 * p->ldb + k0, p->ldb, panel, PANEL);
    return;
  }
  const float* row = p->b + k0 * p->ldb + j0;
  for (int64_t k = 0; k < depth; ++k, row += p->ldb, panel += PANEL) {
    __builtin_prefetch(row + PANEL);                                // of the next panel
    if (width == PANEL) memcpy(panel, row, PANEL * sizeof(float));  // a few instructions, no call
    else memcpy(panel, row, (size_t)width * sizeof(float));
  }
}

// ---- the tile ----

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
static void sum_products(const float* a, int64_t lda, int64_t rows, const float* panel,
                         int64_t depth, float sums[TILE_ROWS * PANEL]) {
  // Rows that are not there repeat the last.
  const float* a0 = a;
  const float* a1 = a + WEIR_MIN(1, rows - 1) * lda;
  const float* a2 = a + WEIR_MIN(2, rows - 1) * lda;
  const float* a3 = a + WEIR_MIN(3, rows - 1) * lda;
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

// c = beta * c + alpha * sums
WEIR_INLINE void add_sums(const float* sums, int64_t rows, int64_t width, float alpha, float beta,
                          float* c, int64_t ldc) {
  for (int64_t i = 0; i < rows; ++i, sums += PANEL, c += ldc) {
    if (beta == 0) {
      for (int64_t j = 0; j < width; ++j) c[j] = alpha * sums[j];
    } else {
      for (int64_t j = 0; j < width; ++j) c[j] = beta * c[j] + alpha * sums[j];
    }
  }
}

// ---- the product ----

// Rows [i0, i0 + rows) of C: adds the products [k0, k0 + depth). |a| are those rows of op(A).
static void add_chain(const weir_gemm_neon_t* p, int64_t i0, int64_t rows, int64_t k0,
                      int64_t depth, const float* a, int64_t lda) {
  float panel[(LONGEST_CHAIN + 1) * PANEL];  // one row more is read
  float sums[TILE_ROWS * PANEL];
  float beta = k0 == 0 ? p->beta : 1;
  for (int64_t j = 0; j < p->n; j += PANEL) {
    int64_t width = WEIR_MIN(PANEL, p->n - j);
    pack_b(p, k0, depth, j, width, panel);
    for (int64_t i = 0; i < rows; i += TILE_ROWS) {
      int64_t tile_rows = WEIR_MIN(TILE_ROWS, rows - i);
      float* c = p->c + (i0 + i) * p->ldc + j;
      for (int64_t r = 0; r < tile_rows; ++r) __builtin_prefetch(c + r * p->ldc, 1);
      sum_products(a + i * lda, lda, tile_rows, panel, depth, sums);
      if (width == PANEL) add_sums(sums, tile_rows, PANEL, p->alpha, beta, c, p->ldc);
      else add_sums(sums, tile_rows, width, p->alpha, beta, c, p->ldc);
    }
  }
}

// Rows [i0, i0 + rows) and columns [k0, k0 + depth) of op(A), one row after the other.
static void pack_a(const weir_gemm_neon_t* p, int64_t i0, int64_t rows, int64_t k0, int64_t depth,
                   float* to) {
  if (p->is_a_transposed) {
    transpose(depth, rows, p->a + k0 * p->lda + i0, p->lda, to, depth);
    return;
  }
  for (int64_t i = 0; i < rows; ++i)
    memcpy(to + i * depth, p->a + (i0 + i) * p->lda + k0, (size_t)depth * sizeof(float));
}

bool weir_gemm_neon(const weir_gemm_neon_t* p) {
  // Rows far apart, by a power of two at worst, compete for places in the cache.
  bool packs_a = p->is_a_transposed || (p->k > p->chain && p->n >= MANY_COLUMNS);
  float* packed = NULL;
  if (packs_a) {
    packed = weir_alloc_array((size_t)(WEIR_MIN(ROW_BLOCK, p->m) * p->chain), sizeof(float));
    if (!packed) return false;
  }
  for (int64_t i = 0; i < p->m; i += ROW_BLOCK) {
    int64_t rows = WEIR_MIN(ROW_BLOCK, p->m - i);
    for (int64_t k = 0; k < p->k; k += p->chain) {
      int64_t depth = WEIR_MIN(p->chain, p->k - k);
      if (packs_a) pack_a(p, i, rows, k, depth, packed);
      const float* a = packs_a ? packed : p->a + i * p->lda + k;
      add_chain(p, i, rows, k, depth, a, packs_a ? depth : p->lda);
    }
  }
  weir_free(packed);
  return true;
}

#endif  // __aarch64__
