// sparse_segment_grad.c — Gradients of SparseSegmentSum, Mean and SqrtN: rows scattered back to
// where they were gathered from; V2 gives the touched rows alone.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "kernel/move/move.h"
#include "kernel/move/upload.h"
#include "kernel/reduce/cuda_segment_grad.h"
#include "ops/math/common.h"
#include "tensor/cast.h"

#define CHUNK 256  // columns scaled at a time

typedef struct grad_state_t {
  weir_segment_norm_t norm;
  bool is_sparse;
  weir_cuda_function_t upload;  // of a GPU, both
  weir_cuda_segment_grad_t gpu;
} grad_state_t;

static weir_status_t* grad_init(const weir_kernel_init_t* init, weir_segment_norm_t norm,
                                bool is_sparse, grad_state_t* s) {
  s->norm = norm;
  s->is_sparse = is_sparse;
  if (!weir_device_is_cuda(init->device)) return NULL;
  WEIR_TRY(weir_upload_find(init, &s->upload));
  return weir_cuda_segment_grad_find(init, &s->gpu);
}

#define GRAD_INIT(name, NORM, sparse)                                       \
  static weir_status_t* name(const weir_kernel_init_t* init, void* state) { \
    return grad_init(init, WEIR_SEGMENT_##NORM, sparse, state);             \
  }
GRAD_INIT(sum_init, SUM, false)
GRAD_INIT(mean_init, MEAN, false)
GRAD_INIT(sqrt_init, SQRT, false)
GRAD_INIT(sum_sparse_init, SUM, true)
GRAD_INIT(mean_sparse_init, MEAN, true)
GRAD_INIT(sqrt_sparse_init, SQRT, true)

// One gathered row: its place in the output, and the row of the gradient it takes from.
typedef struct entry_t {
  int64_t index;
  int64_t position;  // among the inputs: rows are summed in this order
} entry_t;

static int compare_entries(const void* a, const void* b) {
  const entry_t* x = a;
  const entry_t* y = b;
  if (x->index != y->index) return x->index < y->index ? -1 : 1;
  return (x->position > y->position) - (x->position < y->position);
}

typedef struct grad_job_t {
  const weir_tensor_t* ids;
  const entry_t* entries;  // sorted
  const int64_t* starts;   // of runs of equal indices, and the end of the last
  const int64_t* counts;   // rows of each segment
  const char* x;
  char* y;
  weir_binary_fn_t add;
  weir_binary_fn_t multiply;
  weir_dtype_t dtype;
  size_t size;
  int64_t inner;
  weir_segment_norm_t norm;
  bool is_sparse;
} grad_job_t;

// out += (or =, for the first) the segment's row times its scale.
static void add_row(const grad_job_t* job, int64_t id, bool is_first, char* out) {
  const char* row = job->x + (size_t)(id * job->inner) * job->size;
  int64_t count = job->counts[id];
  if (job->norm == WEIR_SEGMENT_SUM || count < 2) {
    if (is_first) memcpy(out, row, (size_t)job->inner * job->size);
    if (!is_first) job->add(out, row, out, job->inner, WEIR_SPAN_BOTH);
    return;
  }
  double scale = job->norm == WEIR_SEGMENT_MEAN ? 1.0 / (double)count : 1.0 / sqrt((double)count);
  char element[16];
  weir_status_destroy(weir_cast_elements(job->dtype, element, WEIR_DTYPE_DOUBLE, &scale,
                                         1));  // a number type: no error
  double scaled[CHUNK];                        // wide enough for any type
  for (int64_t column = 0; column < job->inner; column += CHUNK) {
    int64_t n = WEIR_MIN(job->inner - column, CHUNK);
    size_t offset = (size_t)column * job->size;
    job->multiply(row + offset, element, is_first ? (void*)(out + offset) : scaled, n, WEIR_SPAN_X);
    if (!is_first) job->add(out + offset, scaled, out + offset, n, WEIR_SPAN_BOTH);
  }
}

static void grad_range(void* arg, int64_t begin, int64_t end) {
  const grad_job_t* job = arg;
  for (int64_t run = begin; run < end; ++run) {
    int64_t first = job->starts[run];
    int64_t row = job->is_sparse ? run : job->entries[first].index;
    char* out = job->y + (size_t)(row * job->inner) * job->size;
    for (int64_t i = first; i < job->starts[run + 1]; ++i)
      add_row(job, weir_tensor_int_at(job->ids, job->entries[i].position), i == first, out);
  }
}

static weir_status_t* check_shapes(weir_kernel_ctx_t* ctx, int64_t* out_rows) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  const weir_tensor_t* ids = weir_kernel_input(ctx, 2);
  const weir_tensor_t* rows = weir_kernel_input(ctx, 3);
  if (weir_kernel_input(ctx, 0)->rank < 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "Index must be less than 0, got 0");
  if (indices->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "indices should be a vector.");
  if (ids->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "segment_ids should be a vector.");
  if (rows->rank != 0) return WEIR_STATUS(INVALID_ARGUMENT, "output_dim0 should be a scalar.");
  if (indices->count != ids->count)
    return WEIR_STATUS(INVALID_ARGUMENT, "segment_ids and indices should have same size.");
  *out_rows = weir_tensor_int_at(rows, 0);
  if (*out_rows < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected a non-negative size, got %" PRId64, *out_rows);
  return NULL;
}

// Fills entries, starts and counts; all are checked before anything is read through them.
static weir_status_t* plan_rows(weir_kernel_ctx_t* ctx, int64_t rows, entry_t* entries,
                                int64_t* starts, int64_t* counts, int64_t* out_runs) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  const weir_tensor_t* ids = weir_kernel_input(ctx, 2);
  int64_t segments = weir_kernel_input(ctx, 0)->dims[0];
  // Of ids in order the last is the largest.
  if (ids->count > 0 && weir_tensor_int_at(ids, ids->count - 1) >= segments)
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid number of segments");
  for (int64_t i = 0; i < segments; ++i) counts[i] = 0;
  for (int64_t i = 0; i < ids->count; ++i) {
    int64_t id = weir_tensor_int_at(ids, i);
    int64_t index = weir_tensor_int_at(indices, i);
    if (id < 0 || id >= segments) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Segment id %" PRId64 " out of range [0, %" PRId64 ").",
                         id, segments);
    }
    if (index < 0 || index >= rows) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Index %" PRId64 " out of range [0, %" PRId64 ").",
                         index, rows);
    }
    ++counts[id];
    entries[i] = (entry_t){.index = index, .position = i};
  }
  qsort(entries, (size_t)ids->count, sizeof(entry_t), compare_entries);
  int64_t runs = 0;
  for (int64_t i = 0; i < ids->count; ++i) {
    if (i == 0 || entries[i].index != entries[i - 1].index) starts[runs++] = i;
  }
  starts[runs] = ids->count;
  *out_runs = runs;
  return NULL;
}

// Allocates the outputs: all rows, or |runs| rows and their indices.
static weir_status_t* make_outputs(weir_kernel_ctx_t* ctx, const entry_t* entries,
                                   const int64_t* starts, int64_t runs, int64_t rows,
                                   weir_tensor_t** out_y) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  bool is_sparse = ((const grad_state_t*)ctx->state)->is_sparse;
  int64_t dims[WEIR_MAX_RANK];
  memcpy(dims, x->dims, sizeof(int64_t) * x->rank);
  dims[0] = is_sparse ? runs : rows;
  WEIR_TRY(weir_kernel_output(ctx, 0, x->rank, dims, out_y));
  if (!is_sparse) return NULL;
  weir_tensor_t* unique = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &runs, &unique));
  for (int64_t i = 0; i < runs; ++i) weir_move_set_int(unique, i, entries[starts[i]].index);
  return NULL;
}

static weir_status_t* grad_cpu(weir_kernel_ctx_t* ctx) {
  const grad_state_t* s = ctx->state;
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* ids = weir_kernel_input(ctx, 2);
  int64_t rows = 0;
  weir_tensor_t* y = NULL;
  WEIR_TRY(check_shapes(ctx, &rows));
  if (rows == 0) return make_outputs(ctx, NULL, NULL, 0, 0, &y);
  entry_t* entries = weir_alloc_array((size_t)ids->count + 1, sizeof(entry_t));
  int64_t* starts = weir_alloc_array((size_t)ids->count + 1, sizeof(int64_t));
  int64_t* counts = weir_alloc_array((size_t)x->dims[0] + 1, sizeof(int64_t));
  int64_t runs = 0;
  weir_status_t* status = !entries || !starts || !counts ? weir_out_of_memory() : NULL;
  if (!status) status = plan_rows(ctx, rows, entries, starts, counts, &runs);
  if (!status) status = make_outputs(ctx, entries, starts, runs, rows, &y);
  if (status || y->count == 0) goto done;
  weir_dtype_t dtype = weir_tensor_type(x);
  grad_job_t job = {.ids = ids,
                    .entries = entries,
                    .starts = starts,
                    .counts = counts,
                    .x = x->data,
                    .y = y->data,
                    .add = weir_binary_find(WEIR_BINARY_ADD, dtype),
                    .multiply = weir_binary_find(WEIR_BINARY_MUL, dtype),
                    .dtype = dtype,
                    .size = weir_dtype_size(dtype),
                    .inner = y->count / y->dims[0],
                    .norm = s->norm,
                    .is_sparse = s->is_sparse};
  if (runs < y->dims[0]) weir_move_zero(dtype, y->data, y->count);
  if (runs > 0) {
    double cost = 0.7 * (double)job.inner * ((double)ids->count / (double)runs) + 10;
    weir_pool_for(weir_kernel_pool(ctx), runs, cost, grad_range, &job);
  }
done:
  weir_free(entries);
  weir_free(starts);
  weir_free(counts);
  return status;
}

// ---- on GPUs ----

static weir_status_t* grad_gpu(weir_kernel_ctx_t* ctx) {
  const grad_state_t* s = ctx->state;
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK], rows = 0;
  WEIR_TRY(check_shapes(ctx, &rows));
  memcpy(dims, x->dims, sizeof(int64_t) * x->rank);
  dims[0] = rows;
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, x->rank, dims, &y));
  return weir_cuda_segment_grad(ctx, &s->gpu, s->norm, weir_kernel_input(ctx, 1),
                                weir_kernel_input(ctx, 2)->data, y);
}

// What rows of the output the indices stand for, and which indices these are; all in host memory.
typedef struct touched_t {
  weir_tensor_t *places, *unique;
} touched_t;

static weir_status_t* find_touched(weir_kernel_ctx_t* ctx, int64_t rows, touched_t* out) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  const weir_dtype_t dtype = weir_tensor_type(indices);
  int64_t count = indices->count, segments = weir_kernel_input(ctx, 0)->dims[0], runs = 0;
  entry_t* entries = weir_alloc_array((size_t)count + 1, sizeof(entry_t));
  int64_t* starts = weir_alloc_array((size_t)count + 1, sizeof(int64_t));
  int64_t* counts = weir_alloc_array((size_t)segments + 1, sizeof(int64_t));
  weir_status_t* status = !entries || !starts || !counts ? weir_out_of_memory() : NULL;
  if (!status) status = plan_rows(ctx, rows, entries, starts, counts, &runs);
  if (!status) status = weir_tensor_create(dtype, 1, &count, &out->places);
  if (!status) status = weir_tensor_create(dtype, 1, &runs, &out->unique);
  for (int64_t run = 0; !status && run < runs; ++run) {
    weir_move_set_int(out->unique, run, entries[starts[run]].index);
    for (int64_t i = starts[run]; i < starts[run + 1]; ++i)
      weir_move_set_int(out->places, entries[i].position, run);
  }
  weir_free(entries);
  weir_free(starts);
  weir_free(counts);
  return status;
}

static weir_status_t* add_touched(weir_kernel_ctx_t* ctx, const touched_t* touched) {
  const grad_state_t* s = ctx->state;
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  weir_tensor_t *y = NULL, *unique = NULL, *places = NULL, *ids = NULL;
  memcpy(dims, x->dims, sizeof(int64_t) * x->rank);
  dims[0] = touched->unique->count;
  WEIR_TRY(weir_kernel_output(ctx, 0, x->rank, dims, &y));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, dims, &unique));
  WEIR_TRY(weir_gpu_upload(ctx, s->upload, touched->unique->data,
                           weir_tensor_byte_size(touched->unique), unique->data));
  if (y->count == 0) return NULL;
  WEIR_TRY(weir_gpu_uploaded(ctx, s->upload, touched->places, &places));
  weir_status_t* status = weir_gpu_uploaded(ctx, s->upload, weir_kernel_input(ctx, 2), &ids);
  if (!status) status = weir_cuda_segment_grad(ctx, &s->gpu, s->norm, places, ids->data, y);
  weir_tensor_release(places);
  weir_tensor_release(ids);
  return status;
}

// Indices and ids are in host memory: how many differ is the size of the outputs.
static weir_status_t* touched_gpu(weir_kernel_ctx_t* ctx) {
  int64_t rows = 0;
  touched_t touched = {0};
  WEIR_TRY(check_shapes(ctx, &rows));
  weir_status_t* status = find_touched(ctx, rows, &touched);
  if (!status) status = add_touched(ctx, &touched);
  weir_tensor_release(touched.places);
  weir_tensor_release(touched.unique);
  return status;
}

// ---- shapes ----

static weir_status_t* check_inputs(weir_shape_ctx_t* ctx) {
  const weir_shape_t* indices;
  const weir_shape_t* ids;
  WEIR_TRY(weir_shape_at_least(ctx, weir_shape_input(ctx, 0), 1));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &indices));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, &ids));
  WEIR_TRY(weir_shape_join(ctx, indices, ids, &ids));
  return weir_shape_with_rank(ctx, weir_shape_input(ctx, 3), 0, NULL);
}

static weir_status_t* set_rows(weir_shape_ctx_t* ctx, int64_t rows) {
  const weir_shape_t* x = weir_shape_input(ctx, 0);
  if (x->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  int64_t dims[WEIR_MAX_RANK];
  memcpy(dims, x->dims, sizeof(int64_t) * (size_t)x->rank);
  dims[0] = rows;
  return weir_shape_set_dims(ctx, 0, x->rank, dims);
}

static weir_status_t* dense_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_inputs(ctx));
  const weir_tensor_t* value = weir_shape_value(ctx, 3);
  int64_t rows = value ? weir_tensor_int_at(value, 0) : -1;
  if (value && rows < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Cannot specify a negative value for output_dim0");
  return set_rows(ctx, rows);
}

static weir_status_t* touched_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_inputs(ctx));
  WEIR_TRY(set_rows(ctx, -1));
  return weir_shape_set_vector(ctx, 1, -1);
}

#define GRAD_ROW(op_name, rows_, outputs_, text, shape_fn, init_fn, gpu_fn, host)                  \
  {                                                                                                \
    .name = op_name,                                                                               \
    .attrs = "T: " FLOATING_TYPES                                                                  \
             "; Tidx: {int32,int64} = DT_INT32; Tsegmentids: {int32,int64} = DT_INT32",            \
    .inputs = "grad: T; indices: Tidx; segment_ids: Tsegmentids; " rows_ ": int32",                \
    .outputs = outputs_, .summary = text, .infer_shape = shape_fn,                                 \
    .kernels = (const weir_kernel_def_t[]) {                                                       \
      {WEIR_DEVICE_CPU, .compute = grad_cpu, .init = init_fn, .state_size = sizeof(grad_state_t)}, \
          {WEIR_DEVICE_GPU, .compute = gpu_fn, .init = init_fn,                                    \
           .state_size = sizeof(grad_state_t), .host_inputs = host rows_},                         \
      {                                                                                            \
        0                                                                                          \
      }                                                                                            \
    }                                                                                              \
  }
#define DENSE_OP(op_name, text, init_fn) \
  GRAD_ROW(op_name, "output_dim0", "output: T", text, dense_shape, init_fn, grad_gpu, "")
#define TOUCHED_OP(op_name, text, init_fn)                                               \
  GRAD_ROW(op_name, "dense_output_dim0", "output: T; sorted_unique_indices: Tidx", text, \
           touched_shape, init_fn, touched_gpu, "indices, segment_ids, ")

const weir_op_module_t weir_ops_math_sparse_segment_grad = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        DENSE_OP("SparseSegmentSumGrad", "The gradient of SparseSegmentSum", sum_init),
        DENSE_OP("SparseSegmentMeanGrad", "The gradient of SparseSegmentMean", mean_init),
        DENSE_OP("SparseSegmentSqrtNGrad", "The gradient of SparseSegmentSqrtN", sqrt_init),
        TOUCHED_OP("SparseSegmentSumGradV2", "The gradient of SparseSegmentSum, touched rows alone",
                   sum_sparse_init),
        TOUCHED_OP("SparseSegmentMeanGradV2",
                   "The gradient of SparseSegmentMean, touched rows alone", mean_sparse_init),
        TOUCHED_OP("SparseSegmentSqrtNGradV2",
                   "The gradient of SparseSegmentSqrtN, touched rows alone", sqrt_sparse_init),
        {0}}};
