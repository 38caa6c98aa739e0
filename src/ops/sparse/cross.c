// cross.c — SparseCross, SparseCrossV2, SparseCrossHashed: every combination of the features of
// sparse and dense columns, row by row.
#include "base/string.h"
#include "ops/sparse/cross_columns.h"

static weir_status_t* cross_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_set_dims(ctx, 0, 2, (const int64_t[]){-1, 2}));
  WEIR_TRY(weir_shape_set_vector(ctx, 1, -1));
  return weir_shape_set_vector(ctx, 2, 2);
}

// The inputs that all three have: |sparse_count| each of indices, values and shapes, then dense.
typedef struct inputs_t {
  int sparse_count;
  int dense_count;
} inputs_t;

static weir_status_t* check_sparse(const weir_kernel_ctx_t* ctx, int n) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  for (int i = 0; i < n; ++i) {
    const weir_tensor_t* indices = weir_kernel_input(ctx, i);
    if (indices->rank != 2) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Input indices should be a matrix but received shape %s at position %d",
                         weir_tensor_shape_text(indices, text), i);
    }
    if (indices->dims[1] != 2) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Expected D2 of index to be 2 got %" PRId64 " at position %d",
                         indices->dims[1], i);
    }
  }
  for (int i = 0; i < n; ++i) {
    const weir_tensor_t* values = weir_kernel_input(ctx, n + i);
    if (values->rank != 1) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Input values should be a vector but received shape %s at position %d",
                         weir_tensor_shape_text(values, text), i);
    }
    int64_t want = weir_kernel_input(ctx, i)->dims[0];
    if (values->count != want) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Expected size of values to be %" PRId64 " got %" PRId64 " at position %d",
                         want, values->count, i);
    }
  }
  for (int i = 0; i < n; ++i) {
    const weir_tensor_t* shape = weir_kernel_input(ctx, 2 * n + i);
    if (shape->rank != 1) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Input shapes should be a vector but received shape %s at position %d",
                         weir_tensor_shape_text(shape, text), i);
    }
    if (shape->count != 2) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "shape should imply a 2D tensor, but got %s at position %d",
                         weir_tensor_shape_text(shape, text), i);
    }
  }
  return NULL;
}

static weir_status_t* check_rows(const weir_kernel_ctx_t* ctx, inputs_t in, int64_t* out_rows) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  int64_t rows = -1;
  for (int i = 0; i < in.sparse_count; ++i) {
    int64_t own = WEIR_TENSOR_DATA(weir_kernel_input(ctx, 2 * in.sparse_count + i), int64_t)[0];
    if (i == 0) rows = own;
    if (own != rows) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Expected batch size %" PRId64 " got %" PRId64 " at position %d", rows,
                         own, i);
    }
  }
  for (int i = 0; i < in.dense_count; ++i) {
    const weir_tensor_t* dense = weir_kernel_input(ctx, 3 * in.sparse_count + i);
    if (dense->rank != 2) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Dense inputs should be a matrix but received shape %s at position %d",
                         weir_tensor_shape_text(dense, text), i);
    }
    if (rows < 0 && in.sparse_count == 0) rows = dense->dims[0];
    if (dense->dims[0] != rows) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Expected batch size %" PRId64 " got %" PRId64 " at dense tensor %d", rows,
                         dense->dims[0], i);
    }
  }
  *out_rows = WEIR_MAX(rows, 0);
  return NULL;
}

// Where the features of each row begin: elements are in order of their rows.
static weir_status_t* find_starts(const weir_tensor_t* indices, int64_t rows, int64_t** out) {
  int64_t* starts = weir_alloc_array((size_t)rows + 1, sizeof(*starts));
  if (!starts) return weir_out_of_memory();
  int64_t at = 0;
  for (int64_t r = 0; r < rows; ++r) {
    starts[r] = at;
    while (at < indices->dims[0] && WEIR_TENSOR_DATA(indices, int64_t)[2 * at] == r) ++at;
  }
  starts[rows] = at;
  *out = starts;
  return NULL;
}

static weir_status_t* read_columns(const weir_kernel_ctx_t* ctx, inputs_t in, weir_cross_t* cross) {
  cross->count = in.sparse_count + in.dense_count;
  cross->columns = weir_calloc((size_t)cross->count, sizeof(*cross->columns));
  if (!cross->columns) return weir_out_of_memory();
  for (int i = 0; i < in.sparse_count; ++i) {
    cross->columns[i].values = weir_kernel_input(ctx, in.sparse_count + i);
    WEIR_TRY(find_starts(weir_kernel_input(ctx, i), cross->rows, &cross->columns[i].starts));
  }
  for (int i = 0; i < in.dense_count; ++i) {
    const weir_tensor_t* dense = weir_kernel_input(ctx, 3 * in.sparse_count + i);
    cross->columns[in.sparse_count + i] =
        (weir_cross_column_t){.values = dense, .width = dense->dims[1]};
  }
  return NULL;
}

static weir_status_t* write_rows(weir_kernel_ctx_t* ctx, const weir_cross_t* cross) {
  int64_t total = 0, widest = 0;
  weir_tensor_t* indices = NULL;
  weir_tensor_t* values = NULL;
  for (int64_t r = 0; r < cross->rows; ++r) {
    int64_t size = 0;
    WEIR_TRY(weir_cross_size(cross, r, &size));
    if (size > INT64_MAX - total)
      return WEIR_STATUS(INVALID_ARGUMENT, "There are too many crossed features");
    total += size;
    widest = WEIR_MAX(widest, size);
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (const int64_t[]){total, 2}, &indices));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &total, &values));
  int64_t at = 0;
  for (int64_t r = 0; r < cross->rows; ++r) {
    int64_t size = 0;
    WEIR_TRY(weir_cross_size(cross, r, &size));
    WEIR_TRY(weir_cross_row(cross, r, size, values, at));
    for (int64_t i = 0; i < size; ++i, ++at) {
      WEIR_TENSOR_DATA(indices, int64_t)[2 * at] = r;
      WEIR_TENSOR_DATA(indices, int64_t)[2 * at + 1] = i;
    }
  }
  return weir_sparse_output_vector(ctx, 2, (const int64_t[]){cross->rows, widest}, 2);
}

static inputs_t inputs_of(const weir_kernel_ctx_t* ctx) {
  return (inputs_t){
      .sparse_count = (int)weir_attrs_int(weir_kernel_attrs(ctx), "N"),
      .dense_count = (int)weir_attrs_list(weir_kernel_attrs(ctx), "dense_types")->count};
}

static weir_status_t* run_cross(weir_kernel_ctx_t* ctx, weir_cross_t* cross) {
  const inputs_t in = inputs_of(ctx);
  WEIR_TRY(check_sparse(ctx, in.sparse_count));
  WEIR_TRY(check_rows(ctx, in, &cross->rows));
  weir_status_t* status = read_columns(ctx, in, cross);
  if (!status) status = write_rows(ctx, cross);
  weir_cross_free(cross);
  return status;
}

// Texts are joined of texts only.
static weir_status_t* check_types(const weir_kernel_ctx_t* ctx) {
  const inputs_t in = inputs_of(ctx);
  const weir_dtype_t internal = weir_attrs_type(weir_kernel_attrs(ctx), "internal_type");
  if (internal != WEIR_DTYPE_STRING) return NULL;
  for (int i = 0; i < in.sparse_count + in.dense_count; ++i) {
    const bool is_sparse = i < in.sparse_count;
    const weir_tensor_t* values =
        weir_kernel_input(ctx, is_sparse ? in.sparse_count + i : 2 * in.sparse_count + i);
    if (weir_tensor_type(values) == internal) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s should be of internal type %d but received %d",
                       is_sparse ? "Input values" : "Dense inputs", (int)internal,
                       (int)weir_tensor_type(values));
  }
  return NULL;
}

static weir_status_t* cross_v1_cpu(weir_kernel_ctx_t* ctx) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  WEIR_TRY(check_types(ctx));
  weir_cross_t cross = {.kind = weir_attrs_type(attrs, "out_type") == WEIR_DTYPE_STRING
                                    ? WEIR_CROSS_TEXT
                                    : WEIR_CROSS_HASH,
                        .separator = weir_view_of("_X_"),
                        .key = (uint64_t)weir_attrs_int(attrs, "hash_key"),
                        .buckets = weir_attrs_int(attrs, "num_buckets")};
  return run_cross(ctx, &cross);
}

static weir_status_t* cross_v2_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* separator = weir_kernel_input(ctx, ctx->input_count - 1);
  if (separator->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input separator should be a scalar. Received: a tensor of shape %s",
                       weir_tensor_shape_text(separator, text));
  }
  weir_cross_t cross = {.kind = WEIR_CROSS_TEXT, .separator = weir_string_view(separator->data)};
  return run_cross(ctx, &cross);
}

static weir_status_t* cross_hashed_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* buckets = weir_kernel_input(ctx, ctx->input_count - 3);
  const weir_tensor_t* strong = weir_kernel_input(ctx, ctx->input_count - 2);
  const weir_tensor_t* salt = weir_kernel_input(ctx, ctx->input_count - 1);
  if (buckets->count != 1 || strong->count != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "num_buckets and strong_hash must be scalars");
  }
  if (salt->count != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input \"salt\" must have length 2 but has length %" PRId64, salt->count);
  }
  weir_cross_t cross = {
      .kind = *WEIR_TENSOR_DATA(strong, bool) ? WEIR_CROSS_HASH_STRONG : WEIR_CROSS_HASH_PLAIN,
      .salt = {WEIR_TENSOR_DATA(salt, uint64_t)[0], WEIR_TENSOR_DATA(salt, uint64_t)[1]},
      .buckets = WEIR_TENSOR_DATA(buckets, int64_t)[0]};
  return run_cross(ctx, &cross);
}

#define COLUMNS_IN \
  "indices: N * int64; values: sparse_types; shapes: N * int64; dense_inputs: dense_types"
#define COLUMN_TYPES                           \
  "sparse_types: list({int64, string}) >= 0; " \
  "dense_types: list({int64, string}) >= 0"

const weir_op_module_t weir_ops_sparse_cross = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseCross",
         .attrs =
             "N: int >= 0; hashed_output: bool; num_buckets: int >= 0; hash_key: int; " COLUMN_TYPES
             "; out_type: {int64, string}; internal_type: {int64, string}",
         .inputs = COLUMNS_IN,
         .outputs = "output_indices: int64; output_values: out_type; output_shape: int64",
         .summary = "Crossed features of columns, as texts or hashes",
         .infer_shape = cross_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = cross_v1_cpu)},
        {.name = "SparseCrossV2",
         .attrs = "N: int >= 0; " COLUMN_TYPES,
         .inputs = COLUMNS_IN "; sep: string",
         .outputs = "output_indices: int64; output_values: string; output_shape: int64",
         .summary = "Crossed features of columns as texts",
         .infer_shape = cross_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = cross_v2_cpu)},
        {.name = "SparseCrossHashed",
         .attrs = "N: int >= 0; " COLUMN_TYPES,
         .inputs = COLUMNS_IN "; num_buckets: int64; strong_hash: bool; salt: int64",
         .outputs = "output_indices: int64; output_values: int64; output_shape: int64",
         .summary = "Crossed features of columns as hashes",
         .infer_shape = cross_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = cross_hashed_cpu)},
        {0}}};
