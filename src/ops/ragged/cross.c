// cross.c — RaggedCross: every combination of the features of ragged, sparse and dense columns, row
// by row.
#include "ops/sparse/cross_columns.h"

// The inputs of each kind, and where they begin.
typedef struct inputs_t {
  int ragged, sparse, dense;
  int splits_at, indices_at, values_at, shapes_at, dense_at;
} inputs_t;

static inputs_t inputs_of(weir_attrs_t attrs) {
  inputs_t in = {.ragged = (int)weir_attrs_list(attrs, "ragged_values_types")->count,
                 .sparse = (int)weir_attrs_int(attrs, "Nsparse"),
                 .dense = (int)weir_attrs_list(attrs, "dense_types")->count};
  in.splits_at = in.ragged;
  in.indices_at = 2 * in.ragged;
  in.values_at = in.indices_at + in.sparse;
  in.shapes_at = in.values_at + in.sparse;
  in.dense_at = in.shapes_at + in.sparse;
  return in;
}

// ---- shape function ----

static weir_status_t* join_rows(int64_t own, int64_t* rows) {
  if (own >= 0 && *rows >= 0 && own != *rows) {
    return WEIR_STATUS(INVALID_ARGUMENT, "inputs must all have the same batch dimension size.");
  }
  if (own >= 0) *rows = own;
  return NULL;
}

static weir_status_t* cross_shape(weir_shape_ctx_t* ctx) {
  const inputs_t in = inputs_of(weir_shape_attrs(ctx));
  int64_t rows = -1;
  for (int i = 0; i < in.ragged; ++i) {
    const weir_shape_t* shape = weir_shape_input(ctx, in.splits_at + i);
    int64_t splits = weir_shape_dim(shape, 0);
    if (shape->rank >= 0 && shape->rank != 1)
      return WEIR_STATUS(INVALID_ARGUMENT, "inputs must all have the same batch dimension size.");
    if (splits == 0) splits = INT64_MAX;  // fits no other
    if (splits > 0) WEIR_TRY(join_rows(splits - 1, &rows));
  }
  for (int i = 0; i < in.dense; ++i) {
    const weir_shape_t* dense = weir_shape_input(ctx, in.dense_at + i);
    if (dense->rank >= 0 && dense->rank != 2)
      return WEIR_STATUS(INVALID_ARGUMENT, "tf.ragged.cross only supports inputs with rank=2");
    WEIR_TRY(join_rows(weir_shape_dim(dense, 0), &rows));
  }
  WEIR_TRY(weir_shape_set_vector(ctx, 0, -1));
  return weir_shape_set_vector(ctx, 1, rows < 0 || rows >= INT64_MAX - 1 ? -1 : rows + 1);
}

// ---- columns ----

static weir_status_t* check_splits(const weir_tensor_t* splits, int64_t values) {
  if (splits->count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid ragged splits: ragged splits must have at least one splits, but is "
                       "empty");
  }
  if (weir_tensor_int_at(splits, 0) != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid ragged splits: first element of ragged splits  must be 0 but is "
                       "%" PRId64,
                       weir_tensor_int_at(splits, 0));
  }
  for (int64_t i = 1; i < splits->count; ++i) {
    int64_t before = weir_tensor_int_at(splits, i - 1), after = weir_tensor_int_at(splits, i);
    if (before <= after) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid ragged splits: ragged splits must be monotonically increasing, but "
                       "ragged_splits[%" PRId64 "]=%" PRId64 " is smaller than row_splits[%" PRId64
                       "]=%" PRId64,
                       i, after, i - 1, before);
  }
  int64_t last = weir_tensor_int_at(splits, splits->count - 1);
  if (last != values) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid ragged splits: last element of ragged splits must be the number of "
                       "ragged values(%" PRId64 ") but is %" PRId64,
                       values, last);
  }
  return NULL;
}

static weir_status_t* check_inputs(const weir_kernel_ctx_t* ctx, const inputs_t* in) {
  static const char bad_rank[] = "tf.ragged.cross only supports inputs with rank=2.";
  for (int i = 0; i < in->ragged; ++i) {
    const weir_tensor_t* values = weir_kernel_input(ctx, i);
    const weir_tensor_t* splits = weir_kernel_input(ctx, in->splits_at + i);
    if (values->rank != 1 || splits->rank != 1)
      return WEIR_STATUS(INVALID_ARGUMENT, "%s", bad_rank);
    WEIR_TRY(check_splits(splits, values->count));
  }
  for (int i = 0; i < in->sparse; ++i) {
    const weir_tensor_t* indices = weir_kernel_input(ctx, in->indices_at + i);
    const weir_tensor_t* values = weir_kernel_input(ctx, in->values_at + i);
    const weir_tensor_t* shape = weir_kernel_input(ctx, in->shapes_at + i);
    if (indices->rank != 2 || values->rank != 1 || shape->rank != 1 ||
        indices->dims[0] != values->count || indices->dims[1] != shape->count)
      return WEIR_STATUS(INVALID_ARGUMENT, "Invalid sparse tensor at position %d", i);
    if (shape->count != 2) return WEIR_STATUS(INVALID_ARGUMENT, "%s", bad_rank);
  }
  for (int i = 0; i < in->dense; ++i) {
    if (weir_kernel_input(ctx, in->dense_at + i)->rank != 2)
      return WEIR_STATUS(INVALID_ARGUMENT, "%s", bad_rank);
  }
  return NULL;
}

static weir_status_t* count_rows(const weir_kernel_ctx_t* ctx, const inputs_t* in, int64_t* out) {
  int64_t rows = -1;
  for (int i = 0; i < in->ragged; ++i)
    WEIR_TRY(join_rows(weir_kernel_input(ctx, in->splits_at + i)->count - 1, &rows));
  for (int i = 0; i < in->sparse; ++i)
    WEIR_TRY(
        join_rows(WEIR_TENSOR_DATA(weir_kernel_input(ctx, in->shapes_at + i), int64_t)[0], &rows));
  for (int i = 0; i < in->dense; ++i)
    WEIR_TRY(join_rows(weir_kernel_input(ctx, in->dense_at + i)->dims[0], &rows));
  *out = WEIR_MAX(rows, 0);
  return NULL;
}

static weir_status_t* read_column(const weir_kernel_ctx_t* ctx, const inputs_t* in, char kind,
                                  int i, int64_t rows, weir_cross_column_t* out) {
  if (kind == 'D') {
    const weir_tensor_t* dense = weir_kernel_input(ctx, in->dense_at + i);
    *out = (weir_cross_column_t){.values = dense, .width = dense->dims[1]};
    return NULL;
  }
  out->values = weir_kernel_input(ctx, kind == 'R' ? i : in->values_at + i);
  out->starts = weir_alloc_array((size_t)rows + 1, sizeof(int64_t));
  if (!out->starts) return weir_out_of_memory();
  const weir_tensor_t* at =
      weir_kernel_input(ctx, (kind == 'R' ? in->splits_at : in->indices_at) + i);
  int64_t next = 0;
  for (int64_t r = 0; r <= rows; ++r) {
    if (kind == 'R') {
      out->starts[r] = weir_tensor_int_at(at, r);
      continue;
    }
    while (next < at->dims[0] && WEIR_TENSOR_DATA(at, int64_t)[2 * next] < r) ++next;
    out->starts[r] = next;
  }
  return NULL;
}

static weir_status_t* check_order(weir_view_t order, const inputs_t* in) {
  int counts[3] = {0, 0, 0};
  const int most[3] = {in->ragged, in->sparse, in->dense};
  static const char* const names[] = {"ragged", "sparse", "dense"};
  if (order.size != (size_t)(in->ragged + in->sparse + in->dense))
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid length for input_order");
  for (size_t k = 0; k < order.size; ++k) {
    const char c = order.data[k];
    if (c != 'R' && c != 'S' && c != 'D')
      return WEIR_STATUS(INVALID_ARGUMENT, "Unexpected input_order value.");
    const int kind = c == 'R' ? 0 : c == 'S' ? 1 : 2;
    if (counts[kind]++ < most[kind]) continue;
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "input_order \"%.*s\" specifies reading a %s tensor value at index %d from a "
        "list of %d values.",
        WEIR_VIEW_ARG(order), names[kind], counts[kind] - 1, most[kind]);
  }
  return NULL;
}

static weir_status_t* read_columns(const weir_kernel_ctx_t* ctx, const inputs_t* in,
                                   weir_view_t order, weir_cross_t* cross) {
  int ragged = 0, sparse = 0, dense = 0;
  cross->count = (int)order.size;
  cross->columns = weir_calloc(order.size, sizeof(*cross->columns));
  if (!cross->columns) return weir_out_of_memory();
  for (int k = 0; k < cross->count; ++k) {
    const char kind = order.data[k];
    int i = kind == 'R' ? ragged++ : kind == 'S' ? sparse++ : dense++;
    WEIR_TRY(read_column(ctx, in, kind, i, cross->rows, &cross->columns[k]));
  }
  return NULL;
}

static weir_status_t* write_rows(weir_kernel_ctx_t* ctx, const weir_cross_t* cross) {
  weir_tensor_t* values = NULL;
  weir_tensor_t* splits = NULL;
  int64_t total = 0;
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, (const int64_t[]){cross->rows + 1}, &splits));
  const int64_t most = weir_tensor_type(splits) == WEIR_DTYPE_INT32 ? INT32_MAX : INT64_MAX;
  weir_move_set_int(splits, 0, 0);
  for (int64_t r = 0; r < cross->rows; ++r) {
    int64_t size = 0;
    WEIR_TRY(weir_cross_size(cross, r, &size));
    if (size > most - total) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Row splits are too large for out_row_splits_type: use int64");
    }
    total += size;
    weir_move_set_int(splits, r + 1, total);
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, &total, &values));
  for (int64_t r = 0; r < cross->rows; ++r) {
    int64_t at = weir_tensor_int_at(splits, r);
    WEIR_TRY(weir_cross_row(cross, r, weir_tensor_int_at(splits, r + 1) - at, values, at));
  }
  return NULL;
}

static weir_status_t* cross_cpu(weir_kernel_ctx_t* ctx) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const inputs_t in = inputs_of(attrs);
  const weir_view_t order = weir_attrs_string(attrs, "input_order");
  const bool is_text = weir_attrs_type(attrs, "out_values_type") == WEIR_DTYPE_STRING;
  weir_cross_t cross = {
      .kind = is_text ? WEIR_CROSS_TEXT : WEIR_CROSS_HASH,  // whatever hashed_output says
      .separator = weir_view_of("_X_"),
      .key = (uint64_t)weir_attrs_int(attrs, "hash_key"),
      .buckets = weir_attrs_int(attrs, "num_buckets")};
  WEIR_TRY(check_inputs(ctx, &in));
  WEIR_TRY(count_rows(ctx, &in, &cross.rows));
  WEIR_TRY(check_order(order, &in));
  weir_status_t* status = read_columns(ctx, &in, order, &cross);
  if (!status) status = write_rows(ctx, &cross);
  weir_cross_free(&cross);
  return status;
}

const weir_op_module_t weir_ops_ragged_cross = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RaggedCross",
         .attrs =
             "Nsparse: int >= 0; input_order: string; hashed_output: bool; num_buckets: int >= 0; "
             "hash_key: int; ragged_values_types: list({int64, string}) >= 0; "
             "ragged_splits_types: list({int32, int64}) >= 0; "
             "sparse_values_types: list({int64, string}) >= 0; "
             "dense_types: list({int64, string}) >= 0; out_values_type: {int64, string}; "
             "out_row_splits_type: {int32, int64}",
         .inputs = "ragged_values: ragged_values_types; ragged_row_splits: ragged_splits_types; "
                   "sparse_indices: Nsparse * int64; sparse_values: sparse_values_types; "
                   "sparse_shape: Nsparse * int64; dense_inputs: dense_types",
         .outputs = "output_values: out_values_type; output_row_splits: out_row_splits_type",
         .summary = "Crossed features of ragged, sparse and dense columns",
         .infer_shape = cross_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = cross_cpu)},
        {0}}};
