// reshape.c — SparseReshape: the indices of a sparse tensor under another shape.
#include "ops/sparse/sparse.h"

static weir_status_t* reshape_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* indices = NULL;
  const weir_shape_t* to = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &indices));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, &to));
  WEIR_TRY(weir_shape_set_dims(
      ctx, 0, 2, (const int64_t[]){weir_shape_dim(indices, 0), weir_shape_dim(to, 0)}));
  return weir_shape_set(ctx, 1, to);
}

static weir_status_t* check_inputs(const weir_tensor_t* indices, const weir_tensor_t* shape,
                                   const weir_tensor_t* to) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (indices->rank != 2) return WEIR_STATUS(INVALID_ARGUMENT, "Input must be a matrix.");
  if (shape->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "Input shape must be a vector.");
  if (to->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Target shape should be a vector but received shape %s",
                       weir_tensor_shape_text(to, text));
  }
  if (indices->dims[1] != shape->count || shape->count > WEIR_MAX_RANK || to->count > WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "Input tensor rank must match input shape length.");
  return NULL;
}

// Fills in the one dimension of |dims| that is -1; they must have |size| elements.
static weir_status_t* complete(const weir_tensor_t* shape, int64_t size, int rank, int64_t* dims) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  int missing = -1;
  int64_t product = 1;
  for (int d = 0; d < rank; ++d) {
    if (dims[d] == -1) {
      if (missing >= 0) {
        return WEIR_STATUS(INVALID_ARGUMENT,
                           "only one output dimension may be -1, not both %d and %d", missing, d);
      }
      missing = d;
      dims[d] = 1;
    } else if (dims[d] < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "size %d must be non-negative, not %" PRId64, d,
                         dims[d]);
    }
  }
  WEIR_TRY(weir_sparse_check_dims(dims, rank, &product));
  weir_shape_text((int)shape->count, shape->data, a);
  if (missing >= 0) {
    if (product == 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "reshape cannot infer the missing input size for an empty tensor unless "
                         "all specified input sizes are non-zero");
    }
    if (size % product != 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Input to reshape is a SparseTensor with %" PRId64
                         " dense values, but the requested shape requires a multiple of %" PRId64
                         ". input_shape=%s output_shape=%s",
                         size, product, a, weir_shape_text(rank, dims, b));
    }
    dims[missing] = size / product;
    product *= dims[missing];
  }
  if (product != size) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input to reshape is a tensor with %" PRId64
                       " dense values, but the requested shape has %" PRId64
                       ". input_shape=%s output_shape=%s",
                       size, product, a, weir_shape_text(rank, dims, b));
  }
  return NULL;
}

static void set_strides(int rank, const int64_t* dims, int64_t* strides) {
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= dims[d];
  }
}

typedef struct reshape_job_t {
  int rank, out_rank;
  const int64_t* in;
  int64_t* out;
  int64_t strides[WEIR_MAX_RANK];
  int64_t out_strides[WEIR_MAX_RANK];
} reshape_job_t;

static void reshape_rows(void* arg, int64_t begin, int64_t end) {
  const reshape_job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    uint64_t flat = 0;  // indices are not checked: what is out of range may wrap
    for (int d = 0; d < job->rank; ++d)
      flat += (uint64_t)job->in[i * job->rank + d] * (uint64_t)job->strides[d];
    int64_t rest = (int64_t)flat;
    for (int d = 0; d < job->out_rank; ++d) {
      int64_t stride = job->out_strides[d] ? job->out_strides[d] : 1;
      job->out[i * job->out_rank + d] = rest / stride;
      rest %= stride;
    }
  }
}

static weir_status_t* reshape_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 0);
  const weir_tensor_t* shape = weir_kernel_input(ctx, 1);
  const weir_tensor_t* to = weir_kernel_input(ctx, 2);
  int64_t size = 0;
  int64_t dims[WEIR_MAX_RANK];
  weir_tensor_t* out = NULL;
  WEIR_TRY(check_inputs(indices, shape, to));
  WEIR_TRY(weir_sparse_check_dims(shape->data, shape->count, &size));
  const int rank = (int)to->count;
  for (int d = 0; d < rank; ++d) dims[d] = WEIR_TENSOR_DATA(to, int64_t)[d];
  WEIR_TRY(complete(shape, size, rank, dims));
  WEIR_TRY(weir_sparse_output_vector(ctx, 1, dims, rank));
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (const int64_t[]){indices->dims[0], rank}, &out));
  reshape_job_t job = {
      .rank = (int)shape->count, .out_rank = rank, .in = indices->data, .out = out->data};
  set_strides(job.rank, shape->data, job.strides);
  set_strides(rank, dims, job.out_strides);
  weir_pool_for(weir_kernel_pool(ctx), indices->dims[0], 4.0 * rank, reshape_rows, &job);
  return NULL;
}

const weir_op_module_t weir_ops_sparse_reshape = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseReshape",
         .inputs = "input_indices: int64; input_shape: int64; new_shape: int64",
         .outputs = "output_indices: int64; output_shape: int64",
         .summary = "The indices of a sparse tensor under another shape of as many elements.",
         .infer_shape = reshape_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = reshape_cpu)},
        {0}}};
