// matrix_diag.c — MatrixDiag, MatrixDiagPart, MatrixSetDiag, MatrixBandPart: diagonals and bands of
// batches of matrices.
#include "kernel/move/diagonals.h"
#include "ops/array/common.h"

// ---- MatrixDiag, MatrixDiagPart ----

static weir_status_t* diag_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_at_least(ctx, in, 1));
  if (in->rank < 0) return weir_shape_set(ctx, 0, in);
  int64_t dims[WEIR_MAX_RANK + 1];
  for (int i = 0; i < in->rank; ++i) dims[i] = in->dims[i];
  dims[in->rank] = in->dims[in->rank - 1];
  return weir_shape_set_dims(ctx, 0, in->rank + 1, dims);
}

static weir_status_t* part_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_at_least(ctx, in, 2));
  if (in->rank < 0) return weir_shape_set(ctx, 0, in);
  int64_t dims[WEIR_MAX_RANK];
  int64_t rows = in->dims[in->rank - 2], columns = in->dims[in->rank - 1];
  for (int i = 0; i < in->rank - 2; ++i) dims[i] = in->dims[i];
  dims[in->rank - 2] = rows < 0 || columns < 0 ? -1 : WEIR_MIN(rows, columns);
  return weir_shape_set_dims(ctx, 0, in->rank - 1, dims);
}

static weir_status_t* no_diagonal(void) {
  return WEIR_STATUS(INVALID_ARGUMENT, "diagonal must be at least 1-dim, received shape: []");
}

static weir_status_t* diag(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_tensor_type(in);
  int64_t dims[WEIR_MAX_RANK + 1];
  if (in->rank < 1) return no_diagonal();
  for (int i = 0; i < in->rank; ++i) dims[i] = in->dims[i];
  int64_t n = dims[in->rank - 1];
  dims[in->rank] = n;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank + 1, dims, &out));
  if (out->count == 0) return NULL;
  WEIR_TRY(weir_kernel_move_zero(ctx, dtype, out->data, out->count));
  weir_move_dim_t box[] = {{in->count / n, n, n * n}, {n, 1, n + 1}};
  return weir_kernel_move_box(ctx, dtype, 2, box, in->data, out->data);
}

static weir_status_t* check_matrices(const weir_tensor_t* in) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (in->rank >= 2) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "input must be at least 2-dim, received shape: %s",
                     weir_tensor_shape_text(in, text));
}

static weir_status_t* part(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(check_matrices(in));
  int64_t rows = in->dims[in->rank - 2], columns = in->dims[in->rank - 1],
          n = WEIR_MIN(rows, columns);
  for (int i = 0; i < in->rank - 2; ++i) dims[i] = in->dims[i];
  dims[in->rank - 2] = n;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank - 1, dims, &out));
  if (out->count == 0) return NULL;
  weir_move_dim_t box[] = {{out->count / n, rows * columns, n}, {n, columns + 1, 1}};
  return weir_kernel_move_box(ctx, weir_tensor_type(in), 2, box, in->data, out->data);
}

static weir_status_t* diag_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, weir_grad_node(g, "MatrixDiagPart", WEIR_EDGES(weir_grad_dy(g, 0))));
}

static weir_status_t* part_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = weir_grad_input(g, 0);
  const weir_shape_t* s = weir_grad_shape(g, x);
  if (s->rank >= 2 && s->dims[s->rank - 1] >= 0 && s->dims[s->rank - 1] == s->dims[s->rank - 2]) {
    return weir_grad_set(g, 0, weir_grad_node(g, "MatrixDiag", WEIR_EDGES(weir_grad_dy(g, 0))));
  }
  weir_edge_t zeros = weir_grad_node(g, "ZerosLike", WEIR_EDGES(x));
  return weir_grad_set(g, 0,
                       weir_grad_node(g, "MatrixSetDiag", WEIR_EDGES(zeros, weir_grad_dy(g, 0))));
}

// ---- MatrixSetDiag ----

static weir_status_t* set_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const weir_shape_t* diagonal = weir_shape_input(ctx, 1);
  WEIR_TRY(weir_shape_at_least(ctx, in, 2));
  WEIR_TRY(weir_shape_at_least(ctx, diagonal, 1));
  if (in->rank < 0 || diagonal->rank < 0) return weir_shape_set(ctx, 0, in);
  WEIR_TRY(weir_shape_with_rank(ctx, diagonal, in->rank - 1, NULL));
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i < in->rank; ++i) dims[i] = in->dims[i];
  for (int i = 0; i < in->rank - 2; ++i)
    WEIR_TRY(weir_dim_join(ctx, dims[i], diagonal->dims[i], &dims[i]));
  int64_t rows = in->dims[in->rank - 2], columns = in->dims[in->rank - 1], joined = 0;
  if (rows >= 0 && columns >= 0) {
    WEIR_TRY(weir_dim_join(ctx, WEIR_MIN(rows, columns), diagonal->dims[in->rank - 2], &joined));
  }
  return weir_shape_set_dims(ctx, 0, in->rank, dims);
}

static bool is_diagonal_of(const weir_tensor_t* diagonal, const weir_tensor_t* in) {
  if (diagonal->rank != in->rank - 1) return false;
  for (int i = 0; i < in->rank - 2; ++i) {
    if (diagonal->dims[i] != in->dims[i]) return false;
  }
  return diagonal->dims[in->rank - 2] == WEIR_MIN(in->dims[in->rank - 2], in->dims[in->rank - 1]);
}

static weir_status_t* set(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* diagonal = weir_kernel_input(ctx, 1);
  const weir_dtype_t dtype = weir_tensor_type(in);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  WEIR_TRY(check_matrices(in));
  if (diagonal->rank < 1) return no_diagonal();
  if (!is_diagonal_of(diagonal, in)) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Either first dimensions of diagonal don't match input.shape[:-2], or "
        "diagonal.shape[:-1] is not equal to the longests diagonal in range "
        "[lower_diag_index:upper_diag_index]. Input shape: %s and diagonal shape: %s",
        weir_tensor_shape_text(in, a), weir_tensor_shape_text(diagonal, b));
  }
  int64_t rows = in->dims[in->rank - 2], columns = in->dims[in->rank - 1],
          n = WEIR_MIN(rows, columns);
  const void* data = in->data;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, in->rank, in->dims, &out));
  if (out->count == 0) return NULL;
  if (out->data != data) WEIR_TRY(weir_kernel_move_copy(ctx, dtype, data, out->data, out->count));
  weir_move_dim_t box[] = {{diagonal->count / n, n, rows * columns}, {n, 1, columns + 1}};
  return weir_kernel_move_box(ctx, dtype, 2, box, diagonal->data, out->data);
}

static weir_status_t* set_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t zeros = weir_grad_node(g, "ZerosLike", WEIR_EDGES(weir_grad_input(g, 1)));
  WEIR_TRY(weir_grad_set(g, 0, weir_grad_node(g, "MatrixSetDiag", WEIR_EDGES(dy, zeros))));
  return weir_grad_set(g, 1, weir_grad_node(g, "MatrixDiagPart", WEIR_EDGES(dy)));
}

// ---- MatrixBandPart ----

typedef struct band_t {
  const char* src;
  char* dst;
  size_t size;
  int64_t rows, columns;
  int64_t lower, upper;  // diagonals kept; negative: all
} band_t;

// Rows of all matrices: zeros, the band, zeros.
static void band_range(void* arg, int64_t begin, int64_t end) {
  const band_t* band = arg;
  for (int64_t i = begin; i < end; ++i) {
    int64_t row = i % band->rows;
    int64_t first = band->lower < 0 ? 0 : WEIR_MIN(band->columns, WEIR_MAX(0, row - band->lower));
    int64_t last = band->upper < 0 ? band->columns : WEIR_MIN(band->columns, row + band->upper + 1);
    char* dst = band->dst + (size_t)(i * band->columns) * band->size;
    const char* src = band->src + (size_t)(i * band->columns) * band->size;
    memset(dst, 0, (size_t)first * band->size);
    if (last > first && dst != src) {
      memcpy(dst + (size_t)first * band->size, src + (size_t)first * band->size,
             (size_t)(last - first) * band->size);
    }
    int64_t rest = WEIR_MAX(first, last);
    memset(dst + (size_t)rest * band->size, 0, (size_t)(band->columns - rest) * band->size);
  }
}

static weir_status_t* read_bound(const weir_kernel_ctx_t* ctx, int input, const char* name,
                                 const char* of, int64_t limit, int64_t* out_bound) {
  const weir_tensor_t* t = weir_kernel_input(ctx, input);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->rank != 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be scalar, got shape %s", name,
                       weir_tensor_shape_text(t, text));
  *out_bound = weir_tensor_int_at(t, 0);
  if (*out_bound > limit) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "%s must be negative or less or equal to number of %s (%lld) got: %lld",
                       name, of, (long long)limit, (long long)*out_bound);
  }
  return NULL;
}

static weir_status_t* band_on_gpu(const weir_kernel_ctx_t* ctx, const band_t* band,
                                  const weir_tensor_t* out) {
  weir_diagonals_t kept = {.lower = band->lower < 0 ? -band->rows : -band->lower,
                           .upper = band->upper < 0 ? band->columns : band->upper,
                           .rows = band->rows,
                           .columns = band->columns};
  return weir_gpu_keep_band(ctx, kept, band->src, out);
}

static weir_status_t* band_part(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  WEIR_TRY(check_matrices(in));
  band_t band = {
      .rows = in->dims[in->rank - 2], .columns = in->dims[in->rank - 1], .src = in->data};
  WEIR_TRY(read_bound(ctx, 1, "num_lower", "rows", band.rows, &band.lower));
  WEIR_TRY(read_bound(ctx, 2, "num_upper", "columns", band.columns, &band.upper));
  const bool keeps_all =
      (band.lower < 0 || band.lower == band.rows) && (band.upper < 0 || band.upper == band.columns);
  if (!keeps_all) {  // TensorFlow's loops count in ints
    band.lower = (int32_t)band.lower;
    band.upper = (int32_t)band.upper;
  }
  band.size = weir_dtype_size(weir_tensor_type(in));
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, in->rank, in->dims, &out));
  if (out->count == 0) return NULL;
  if (ctx->state) return band_on_gpu(ctx, &band, out);
  band.dst = out->data;
  weir_pool_for(weir_kernel_pool(ctx), out->count / band.columns,
                5 + 0.1 * (double)band.columns * (double)band.size, band_range, &band);
  return NULL;
}

static weir_status_t* band_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 0, NULL));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

static weir_status_t* band_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(
      g, 0,
      weir_grad_node(g, "MatrixBandPart",
                     WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 1), weir_grad_input(g, 2))));
}

#define MATRIX_TYPES                                                                           \
  "T: bool, complex64, complex128, float, double, half, bfloat16, int8, int16, int32, int64, " \
  "uint8, uint16, uint32, "                                                                    \
  "uint64"

#define MATRIX_KERNELS(fn)                                                          \
  ((const weir_kernel_def_t[]){                                                     \
      {WEIR_DEVICE_CPU, .types = MATRIX_TYPES, .compute = fn},                      \
      WEIR_MOVE_GPU_ROW("T: " WEIR_MOVED_TYPES, weir_move_gpu_init, .compute = fn), \
      {0}})
#define BAND_KERNELS                                                                \
  ((const weir_kernel_def_t[]){                                                     \
      {WEIR_DEVICE_CPU, .types = MATRIX_TYPES, .compute = band_part,                \
       .host_inputs = "num_lower, num_upper"},                                      \
      {WEIR_DEVICE_GPU, .types = "T: " WEIR_MOVED_TYPES, .compute = band_part,      \
       .init = weir_gpu_keep_band_init, .state_size = sizeof(weir_cuda_function_t), \
       .host_inputs = "num_lower, num_upper"},                                      \
      {0}})

const weir_op_module_t weir_ops_array_matrix_diag = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MatrixDiag",
         .attrs = "T: type",
         .inputs = "diagonal: T",
         .outputs = "output: T",
         .summary = "Returns square matrices with the given diagonals.",
         .infer_shape = diag_shape,
         .build_grad = diag_grad,
         .kernels = MATRIX_KERNELS(diag)},
        {.name = "MatrixDiagPart",
         .attrs = "T: type",
         .inputs = "input: T",
         .outputs = "diagonal: T",
         .summary = "Returns the diagonals of matrices.",
         .infer_shape = part_shape,
         .build_grad = part_grad,
         .kernels = MATRIX_KERNELS(part)},
        {.name = "MatrixSetDiag",
         .attrs = "T: type",
         .inputs = "input: T; diagonal: T",
         .outputs = "output: T",
         .summary = "Replaces the diagonals of matrices.",
         .infer_shape = set_shape,
         .build_grad = set_grad,
         .kernels = MATRIX_KERNELS(set)},
        {.name = "MatrixBandPart",
         .attrs = "T: type; Tindex: {int32, int64} = DT_INT64",
         .inputs = "input: T; num_lower: Tindex; num_upper: Tindex",
         .outputs = "band: T",
         .summary = "Keeps a band around the diagonals of matrices and makes the rest zero.",
         .infer_shape = band_shape,
         .build_grad = band_grad,
         .kernels = BAND_KERNELS},
        {.name = "BatchMatrixDiag",
         .attrs = "T: type",
         .inputs = "diagonal: T",
         .outputs = "output: T",
         .summary = "MatrixDiag of old graphs",
         .infer_shape = diag_shape,
         .kernels = MATRIX_KERNELS(diag)},
        {.name = "BatchMatrixDiagPart",
         .attrs = "T: type",
         .inputs = "input: T",
         .outputs = "diagonal: T",
         .summary = "MatrixDiagPart of old graphs",
         .infer_shape = part_shape,
         .kernels = MATRIX_KERNELS(part)},
        {.name = "BatchMatrixSetDiag",
         .attrs = "T: type",
         .inputs = "input: T; diagonal: T",
         .outputs = "output: T",
         .summary = "MatrixSetDiag of old graphs",
         .infer_shape = set_shape,
         .kernels = MATRIX_KERNELS(set)},
        {.name = "BatchMatrixBandPart",
         .attrs = "T: type",
         .inputs = "input: T; num_lower: int64; num_upper: int64",
         .outputs = "band: T",
         .summary = "MatrixBandPart of old graphs",
         .infer_shape = band_shape,
         .kernels = BAND_KERNELS},
        {0}}};
