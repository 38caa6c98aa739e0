// search_sorted.c — LowerBound, UpperBound: where values would stand in sorted rows.
#include "ops/array/sort_key.h"

typedef struct search_job_t {
  const weir_tensor_t* rows;
  const weir_tensor_t* values;
  weir_tensor_t* out;
  bool is_upper;
} search_job_t;

// The first element of a row of |n| that is not below |key|; |is_upper|: that is above it.
static int64_t search(weir_dtype_t dtype, const void* row, int64_t n, uint64_t key, bool is_upper) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const uint64_t here = sort_key(dtype, row, middle);
    if (here < key || (is_upper && here == key)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static void search_range(void* arg, int64_t begin, int64_t end) {
  const search_job_t* job = arg;
  const weir_dtype_t dtype = weir_tensor_type(job->rows);
  const int64_t n = job->rows->dims[1], per_row = job->values->dims[1];
  for (int64_t i = begin; i < end; ++i) {
    const char* row =
        (const char*)job->rows->data + (size_t)(i / per_row * n) * weir_dtype_size(dtype);
    const uint64_t key = sort_key(dtype, job->values->data, i);
    // A NaN is neither above nor below anything.
    const bool is_nan = key == UINT64_MAX && weir_dtype_is_floating(dtype);
    const int64_t at = is_nan ? (job->is_upper ? n : 0) : search(dtype, row, n, key, job->is_upper);
    weir_move_set_int(job->out, i, at);
  }
}

static weir_status_t* search_sorted(weir_kernel_ctx_t* ctx, bool is_upper) {
  static const char* const names[] = {"sorted_inputs", "values"};
  search_job_t job = {
      .rows = weir_kernel_input(ctx, 0), .values = weir_kernel_input(ctx, 1), .is_upper = is_upper};
  for (int i = 0; i < 2; ++i) {
    const int rank = weir_kernel_input(ctx, i)->rank;
    if (rank == 2) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be rank 2 but is rank %d for `%s` argument",
                       rank, names[i]);
  }
  if (job.rows->dims[0] != job.values->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Leading dim_size of both tensors must match.");
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, job.values->dims, &job.out));
  if (job.out->count == 0) return NULL;
  weir_pool_for(weir_kernel_pool(ctx), job.out->count, 60, search_range, &job);
  return NULL;
}

static weir_status_t* lower_cpu(weir_kernel_ctx_t* ctx) { return search_sorted(ctx, false); }
static weir_status_t* upper_cpu(weir_kernel_ctx_t* ctx) { return search_sorted(ctx, true); }

static weir_status_t* search_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 2, NULL));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 1));
}

#define SEARCH_OP(op_name, text, fn)                                                               \
  {                                                                                                \
    .name = op_name, .attrs = "T: type; out_type: {int32, int64} = DT_INT32",                      \
    .inputs = "sorted_inputs: T; values: T", .outputs = "output: out_type",                        \
    .flags = WEIR_OP_NO_GRADIENT, .summary = text, .infer_shape = search_shape,                    \
    .kernels =                                                                                     \
        WEIR_CPU_KERNEL(.types =                                                                   \
                            "T: float, double, half, bfloat16, int8, int16, int32, int64, uint8, " \
                            "uint16, uint32, uint64",                                              \
                        .compute = fn)                                                             \
  }

const weir_op_module_t weir_ops_array_search_sorted = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        SEARCH_OP("LowerBound", "The first places in sorted rows at which values fit", lower_cpu),
        SEARCH_OP("UpperBound", "The last places in sorted rows at which values fit", upper_cpu),
        {0}}};
