// slice.c — SparseSlice, SparseSliceGrad: the part of a sparse tensor within a box.
#include "ops/math/common.h"
#include "ops/sparse/sparse.h"

static weir_status_t* slice_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = weir_shape_input(ctx, 2);
  const int64_t rank = weir_sparse_shape_elements(shape);
  WEIR_TRY(weir_sparse_shape_set(ctx, 0, -1, rank));
  return weir_shape_set(ctx, 2, shape);
}

static weir_status_t* check_box(const weir_kernel_ctx_t* ctx, int input, const char* name,
                                int64_t rank) {
  const weir_tensor_t* t = weir_kernel_input(ctx, input);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input %s should be a vector but received shape %s", name,
                       weir_tensor_shape_text(t, text));
  }
  if (t->count != rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected %s to be a vector of length %" PRId64 " but got length %" PRId64,
                       name, rank, t->count);
  }
  return NULL;
}

static bool is_inside(const int64_t* row, const int64_t* start, const int64_t* size, int rank) {
  for (int d = 0; d < rank; ++d) {
    if (row[d] < start[d] || (uint64_t)row[d] - (uint64_t)start[d] >= (uint64_t)size[d])
      return false;
  }
  return true;
}

static weir_status_t* write_slice(weir_kernel_ctx_t* ctx, const weir_sparse_t* s,
                                  const int64_t* start, const int64_t* size, int64_t* order) {
  int64_t dims[WEIR_MAX_RANK];
  int64_t count = 0;
  for (int64_t i = 0; i < s->count; ++i) {
    if (is_inside(weir_sparse_row(s, i), start, size, s->rank)) order[count++] = i;
  }
  for (int d = 0; d < s->rank; ++d) {
    bool is_whole = start[d] < s->dims[d] - size[d];
    dims[d] = is_whole ? size[d] : WEIR_MAX(s->dims[d] - start[d], 0);
  }
  WEIR_TRY(weir_sparse_gather(ctx, 0, s->indices, order, count));
  WEIR_TRY(weir_sparse_gather(ctx, 1, s->values, order, count));
  int64_t* rows = ctx->outputs[0].tensor->data;
  for (int64_t i = 0; i < count * s->rank; ++i) rows[i] -= start[i % s->rank];
  return weir_sparse_output_vector(ctx, 2, dims, s->rank);
}

static weir_status_t* slice_cpu(weir_kernel_ctx_t* ctx) {
  weir_sparse_t s;
  WEIR_TRY(weir_sparse_read(ctx, 0, &s));
  WEIR_TRY(check_box(ctx, 3, "start", s.rank));
  WEIR_TRY(check_box(ctx, 4, "size", s.rank));
  WEIR_TRY(weir_sparse_check_dims(s.dims, s.rank, NULL));
  const int64_t* size = weir_kernel_input(ctx, 4)->data;
  for (int d = 0; d < s.rank; ++d) {
    if (size[d] < 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "Expected a non-negative size, got %" PRId64, size[d]);
  }
  int64_t* order = weir_alloc_array((size_t)s.count, sizeof(*order));
  if (!order) return weir_out_of_memory();
  weir_status_t* status = write_slice(ctx, &s, weir_kernel_input(ctx, 3)->data, size, order);
  weir_free(order);
  return status;
}

static weir_status_t* slice_grad(weir_grad_ctx_t* g) {
  weir_edge_t dx = weir_grad_node(g, "SparseSliceGrad",
                                  WEIR_EDGES(weir_grad_dy(g, 1), weir_grad_input(g, 0),
                                             weir_grad_input(g, 3), weir_grad_output(g, 0)));
  return weir_grad_set(g, 1, dx);
}

// ---- SparseSliceGrad ----

static weir_status_t* slice_grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* indices = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 2, &indices));
  return weir_shape_set_vector(ctx, 0, weir_shape_dim(indices, 0));
}

static weir_status_t* check_slice_grad(const weir_tensor_t* grad, const weir_tensor_t* in,
                                       const weir_tensor_t* start, const weir_tensor_t* out) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (grad->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input backprop_val_grad should be a vector but received shape: %s",
                       weir_tensor_shape_text(grad, a));
  }
  if (in->rank != 2 || out->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input and output indices should be matrices but received shapes: %s and %s",
                       weir_tensor_shape_text(in, a), weir_tensor_shape_text(out, b));
  }
  if (start->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "The input_start should be a vector but received shape %s",
                       weir_tensor_shape_text(start, a));
  }
  if (in->dims[1] != out->dims[1]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The input and output should have the same ndims: got: %" PRId64
                       " and %" PRId64,
                       in->dims[1], out->dims[1]);
  }
  if (out->dims[0] > in->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "# rows of output_indices should be not greater than of input_indices, got "
                       "%" PRId64 " and %" PRId64,
                       out->dims[0], in->dims[0]);
  }
  if (grad->count != out->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "# elements of backprop_val_grad and # rows of output_indices should match "
                       "(#nnz of sum): got %" PRId64 " and %" PRId64,
                       grad->count, out->dims[0]);
  }
  if (start->count != in->dims[1]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected input_start to be a vector of length %" PRId64
                       " but got length %" PRId64,
                       in->dims[1], start->count);
  }
  return NULL;
}

static weir_status_t* slice_grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* grad = weir_kernel_input(ctx, 0);
  const weir_tensor_t* in = weir_kernel_input(ctx, 1);
  const weir_tensor_t* start = weir_kernel_input(ctx, 2);
  const weir_tensor_t* out = weir_kernel_input(ctx, 3);
  weir_tensor_t* dx = NULL;
  WEIR_TRY(check_slice_grad(grad, in, start, out));
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, in->dims, &dx));
  weir_move_zero(weir_tensor_type(dx), dx->data, dx->count);
  const int64_t rank = in->dims[1];
  int64_t used = 0;
  for (int64_t i = 0; i < in->dims[0] && used < grad->count; ++i) {
    const int64_t* row = WEIR_TENSOR_DATA(in, int64_t) + i * rank;
    const int64_t* moved = WEIR_TENSOR_DATA(out, int64_t) + used * rank;
    bool is_same = true;
    for (int64_t d = 0; d < rank && is_same; ++d)
      is_same = row[d] - WEIR_TENSOR_DATA(start, int64_t)[d] == moved[d];
    if (!is_same) continue;
    memcpy(weir_sparse_at(dx, i), weir_sparse_at(grad, used),
           weir_dtype_size(weir_tensor_type(grad)));
    ++used;
  }
  if (used < grad->count) {
    return WEIR_STATUS(INTERNAL,
                       "Elements of backprop_val_grad aren't all propagated. Num elements:%" PRId64
                       ", used: %" PRId64,
                       grad->count, used);
  }
  return NULL;
}

const weir_op_module_t weir_ops_sparse_slice = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseSlice",
         .attrs = "T: type",
         .inputs = "indices: int64; values: T; shape: int64; start: int64; size: int64",
         .outputs = "output_indices: int64; output_values: T; output_shape: int64",
         .summary = "The part of a sparse tensor from start on, of a given size.",
         .infer_shape = slice_shape,
         .build_grad = slice_grad,
         .kernels = WEIR_CPU_KERNEL(.types = SPARSE_ANY, .compute = slice_cpu)},
        {.name = "SparseSliceGrad",
         .attrs = "T: numbertype",
         .inputs = "backprop_val_grad: T; input_indices: int64; input_start: int64; "
                   "output_indices: int64",
         .outputs = "val_grad: T",
         .summary = "The gradient of SparseSlice with respect to the values.",
         .infer_shape = slice_grad_shape,
         .kernels = WEIR_CPU_KERNEL(.types = SPARSE_NUMBER, .compute = slice_grad_cpu)},
        {0}}};
