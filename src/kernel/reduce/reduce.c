// reduce.c — Cuts a reduction into pieces of fixed size, runs them on the pool, and combines them
// in order.
#include "kernel/reduce/reduce.h"

#include "base/alloc.h"
#include "kernel/reduce/reduce_internal.h"

#define PIECE 65536    // elements of a piece, about
#define TILE 1024      // columns of a piece whose innermost dimension is kept
#define ROW_BLOCK 512  // rows summed before they join the others: bounds the error of long columns
#define CHAINS 4       // of sums, which many rows join in turn, as in TensorFlow
#define MANY_ROWS 16
#define ELEMENT_NS 0.4

typedef struct reduction_t {
  const reducer_t* fn;
  const char* input;
  char* output;
  char* partials;  // accumulators of all pieces; NULL when each output is one piece
  size_t size;     // bytes of an element
  reduce_shape_t shape;
  // Inner kept: a piece is |rows_per_piece| rows of one tile. Inner reduced: so many runs, or part
  // of one run.
  int64_t tiles;
  int64_t rows_per_piece;
  int64_t run_per_piece;
  int64_t run_pieces;
  int64_t pieces;  // an output (tile)
} reduction_t;

static void add_axis(reduce_axes_t* axes, int64_t dim, int64_t stride) {
  int last = axes->count - 1;
  axes->total *= dim;
  if (last >= 0 && axes->strides[last] == dim * stride) {
    axes->dims[last] *= dim;
    axes->strides[last] = stride;
    return;
  }
  axes->dims[axes->count] = dim;
  axes->strides[axes->count++] = stride;
}

static int64_t offset_of(const reduce_axes_t* axes, int64_t index) {
  int64_t offset = 0;
  for (int i = axes->count - 1; i >= 0; --i) {
    offset += index % axes->dims[i] * axes->strides[i];
    index /= axes->dims[i];
  }
  return offset;
}

void weir_reduce_analyse(int rank, const int64_t* dims, const bool* is_reduced, reduce_shape_t* r) {
  r->kept.count = r->reduced.count = 0;
  r->kept.total = r->reduced.total = r->inner = 1;
  int64_t strides[WEIR_REDUCE_MAX_AXES];
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= dims[i];
  }
  int last = rank - 1;
  while (last >= 0 && dims[last] == 1) --last;
  r->inner_reduced = last >= 0 && is_reduced[last];
  for (; last >= 0 && (dims[last] == 1 || is_reduced[last] == r->inner_reduced); --last)
    r->inner *= dims[last];
  for (int i = 0; i <= last; ++i) {
    if (dims[i] != 1) add_axis(is_reduced[i] ? &r->reduced : &r->kept, dims[i], strides[i]);
  }
  r->reduced_count = r->reduced.total * (r->inner_reduced ? r->inner : 1);
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static void cut(reduction_t* r) {
  if (r->shape.inner_reduced) {
    r->tiles = 1;
    r->run_per_piece = r->shape.inner >= 2 * PIECE ? PIECE : r->shape.inner;
    r->run_pieces = ceil_div(r->shape.inner, r->run_per_piece);
    r->rows_per_piece = r->run_pieces > 1 ? 1 : WEIR_MAX(PIECE / r->shape.inner, 1);
  } else {
    r->tiles = ceil_div(r->shape.inner, TILE);
    r->run_pieces = 1;
    int64_t rows =
        ceil_div(WEIR_MAX(PIECE / WEIR_MIN(r->shape.inner, TILE), 1), ROW_BLOCK) * ROW_BLOCK;
    r->rows_per_piece = rows;
  }
  r->pieces = ceil_div(r->shape.reduced.total, r->rows_per_piece) * r->run_pieces;
}

// Piece |piece| of output |out| (inner reduced) into *|acc|.
static void piece_of_run(const reduction_t* r, int64_t out, int64_t piece, void* acc) {
  const char* base = r->input + (size_t)offset_of(&r->shape.kept, out) * r->size;
  int64_t begin = piece % r->run_pieces * r->run_per_piece;
  int64_t length = WEIR_MIN(r->run_per_piece, r->shape.inner - begin);
  int64_t row = piece / r->run_pieces * r->rows_per_piece;
  int64_t row_end = WEIR_MIN(row + r->rows_per_piece, r->shape.reduced.total);
  r->fn->init(acc, 1);
  for (; row < row_end; ++row) {
    r->fn->run(base + (size_t)(offset_of(&r->shape.reduced, row) + begin) * r->size, length, acc);
  }
}

// |rows| rows of |cols| columns, |stride| elements apart, into |acc|.
static void add_chains(const reduction_t* r, const char* x, int64_t stride, int64_t rows,
                       int64_t cols, void* acc) {
  _Alignas(64) char chain[TILE * 16];
  int64_t each = rows < MANY_ROWS ? 0 : rows / CHAINS;
  size_t row_size = (size_t)stride * r->size;
  if (each) r->fn->rows(x, stride * CHAINS, each, cols, acc);
  for (int i = 1; i < CHAINS && each; ++i) {
    r->fn->init(chain, cols);
    r->fn->rows(x + (size_t)i * row_size, stride * CHAINS, each, cols, chain);
    r->fn->merge(acc, chain, cols);
  }
  int64_t done = each * CHAINS;
  r->fn->rows(x + (size_t)done * row_size, stride, rows - done, cols, acc);
}

// Rows [row, row_end) of |cols| columns into |acc|: neighbouring rows at once where the innermost
// reduced dimension allows.
static void add_rows(const reduction_t* r, const char* base, int64_t row, int64_t row_end,
                     int64_t cols, void* acc) {
  int last = r->shape.reduced.count - 1;
  int64_t inner_rows = last >= 0 ? r->shape.reduced.dims[last] : 1;
  int64_t stride = last >= 0 ? r->shape.reduced.strides[last] : 0;
  while (row < row_end) {
    int64_t rows = WEIR_MIN(inner_rows - row % inner_rows, row_end - row);
    add_chains(r, base + (size_t)offset_of(&r->shape.reduced, row) * r->size, stride, rows, cols,
               acc);
    row += rows;
  }
}

// Piece |piece| of tile |tile| of output row |out| (inner kept) into |cols| accumulators.
static void piece_of_rows(const reduction_t* r, int64_t out, int64_t tile, int64_t piece,
                          int64_t cols, void* acc) {
  _Alignas(64) char block[TILE * 16];
  const char* base = r->input + (size_t)(offset_of(&r->shape.kept, out) + tile * TILE) * r->size;
  int64_t row = piece * r->rows_per_piece;
  int64_t row_end = WEIR_MIN(row + r->rows_per_piece, r->shape.reduced.total);
  r->fn->init(acc, cols);
  if (row_end - row <= ROW_BLOCK) {
    add_rows(r, base, row, row_end, cols, acc);
    return;
  }
  for (; row < row_end; row += ROW_BLOCK) {
    r->fn->init(block, cols);
    add_rows(r, base, row, WEIR_MIN(row + ROW_BLOCK, row_end), cols, block);
    r->fn->merge(acc, block, cols);
  }
}

static int64_t tile_width(const reduction_t* r, int64_t tile) {
  return r->shape.inner_reduced ? 1 : WEIR_MIN(TILE, r->shape.inner - tile * TILE);
}

static char* partial_at(const reduction_t* r, int64_t index) {
  int64_t width = r->shape.inner_reduced ? 1 : WEIR_MIN(r->shape.inner, TILE);
  return r->partials + (size_t)(index * width) * r->fn->acc_size;
}

static void write_output(const reduction_t* r, int64_t out, int64_t tile, const void* acc) {
  int64_t first = r->shape.inner_reduced ? out : out * r->shape.inner + tile * TILE;
  r->fn->finish(acc, tile_width(r, tile), r->shape.reduced_count,
                r->output + (size_t)first * r->size);
}

// Items are (output, tile, piece), piece fastest.
static void reduce_range(void* arg, int64_t begin, int64_t end) {
  const reduction_t* r = arg;
  _Alignas(64) char local[TILE * 16];
  for (int64_t item = begin; item < end; ++item) {
    int64_t piece = item % r->pieces;
    int64_t tile = item / r->pieces % r->tiles;
    int64_t out = item / r->pieces / r->tiles;
    void* acc = r->partials ? partial_at(r, item) : local;
    if (r->shape.inner_reduced) {
      piece_of_run(r, out, piece, acc);
    } else {
      piece_of_rows(r, out, tile, piece, tile_width(r, tile), acc);
    }
    if (!r->partials) write_output(r, out, tile, acc);
  }
}

// Items are (output, tile): joins their pieces in order.
static void join_range(void* arg, int64_t begin, int64_t end) {
  const reduction_t* r = arg;
  for (int64_t item = begin; item < end; ++item) {
    int64_t tile = item % r->tiles;
    char* acc = partial_at(r, item * r->pieces);
    for (int64_t p = 1; p < r->pieces; ++p) {
      r->fn->merge(acc, partial_at(r, item * r->pieces + p), tile_width(r, tile));
    }
    write_output(r, item / r->tiles, tile, acc);
  }
}

static void each(weir_pool_t* pool, int64_t items, double cost, weir_range_fn_t fn,
                 reduction_t* r) {
  if (!pool || (double)items * cost < 20000.0) {
    fn(r, 0, items);
  } else {
    weir_pool_for(pool, items, cost, fn, r);
  }
}

// Nothing is reduced into each of |count| outputs.
static weir_status_t* write_identities(const reducer_t* fn, int64_t count, size_t size,
                                       char* output) {
  _Alignas(64) char acc[16];
  fn->init(acc, 1);
  for (int64_t i = 0; i < count; ++i) fn->finish(acc, 1, 0, output + (size_t)i * size);
  return NULL;
}

bool weir_reduce_supports(weir_reduce_op_t op, weir_dtype_t dtype) {
  return weir_reducer_find(op, dtype) != NULL;
}

weir_status_t* weir_reduce(weir_pool_t* pool, weir_reduce_op_t op, weir_dtype_t dtype, int rank,
                           const int64_t* dims, const bool* is_reduced, const void* input,
                           void* output) {
  const reducer_t* fn = weir_reducer_find(op, dtype);
  if (!fn) return WEIR_STATUS(UNIMPLEMENTED, "No reduction of type %s", weir_dtype_name(dtype));
  size_t size = weir_dtype_size(dtype);
  int64_t kept = 1;
  int64_t reduced = 1;
  for (int i = 0; i < rank; ++i) *(is_reduced[i] ? &reduced : &kept) *= dims[i];
  if (kept == 0) return NULL;
  if (reduced == 0) return write_identities(fn, kept, size, output);
  reduction_t r = {.fn = fn, .input = input, .output = output, .size = size};
  weir_reduce_analyse(rank, dims, is_reduced, &r.shape);
  cut(&r);
  int64_t outputs = r.shape.kept.total * r.tiles;
  if (r.pieces > 1) {
    int64_t width = r.shape.inner_reduced ? 1 : WEIR_MIN(r.shape.inner, TILE);
    r.partials = weir_alloc_array((size_t)(outputs * r.pieces * width), fn->acc_size);
    if (!r.partials) return weir_out_of_memory();
  }
  double per_item =
      ELEMENT_NS * (double)kept * (double)reduced / (double)(outputs * r.pieces) + 5.0;
  each(pool, outputs * r.pieces, per_item, reduce_range, &r);
  if (r.partials)
    each(pool, outputs, 2.0 * (double)(r.pieces * WEIR_MIN(r.shape.inner, TILE)), join_range, &r);
  weir_free(r.partials);
  return NULL;
}
