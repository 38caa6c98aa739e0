// matrix_diag_v3.c — MatrixDiagV3, MatrixDiagPartV3 and the versions before: several diagonals of
// batches of matrices at once, packed as the rows of a matrix.
#include "ops/array/matrix_band.h"

// ---- MatrixDiagV3 ----

// Fills in the sizes that are -1 and checks those given: one of them must be the least possible.
static weir_status_t* resolve_sizes(layout_t* l) {
  int64_t least_rows = l->length - WEIR_MIN(l->band.upper, 0);
  int64_t least_columns = l->length + WEIR_MAX(l->band.lower, 0);
  if (l->rows != -1 && l->rows < least_rows)
    return WEIR_STATUS(INVALID_ARGUMENT, "The number of rows is too small.");
  if (l->columns != -1 && l->columns < least_columns)
    return WEIR_STATUS(INVALID_ARGUMENT, "The number of columns is too small.");
  if (l->rows == -1 && l->columns == -1) {
    l->rows = l->columns = WEIR_MAX(least_rows, least_columns);
  } else if (l->rows == -1) {
    l->rows = least_rows;
  } else if (l->columns == -1) {
    l->columns = least_columns;
  }
  if (l->rows == least_rows || l->columns == least_columns) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "The number of rows or columns is not consistent with the specified d_lower, "
                     "d_upper, and diagonal: num_rows and num_cols are not consistent with "
                     "lower_diag_index, upper_diag_index, and the length of the given diagonals.");
}

static weir_status_t* check_packed(band_t band, int rank, const int64_t* dims) {
  if (band_count(band) == 1 || (rank >= 2 && dims[rank - 2] == band_count(band))) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "The number of diagonals provided in the input does not match the "
                     "lower_diag_index and upper_diag_index range.");
}

static weir_status_t* check_packed_shape(band_t band, const weir_shape_t* in) {
  const int64_t count = in->rank < 2 ? 1 : in->dims[in->rank - 2];
  if (count < 0 || count == band_count(band)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "The number of rows of `diagonal` doesn't match the number of diagonals "
                     "implied from `d_lower` and `d_upper`: d_lower = %lld, d_upper = %lld",
                     (long long)band.lower, (long long)band.upper);
}

static weir_status_t* diag_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  array_ints_t k, rows, columns;
  layout_t l = {.rows = -1, .columns = -1};
  WEIR_TRY(weir_shape_at_least(ctx, in, 1));
  WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, 1), 1));
  for (int i = 2; i < 5; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  array_input_ints(ctx, 1, &k);
  array_input_ints(ctx, 2, &rows);
  array_input_ints(ctx, 3, &columns);
  if (in->rank < 0 || !k.is_exact) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  WEIR_TRY(make_band(&k, &l.band));
  const bool is_one = band_count(l.band) == 1;
  if (!is_one) WEIR_TRY(check_packed_shape(l.band, in));
  int64_t dims[WEIR_MAX_RANK + 1];
  for (int i = 0; i < in->rank; ++i) dims[i] = in->dims[i];
  l.length = in->dims[in->rank - 1];
  if (rows.is_exact && rows.count == 1) l.rows = rows.values[0];
  if (columns.is_exact && columns.count == 1) l.columns = columns.values[0];
  if (l.length >= 0 && rows.is_exact && columns.is_exact) WEIR_TRY(resolve_sizes(&l));
  int rank = is_one ? in->rank + 1 : in->rank;
  dims[rank - 2] = WEIR_MAX(l.rows, -1);
  dims[rank - 1] = WEIR_MAX(l.columns, -1);
  return weir_shape_set_dims(ctx, 0, rank, dims);
}

static weir_status_t* diag(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* padding = weir_kernel_input(ctx, 4);
  int64_t dims[WEIR_MAX_RANK + 1];
  layout_t l = {0};
  WEIR_TRY(read_band(weir_kernel_input(ctx, 1), &l.band));
  WEIR_TRY(check_order(l.band));
  WEIR_TRY(check_scalar(weir_kernel_input(ctx, 2), "num_rows"));
  WEIR_TRY(check_scalar(weir_kernel_input(ctx, 3), "num_cols"));
  WEIR_TRY(check_scalar(padding, "padding_value"));
  if (in->rank < 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "diagonal must be at least 1-dim, received shape: []");
  WEIR_TRY(check_packed(l.band, in->rank, in->dims));
  read_align(weir_kernel_attrs(ctx), &l);
  l.rows = weir_move_int_at(weir_kernel_input(ctx, 2), 0);
  l.columns = weir_move_int_at(weir_kernel_input(ctx, 3), 0);
  l.length = in->dims[in->rank - 1];
  WEIR_TRY(resolve_sizes(&l));
  for (int i = 0; i < in->rank; ++i) dims[i] = in->dims[i];
  int rank = band_count(l.band) == 1 ? in->rank + 1 : in->rank;
  dims[rank - 2] = l.rows;
  dims[rank - 1] = l.columns;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  if (out->count == 0) return NULL;
  if (ctx->state) return weir_gpu_put_diagonals(ctx, gpu_layout(&l), in, NULL, padding->data, out);
  WEIR_TRY(weir_move_fill(weir_kernel_pool(ctx), weir_tensor_type(out), padding->data, out->data,
                          out->count));
  return move_diagonals(ctx, &l, false, in, out);
}

// ---- MatrixDiagPartV3 ----

static weir_status_t* part_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  array_ints_t k;
  band_t band;
  int rank = 0;
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(weir_shape_at_least(ctx, in, 2));
  WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, 1), 1));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 0, NULL));
  array_input_ints(ctx, 1, &k);
  if (in->rank < 0 || !k.is_exact) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  WEIR_TRY(make_band(&k, &band));
  WEIR_TRY(part_dims(band, in->rank, in->dims, &rank, dims));
  return weir_shape_set_dims(ctx, 0, rank, dims);
}

static weir_status_t* part(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* padding = weir_kernel_input(ctx, 2);
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  layout_t l = {0};
  char text[WEIR_SHAPE_TEXT_SIZE];
  WEIR_TRY(read_band(weir_kernel_input(ctx, 1), &l.band));
  WEIR_TRY(check_scalar(padding, "padding_value"));
  if (in->rank < 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be at least 2-dim, received shape: %s",
                       weir_tensor_shape_text(in, text));
  }
  WEIR_TRY(part_dims(l.band, in->rank, in->dims, &rank, dims));
  read_align(weir_kernel_attrs(ctx), &l);
  l.rows = in->dims[in->rank - 2];
  l.columns = in->dims[in->rank - 1];
  l.length = dims[rank - 1];
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  if (out->count == 0) return NULL;
  if (ctx->state) return weir_gpu_take_diagonals(ctx, gpu_layout(&l), in, padding->data, out);
  WEIR_TRY(weir_move_fill(weir_kernel_pool(ctx), weir_tensor_type(out), padding->data, out->data,
                          out->count));
  return move_diagonals(ctx, &l, true, in, out);
}

// ---- gradients ----

static weir_status_t* diag_grad(weir_grad_ctx_t* g) {
  weir_named_attr_t align;
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t zero = weir_grad_scalar(g, dy, 0);
  return weir_grad_set(
      g, 0,
      weir_grad_node_with(g, "MatrixDiagPartV3", WEIR_EDGES(dy, weir_grad_input(g, 1), zero),
                          align_attr(g, &align)));
}

// Dimension |axis| (-1 or -2) of |x| as a scalar.
static weir_edge_t matrix_size(weir_grad_ctx_t* g, weir_edge_t x, int axis) {
  const weir_shape_t* s = weir_grad_shape(g, x);
  const int64_t begin[] = {axis}, end[] = {axis + 1}, one[] = {1};
  if (s->rank >= 2 && s->dims[s->rank + axis] >= 0)
    return weir_build_int32(g->builder, (int32_t)s->dims[s->rank + axis]);
  return weir_grad_node_with(
      g, "StridedSlice",
      WEIR_EDGES(weir_grad_shape_of(g, x), array_grad_ints(g, WEIR_DTYPE_INT32, begin, 1),
                 array_grad_ints(g, WEIR_DTYPE_INT32, end, 1),
                 array_grad_ints(g, WEIR_DTYPE_INT32, one, 1)),
      WEIR_ATTRS(weir_attr_int("shrink_axis_mask", 1)));
}

static weir_status_t* part_grad(weir_grad_ctx_t* g) {
  weir_named_attr_t align;
  weir_edge_t x = weir_grad_input(g, 0), dy = weir_grad_dy(g, 0);
  weir_edge_t dx =
      weir_grad_node_with(g, "MatrixDiagV3",
                          WEIR_EDGES(dy, weir_grad_input(g, 1), matrix_size(g, x, -2),
                                     matrix_size(g, x, -1), weir_grad_scalar(g, dy, 0)),
                          align_attr(g, &align));
  return weir_grad_set(g, 0, dx);
}

const weir_op_module_t weir_ops_array_matrix_diag_v3 = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MatrixDiagV3",
         .attrs = "T: type; " ALIGN,
         .inputs = "diagonal: T; k: int32; num_rows: int32; num_cols: int32; padding_value: T",
         .outputs = "output: T",
         .summary = "Returns matrices with the given diagonals, other elements being the padding.",
         .infer_shape = diag_shape,
         .build_grad = diag_grad,
         .kernels = BAND_KERNELS(diag, weir_gpu_put_diagonals_init, "k, num_rows, num_cols",
                                 "k, num_rows, num_cols, padding_value")},
        {.name = "MatrixDiagPartV3",
         .attrs = "T: type; " ALIGN,
         .inputs = "input: T; k: int32; padding_value: T",
         .outputs = "diagonal: T",
         .summary = "Returns the diagonals k[0] to k[1] of matrices.",
         .infer_shape = part_shape,
         .build_grad = part_grad,
         .kernels = BAND_KERNELS(part, weir_gpu_take_diagonals_init, "k", "k, padding_value")},
        {.name = "MatrixDiagV2",
         .attrs = "T: type",
         .inputs = "diagonal: T; k: int32; num_rows: int32; num_cols: int32; padding_value: T",
         .outputs = "output: T",
         .summary = "MatrixDiagV3 of diagonals that stand left.",
         .infer_shape = diag_shape,
         .build_grad = diag_grad,
         .kernels = BAND_KERNELS(diag, weir_gpu_put_diagonals_init, "k, num_rows, num_cols",
                                 "k, num_rows, num_cols, padding_value")},
        {.name = "MatrixDiagPartV2",
         .attrs = "T: type",
         .inputs = "input: T; k: int32; padding_value: T",
         .outputs = "diagonal: T",
         .summary = "MatrixDiagPartV3 with diagonals that stand left.",
         .infer_shape = part_shape,
         .build_grad = part_grad,
         .kernels = BAND_KERNELS(part, weir_gpu_take_diagonals_init, "k", "k, padding_value")},
        {0}}};
