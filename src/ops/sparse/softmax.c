// softmax.c — SparseSoftmax: the softmax of each row of the innermost two dimensions, over the
// elements that are there.
#include <math.h>

#include "ops/math/common.h"
#include "ops/sparse/sparse.h"
#include "tensor/cast.h"

static weir_status_t* softmax_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* values = NULL;
  WEIR_TRY(weir_sparse_shape_check(ctx, 0));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &values));
  return weir_shape_set(ctx, 0, values);
}

static weir_status_t* check_inputs(const weir_sparse_t* s) {
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
  if (s->shape->count < 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input should have rank >= 2, but received shape: %s",
                       weir_sparse_dims_text(s->dims, s->shape->count, x));
  }
  WEIR_TRY(weir_sparse_check_dims(s->dims, s->shape->count, NULL));
  return weir_sparse_check_parts(s);
}

// exp(x - max) / sum over |n| values.
static void softmax_row(double* x, int64_t n) {
  double most = x[0], sum = 0;
  for (int64_t i = 1; i < n; ++i) most = x[i] > most ? x[i] : most;
  for (int64_t i = 0; i < n; ++i) sum += x[i] = exp(x[i] - most);
  for (int64_t i = 0; i < n; ++i) x[i] /= sum;
}

// The results stand in the order of the indices, also where the values do not.
static void softmax_rows(const weir_sparse_t* s, const int64_t* order, double* x) {
  for (int64_t i = 0; i < s->count; ++i) {
    weir_element_to_double(weir_tensor_type(s->values), weir_sparse_at(s->values, order[i]), &x[i]);
  }
  for (int64_t begin = 0, end = 0; begin < s->count; begin = end) {
    const int64_t* first = weir_sparse_row(s, order[begin]);
    for (end = begin + 1; end < s->count; ++end) {
      if (weir_sparse_compare(first, weir_sparse_row(s, order[end]), s->rank - 1)) break;
    }
    softmax_row(x + begin, end - begin);
  }
}

static weir_status_t* softmax_cpu(weir_kernel_ctx_t* ctx) {
  weir_sparse_t s;
  weir_tensor_t* out = NULL;
  weir_sparse_get(weir_kernel_input(ctx, 0), weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2),
                  &s);
  WEIR_TRY(check_inputs(&s));
  const weir_dtype_t dtype = weir_tensor_type(s.values);
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, s.values->dims, &out));
  double* x = weir_alloc_array((size_t)s.count, sizeof(*x));
  int64_t* order = weir_alloc_array((size_t)s.count, sizeof(*order));
  weir_status_t* status = x && order ? NULL : weir_out_of_memory();
  if (!status) status = weir_sparse_order(&s, weir_kernel_pool(ctx), order);
  if (!status) {
    softmax_rows(&s, order, x);
    status = weir_cast_elements(dtype, out->data, WEIR_DTYPE_DOUBLE, x, s.count);
  }
  weir_free(order);
  weir_free(x);
  return status;
}

// dx = (dy - sum of dy * y over the row) * y.
static weir_status_t* softmax_grad(weir_grad_ctx_t* g) {
  weir_edge_t indices = weir_grad_input(g, 0), shape = weir_grad_input(g, 2);
  weir_edge_t y = weir_grad_output(g, 0), dy = weir_grad_dy(g, 0);
  const int32_t last[] = {-1};
  weir_edge_t sums = weir_grad_node_with(
      g, "SparseReduceSum",
      WEIR_EDGES(indices, weir_grad_mul(g, y, dy), shape, weir_build_int32s(g->builder, last, 1)),
      WEIR_ATTRS(weir_attr_bool("keep_dims", true)));
  weir_edge_t less = weir_grad_node(g, "SparseDenseCwiseAdd",
                                    WEIR_EDGES(indices, dy, shape, weir_grad_neg(g, sums)));
  return weir_grad_set(g, 1, weir_grad_mul(g, less, y));
}

const weir_op_module_t weir_ops_sparse_softmax = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseSoftmax",
         .attrs = "T: {half, float, double}",
         .inputs = "sp_indices: int64; sp_values: T; sp_shape: int64",
         .outputs = "output: T",
         .summary = "The softmax of each row of a sparse tensor, over what is there.",
         .infer_shape = softmax_shape,
         .build_grad = softmax_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = softmax_cpu)},
        {0}}};
