// split.c — SparseSplit: a sparse tensor cut along a dimension.
#include "ops/sparse/sparse.h"

static weir_status_t* split_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = weir_shape_input(ctx, 3);
  const int n = (int)weir_attrs_int(weir_shape_attrs(ctx), "num_split");
  const int64_t rank = weir_sparse_shape_elements(shape);
  for (int i = 0; i < n; ++i) {
    WEIR_TRY(weir_shape_set_dims(ctx, i, 2, (const int64_t[]){-1, rank}));
    WEIR_TRY(weir_shape_set_vector(ctx, n + i, -1));
    WEIR_TRY(weir_shape_set(ctx, 2 * n + i, shape));
  }
  return NULL;
}

static weir_status_t* check_inputs(const weir_kernel_ctx_t* ctx, weir_sparse_t* s, int n,
                                   int* out_axis) {
  const weir_tensor_t* axis_input = weir_kernel_input(ctx, 0);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (axis_input->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input axis should be a scalar but received shape %s",
                       weir_tensor_shape_text(axis_input, text));
  }
  if (s->indices->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input indices should be a matrix but received shape %s",
                       weir_tensor_shape_text(s->indices, text));
  }
  if (s->values->rank != 1) {  // the shape is that of the indices, as in TensorFlow
    return WEIR_STATUS(INVALID_ARGUMENT, "Input values should be a vector but received shape %s",
                       weir_tensor_shape_text(s->indices, text));
  }
  if (s->shape->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input shape should be a vector but received shape %s",
                       weir_tensor_shape_text(s->shape, text));
  }
  WEIR_TRY(weir_sparse_check(s));
  WEIR_TRY(weir_sparse_check_bounds(s));
  int64_t axis = WEIR_TENSOR_DATA(axis_input, int64_t)[0];
  const int64_t rank = s->shape->count;
  if (axis < -rank || axis >= rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input axis should be in range [%" PRId64 ", %" PRId64 "), got %" PRId64,
                       -rank, rank, axis);
  }
  if (axis < 0) axis += rank;
  if (n < 1 || n > s->dims[axis]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input num_split should be between 1 and the splitting dimension size "
                       "(%" PRId64 "), got %d",
                       s->dims[axis], n);
  }
  *out_axis = (int)axis;
  return weir_sparse_check_dims(s->dims, rank, NULL);
}

// Where part |i| of |n| of |size| places begins: the first ones have one more if it does not come
// out even.
static int64_t begin_of(int64_t size, int64_t n, int64_t i) {
  return size / n * i + WEIR_MIN(i, size % n);
}

static weir_status_t* write_part(weir_kernel_ctx_t* ctx, const weir_sparse_t* s, int axis, int n,
                                 int i, const int64_t* order, int64_t count) {
  int64_t begin = begin_of(s->dims[axis], n, i);
  WEIR_TRY(weir_sparse_gather(ctx, i, s->indices, order, count));
  WEIR_TRY(weir_sparse_gather(ctx, n + i, s->values, order, count));
  WEIR_TRY(weir_sparse_output_vector(ctx, 2 * n + i, s->dims, s->rank));
  int64_t* rows = ctx->outputs[i].tensor->data;
  for (int64_t k = 0; k < count; ++k) rows[k * s->rank + axis] -= begin;
  WEIR_TENSOR_DATA(ctx->outputs[2 * n + i].tensor, int64_t)
  [axis] = begin_of(s->dims[axis], n, i + 1) - begin;
  return NULL;
}

// The part that place |index| is in.
static int64_t part_of(int64_t size, int64_t n, int64_t index) {
  int64_t large = size % n, step = size / n;
  int64_t edge = large * (step + 1);
  return index < edge ? index / (step + 1) : large + (index - edge) / step;
}

static weir_status_t* split_cpu(weir_kernel_ctx_t* ctx) {
  const int n = (int)weir_attrs_int(weir_kernel_attrs(ctx), "num_split");
  weir_sparse_t s;
  int axis = 0;
  weir_sparse_get(weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2), weir_kernel_input(ctx, 3),
                  &s);
  WEIR_TRY(check_inputs(ctx, &s, n, &axis));
  int64_t* order = weir_alloc_array((size_t)s.count, sizeof(*order));
  int64_t* ends = weir_calloc((size_t)n + 1, sizeof(*ends));
  weir_status_t* status = order && ends ? NULL : weir_out_of_memory();
  if (!status) {
    const int64_t size = s.dims[axis];
    for (int64_t k = 0; k < s.count; ++k)
      ++ends[part_of(size, n, weir_sparse_row(&s, k)[axis]) + 1];
    for (int i = 0; i < n; ++i) ends[i + 1] += ends[i];
    for (int64_t k = 0; k < s.count; ++k)
      order[ends[part_of(size, n, weir_sparse_row(&s, k)[axis])]++] = k;
    int64_t begin = 0;  // each entry of |ends| is now the end of its part
    for (int i = 0; i < n && !status; ++i) {
      status = write_part(ctx, &s, axis, n, i, order + begin, ends[i] - begin);
      begin = ends[i];
    }
  }
  weir_free(order);
  weir_free(ends);
  return status;
}

const weir_op_module_t weir_ops_sparse_split = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseSplit",
         .attrs = "num_split: int >= 1; T: type",
         .inputs = "split_dim: int64; indices: int64; values: T; shape: int64",
         .outputs = "output_indices: num_split * int64; output_values: num_split * T; "
                    "output_shape: num_split * int64",
         .summary = "Cuts a sparse tensor along a dimension into parts of about equal size.",
         .infer_shape = split_shape,
         .kernels = WEIR_CPU_KERNEL(.types = SPARSE_ANY, .compute = split_cpu)},
        {0}}};
