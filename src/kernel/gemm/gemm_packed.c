// gemm_packed.c — Float products by register tiles: packing, and the order of the tiles.
//
// Rows of A are read a tile's worth at a time, mostly where they are. B is packed, a panel as wide
// as the tile and one chain of products at a time, which fits the first cache beside them.
#include "kernel/gemm/gemm_packed.h"

#include "base/alloc.h"
#include "kernel/gemm/gemm_micro.h"

enum {
  LONGEST_CHAIN = 200,
  MANY_COLUMNS = 256,  // for which packing A pays
  ROW_BLOCK = 240,     // rows of A that stay in the second cache while panels of B pass
  FAR_BLOCK = 192,     // the same, a part of as many channels as filters have
};

_Static_assert(WEIR_GEMM_PACKED_SIZE == FAR_BLOCK * LONGEST_CHAIN, "a block of rows");

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

typedef struct panel_source_t {
  const float* b;
  int64_t ldb;
  bool is_transposed;  // |b| has columns as rows
} panel_source_t;

// |depth| rows of op(B) and |width| columns from |j0| on, a row of the panel each. Columns that are
// not there have any finite values: their sums are not stored.
static void pack_b(const panel_source_t* p, int64_t depth, int64_t j0, int64_t width,
                   int panel_width, float* panel) {
  if (width < panel_width) memset(panel, 0, (size_t)(depth * panel_width) * sizeof(float));
  if (p->is_transposed) {
    transpose(width, depth, p->b + j0 * p->ldb, p->ldb, panel, panel_width);
    return;
  }
  // Copies of constant sizes are a few instructions, others a call each.
  const float* from = p->b + j0;
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

// What is not there, to fill a tile, repeats the last one.
static void set_rows(const rows_t* a, int64_t rows, const float** row) {
  for (int64_t i = 0; i < rows + WEIR_MICRO_ROWS - 1; ++i)
    row[i] = a->a + WEIR_MIN(i, rows - 1) * a->stride;
}

// Rows [i0, i0 + rows) and products [k0, k0 + depth) of op(A), packed: row by row, or as they are
// stored where A is transposed and the tile does not mind.
static rows_t pack_a(const weir_gemm_packed_t* p, int64_t i0, int64_t rows, int64_t k0,
                     int64_t depth, float* to) {
  if (p->is_a_transposed && !weir_gemm_micro()->prefers_adjacent) {
    copy_rows(depth, (size_t)rows, p->a + k0 * p->lda + i0, p->lda, to, rows);
    return (rows_t){.a = to, .stride = 1, .step = rows};
  }
  if (p->is_a_transposed) transpose(depth, rows, p->a + k0 * p->lda + i0, p->lda, to, depth);
  else copy_rows(rows, (size_t)depth, p->a + i0 * p->lda + k0, p->lda, to, depth);
  return (rows_t){.a = to, .stride = depth, .step = 1};
}

// ---- tiles ----

// A part of C = beta * C + alpha * A * B that is one chain.
typedef struct chain_t {
  const weir_gemm_micro_t* micro;
  const float* const* row;  // of A; after the last one its copies, to fill a tile
  weir_gemm_runs_t runs;
  panel_source_t b;
  int64_t m, n;
  float alpha, beta;
  float* c;
  int64_t ldc;
} chain_t;

// A tile that is not whole, or a whole one; |width| columns of the panel and |rows| are there.
static void run_tile(const chain_t* p, int64_t i, int64_t j, const float* panel) {
  const weir_gemm_micro_t* micro = p->micro;
  int64_t rows = WEIR_MIN(micro->rows, p->m - i), width = WEIR_MIN(micro->width, p->n - j);
  float* c = p->c + i * p->ldc + j;
  if (rows == micro->rows && width == micro->width) {
    micro->run(p->row + i, &p->runs, panel, p->alpha, p->beta, c, p->ldc);
    return;
  }
  float part[WEIR_MICRO_ROWS * WEIR_MICRO_WIDTH];
  micro->run(p->row + i, &p->runs, panel, p->alpha, 0, part, micro->width);
  for (int64_t r = 0; r < rows; ++r, c += p->ldc) {
    const float* from = part + r * micro->width;
    for (int64_t k = 0; k < width; ++k) c[k] = (p->beta == 0 ? 0 : p->beta * c[k]) + from[k];
  }
}

static void run_chain(const chain_t* p) {
  _Alignas(64) float panel[(LONGEST_CHAIN + 1) * WEIR_MICRO_WIDTH];  // one row more is read
  for (int64_t j = 0; j < p->n; j += p->micro->width) {
    pack_b(&p->b, p->runs.count * p->runs.length, j, WEIR_MIN(p->micro->width, p->n - j),
           p->micro->width, panel);
    for (int64_t i = 0; i < p->m; i += p->micro->rows) run_tile(p, i, j, panel);
  }
}

// ---- products ----

// Rows [i0, i0 + rows) of C: adds the products [k0, k0 + depth).
static void add_block(const weir_gemm_packed_t* p, int64_t i0, int64_t rows, int64_t k0,
                      int64_t depth, float* packed) {
  static const int64_t no_offset = 0;
  const float* row[ROW_BLOCK + WEIR_MICRO_ROWS - 1];
  rows_t a = {.a = p->a + i0 * p->lda + k0, .stride = p->lda, .step = 1};
  if (packed) a = pack_a(p, i0, rows, k0, depth, packed);
  set_rows(&a, rows, row);
  const float* b = p->is_b_transposed ? p->b + k0 : p->b + k0 * p->ldb;
  run_chain(&(chain_t){.micro = weir_gemm_micro(),
                       .row = row,
                       .runs = {&no_offset, 1, depth, a.step},
                       .b = {b, p->ldb, p->is_b_transposed},
                       .m = rows,
                       .n = p->n,
                       .alpha = p->alpha,
                       .beta = k0 == 0 ? p->beta : 1,
                       .c = p->c + i0 * p->ldc,
                       .ldc = p->ldc});
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
    for (int64_t k = 0; k < p->k; k += p->chain)
      add_block(p, i, WEIR_MIN(ROW_BLOCK, p->m - i), k, WEIR_MIN(p->chain, p->k - k), packed);
  }
  weir_free(packed);
  return true;
}

// ---- rows anywhere ----

// As many equal parts as are needed for none to be longer than |most|: the length of the longest.
static int64_t part_length(int64_t length, int64_t most) {
  int64_t parts = (length + most - 1) / most;
  return (length + parts - 1) / parts;
}

// Larger steps, powers of two most of all, leave much of the first cache unused.
bool weir_gemm_is_far(int64_t step) {
  enum { FAR_STEP = 32 };
  return step > FAR_STEP;
}

// How many rows from |row| on begin side by side.
static int64_t count_neighbours(const float* const* row, int64_t most) {
  int64_t rows = 1;
  while (rows < most && row[rows] == row[0] + rows) ++rows;
  return rows;
}

// |rows| neighbours from |first| on, packed as by pack_a.
static rows_t pack_runs(const float* first, const weir_gemm_runs_t* runs, int64_t rows, float* to) {
  bool is_transposed = weir_gemm_micro()->prefers_adjacent;
  int64_t depth = runs->count * runs->length;
  for (int64_t r = 0; r < runs->count; ++r) {
    const float* from = first + runs->offset[r];
    int64_t k = r * runs->length;
    if (is_transposed) transpose(runs->length, rows, from, runs->step, to + k, depth);
    else copy_rows(runs->length, (size_t)rows, from, runs->step, to + k * rows, rows);
  }
  return is_transposed ? (rows_t){.a = to, .stride = depth, .step = 1}
                       : (rows_t){.a = to, .stride = 1, .step = rows};
}

// A chain whose elements lie far apart, a block of rows at a time.
static void run_far_chain(const chain_t* p, float* packed) {
  static const int64_t no_offset = 0;
  const float* row[FAR_BLOCK + WEIR_MICRO_ROWS - 1];
  for (int64_t i = 0, rows; i < p->m; i += rows) {
    rows = count_neighbours(p->row + i, WEIR_MIN(FAR_BLOCK, p->m - i));
    rows_t a = pack_runs(p->row[i], &p->runs, rows, packed);
    set_rows(&a, rows, row);
    chain_t part = *p;
    part.row = row;
    part.runs = (weir_gemm_runs_t){&no_offset, 1, p->runs.count * p->runs.length, a.step};
    part.m = rows;
    part.c += i * p->ldc;
    run_chain(&part);
  }
}

void weir_gemm_indirect(const weir_gemm_indirect_t* p) {
  const weir_gemm_runs_t* all = &p->runs;
  chain_t chain = {.micro = weir_gemm_micro(),
                   .row = p->row,
                   .b = {.b = p->b, .ldb = p->ldb},
                   .m = p->m,
                   .n = p->n,
                   .alpha = 1,
                   .beta = p->adds,
                   .c = p->c,
                   .ldc = p->ldc};
  int64_t length = part_length(all->length, LONGEST_CHAIN);
  int64_t count = part_length(all->count, WEIR_MAX(LONGEST_CHAIN / all->length, 1));
  for (int64_t r = 0; r < all->count; r += count) {
    for (int64_t k = 0; k < all->length; k += length) {
      int64_t offset = all->offset[r] + k * all->step;
      chain.runs = (weir_gemm_runs_t){.offset = length < all->length ? &offset : all->offset + r,
                                      .count = WEIR_MIN(count, all->count - r),
                                      .length = WEIR_MIN(length, all->length - k),
                                      .step = all->step};
      if (p->packed) run_far_chain(&chain, p->packed);
      else run_chain(&chain);
      chain.b.b += chain.runs.count * chain.runs.length * p->ldb;
      chain.beta = 1;
    }
  }
}
