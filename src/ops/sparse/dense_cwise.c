// dense_cwise.c — SparseDenseCwiseAdd, Mul, Div: the values of a sparse tensor with those elements
// of a dense one, broadcast to its shape, that are at the same places.
#include "ops/math/common.h"
#include "ops/sparse/sparse.h"
#include "tensor/cast.h"

typedef struct cwise_state_t {
  weir_binary_op_t op;
} cwise_state_t;

#define CWISE_INIT(name, OP)                                                \
  static weir_status_t* name(const weir_kernel_init_t* init, void* state) { \
    (void)init;                                                             \
    ((cwise_state_t*)state)->op = WEIR_BINARY_##OP;                         \
    return NULL;                                                            \
  }
CWISE_INIT(add_init, ADD)
CWISE_INIT(mul_init, MUL)
CWISE_INIT(div_init, DIV)

static weir_status_t* cwise_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* indices = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &indices));
  return weir_shape_set_vector(ctx, 0, weir_shape_dim(indices, 0));
}

static weir_status_t* check_sparse(const weir_sparse_t* s) {
  char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
  if (s->indices->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input sp_indices should be a matrix but received shape: %s",
                       weir_tensor_shape_text(s->indices, x));
  }
  if (s->values->rank != 1 || s->shape->rank != 1) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Inputs sp_values and sp_shape should be vectors but received shapes: %s and %s",
        weir_tensor_shape_text(s->values, x), weir_tensor_shape_text(s->shape, y));
  }
  if (s->rank != s->shape->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of dimensions must match second dimension of indices. Got %" PRId64
                       " dimensions, indices shape: %s",
                       s->shape->count, weir_tensor_shape_text(s->indices, x));
  }
  if (s->shape->count == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "The shape argument requires at least one element.");
  if (s->count != s->values->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The first dimension of values and indices should match. (%" PRId64
                       " vs. %" PRId64 ")",
                       s->values->count, s->count);
  }
  return weir_sparse_check_dims(s->dims, s->rank, NULL);
}

// Strides of |dense| in the dimensions of the sparse tensor, 0 where it is repeated.
static weir_status_t* find_strides(const weir_sparse_t* s, const weir_tensor_t* dense,
                                   int64_t* strides) {
  const int more = s->rank - dense->rank;
  int64_t stride = 1;
  bool fits = more >= 0;
  for (int d = s->rank - 1; d >= 0 && fits; --d) {
    int64_t size = d >= more ? dense->dims[d - more] : 1;
    // A dimension of the dense tensor's own is not broadcast down to none.
    fits = (size == 1 && (d < more || s->dims[d] > 0)) || size == s->dims[d];
    strides[d] = size == 1 ? 0 : stride;
    stride *= size;
  }
  if (!fits) {
    char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "SparseDenseBinaryOpShared broadcasts dense to sparse only; got "
                       "incompatible shapes: %s vs. %s",
                       weir_shape_text(s->rank, s->dims, x), weir_tensor_shape_text(dense, y));
  }
  if (s->rank > 5) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Only tensors with ranks between 1 and 5 are currently supported.  Tensor "
                       "rank: %d",
                       s->rank);
  }
  return NULL;
}

static weir_status_t* check_divisor(const weir_tensor_t* dense) {
  for (int64_t i = 0; i < dense->count; ++i) {
    double value = 0;
    weir_element_to_double(weir_tensor_type(dense), weir_sparse_at(dense, i), &value);
    if (value != 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "SparseDenseCwiseDiv cannot divide by zero,but input dense tensor contains "
                       "zero ");
  }
  return NULL;
}

static weir_status_t* cwise_cpu(weir_kernel_ctx_t* ctx) {
  const cwise_state_t* state = ctx->state;
  const weir_tensor_t* dense = weir_kernel_input(ctx, 3);
  const weir_dtype_t dtype = weir_tensor_type(dense);
  weir_sparse_t s;
  int64_t strides[WEIR_MAX_RANK];
  weir_tensor_t* out = NULL;
  weir_sparse_get(weir_kernel_input(ctx, 0), weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2),
                  &s);
  WEIR_TRY(check_sparse(&s));
  WEIR_TRY(find_strides(&s, dense, strides));
  if (state->op == WEIR_BINARY_DIV) WEIR_TRY(check_divisor(dense));
  if (!weir_sparse_is_within(&s)) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape");
  }
  const weir_binary_fn_t fn = weir_binary_find(state->op, dtype);
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, s.values->dims, &out));
  for (int64_t i = 0; i < s.count; ++i) {
    int64_t place = 0;
    for (int d = 0; d < s.rank; ++d) place += weir_sparse_row(&s, i)[d] * strides[d];
    fn(weir_sparse_at(s.values, i), weir_sparse_at(dense, place), weir_sparse_at(out, i), 1,
       WEIR_SPAN_BOTH);
  }
  return NULL;
}

// ---- gradients ----

static weir_status_t* no_add_grad(weir_grad_ctx_t* g) {
  (void)g;
  return WEIR_STATUS(UNIMPLEMENTED, "Gradient for SparseDenseCwiseAdd is not implemented.");
}

// Where in the dense tensor each value's partner is: indices without the dimensions that it lacks,
// 0 where it is repeated.
static weir_edge_t places_in_dense(weir_grad_ctx_t* g, weir_edge_t dense_shape) {
  weir_edge_t shape = weir_grad_input(g, 2);
  weir_edge_t zero = weir_build_int32(g->builder, 0);
  weir_edge_t size = weir_grad_node(g, "Size", WEIR_EDGES(shape));
  weir_edge_t more = node2(g, "Sub", size, weir_grad_node(g, "Size", WEIR_EDGES(dense_shape)));
  weir_edge_t more_vector = node2(g, "ExpandDims", more, zero);
  weir_edge_t ones =
      node2(g, "Fill", more_vector, weir_build_scalar(g->builder, WEIR_DTYPE_INT64, 1));
  weir_edge_t whole = weir_grad_node(g, "ConcatV2", WEIR_EDGES(ones, dense_shape, zero));
  weir_edge_t scaled =
      node2(g, "FloorDiv", weir_grad_input(g, 0), node2(g, "FloorDiv", shape, whole));
  weir_edge_t begin =
      weir_grad_node_with(g, "Pack", WEIR_EDGES(zero, more), WEIR_ATTRS(weir_attr_int("N", 2)));
  weir_edge_t rest = weir_build_int32s(g->builder, (const int32_t[]){-1, -1}, 2);
  return node3(g, "Slice", scaled, begin, rest);
}

static weir_status_t* scale_grad(weir_grad_ctx_t* g, bool is_mul) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t x = weir_grad_input(g, 1);
  weir_edge_t dense = weir_grad_input(g, 3);
  weir_edge_t dense_shape = weir_grad_node_with(
      g, "Shape", WEIR_EDGES(dense), WEIR_ATTRS(weir_attr_type("out_type", WEIR_DTYPE_INT64)));
  weir_edge_t places = places_in_dense(g, dense_shape);
  weir_edge_t y = node2(g, "GatherNd", dense, places);
  weir_edge_t dx = is_mul ? weir_grad_mul(g, dy, y) : node2(g, "RealDiv", dy, y);
  weir_edge_t slope = is_mul ? x : node2(g, "RealDiv", weir_grad_neg(g, x), node1(g, "Square", y));
  weir_edge_t zeros = node1(g, "ZerosLike", dense);
  weir_edge_t dd =
      weir_grad_node(g, "SparseTensorDenseAdd",
                     WEIR_EDGES(places, weir_grad_mul(g, dy, slope), dense_shape, zeros));
  WEIR_TRY(weir_grad_set(g, 1, dx));
  return weir_grad_set(g, 3, dd);
}

static weir_status_t* mul_grad(weir_grad_ctx_t* g) { return scale_grad(g, true); }
static weir_status_t* div_grad(weir_grad_ctx_t* g) { return scale_grad(g, false); }

#define CWISE_OP(op_name, text, grad, init_fn)                                               \
  {                                                                                          \
    .name = op_name, .attrs = "T: numbertype",                                               \
    .inputs = "sp_indices: int64; sp_values: T; sp_shape: int64; dense: T",                  \
    .outputs = "output: T", .summary = text, .infer_shape = cwise_shape, .build_grad = grad, \
    .kernels = WEIR_CPU_KERNEL(.types = SPARSE_REAL, .compute = cwise_cpu, .init = init_fn,  \
                               .state_size = sizeof(cwise_state_t))                          \
  }

const weir_op_module_t weir_ops_sparse_dense_cwise = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        CWISE_OP("SparseDenseCwiseAdd", "Values of a sparse tensor plus elements of a dense one",
                 no_add_grad, add_init),
        CWISE_OP("SparseDenseCwiseMul", "Values of a sparse tensor times elements of a dense one",
                 mul_grad, mul_init),
        CWISE_OP("SparseDenseCwiseDiv", "Values of a sparse tensor over elements of a dense one",
                 div_grad, div_init),
        {0}}};
