// load_and_remap.c — LoadAndRemapMatrix: a matrix of a checkpoint whose rows and columns stand
// elsewhere.
#include <stdlib.h>

#include "file/bundle.h"
#include "ops/io/common.h"

enum { PATH, NAME, ROWS, COLUMNS, VALUES };  // inputs

typedef struct pair_t {
  int64_t old;
  int64_t place;
} pair_t;

typedef struct remap_t {
  int64_t rows;
  int64_t columns;
  int64_t step;  // rows read at a time; 0 or less: all
  weir_bundle_t* bundle;
  weir_view_t name;
  int64_t old_columns;
  const int64_t* row_map;
  const int64_t* column_map;  // NULL: columns are where they were
  int64_t last_column;        // the highest in it
  pair_t* pairs;              // of rows that were there, by their old numbers
  int64_t pair_count;
  float* out;
} remap_t;

// ---- checks ----

static weir_status_t* check_one(weir_kernel_ctx_t* ctx, int i, const char* name) {
  const weir_tensor_t* t = weir_kernel_input(ctx, i);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->count == 1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "The `%s` tensor must have exactly one element, got tensor of shape %s", name,
                     weir_tensor_shape_text(t, text));
}

static weir_status_t* check_vector(const weir_tensor_t* t, const char* name) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->rank == 1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "The `%s` tensor must be 1-D, got a tensor of shape %s",
                     name, weir_tensor_shape_text(t, text));
}

static int compare_pairs(const void* a, const void* b) {
  const pair_t *x = a, *y = b;
  if (x->old != y->old) return x->old < y->old ? -1 : 1;
  return x->place < y->place ? -1 : x->place > y->place;
}

// What of |map| was there before, sorted. Nothing may be in two places.
static weir_status_t* sort_pairs(const int64_t* map, int64_t count, pair_t** out_pairs,
                                 int64_t* out_count) {
  int64_t n = 0;
  pair_t* pairs = weir_alloc_array((size_t)count, sizeof(*pairs));
  if (!pairs) return weir_out_of_memory();
  for (int64_t i = 0; i < count; ++i) {
    if (map[i] >= 0) pairs[n++] = (pair_t){.old = map[i], .place = i};
  }
  if (n > 0) qsort(pairs, (size_t)n, sizeof(*pairs), compare_pairs);
  *out_pairs = pairs;
  *out_count = n;
  for (int64_t i = 1; i < n; ++i) {
    if (pairs[i].old != pairs[i - 1].old) continue;
    return WEIR_STATUS(UNIMPLEMENTED,
                       "Old ID %lld is mapped to both new ID %lld and %lld, which is not "
                       "supported.",
                       (long long)pairs[i].old, (long long)pairs[i - 1].place,
                       (long long)pairs[i].place);
  }
  return NULL;
}

static weir_status_t* read_row_map(weir_kernel_ctx_t* ctx, remap_t* r) {
  const weir_tensor_t* map = weir_kernel_input(ctx, ROWS);
  WEIR_TRY(check_vector(map, "row_remapping"));
  if (map->count != r->rows) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Size of row_remapping is %lld instead of being equal to num_rows=%lld",
                       (long long)map->count, (long long)r->rows);
  }
  r->row_map = map->data;
  return sort_pairs(r->row_map, r->rows, &r->pairs, &r->pair_count);
}

static weir_status_t* read_column_map(weir_kernel_ctx_t* ctx, remap_t* r) {
  const weir_tensor_t* map = weir_kernel_input(ctx, COLUMNS);
  pair_t* pairs = NULL;
  int64_t count = 0;
  WEIR_TRY(check_vector(map, "col_remapping"));
  if (map->count == 0) return NULL;
  if (map->count != r->columns) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Provided col_remapping, but its size is %lld instead of being equal to "
                       "num_cols=%lld",
                       (long long)map->count, (long long)r->columns);
  }
  r->column_map = map->data;
  weir_status_t* status = sort_pairs(r->column_map, r->columns, &pairs, &count);
  r->last_column = count > 0 ? pairs[count - 1].old : -1;
  weir_free(pairs);
  return status;
}

static weir_status_t* check_entry(remap_t* r) {
  weir_bundle_entry_t entry;
  char text[WEIR_SHAPE_TEXT_SIZE];
  WEIR_TRY(weir_bundle_find(r->bundle, r->name, &entry));
  if (entry.dtype != WEIR_DTYPE_FLOAT) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Tensor %.*s has invalid type %s instead of expected type float",
                       WEIR_VIEW_ARG(r->name), weir_dtype_name(entry.dtype));
  }
  if (entry.rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Tensor %.*s has shape %s of invalid rank %d instead of expected shape of "
                       "rank 2.",
                       WEIR_VIEW_ARG(r->name), weir_shape_text(entry.rank, entry.dims, text),
                       entry.rank);
  }
  r->old_columns = entry.dims[1];
  if (r->column_map && r->last_column >= r->old_columns) {
    return WEIR_STATUS(INVALID_ARGUMENT, "col_remapping has %lld, but there are %lld columns",
                       (long long)r->last_column, (long long)r->old_columns);
  }
  if (r->column_map || r->old_columns == r->columns) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Tensor %.*s has shape %s, where the size of its 2nd dimension is %lld "
                     "instead of being equal to num_cols=%lld",
                     WEIR_VIEW_ARG(r->name), weir_shape_text(entry.rank, entry.dims, text),
                     (long long)r->old_columns, (long long)r->columns);
}

// ---- reading ----

static void copy_row(const remap_t* r, const float* from, float* to) {
  if (!r->column_map) {
    memcpy(to, from, (size_t)r->columns * sizeof(float));
    return;
  }
  for (int64_t c = 0; c < r->columns; ++c) {
    if (r->column_map[c] >= 0) to[c] = from[r->column_map[c]];
  }
}

// The rows of the pairs from |begin| up to |end|, in one piece.
static weir_status_t* read_span(const remap_t* r, int64_t begin, int64_t end) {
  const int64_t first = r->pairs[begin].old;
  weir_tensor_t* part = NULL;
  weir_slice_t slice = {.rank = 2};
  slice.starts[0] = first;
  slice.lengths[0] = r->pairs[end - 1].old - first + 1;
  slice.lengths[1] = -1;
  WEIR_TRY(weir_bundle_read_slice(r->bundle, r->name, &slice, &part));
  for (int64_t i = begin; i < end; ++i) {
    copy_row(r, (const float*)part->data + (r->pairs[i].old - first) * r->old_columns,
             r->out + r->pairs[i].place * r->columns);
  }
  weir_tensor_release(part);
  return NULL;
}

static weir_status_t* read_rows(const remap_t* r) {
  for (int64_t begin = 0, end = 0; begin < r->pair_count; begin = end) {
    do {
      ++end;
    } while (end < r->pair_count &&
             (r->step <= 0 || r->pairs[end].old - r->pairs[begin].old < r->step));
    WEIR_TRY(read_span(r, begin, end));
  }
  return NULL;
}

// Gives values to what was not there, row by row.
static weir_status_t* fill_missing(const remap_t* r, const weir_tensor_t* values) {
  const float* next = values->data;
  int64_t used = 0;
  for (int64_t i = 0; i < r->rows * r->columns; ++i) {
    const bool has_row = r->row_map[i / r->columns] >= 0;
    if (has_row && (!r->column_map || r->column_map[i % r->columns] >= 0)) continue;
    if (used == values->count) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "initializing_values contained %lld elements, but more missing values "
                         "remain.",
                         (long long)values->count);
    }
    r->out[i] = next[used++];
  }
  if (used == values->count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "initializing_values contained %lld elements, but only %lld elements were "
                     "used to fill in missing values.",
                     (long long)values->count, (long long)used);
}

static weir_status_t* load(weir_kernel_ctx_t* ctx, remap_t* r) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(check_entry(r));
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (const int64_t[]){r->rows, r->columns}, &out));
  r->out = out->data;
  WEIR_TRY(read_rows(r));
  return fill_missing(r, weir_kernel_input(ctx, VALUES));
}

static weir_status_t* remap_cpu(weir_kernel_ctx_t* ctx) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  char* path = NULL;
  remap_t r = {.rows = weir_attrs_int(attrs, "num_rows"),
               .columns = weir_attrs_int(attrs, "num_cols"),
               .step = weir_attrs_int(attrs, "max_rows_in_memory")};
  weir_status_t* status = read_row_map(ctx, &r);
  if (!status) status = read_column_map(ctx, &r);
  if (!status) status = check_one(ctx, PATH, "ckpt_path");
  if (!status) status = check_one(ctx, NAME, "old_tensor_name");
  if (!status) r.name = io_string(weir_kernel_input(ctx, NAME), 0);
  if (!status) status = io_path(weir_kernel_input(ctx, PATH), 0, &path);
  if (!status) status = weir_bundle_open(path, &r.bundle);
  if (!status) status = load(ctx, &r);
  weir_bundle_close(r.bundle);
  weir_free(path);
  weir_free(r.pairs);
  return status;
}

static weir_status_t* remap_shape(weir_shape_ctx_t* ctx) {
  const weir_attrs_t attrs = weir_shape_attrs(ctx);
  for (int i = NAME; i <= COLUMNS; ++i) {
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), i == NAME ? 0 : 1, NULL));
  }
  const int64_t dims[] = {weir_attrs_int(attrs, "num_rows"), weir_attrs_int(attrs, "num_cols")};
  return weir_shape_set_dims(ctx, 0, 2, dims);
}

const weir_op_module_t weir_ops_io_load_and_remap = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "LoadAndRemapMatrix",
         .attrs = "num_rows: int >= 0; num_cols: int >= 1; max_rows_in_memory: int = -1",
         .inputs = "ckpt_path: string; old_tensor_name: string; row_remapping: int64; "
                   "col_remapping: int64; initializing_values: float",
         .outputs = "output_matrix: float",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED,
         .summary = "A matrix of a checkpoint with its rows and columns elsewhere",
         .infer_shape = remap_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = remap_cpu)},
        {0}}};
