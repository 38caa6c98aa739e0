// gemm_packed.c — Float products by register tiles: packing, and the order of the tiles.
//
// Rows of A are read a tile's worth at a time, mostly where they are. B is packed, a panel as wide
// as the tile and one chain of products at a time, which fits the first cache beside them.
#include "kernel/gemm_packed.h"

#include "base/alloc.h"
#include "kernel/gemm_micro.h"

enum {
  LONGEST_CHAIN = 200,
  MANY_COLUMNS = 256,  // for which packing A pays
  ROW_BLOCK = 240,     // rows of A that stay in the second cache while panels of B pass
};

#if defined(__aarch64__)

// TensorFlow sums up 200 products where it gives the work to several threads, else as many chains
// of nearly equal length, multiples of 8.
int64_t weir_gemm_chain(int64_t m, int64_t n, int64_t k) {
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

#else

int64_t weir_gemm_chain(int64_t m, int64_t n, int64_t k) {
  (void)m, (void)n;
  return WEIR_MIN(k, LONGEST_CHAIN);
}

#endif

// ---- packing ----

typedef float four_t __attribute__((vector_size(16)));

static four_t load(const float* from) {
  four_t v;
  memcpy(&v, from, sizeof(v));
  return v;
}

static void store(float* to, four_t v) { memcpy(to, &v, sizeof(v)); }

static void transpose_4x4(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  four_t a = load(from), b = load(from + from_stride);
  four_t c = load(from + 2 * from_stride), d = load(from + 3 * from_stride);
  four_t ab_even = __builtin_shufflevector(a, b, 0, 4, 2, 6);
  four_t ab_odd = __builtin_shufflevector(a, b, 1, 5, 3, 7);
  four_t cd_even = __builtin_shufflevector(c, d, 0, 4, 2, 6);
  four_t cd_odd = __builtin_shufflevector(c, d, 1, 5, 3, 7);
  store(to, __builtin_shufflevector(ab_even, cd_even, 0, 1, 4, 5));
  store(to + to_stride, __builtin_shufflevector(ab_odd, cd_odd, 0, 1, 4, 5));
  store(to + 2 * to_stride, __builtin_shufflevector(ab_even, cd_even, 2, 3, 6, 7));
  store(to + 3 * to_stride, __builtin_shufflevector(ab_odd, cd_odd, 2, 3, 6, 7));
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

WEIR_INLINE void copy_rows(int64_t rows, size_t width, const float* from, int64_t from_stride,
                           float* to, int64_t to_stride) {
  for (int64_t i = 0; i < rows; ++i, from += from_stride, to += to_stride) {
    __builtin_prefetch(from + width);  // of the next panel
    memcpy(to, from, width * sizeof(float));
  }
}

// Rows [k0, k0 + depth) of op(B) and |width| columns from |j0| on, a row of the panel each. Columns
// that are not there have any finite values: their sums are not stored.
static void pack_b(const weir_gemm_packed_t* p, int64_t k0, int64_t depth, int64_t j0,
                   int64_t width, int panel_width, float* panel) {
  if (width < panel_width) memset(panel, 0, (size_t)(depth * panel_width) * sizeof(float));
  if (p->is_b_transposed) {
    transpose(width, depth, p->b + j0 * p->ldb + k0, p->ldb, panel, panel_width);
    return;
  }
  // Copies of constant sizes are a few instructions, others a call each.
  const float* from = p->b + k0 * p->ldb + j0;
  if (width == 16) copy_rows(depth, 16, from, p->ldb, panel, panel_width);
  else if (width == 32) copy_rows(depth, 32, from, p->ldb, panel, panel_width);
  else copy_rows(depth, (size_t)width, from, p->ldb, panel, panel_width);
}

// Rows of op(A) where the tiles find them.
typedef struct rows_t {
  const float* a;
  int64_t stride;  // between rows
  int64_t step;    // between the products of a row
} rows_t;

// Rows [i0, i0 + rows) and products [k0, k0 + depth) of op(A), packed: row by row, or as they are
// stored where A is transposed and the tile takes columns.
static rows_t pack_a(const weir_gemm_packed_t* p, bool takes_columns, int64_t i0, int64_t rows,
                     int64_t k0, int64_t depth, float* to) {
  if (p->is_a_transposed && takes_columns) {
    copy_rows(depth, (size_t)rows, p->a + k0 * p->lda + i0, p->lda, to, rows);
    return (rows_t){.a = to, .stride = 1, .step = rows};
  }
  if (p->is_a_transposed) transpose(depth, rows, p->a + k0 * p->lda + i0, p->lda, to, depth);
  else copy_rows(rows, (size_t)depth, p->a + i0 * p->lda + k0, p->lda, to, depth);
  return (rows_t){.a = to, .stride = depth, .step = 1};
}

// ---- tiles ----

// A tile that is not whole, or a whole one; |width| columns of the panel and |rows| are there.
static void run_tile(const weir_gemm_micro_t* micro, const rows_t* a, int64_t i, int64_t rows,
                     const float* panel, int64_t depth, int64_t width, float alpha, float beta,
                     float* c, int64_t ldc) {
  const float* row[WEIR_MICRO_ROWS];
  for (int r = 0; r < micro->rows; ++r)
    row[r] = a->a + (i + WEIR_MIN(r, rows - 1)) * a->stride;  // what is not there repeats the last
  if (rows == micro->rows && width == micro->width) {
    micro->run(row, a->step, panel, depth, alpha, beta, c, ldc);
    return;
  }
  float part[WEIR_MICRO_ROWS * WEIR_MICRO_WIDTH];
  micro->run(row, a->step, panel, depth, alpha, 0, part, micro->width);
  for (int64_t r = 0; r < rows; ++r, c += ldc) {
    const float* from = part + r * micro->width;
    for (int64_t j = 0; j < width; ++j) c[j] = (beta == 0 ? 0 : beta * c[j]) + from[j];
  }
}

// Rows [i0, i0 + rows) of C: adds the products [k0, k0 + depth). |a| are those rows of op(A).
static void add_chain(const weir_gemm_packed_t* p, const weir_gemm_micro_t* micro, int64_t i0,
                      int64_t rows, int64_t k0, int64_t depth, const rows_t* a) {
  float panel[(LONGEST_CHAIN + 1) * WEIR_MICRO_WIDTH];  // one row more is read
  float beta = k0 == 0 ? p->beta : 1;
  for (int64_t j = 0; j < p->n; j += micro->width) {
    int64_t width = WEIR_MIN(micro->width, p->n - j);
    pack_b(p, k0, depth, j, width, micro->width, panel);
    for (int64_t i = 0; i < rows; i += micro->rows)
      run_tile(micro, a, i, WEIR_MIN(micro->rows, rows - i), panel, depth, width, p->alpha, beta,
               p->c + (i0 + i) * p->ldc + j, p->ldc);
  }
}

bool weir_gemm_packed(const weir_gemm_packed_t* p) {
  const weir_gemm_micro_t* micro = weir_gemm_micro();
  if (!micro || p->n < micro->narrowest) return false;
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
      rows_t a = {.a = p->a + i * p->lda + k, .stride = p->lda, .step = 1};
      if (packs_a) a = pack_a(p, micro->takes_columns, i, rows, k, depth, packed);
      add_chain(p, micro, i, rows, k, depth, &a);
    }
  }
  weir_free(packed);
  return true;
}
