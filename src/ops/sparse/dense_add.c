// dense_add.c — SparseTensorDenseAdd: a sparse tensor added to a dense one of the same shape.
#include "ops/math/common.h"
#include "ops/sparse/sparse.h"

static weir_status_t* dense_add_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 3));
}

static weir_status_t* check_inputs(const weir_tensor_t* indices, const weir_tensor_t* values,
                                   const weir_tensor_t* shape, const weir_tensor_t* b) {
  char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
  if (indices->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input a_indices should be a matrix but received shape: %s",
                       weir_tensor_shape_text(indices, x));
  }
  if (values->rank != 1 || shape->rank != 1) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Inputs a_values and a_shape should be vectors but received shapes: %s and %s",
        weir_tensor_shape_text(values, x), weir_tensor_shape_text(shape, y));
  }
  if (indices->dims[0] != values->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Dimensions %" PRId64 " and %" PRId64 " are not compatible",
                       indices->dims[0], values->count);
  }
  if (indices->dims[1] != shape->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Dimensions %" PRId64 " and %" PRId64 " are not compatible",
                       indices->dims[1], shape->count);
  }
  if (shape->count != b->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Two operands have different ranks; received: %" PRId64 " and %d",
                       shape->count, b->rank);
  }
  for (int d = 0; d < b->rank; ++d) {
    if (weir_tensor_int_at(shape, d) == b->dims[d]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Dimension %d does not equal (no broadcasting is supported): sparse side "
                       "%" PRId64 " vs dense side %" PRId64,
                       d, weir_tensor_int_at(shape, d), b->dims[d]);
  }
  if (b->rank < 1 || b->rank > 5) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Only tensors with ranks between 1 and 5 are currently supported.  Tensor "
                       "rank: %d",
                       b->rank);
  }
  return NULL;
}

static weir_status_t* place_of(const weir_tensor_t* indices, const weir_tensor_t* out, int64_t i,
                               int64_t* out_place) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  int64_t place = 0;
  for (int d = 0; d < out->rank; ++d) {
    int64_t index = weir_tensor_int_at(indices, i * out->rank + d);
    if (index < 0 || index >= out->dims[d]) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Sparse tensor has an invalid index on dimension %d: a_indices(%" PRId64
                         ",%d) = %" PRId64 ", dense tensor shape: %s",
                         d, i, d, index, weir_sparse_dims_text(out->dims, out->rank, text));
    }
    place = place * out->dims[d] + index;
  }
  *out_place = place;
  return NULL;
}

static weir_status_t* dense_add_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 0);
  const weir_tensor_t* values = weir_kernel_input(ctx, 1);
  const weir_tensor_t* b = weir_kernel_input(ctx, 3);
  const weir_dtype_t dtype = weir_tensor_type(b);
  const void* data = b->data;
  weir_tensor_t* out = NULL;
  WEIR_TRY(check_inputs(indices, values, weir_kernel_input(ctx, 2), b));
  WEIR_TRY(weir_kernel_forward(ctx, 3, 0, b->rank, b->dims, &out));
  if (out->data != data)
    WEIR_TRY(weir_move_copy(weir_kernel_pool(ctx), dtype, data, out->data, out->count));
  const weir_binary_fn_t add = weir_binary_find(WEIR_BINARY_ADD, dtype);
  for (int64_t i = 0; i < values->count; ++i) {
    int64_t place = 0;
    WEIR_TRY(place_of(indices, out, i, &place));
    void* element = weir_sparse_at(out, place);
    add(element, weir_sparse_at(values, i), element, 1, WEIR_SPAN_BOTH);
  }
  return NULL;
}

static weir_status_t* dense_add_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 1, node2(g, "GatherNd", dy, weir_grad_input(g, 0))));
  return weir_grad_set(g, 3, dy);
}

const weir_op_module_t weir_ops_sparse_dense_add = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseTensorDenseAdd",
         .attrs = "T: numbertype; Tindices: {int32, int64}",
         .inputs = "a_indices: Tindices; a_values: T; a_shape: Tindices; b: T",
         .outputs = "output: T",
         .summary = "The sum of a sparse and a dense tensor, which is dense.",
         .infer_shape = dense_add_shape,
         .build_grad = dense_add_grad,
         .kernels = WEIR_CPU_KERNEL(.types = SPARSE_NUMBER, .compute = dense_add_cpu)},
        {0}}};
