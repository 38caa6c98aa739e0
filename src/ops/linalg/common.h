// common.h — What the op files of this folder share: shapes of batches of matrices, and nodes that
// their gradients are made of.
#ifndef WEIR_OPS_LINALG_COMMON_H_
#define WEIR_OPS_LINALG_COMMON_H_

#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

// INVALID_ARGUMENT unless input |i| is a batch of matrices.
static inline weir_status_t* check_matrices(const weir_kernel_ctx_t* ctx, int i) {
  const weir_tensor_t* x = weir_kernel_input(ctx, i);
  if (x->rank >= 2) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Input tensor %d must have rank >= 2, got %d", i, x->rank);
}

// Likewise, and they must be square.
static inline weir_status_t* check_square(const weir_kernel_ctx_t* ctx, int i) {
  WEIR_TRY(check_matrices(ctx, i));
  const weir_tensor_t* x = weir_kernel_input(ctx, i);
  if (x->dims[x->rank - 1] == x->dims[x->rank - 2]) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Input matrix must be square.");
}

// INVALID_ARGUMENT unless both inputs of an op that solves by triangles are batches of matrices.
static inline weir_status_t* check_operands(const weir_tensor_t* a, const weir_tensor_t* b) {
  const bool is_first = a->rank < 2;
  if (!is_first && b->rank >= 2) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "In[%d] ndims must be >= 2: %d", is_first ? 0 : 1,
                     is_first ? a->rank : b->rank);
}

// The number of matrices in a tensor of at least two dimensions, empty ones counted too.
static inline int64_t matrix_count(const weir_tensor_t* x) {
  int64_t count = 1;
  for (int i = 0; i < x->rank - 2; ++i) count *= x->dims[i];
  return count;
}

// |shape| with its last two dimensions joined into one, which both then have.
static inline weir_status_t* square_shape(weir_shape_ctx_t* ctx, const weir_shape_t* shape,
                                          const weir_shape_t** out_shape) {
  WEIR_TRY(weir_shape_at_least(ctx, shape, 2));
  *out_shape = shape;
  if (shape->rank < 0) return NULL;
  int64_t side[2];
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(shape, -1), weir_shape_dim(shape, -2), &side[0]));
  side[1] = side[0];
  const weir_shape_t* batch = weir_shape_sub(ctx, shape, 0, shape->rank - 2);
  const weir_shape_t* matrix = weir_shape_make(ctx->arena, 2, side);
  if (!batch || !matrix) return weir_out_of_memory();
  *out_shape = weir_shape_concat(ctx, batch, matrix);
  return *out_shape ? NULL : weir_out_of_memory();
}

static inline weir_edge_t minus(weir_grad_ctx_t* g, weir_edge_t a, weir_edge_t b) {
  return weir_grad_node(g, "Sub", WEIR_EDGES(a, b));
}
static inline weir_edge_t plus(weir_grad_ctx_t* g, weir_edge_t a, weir_edge_t b) {
  return weir_grad_node(g, "AddV2", WEIR_EDGES(a, b));
}

static inline weir_edge_t matrix_product(weir_grad_ctx_t* g, weir_edge_t a, bool adjoint_a,
                                         weir_edge_t b, bool adjoint_b) {
  return weir_grad_node_with(
      g, "BatchMatMulV2", WEIR_EDGES(a, b),
      WEIR_ATTRS(weir_attr_bool("adj_x", adjoint_a), weir_attr_bool("adj_y", adjoint_b)));
}

static inline weir_edge_t band_part(weir_grad_ctx_t* g, weir_edge_t a, int32_t lower,
                                    int32_t upper) {
  return weir_grad_node(
      g, "MatrixBandPart",
      WEIR_EDGES(a, weir_build_int32(g->builder, lower), weir_build_int32(g->builder, upper)));
}

// The permutation that swaps the last two of |a|'s dimensions.
static inline weir_edge_t swap_of(weir_grad_ctx_t* g, weir_edge_t a) {
  const int rank = weir_grad_shape(g, a)->rank;
  if (rank >= 2 && rank <= WEIR_MAX_RANK) {
    int32_t perm[WEIR_MAX_RANK];
    for (int i = 0; i < rank; ++i) perm[i] = i;
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    return weir_build_int32s(g->builder, perm, rank);
  }
  weir_edge_t zero = weir_build_int32(g->builder, 0), one = weir_build_int32(g->builder, 1);
  weir_edge_t swapped = weir_build_int32s(g->builder, (const int32_t[]){1, 0}, 2);
  weir_edge_t batch = weir_grad_node(
      g, "Sub",
      WEIR_EDGES(weir_grad_node(g, "Rank", WEIR_EDGES(a)), weir_build_int32(g->builder, 2)));
  weir_edge_t parts[2] = {weir_grad_node(g, "Range", WEIR_EDGES(zero, batch, one)),
                          weir_grad_node(g, "AddV2", WEIR_EDGES(batch, swapped))};
  return weir_grad_node_with(g, "ConcatV2", WEIR_EDGES(parts[0], parts[1], zero),
                             WEIR_ATTRS(weir_attr_int("N", 2)));
}

// Conjugate transposes of the matrices.
static inline weir_edge_t adjoint(weir_grad_ctx_t* g, weir_edge_t a) {
  const bool is_complex = weir_dtype_is_complex(weir_grad_dtype(g, a));
  return weir_grad_node(g, is_complex ? "ConjugateTranspose" : "Transpose",
                        WEIR_EDGES(a, swap_of(g, a)));
}

static inline weir_edge_t triangular_solve(weir_grad_ctx_t* g, weir_edge_t matrix, weir_edge_t rhs,
                                           bool is_lower, bool is_adjoint) {
  return weir_grad_node_with(
      g, "MatrixTriangularSolve", WEIR_EDGES(matrix, rhs),
      WEIR_ATTRS(weir_attr_bool("lower", is_lower), weir_attr_bool("adjoint", is_adjoint)));
}

// Columns [begin, end) of the matrices; end -1: to the last.
static inline weir_edge_t columns(weir_grad_ctx_t* g, weir_edge_t a, int64_t begin, int64_t end) {
  weir_edge_t from = weir_build_int64s(g->builder, (const int64_t[]){0, begin}, 2);
  weir_edge_t to = weir_build_int64s(g->builder, (const int64_t[]){0, end}, 2);
  weir_edge_t step = weir_build_int64s(g->builder, (const int64_t[]){1, 1}, 2);
  return weir_grad_node_with(
      g, "StridedSlice", WEIR_EDGES(a, from, to, step),
      WEIR_ATTRS(weir_attr_int("ellipsis_mask", 1), weir_attr_int("end_mask", end < 0 ? 2 : 0)));
}

// x / (x^2 + 1e-20): about 1 / x, but 0 where x is 0.
static inline weir_edge_t safe_reciprocal(weir_grad_ctx_t* g, weir_edge_t x) {
  weir_edge_t square = plus(g, weir_grad_mul(g, x, x), weir_grad_scalar(g, x, 1e-20));
  return weir_grad_mul(g, x, weir_grad_node(g, "Reciprocal", WEIR_EDGES(square)));
}

// 1 / (x[j] - x[i]) in row i and column j, of the vectors |x|, and 0 on the diagonal.
static inline weir_edge_t inverse_differences(weir_grad_ctx_t* g, weir_edge_t x) {
  weir_edge_t across =
      weir_grad_node(g, "ExpandDims", WEIR_EDGES(x, weir_build_int32(g->builder, -2)));
  weir_edge_t down =
      weir_grad_node(g, "ExpandDims", WEIR_EDGES(x, weir_build_int32(g->builder, -1)));
  weir_edge_t zeros = weir_grad_node(g, "ZerosLike", WEIR_EDGES(x));
  return weir_grad_node(g, "MatrixSetDiag",
                        WEIR_EDGES(safe_reciprocal(g, minus(g, across, down)), zeros));
}

static inline weir_edge_t diagonal_matrix(weir_grad_ctx_t* g, weir_edge_t diagonal) {
  return weir_grad_node(g, "MatrixDiag", WEIR_EDGES(diagonal));
}

static inline bool is_same_batch(const weir_shape_t* a, const weir_shape_t* b) {
  if (a->rank < 2 || a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; ++i) {
    if (a->dims[i] < 0 || b->dims[i] < 0) return false;
    if (i < a->rank - 2 && a->dims[i] != b->dims[i]) return false;
  }
  return true;
}

// Sets the gradients of inputs 0 and 1, matrices in batches that were broadcast: summed down to
// their shapes.
static inline weir_status_t* set_batches(weir_grad_ctx_t* g, weir_edge_t da, weir_edge_t db) {
  weir_edge_t a = weir_grad_input(g, 0), b = weir_grad_input(g, 1);
  if (!is_same_batch(weir_grad_shape(g, a), weir_grad_shape(g, b))) {
    weir_edge_t sa = weir_grad_shape_of(g, a), sb = weir_grad_shape_of(g, b);
    weir_edge_t axes =
        weir_grad_node(g, "BroadcastGradientArgs",
                       WEIR_EDGES(weir_grad_batch_shape(g, sa), weir_grad_batch_shape(g, sb)));
    da = weir_grad_node(g, "Sum", WEIR_EDGES(da, axes));
    da = weir_grad_node(g, "Reshape", WEIR_EDGES(da, sa));
    db = weir_grad_node(g, "Sum", WEIR_EDGES(db, weir_build_output(axes, 1)));
    db = weir_grad_node(g, "Reshape", WEIR_EDGES(db, sb));
  }
  WEIR_TRY(weir_grad_set(g, 0, da));
  return weir_grad_set(g, 1, db);
}

#endif  // WEIR_OPS_LINALG_COMMON_H_
