// csr_grad.c — The gradients of products of sparse matrices. A gradient of a sparse matrix has
// values where the matrix has.
#include "ops/math/common.h"
#include "ops/sparse/csr.h"

// How a factor enters the product.
typedef enum way_t { PLAIN, TRANSPOSED, ADJOINT } way_t;

static way_t way_of(weir_attrs_t attrs, const char* transpose, const char* adjoint) {
  return weir_attrs_bool(attrs, adjoint)     ? ADJOINT
         : weir_attrs_bool(attrs, transpose) ? TRANSPOSED
                                             : PLAIN;
}

static weir_edge_t sparse_parts(weir_grad_ctx_t* g, weir_edge_t matrix, weir_dtype_t dtype) {
  return weir_grad_node_with(g, "CSRSparseMatrixToSparseTensor", WEIR_EDGES(matrix),
                             WEIR_ATTRS(weir_attr_type("type", dtype)));
}

// ---- with dense matrices: C0 = A' B', and C is C0, maybe transposed or conjugated ----

// |x|, a matrix or a batch of them, transposed.
static weir_edge_t flip(weir_grad_ctx_t* g, weir_edge_t x, int rank) {
  static const int32_t perms[][3] = {{1, 0, 0}, {0, 2, 1}};
  return node2(g, "Transpose", x, weir_build_int32s(g->builder, perms[rank - 2], rank));
}

// Rows of |x| whose numbers are in column |column| of |indices|, of the batch that column 0 says.
static weir_edge_t rows_at(weir_grad_ctx_t* g, weir_edge_t x, weir_edge_t indices, int rank,
                           int column) {
  const int32_t columns[] = {0, column};
  weir_edge_t picked =
      node3(g, "GatherV2", indices, weir_build_int32s(g->builder, columns + (3 - rank), rank - 1),
            weir_build_int32(g->builder, 1));
  return node2(g, "GatherNd", x, picked);
}

// dA' = dC0 * adjoint(B'), where A has entries.
static weir_edge_t sparse_factor_grad(weir_grad_ctx_t* g, weir_edge_t dy, bool is_flat, int rank,
                                      way_t a, way_t b) {
  weir_edge_t matrix = weir_grad_input(g, 0), dense = weir_grad_input(g, 1);
  weir_edge_t parts = sparse_parts(g, matrix, weir_grad_dtype(g, dense));
  const int row = a == PLAIN ? rank - 2 : rank - 1;  // of A', in the indices of A
  weir_edge_t left = rows_at(g, is_flat ? flip(g, dy, rank) : dy, parts, rank, row);
  weir_edge_t right =
      rows_at(g, b == PLAIN ? dense : flip(g, dense, rank), parts, rank, 2 * rank - 3 - row);
  if (b != ADJOINT) right = weir_grad_conj(g, right);
  weir_edge_t values =
      node2(g, "Sum", weir_grad_mul(g, left, right), weir_build_int32(g->builder, 1));
  if (a == ADJOINT) values = weir_grad_conj(g, values);
  return node3(g, "SparseTensorToCSRSparseMatrix", parts, values, weir_build_output(parts, 2));
}

// dB' = adjoint(A') * dC0; of A' = transposed A that is the conjugate of A * conjugate(dC0).
static weir_edge_t dense_factor_grad(weir_grad_ctx_t* g, weir_edge_t dy, bool is_flat, way_t a,
                                     way_t b) {
  const bool is_conjugate = a == TRANSPOSED;
  weir_edge_t from = is_conjugate ? weir_grad_conj(g, dy) : dy;
  return weir_grad_node_with(
      g, "SparseMatrixMatMul", WEIR_EDGES(weir_grad_input(g, 0), from),
      WEIR_ATTRS(weir_attr_bool("adjoint_a", a == PLAIN), weir_attr_bool("transpose_b", is_flat),
                 weir_attr_bool("transpose_output", b != PLAIN),
                 weir_attr_bool("conjugate_output", is_conjugate != (b == ADJOINT))));
}

weir_status_t* weir_csr_matmul_grad(weir_grad_ctx_t* g) {
  const weir_attrs_t attrs = weir_grad_attrs(g);
  const way_t a = way_of(attrs, "transpose_a", "adjoint_a");
  const way_t b = way_of(attrs, "transpose_b", "adjoint_b");
  const bool is_flat = weir_attrs_bool(attrs, "transpose_output");
  const int rank = weir_grad_shape(g, weir_grad_input(g, 1))->rank;
  if (rank != 2 && rank != 3) {
    return WEIR_STATUS(UNIMPLEMENTED,
                       "The gradient of SparseMatrixMatMul needs to know the rank of b");
  }
  weir_edge_t dy = weir_grad_dy(g, 0);
  if (weir_attrs_bool(attrs, "conjugate_output")) dy = weir_grad_conj(g, dy);
  WEIR_TRY(weir_grad_set(g, 0, sparse_factor_grad(g, dy, is_flat, rank, a, b)));
  return weir_grad_set(g, 1, dense_factor_grad(g, dy, is_flat, a, b));
}

// ---- with sparse matrices: C = A' B' ----

static weir_edge_t product(weir_grad_ctx_t* g, weir_edge_t a, way_t way_a, weir_edge_t b,
                           way_t way_b, weir_dtype_t dtype) {
  return weir_grad_node_with(
      g, "SparseMatrixSparseMatMul", WEIR_EDGES(a, b),
      WEIR_ATTRS(weir_attr_type("type", dtype), weir_attr_bool("transpose_a", way_a == TRANSPOSED),
                 weir_attr_bool("adjoint_a", way_a == ADJOINT),
                 weir_attr_bool("transpose_b", way_b == TRANSPOSED),
                 weir_attr_bool("adjoint_b", way_b == ADJOINT)));
}

static weir_edge_t turned(weir_grad_ctx_t* g, weir_edge_t m, way_t way, weir_dtype_t dtype) {
  if (way == PLAIN) return m;
  return weir_grad_node_with(
      g, "SparseMatrixTranspose", WEIR_EDGES(m),
      WEIR_ATTRS(weir_attr_type("type", dtype), weir_attr_bool("conjugate", way == ADJOINT)));
}

// |m| where |pattern| has entries, 0 where |m| has none there.
static weir_edge_t pruned(weir_grad_ctx_t* g, weir_edge_t m, weir_edge_t pattern,
                          weir_dtype_t dtype) {
  weir_edge_t dense = weir_grad_node_with(g, "CSRSparseMatrixToDense", WEIR_EDGES(m),
                                          WEIR_ATTRS(weir_attr_type("type", dtype)));
  weir_edge_t parts = sparse_parts(g, pattern, dtype);
  weir_edge_t values = node2(g, "GatherNd", dense, parts);
  return node3(g, "SparseTensorToCSRSparseMatrix", parts, values, weir_build_output(parts, 2));
}

// dA' = dC adjoint(B'), dB' = adjoint(A') dC, each turned back.
weir_status_t* weir_csr_sparse_matmul_grad(weir_grad_ctx_t* g) {
  const weir_attrs_t attrs = weir_grad_attrs(g);
  const weir_dtype_t dtype = weir_attrs_type(attrs, "type");
  const way_t way_a = way_of(attrs, "transpose_a", "adjoint_a");
  const way_t way_b = way_of(attrs, "transpose_b", "adjoint_b");
  weir_edge_t a = weir_grad_input(g, 0), b = weir_grad_input(g, 1), dy = weir_grad_dy(g, 0);
  weir_edge_t left = turned(g, a, way_a, dtype), right = turned(g, b, way_b, dtype);
  weir_edge_t da = turned(g, product(g, dy, PLAIN, right, ADJOINT, dtype), way_a, dtype);
  weir_edge_t db = turned(g, product(g, left, ADJOINT, dy, PLAIN, dtype), way_b, dtype);
  WEIR_TRY(weir_grad_set(g, 0, pruned(g, da, a, dtype)));
  return weir_grad_set(g, 1, pruned(g, db, b, dtype));
}
