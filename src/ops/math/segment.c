// segment.c — SegmentSum, SegmentMean, SegmentProd, SegmentMax, SegmentMin: reductions of runs of
// rows with equal ids.
#include "ops/math/segment.h"

#include <inttypes.h>

#include "kernel/move/move.h"
#include "kernel/move/upload.h"
#include "kernel/reduce/cuda_segment.h"

typedef struct segment_state_t {
  weir_binary_op_t op;
  bool is_mean;
  weir_cuda_function_t upload;  // of a GPU, both
  weir_cuda_segment_t gpu;
} segment_state_t;

static weir_status_t* segment_init(const weir_kernel_init_t* init, weir_binary_op_t op,
                                   bool is_mean, segment_state_t* s) {
  s->op = op;
  s->is_mean = is_mean;
  if (!weir_device_is_cuda(init->device)) return NULL;
  const weir_dtype_t* types = init->node->input_types;
  WEIR_TRY(weir_upload_find(init, &s->upload));
  return weir_cuda_segment_find(init, op, types[0], types[1], types[1], &s->gpu);
}

#define SEGMENT_INIT(name, OP, mean)                                        \
  static weir_status_t* name(const weir_kernel_init_t* init, void* state) { \
    return segment_init(init, WEIR_BINARY_##OP, mean, state);               \
  }
SEGMENT_INIT(sum_init, ADD, false)
SEGMENT_INIT(mean_init, ADD, true)
SEGMENT_INIT(prod_init, MUL, false)
SEGMENT_INIT(max_init, MAXIMUM, false)
SEGMENT_INIT(min_init, MINIMUM, false)

// Ids must not decrease. The last one gives the number of rows of the output.
static weir_status_t* check_ids(const weir_tensor_t* data, const weir_tensor_t* ids,
                                int64_t* out_rows) {
  if (ids->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "segment_ids should be a vector.");
  if (data->rank < 1) return WEIR_STATUS(INVALID_ARGUMENT, "input must be at least rank 1");
  if (ids->count != data->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "segment_ids should be the same size as dimension 0 of input.");
  }
  const int64_t last = ids->count ? weir_tensor_int_at(ids, ids->count - 1) : -1;
  if (ids->count && last < 0) return WEIR_STATUS(INVALID_ARGUMENT, "segment ids must be >= 0");
  if (last == INT64_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected a non-negative size, got %" PRId64
                       ": one more than the last segment id, %" PRId64,
                       INT64_MIN, last);
  }
  *out_rows = last + 1;
  for (int64_t i = 0; i < ids->count; ++i) {
    const int64_t id = weir_tensor_int_at(ids, i);
    const int64_t next = i + 1 < ids->count ? weir_tensor_int_at(ids, i + 1) : id;
    if (next < id) return WEIR_STATUS(INVALID_ARGUMENT, "segment ids are not increasing");
    if (id >= 0 && id <= last) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Segment id %" PRId64 " out of range [0, %" PRId64
                       "), possibly because 'segment_ids' input is not sorted.",
                       id, *out_rows);
  }
  return NULL;
}

typedef struct segment_job_t {
  const weir_tensor_t* ids;
  const char* x;
  char* y;
  weir_binary_fn_t fn;
  weir_binary_fn_t divide;  // NULL unless a mean is taken
  weir_dtype_t dtype;
  size_t size;
  int64_t inner;
  bool forgets_nan;
} segment_job_t;

// The mean of |count| rows whose sum is |out|.
static void divide(const segment_job_t* job, char* out, int64_t n, int64_t count) {
  double value = (double)count;
  char divisor[16];
  weir_status_destroy(weir_cast_elements(job->dtype, divisor, WEIR_DTYPE_DOUBLE, &value,
                                         1));  // a number type: no error
  job->divide(out, divisor, out, n, WEIR_SPAN_X);
}

// Columns [begin, end) of all rows.
static void segment_range(void* arg, int64_t begin, int64_t end) {
  const segment_job_t* job = arg;
  size_t row = (size_t)job->inner * job->size;
  const char* x = job->x + (size_t)begin * job->size;
  char* y = job->y + (size_t)begin * job->size;
  int64_t n = end - begin;
  for (int64_t i = 0; i < job->ids->count;) {
    int64_t id = weir_tensor_int_at(job->ids, i);
    int64_t first = i;
    const char* sum = x + (size_t)i * row;
    char* out = y + (size_t)id * row;
    for (++i; i < job->ids->count && weir_tensor_int_at(job->ids, i) == id; ++i, sum = out) {
      const char* next = x + (size_t)i * row;
      if (job->forgets_nan) sum = segment_without_nan(job->dtype, sum, next);
      job->fn(sum, next, out, n, WEIR_SPAN_BOTH);
    }
    if (sum != out) memcpy(out, sum, (size_t)n * job->size);
    if (job->divide) divide(job, out, n, i - first);
  }
}

// Fills the rows whose ids do not occur: those between two ids, however many, at once.
static weir_status_t* fill_gaps(weir_kernel_ctx_t* ctx, const segment_job_t* job, double value) {
  char gap[16];
  WEIR_TRY(weir_cast_elements(job->dtype, gap, WEIR_DTYPE_DOUBLE, &value, 1));
  int64_t next = 0;
  for (int64_t i = 0; i < job->ids->count; ++i) {
    int64_t id = weir_tensor_int_at(job->ids, i);
    char* out = job->y + (size_t)(next * job->inner) * job->size;
    if (id > next)
      WEIR_TRY(
          weir_move_fill(weir_kernel_pool(ctx), job->dtype, gap, out, (id - next) * job->inner));
    next = id + 1;
  }
  return NULL;
}

static weir_status_t* segment_cpu(weir_kernel_ctx_t* ctx) {
  const segment_state_t* s = ctx->state;
  const weir_tensor_t* data = weir_kernel_input(ctx, 0);
  const weir_tensor_t* ids = weir_kernel_input(ctx, 1);
  int64_t dims[WEIR_MAX_RANK];
  memcpy(dims, data->dims, sizeof(int64_t) * data->rank);
  WEIR_TRY(check_ids(data, ids, &dims[0]));
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, data->rank, dims, &y));
  weir_dtype_t dtype = weir_tensor_type(data);
  segment_job_t job = {.ids = ids,
                       .x = data->data,
                       .y = y->data,
                       .fn = weir_binary_find(s->op, dtype),
                       .divide = s->is_mean ? weir_binary_find(WEIR_BINARY_DIV, dtype) : NULL,
                       .dtype = dtype,
                       .size = weir_dtype_size(dtype),
                       .inner = 1};
  if (y->count == 0) return NULL;
  for (int i = 1; i < data->rank; ++i) job.inner *= data->dims[i];
  job.forgets_nan = segment_forgets_nan(s->op, dtype, job.inner);
  WEIR_TRY(fill_gaps(ctx, &job, s->op == WEIR_BINARY_MUL ? 1 : 0));
  weir_pool_for(weir_kernel_pool(ctx), job.inner, 0.5 * (double)ids->count, segment_range, &job);
  return NULL;
}

// The ids are in host memory: the last one is the size of the output.
static weir_status_t* segment_gpu(weir_kernel_ctx_t* ctx) {
  const segment_state_t* s = ctx->state;
  const weir_tensor_t* data = weir_kernel_input(ctx, 0);
  const weir_tensor_t* ids = weir_kernel_input(ctx, 1);
  int64_t dims[WEIR_MAX_RANK];
  memcpy(dims, data->dims, sizeof(int64_t) * data->rank);
  WEIR_TRY(check_ids(data, ids, &dims[0]));
  weir_tensor_t *y = NULL, *uploaded = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, data->rank, dims, &y));
  if (y->count == 0) return NULL;
  WEIR_TRY(weir_gpu_uploaded(ctx, s->upload, ids, &uploaded));
  weir_segments_t segments = {.data = data,
                              .ids = uploaded->data,
                              .id_count = ids->count,
                              .norm = s->is_mean ? WEIR_SEGMENT_MEAN : WEIR_SEGMENT_SUM};
  weir_status_t* status = weir_cuda_segment(ctx, &s->gpu, &segments, y);
  weir_tensor_release(uploaded);
  return status;
}

static weir_status_t* segment_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* data = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_at_least(ctx, data, 1));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  if (data->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  int64_t dims[WEIR_MAX_RANK];
  memcpy(dims, data->dims, sizeof(int64_t) * (size_t)data->rank);
  dims[0] = -1;
  return weir_shape_set_dims(ctx, 0, data->rank, dims);
}

// ---- gradients ----

static weir_edge_t gather(weir_grad_ctx_t* g, weir_edge_t rows) {
  return node3(g, "GatherV2", rows, weir_grad_input(g, 1), weir_build_int32(g->builder, 0));
}

static weir_status_t* sum_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, gather(g, weir_grad_dy(g, 0)));
}

static weir_status_t* mean_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t ones = node1(g, "OnesLike", weir_grad_input(g, 0));
  weir_edge_t counts = node2(g, "SegmentSum", ones, weir_grad_input(g, 1));
  return weir_grad_set(g, 0, gather(g, node2(g, "RealDiv", dy, counts)));
}

// Rows that reach the extreme share the gradient evenly.
static weir_status_t* extreme_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t chosen = node2(g, "Equal", weir_grad_input(g, 0), gather(g, weir_grad_output(g, 0)));
  weir_edge_t counts =
      node2(g, "SegmentSum", cast_to(g, chosen, weir_grad_dtype(g, dy)), weir_grad_input(g, 1));
  weir_edge_t share = gather(g, node2(g, "RealDiv", dy, counts));
  return weir_grad_set(g, 0, node3(g, "SelectV2", chosen, share, weir_grad_scalar(g, dy, 0)));
}

// Product of the others: by division without zeros, by the product without the zero where there is
// one, else 0.
static weir_status_t* prod_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = weir_grad_input(g, 0);
  weir_edge_t ids = weir_grad_input(g, 1);
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t is_zero = node2(g, "Equal", x, weir_grad_scalar(g, x, 0));
  weir_edge_t zeros = node2(g, "SegmentSum", cast_to(g, is_zero, WEIR_DTYPE_INT32), ids);
  weir_edge_t many = node2(g, "Greater", zeros, weir_build_int32(g->builder, 1));
  dy = node3(g, "SelectV2", many, weir_grad_scalar(g, dy, 0), dy);
  weir_edge_t non_zero = node3(g, "SelectV2", is_zero, weir_grad_scalar(g, x, 1), x);
  weir_edge_t without = gather(g, node2(g, "SegmentProd", non_zero, ids));
  weir_edge_t divided = node2(g, "RealDiv", gather(g, weir_grad_output(g, 0)), non_zero);
  weir_edge_t slope = node3(g, "SelectV2", is_zero, without, divided);
  return weir_grad_set(g, 0, weir_grad_mul(g, gather(g, dy), slope));
}

#define SEGMENT_OP(op_name, types_, text, grad, init_fn, constraint, gpu_types)                \
  {                                                                                            \
    .name = op_name, .attrs = "T: " types_ "; Tindices: {int32,int64}",                        \
    .inputs = "data: T; segment_ids: Tindices", .outputs = "output: T", .summary = text,       \
    .infer_shape = segment_shape, .build_grad = grad, .kernels = (const weir_kernel_def_t[]) { \
      {WEIR_DEVICE_CPU, .types = constraint, .compute = segment_cpu, .init = init_fn,          \
       .state_size = sizeof(segment_state_t)},                                                 \
          {WEIR_DEVICE_GPU,                                                                    \
           .types = "T: " gpu_types,                                                           \
           .compute = segment_gpu,                                                             \
           .init = init_fn,                                                                    \
           .state_size = sizeof(segment_state_t),                                              \
           .host_inputs = "segment_ids"},                                                      \
      {                                                                                        \
        0                                                                                      \
      }                                                                                        \
    }                                                                                          \
  }

const weir_op_module_t weir_ops_math_segment = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        SEGMENT_OP("SegmentSum", "numbertype", "Sums of rows with equal, sorted ids", sum_grad,
                   sum_init, CPU_NUMBER, WEIR_SEGMENT_NUMBERS),
        SEGMENT_OP("SegmentMean", "numbertype", "Means of rows with equal, sorted ids", mean_grad,
                   mean_init, CPU_NUMBER, WEIR_SEGMENT_FLOATS),
        SEGMENT_OP("SegmentProd", "numbertype", "Products of rows with equal, sorted ids",
                   prod_grad, prod_init, CPU_NUMBER, WEIR_SEGMENT_NUMBERS),
        SEGMENT_OP("SegmentMax", "realnumbertype", "Maxima of rows with equal, sorted ids",
                   extreme_grad, max_init, NULL, WEIR_SEGMENT_NUMBERS),
        SEGMENT_OP("SegmentMin", "realnumbertype", "Minima of rows with equal, sorted ids",
                   extreme_grad, min_init, NULL, WEIR_SEGMENT_NUMBERS),
        {0}}};
