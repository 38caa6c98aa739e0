// matrix_set_diag_v3.c — MatrixSetDiagV3, MatrixSetDiagV2: replaces several diagonals of matrices.
#include "ops/array/matrix_band.h"

static weir_status_t* set_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const weir_shape_t* diagonal = weir_shape_input(ctx, 1);
  array_ints_t k;
  band_t band;
  int rank = 0;
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(weir_shape_at_least(ctx, in, 2));
  WEIR_TRY(weir_shape_at_least(ctx, diagonal, 1));
  WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, 2), 1));
  if (in->rank >= 0) {
    WEIR_TRY(weir_shape_at_least(ctx, diagonal, in->rank - 1));
    WEIR_TRY(weir_shape_at_most(ctx, diagonal, in->rank));
  }
  array_input_ints(ctx, 2, &k);
  const weir_shape_t* out = in;
  if (k.is_exact) {
    WEIR_TRY(make_band(&k, &band));
    if (in->rank >= 0) {
      WEIR_TRY(part_dims(band, in->rank, in->dims, &rank, dims));
      if (diagonal->rank >= 0) WEIR_TRY(weir_shape_with_rank(ctx, diagonal, rank, NULL));
    } else if (diagonal->rank >= 0 && band_count(band) > 1) {
      WEIR_TRY(weir_shape_at_least(ctx, diagonal, 2));
    }
    for (int i = 0; in->rank >= 0 && diagonal->rank >= 0 && i < rank; ++i) {
      WEIR_TRY(weir_dim_join(ctx, dims[i], diagonal->dims[i], &dims[i]));
    }
    if (in->rank >= 0 && diagonal->rank >= 0) {
      const weir_shape_t* outer = weir_shape_make(ctx->arena, in->rank - 2, dims);
      const weir_shape_t* matrix = weir_shape_sub(ctx, in, in->rank - 2, in->rank);
      if (!outer || !matrix) return weir_out_of_memory();
      out = weir_shape_concat(ctx, outer, matrix);
    }
  }
  return weir_shape_set(ctx, 0, out);
}

// |rank| and |dims|: of the diagonals of |band|.
static weir_status_t* check_diagonal(const weir_tensor_t* in, const weir_tensor_t* diagonal,
                                     band_t band, int rank, const int64_t* dims) {
  const int64_t count = band_count(band);
  if (diagonal->rank == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "diagonal must be at least 1-dim, received shape: []");
  if (count > 1 && diagonal->rank > in->rank - 2 && diagonal->dims[in->rank - 2] != count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The number of diagonals provided in `diag` is not consistent with "
                       "`lower_diag_index` and `upper_diag_index`");
  }
  bool is_same = diagonal->rank == rank;
  for (int i = 0; is_same && i < rank; ++i) is_same = diagonal->dims[i] == dims[i];
  if (is_same) return NULL;
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Either first dimensions of diagonal don't match input.shape[:-2], or "
                     "diagonal.shape[:-1] is not equal to the longests diagonal in range "
                     "[lower_diag_index:upper_diag_index].\nInput shape: %s\nDiagonal shape: %s",
                     weir_tensor_shape_text(in, a), weir_tensor_shape_text(diagonal, b));
}

static weir_status_t* set(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* diagonal = weir_kernel_input(ctx, 1);
  const weir_dtype_t dtype = weir_tensor_type(in);
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  layout_t l = {0};
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (in->rank < 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be at least 2-dim, received shape: %s",
                       weir_tensor_shape_text(in, text));
  }
  WEIR_TRY(read_band(weir_kernel_input(ctx, 2), &l.band));
  WEIR_TRY(part_dims(l.band, in->rank, in->dims, &rank, dims));
  WEIR_TRY(check_diagonal(in, diagonal, l.band, rank, dims));
  read_align(weir_kernel_attrs(ctx), &l);
  l.rows = in->dims[in->rank - 2];
  l.columns = in->dims[in->rank - 1];
  l.length = dims[rank - 1];
  const void* data = in->data;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, in->rank, in->dims, &out));
  if (out->count == 0) return NULL;
  if (ctx->state) return weir_gpu_put_diagonals(ctx, gpu_layout(&l), diagonal, data, NULL, out);
  if (out->data != data)
    WEIR_TRY(weir_move_copy(weir_kernel_pool(ctx), dtype, data, out->data, out->count));
  return move_diagonals(ctx, &l, false, diagonal, out);
}

static weir_status_t* set_grad(weir_grad_ctx_t* g) {
  weir_named_attr_t align;
  weir_edge_t dy = weir_grad_dy(g, 0), k = weir_grad_input(g, 2);
  weir_edge_t zeros = weir_grad_node(g, "ZerosLike", WEIR_EDGES(weir_grad_input(g, 1)));
  weir_edge_t dx =
      weir_grad_node_with(g, "MatrixSetDiagV3", WEIR_EDGES(dy, zeros, k), align_attr(g, &align));
  WEIR_TRY(weir_grad_set(g, 0, dx));
  return weir_grad_set(
      g, 1,
      weir_grad_node_with(g, "MatrixDiagPartV3", WEIR_EDGES(dy, k, weir_grad_scalar(g, dy, 0)),
                          align_attr(g, &align)));
}

const weir_op_module_t weir_ops_array_matrix_set_diag_v3 = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MatrixSetDiagV3",
         .attrs = "T: type; " ALIGN,
         .inputs = "input: T; diagonal: T; k: int32",
         .outputs = "output: T",
         .summary = "Replaces the diagonals k[0] to k[1] of matrices.",
         .infer_shape = set_shape,
         .build_grad = set_grad,
         .kernels = BAND_KERNELS(set, weir_gpu_put_diagonals_init, "k", "k")},
        {.name = "MatrixSetDiagV2",
         .attrs = "T: type",
         .inputs = "input: T; diagonal: T; k: int32",
         .outputs = "output: T",
         .summary = "MatrixSetDiagV3 of diagonals that stand left.",
         .infer_shape = set_shape,
         .build_grad = set_grad,
         .kernels = BAND_KERNELS(set, weir_gpu_put_diagonals_init, "k", "k")},
        {0}}};
