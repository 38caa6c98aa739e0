// bincount.c — Bincount, DenseBincount: how often each value occurs, or the sum of its weights.
#include <inttypes.h>

#include "ops/math/common.h"
#include "tensor/cast.h"

// Counts row |ids| of |n| values into |bins|; |weights| may be NULL. Values of |size| and above are
// dropped.
typedef struct count_job_t {
  weir_binary_fn_t add;
  size_t element;   // bytes of a bin
  const char* one;  // a bin's 1
  int64_t size;
  bool is_binary;
  const char* name;  // of the ids, in errors
} count_job_t;

static weir_status_t* count_row(const count_job_t* job, const weir_tensor_t* ids, int64_t first,
                                int64_t n, const char* weights, char* bins) {
  for (int64_t i = 0; i < n; ++i) {
    int64_t id = weir_tensor_int_at(ids, first + i);
    if (id < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Input '%s' must be non-negative! Negative input value found: %lld",
                         job->name, (long long)id);
    }
    if (id >= job->size) continue;
    char* bin = bins + (size_t)id * job->element;
    if (job->is_binary) {
      memcpy(bin, job->one, job->element);
    } else {
      job->add(bin, weights ? weights + (size_t)i * job->element : job->one, bin, 1,
               WEIR_SPAN_BOTH);
    }
  }
  return NULL;
}

static weir_status_t* read_size(weir_kernel_ctx_t* ctx, int64_t* out_size) {
  const weir_tensor_t* size = weir_kernel_input(ctx, 1);
  if (size->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be rank 0 but is rank %d", size->rank);
  }
  *out_size = weir_tensor_int_at(size, 0);
  if (*out_size < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "size (%" PRId64 ") must be non-negative", *out_size);
  return NULL;
}

static weir_status_t* count_rows(weir_kernel_ctx_t* ctx, bool is_binary, int64_t rows, int rank,
                                 const int64_t* dims) {
  const weir_tensor_t* ids = weir_kernel_input(ctx, 0);
  const weir_tensor_t* weights = weir_kernel_input(ctx, 2);
  weir_dtype_t dtype = weir_tensor_type(weights);
  char one[16];
  const double one_value = 1;
  WEIR_TRY(weir_cast_elements(dtype, one, WEIR_DTYPE_DOUBLE, &one_value, 1));
  count_job_t job = {.add = weir_binary_find(WEIR_BINARY_ADD, dtype),
                     .element = weir_dtype_size(dtype),
                     .one = one,
                     .size = dims[rank - 1],
                     .is_binary = is_binary,
                     .name = rank == 2 ? "in" : "arr"};
  weir_tensor_t* bins = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &bins));
  memset(bins->data, 0, (size_t)bins->count * job.element);
  int64_t n = rows > 0 ? ids->count / rows : 0;
  for (int64_t r = 0; r < rows; ++r) {
    const char* row_weights =
        weights->count > 0 ? (const char*)weights->data + (size_t)(r * n) * job.element : NULL;
    WEIR_TRY(count_row(&job, ids, r * n, n, row_weights,
                       (char*)bins->data + (size_t)(r * job.size) * job.element));
  }
  return NULL;
}

static weir_status_t* bincount_cpu(weir_kernel_ctx_t* ctx) {
  int64_t size = 0;
  WEIR_TRY(read_size(ctx, &size));
  const int64_t weights = weir_kernel_input(ctx, 2)->count;
  if (weights > 0 && weights != weir_kernel_input(ctx, 0)->count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input indices and weights must have the same size.");
  }
  return count_rows(ctx, false, 1, 1, &size);
}

static weir_status_t* dense_bincount_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* ids = weir_kernel_input(ctx, 0);
  if (ids->rank > 2)
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be at most rank 2 but is rank %d", ids->rank);
  const weir_tensor_t* weights = weir_kernel_input(ctx, 2);
  int64_t size = 0;
  WEIR_TRY(read_size(ctx, &size));
  if (weights->count > 0 && !weir_tensor_same_shape(weights, ids)) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which "
                       "case it acts as all weights equal to 1. Received %s",
                       weir_tensor_shape_text(weights, text));
  }
  int64_t rows = ids->rank == 2 ? ids->dims[0] : 1;
  const int64_t dims[] = {rows, size};
  int rank = ids->rank == 2 ? 2 : 1;
  return count_rows(ctx, weir_attrs_bool(weir_kernel_attrs(ctx), "binary_output"), rows, rank,
                    rank == 2 ? dims : dims + 1);
}

// The value of the size input; -1 when not known.
static weir_status_t* size_of(weir_shape_ctx_t* ctx, int64_t* out_size) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  const weir_tensor_t* size = weir_shape_value(ctx, 1);
  *out_size = size ? weir_tensor_int_at(size, 0) : -1;
  if (size && *out_size < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "size (%" PRId64 ") must be non-negative", *out_size);
  return NULL;
}

static weir_status_t* bincount_shape(weir_shape_ctx_t* ctx) {
  int64_t size = 0;
  WEIR_TRY(size_of(ctx, &size));
  return weir_shape_set_vector(ctx, 0, size);
}

static weir_status_t* dense_bincount_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* ids = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_at_most(ctx, ids, 2));
  int64_t size = 0;
  WEIR_TRY(size_of(ctx, &size));
  if (ids->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  if (ids->rank < 2) return weir_shape_set_vector(ctx, 0, size);
  return weir_shape_set_dims(ctx, 0, 2, (const int64_t[]){ids->dims[0], size});
}

const weir_op_module_t weir_ops_math_bincount = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Bincount",
         .attrs = "T: {int32,int64,float,double}",
         .inputs = "arr: int32; size: int32; weights: T",
         .outputs = "bins: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "How often each value below size occurs",
         .infer_shape = bincount_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = bincount_cpu, .host_inputs = "size")},
        {.name = "DenseBincount",
         .attrs = "Tidx: {int32,int64}; T: {int32,int64,float,double}; binary_output: bool = false",
         .inputs = "input: Tidx; size: Tidx; weights: T",
         .outputs = "output: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "How often each value below size occurs, row by row",
         .infer_shape = dense_bincount_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = dense_bincount_cpu, .host_inputs = "size")},
        {0}}};
