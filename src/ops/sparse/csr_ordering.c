// csr_ordering.c — SparseMatrixOrderingAMD: an order of the rows of a sparse matrix in which its
// Cholesky factor fills up little. Degrees are exact here, and ties go to the first row, so that
// the order may be another one than TensorFlow's.
#include "base/interrupt.h"
#include "ops/sparse/csr.h"

// The row with the fewest neighbours comes next, and makes them neighbours of each other.

// Neighbours as sets of bits: a row of |words| for each row of the matrix.
typedef struct graph_t {
  uint64_t* bits;
  int64_t* degrees;
  int64_t rows;
  size_t words;
} graph_t;

static uint64_t* row_bits(const graph_t* g, int64_t row) {
  return g->bits + (size_t)row * g->words;
}

static void connect(const graph_t* g, int64_t a, int64_t b) {
  row_bits(g, a)[b / 64] |= (uint64_t)1 << (b % 64);
}

static void drop(const graph_t* g, int64_t a, int64_t b) {
  row_bits(g, a)[b / 64] &= ~((uint64_t)1 << (b % 64));
}

static int64_t count_bits(const graph_t* g, int64_t row) {
  int64_t count = 0;
  for (size_t w = 0; w < g->words; ++w) count += __builtin_popcountll(row_bits(g, row)[w]);
  return count;
}

static void read_graph(const weir_csr_t* m, int64_t batch, graph_t* g) {
  const int32_t* starts = weir_csr_row_starts(m, batch);
  const int32_t* columns = m->column_indices + m->batch_starts[batch];
  memset(g->bits, 0, sizeof(*g->bits) * g->words * (size_t)g->rows);
  for (int64_t r = 0; r < m->rows; ++r) {
    for (int64_t e = starts[r]; e < starts[r + 1]; ++e) {
      if (columns[e] == r) continue;
      connect(g, r, columns[e]);
      connect(g, columns[e], r);
    }
  }
  for (int64_t r = 0; r < g->rows; ++r) g->degrees[r] = count_bits(g, r);
}

// Takes |row| out: its neighbours are connected with each other instead.
static void eliminate(graph_t* g, int64_t row) {
  const uint64_t* own = row_bits(g, row);
  for (int64_t n = 0; n < g->rows; ++n) {
    if (!(own[n / 64] >> (n % 64) & 1)) continue;
    uint64_t* bits = row_bits(g, n);
    for (size_t w = 0; w < g->words; ++w) bits[w] |= own[w];
    drop(g, n, n);
    drop(g, n, row);
    g->degrees[n] = count_bits(g, n);
  }
  g->degrees[row] = INT64_MAX;
}

static weir_status_t* order_batch(graph_t* g, int32_t* order) {
  for (int64_t i = 0; i < g->rows; ++i) {
    int64_t least = 0;
    if (weir_is_interrupted()) return WEIR_STATUS(CANCELLED, "the work was interrupted");
    for (int64_t r = 1; r < g->rows; ++r) {
      if (g->degrees[r] < g->degrees[least]) least = r;
    }
    order[i] = (int32_t)least;
    eliminate(g, least);
  }
  return NULL;
}

static weir_status_t* ordering_cpu(weir_kernel_ctx_t* ctx) {
  weir_csr_t m;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_csr_read(ctx, 0, &m));
  WEIR_TRY(weir_csr_check_square(&m));
  WEIR_TRY(weir_kernel_output(ctx, 0, m.rank - 1, m.dims, &out));
  graph_t g = {.rows = m.rows, .words = (size_t)(m.rows + 63) / 64};
  g.bits = weir_alloc_array((size_t)m.rows * g.words, sizeof(*g.bits));
  g.degrees = weir_alloc_array((size_t)m.rows, sizeof(*g.degrees));
  weir_status_t* status = g.bits && g.degrees ? NULL : weir_out_of_memory();
  for (int64_t b = 0; b < m.batches && !status; ++b) {
    read_graph(&m, b, &g);
    status = order_batch(&g, WEIR_TENSOR_DATA(out, int32_t) + b * m.rows);
  }
  weir_free(g.bits);
  weir_free(g.degrees);
  return status;
}

static weir_status_t* ordering_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  return weir_shape_set(ctx, 0, &weir_shape_unknown);
}

const weir_op_module_t weir_ops_sparse_csr_ordering = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseMatrixOrderingAMD",
         .inputs = "input: variant",
         .outputs = "output: int32",
         .summary = "An order of the rows in which the Cholesky factor stays sparse.",
         .infer_shape = ordering_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = ordering_cpu)},
        {0}}};
