// sparse_segment.c — SparseSegmentSum, Mean, SqrtN, each also WithNumSegments: reductions of
// gathered rows with equal, sorted ids.
#include <inttypes.h>
#include <math.h>

#include "base/alloc.h"
#include "kernel/move/move.h"
#include "kernel/move/upload.h"
#include "kernel/reduce/cuda_segment.h"
#include "ops/math/common.h"
#include "tensor/cast.h"

#define CHUNK 256  // columns summed at a time where the sum has a wider type than the rows

typedef struct sparse_state_t {
  weir_segment_norm_t norm;
  weir_cuda_function_t upload;  // of a GPU, both
  weir_cuda_segment_t gpu;
} sparse_state_t;

static weir_status_t* sparse_init(const weir_kernel_init_t* init, weir_segment_norm_t norm,
                                  sparse_state_t* s) {
  s->norm = norm;
  if (!weir_device_is_cuda(init->device)) return NULL;
  const weir_dtype_t* types = init->node->input_types;
  WEIR_TRY(weir_upload_find(init, &s->upload));
  return weir_cuda_segment_find(init, WEIR_BINARY_ADD, types[0], types[2], types[1], &s->gpu);
}

#define SPARSE_INIT(name, NORM)                                             \
  static weir_status_t* name(const weir_kernel_init_t* init, void* state) { \
    return sparse_init(init, WEIR_SEGMENT_##NORM, state);                   \
  }
SPARSE_INIT(sum_init, SUM)
SPARSE_INIT(mean_init, MEAN)
SPARSE_INIT(sqrt_init, SQRT)

typedef struct sparse_job_t {
  const weir_tensor_t* indices;
  const weir_tensor_t* ids;
  const int64_t* starts;  // of the runs of equal ids, and the end of the last
  const char* x;
  char* y;
  weir_binary_fn_t add;
  weir_binary_fn_t divide;
  weir_dtype_t dtype;
  weir_dtype_t sum_dtype;  // float for half and bfloat16
  size_t size;
  int64_t inner;
  weir_segment_norm_t norm;
} sparse_job_t;

static const char* row_at(const sparse_job_t* job, int64_t i) {
  return job->x + (size_t)(weir_tensor_int_at(job->indices, i) * job->inner) * job->size;
}

static void divide_sum(const sparse_job_t* job, char* sum, int64_t n, int64_t count) {
  if (job->norm == WEIR_SEGMENT_SUM || count < 2) return;
  double divisor = job->norm == WEIR_SEGMENT_MEAN ? (double)count : sqrt((double)count);
  char element[16];
  weir_status_destroy(weir_cast_elements(job->sum_dtype, element, WEIR_DTYPE_DOUBLE, &divisor,
                                         1));  // a number type: no error
  job->divide(sum, element, sum, n, WEIR_SPAN_X);
}

// The sum of the rows of one run, in the type of the rows.
static void sum_run(const sparse_job_t* job, int64_t begin, int64_t end, char* out) {
  memcpy(out, row_at(job, begin), (size_t)job->inner * job->size);
  for (int64_t i = begin + 1; i < end; ++i)
    job->add(out, row_at(job, i), out, job->inner, WEIR_SPAN_BOTH);
  divide_sum(job, out, job->inner, end - begin);
}

// As sum_run, rounding once instead of once a row.
static void sum_run_wide(const sparse_job_t* job, int64_t begin, int64_t end, char* out) {
  float sum[CHUNK];
  float row[CHUNK];
  for (int64_t column = 0; column < job->inner; column += CHUNK) {
    int64_t n = WEIR_MIN(job->inner - column, CHUNK);
    size_t offset = (size_t)column * job->size;
    memset(sum, 0, sizeof(sum));
    for (int64_t i = begin; i < end; ++i) {
      weir_status_destroy(
          weir_cast_elements(WEIR_DTYPE_FLOAT, row, job->dtype, row_at(job, i) + offset, n));
      for (int64_t c = 0; c < n; ++c) sum[c] += row[c];
    }
    divide_sum(job, (char*)sum, n, end - begin);
    weir_status_destroy(weir_cast_elements(job->dtype, out + offset, WEIR_DTYPE_FLOAT, sum, n));
  }
}

static void sparse_range(void* arg, int64_t begin, int64_t end) {
  const sparse_job_t* job = arg;
  for (int64_t run = begin; run < end; ++run) {
    int64_t first = job->starts[run];
    char* out = job->y + (size_t)(weir_tensor_int_at(job->ids, first) * job->inner) * job->size;
    (job->dtype == job->sum_dtype ? sum_run : sum_run_wide)(job, first, job->starts[run + 1], out);
  }
}

static weir_status_t* check_shapes(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  const weir_tensor_t* ids = weir_kernel_input(ctx, 2);
  if (weir_kernel_input(ctx, 0)->rank < 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be at least rank 1");
  if (indices->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "indices should be a vector.");
  if (ids->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "segment_ids should be a vector.");
  if (indices->count != ids->count)
    return WEIR_STATUS(INVALID_ARGUMENT, "segment_ids and indices should have same size.");
  return NULL;
}

static int64_t last_id(const weir_tensor_t* ids) {
  return ids->count ? weir_tensor_int_at(ids, ids->count - 1) : -1;
}

// Of ids in host memory: a GPU leaves out what is out of range.
static weir_status_t* check_last_id(const weir_tensor_t* ids, int64_t rows) {
  if (last_id(ids) < rows) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "segment ids must be < num_segments: id %" PRId64 " of %" PRId64 " segments",
                     last_id(ids), rows);
}

static weir_status_t* count_segments(weir_kernel_ctx_t* ctx, int64_t* out_rows) {
  const weir_tensor_t* ids = weir_kernel_input(ctx, 2);
  if (ctx->input_count > 3) {
    const weir_tensor_t* rows = weir_kernel_input(ctx, 3);
    if (rows->rank != 0) {
      char text[WEIR_SHAPE_TEXT_SIZE];
      return WEIR_STATUS(INVALID_ARGUMENT, "num_segments should be a scalar, not shape %s",
                         weir_tensor_shape_text(rows, text));
    }
    *out_rows = weir_tensor_int_at(rows, 0);
  } else {
    const int64_t last = last_id(ids);
    if (last >= INT32_MAX) {  // whatever the type of the ids
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Last segment id must be < kintmax, got %" PRId64 " limit %d", last,
                         INT32_MAX);
    }
    *out_rows = last + 1;
  }
  if (*out_rows < 0 || (ctx->input_count == 3 && ids->count && *out_rows == 0))
    return WEIR_STATUS(INVALID_ARGUMENT, "segment ids must be >= 0");
  return NULL;
}

static weir_status_t* check_id(int64_t id, int64_t last, int64_t rows) {
  if (id < last) return WEIR_STATUS(INVALID_ARGUMENT, "segment ids are not increasing");
  if (id >= 0 && id < rows) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Segment id %" PRId64 " out of range [0, %" PRId64
                     "), possibly because 'segment_ids' input is not sorted.",
                     id, rows);
}

// Checks every index and id before anything is read, and notes where runs start.
static weir_status_t* find_runs(const weir_tensor_t* indices, const weir_tensor_t* ids,
                                int64_t data_rows, int64_t rows, int64_t* starts,
                                int64_t* out_count) {
  int64_t count = 0;
  int64_t last = INT64_MIN;
  for (int64_t i = 0; i < ids->count; ++i) {
    int64_t id = weir_tensor_int_at(ids, i);
    int64_t index = weir_tensor_int_at(indices, i);
    WEIR_TRY(check_id(id, last, rows));
    if (index < 0 || index >= data_rows) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Bad: indices[%" PRId64 "] == %" PRId64 " out of range [0, %" PRId64 ")",
                         i, index, data_rows);
    }
    if (i == 0 || id != last) starts[count++] = i;
    last = id;
  }
  starts[count] = ids->count;
  *out_count = count;
  return NULL;
}

static weir_status_t* sparse_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* data = weir_kernel_input(ctx, 0);
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  const weir_tensor_t* ids = weir_kernel_input(ctx, 2);
  WEIR_TRY(check_shapes(ctx));
  int64_t dims[WEIR_MAX_RANK];
  memcpy(dims, data->dims, sizeof(int64_t) * data->rank);
  WEIR_TRY(count_segments(ctx, &dims[0]));
  if (ctx->input_count > 3) WEIR_TRY(check_last_id(ids, dims[0]));
  int64_t* starts = weir_alloc_array((size_t)ids->count + 1, sizeof(int64_t));
  if (!starts) return weir_out_of_memory();
  int64_t run_count = 0;
  weir_tensor_t* y = NULL;
  weir_status_t* status = find_runs(indices, ids, data->dims[0], dims[0], starts, &run_count);
  if (!status) status = weir_kernel_output(ctx, 0, data->rank, dims, &y);
  if (status || y->count == 0) goto done;
  weir_dtype_t dtype = weir_tensor_type(data);
  bool is_narrow = dtype == WEIR_DTYPE_HALF || dtype == WEIR_DTYPE_BFLOAT16;
  weir_dtype_t sum_dtype = is_narrow ? WEIR_DTYPE_FLOAT : dtype;
  sparse_job_t job = {.indices = indices,
                      .ids = ids,
                      .starts = starts,
                      .x = data->data,
                      .y = y->data,
                      .add = weir_binary_find(WEIR_BINARY_ADD, dtype),
                      .divide = weir_binary_find(WEIR_BINARY_DIV, sum_dtype),
                      .dtype = dtype,
                      .sum_dtype = sum_dtype,
                      .size = weir_dtype_size(dtype),
                      .inner = y->count / dims[0],
                      .norm = ((const sparse_state_t*)ctx->state)->norm};
  if (run_count < dims[0]) weir_move_zero(dtype, y->data, y->count);  // ids that do not occur
  if (run_count > 0) {
    double cost = 0.5 * (double)job.inner * ((double)ids->count / (double)run_count) + 10;
    weir_pool_for(weir_kernel_pool(ctx), run_count, cost, sparse_range, &job);
  }
done:
  weir_free(starts);
  return status;
}

// ---- on GPUs ----

// Where nobody says how many segments there are, the last id does, so that the ids are in host
// memory. All else is on the device, which leaves out what is out of range.
static weir_status_t* make_output(weir_kernel_ctx_t* ctx, weir_tensor_t** out_y) {
  const weir_tensor_t* data = weir_kernel_input(ctx, 0);
  const weir_tensor_t* ids = weir_kernel_input(ctx, 2);
  int64_t dims[WEIR_MAX_RANK], last = INT64_MIN;
  WEIR_TRY(check_shapes(ctx));
  memcpy(dims, data->dims, sizeof(int64_t) * data->rank);
  WEIR_TRY(count_segments(ctx, &dims[0]));
  for (int64_t i = 0; ctx->input_count == 3 && i < ids->count; ++i) {
    int64_t id = weir_tensor_int_at(ids, i);
    WEIR_TRY(check_id(id, last, dims[0]));
    last = id;
  }
  return weir_kernel_output(ctx, 0, data->rank, dims, out_y);
}

static weir_status_t* sparse_gpu(weir_kernel_ctx_t* ctx) {
  const sparse_state_t* s = ctx->state;
  const weir_tensor_t* ids = weir_kernel_input(ctx, 2);
  weir_tensor_t *y = NULL, *uploaded = NULL;
  WEIR_TRY(make_output(ctx, &y));
  if (y->count == 0) return NULL;
  if (ctx->input_count == 3) WEIR_TRY(weir_gpu_uploaded(ctx, s->upload, ids, &uploaded));
  weir_segments_t segments = {.data = weir_kernel_input(ctx, 0),
                              .indices = weir_kernel_input(ctx, 1)->data,
                              .ids = uploaded ? uploaded->data : ids->data,
                              .id_count = ids->count,
                              .norm = s->norm};
  weir_status_t* status = weir_cuda_segment(ctx, &s->gpu, &segments, y);
  weir_tensor_release(uploaded);
  return status;
}

// ---- shapes ----

static weir_status_t* sparse_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* data = weir_shape_input(ctx, 0);
  const weir_shape_t* indices;
  const weir_shape_t* ids;
  WEIR_TRY(weir_shape_at_least(ctx, data, 1));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &indices));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, &ids));
  WEIR_TRY(weir_shape_join(ctx, indices, ids, &ids));
  int64_t rows = -1;
  if (ctx->node->input_count > 3) {
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 3), 0, NULL));
    const weir_tensor_t* value = weir_shape_value(ctx, 3);
    if (value) {
      rows = weir_tensor_int_at(value, 0);
      if (rows < 0) {
        return WEIR_STATUS(INVALID_ARGUMENT, "Cannot specify a negative value for num_segments");
      }
    }
  }
  if (data->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  int64_t dims[WEIR_MAX_RANK];
  memcpy(dims, data->dims, sizeof(int64_t) * (size_t)data->rank);
  dims[0] = rows;
  return weir_shape_set_dims(ctx, 0, data->rank, dims);
}

// ---- gradients ----

// The number of rows of |x| as an int32 scalar.
static weir_edge_t rows_of(weir_grad_ctx_t* g, weir_edge_t x) {
  const weir_shape_t* shape = weir_grad_shape(g, x);
  if (shape->rank > 0 && shape->dims[0] >= 0 && shape->dims[0] <= INT32_MAX)
    return weir_build_int32(g->builder, (int32_t)shape->dims[0]);
  const int32_t zero[] = {0};
  const int32_t one[] = {1};
  weir_edge_t step = weir_build_int32s(g->builder, one, 1);
  return weir_grad_node_with(
      g, "StridedSlice",
      WEIR_EDGES(weir_grad_shape_of(g, x), weir_build_int32s(g->builder, zero, 1), step, step),
      WEIR_ATTRS(weir_attr_int("shrink_axis_mask", 1)));
}

static weir_status_t* set_grad(weir_grad_ctx_t* g, const char* dense_op, const char* sparse_op) {
  weir_edge_t x = weir_grad_input(g, 0);
  bool is_sparse = weir_attrs_bool(weir_grad_attrs(g), "sparse_gradient");
  weir_edge_t dx = weir_grad_node(
      g, is_sparse ? sparse_op : dense_op,
      WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 1), weir_grad_input(g, 2), rows_of(g, x)));
  if (!is_sparse) return weir_grad_set(g, 0, dx);
  return weir_grad_set_slices(g, 0, dx, weir_build_output(dx, 1), weir_grad_shape_of(g, x));
}
static weir_status_t* sum_grad(weir_grad_ctx_t* g) {
  return set_grad(g, "SparseSegmentSumGrad", "SparseSegmentSumGradV2");
}
static weir_status_t* mean_grad(weir_grad_ctx_t* g) {
  return set_grad(g, "SparseSegmentMeanGrad", "SparseSegmentMeanGradV2");
}
static weir_status_t* sqrt_grad(weir_grad_ctx_t* g) {
  return set_grad(g, "SparseSegmentSqrtNGrad", "SparseSegmentSqrtNGradV2");
}

#define REAL_TYPES "{float,double,int32,uint8,int16,int8,int64,bfloat16,uint16,half,uint32,uint64}"
#define INDEX_TYPE(name) name ": {int32,int64} = DT_INT32; "
#define SPARSE_ROW(op_name, attrs_, inputs_, text, grad, init_fn, host)                           \
  {                                                                                               \
    .name = op_name, .attrs = attrs_, .inputs = inputs_, .outputs = "output: T", .summary = text, \
    .infer_shape = sparse_shape, .build_grad = grad, .kernels = (const weir_kernel_def_t[]) {     \
      {WEIR_DEVICE_CPU, .compute = sparse_cpu, .init = init_fn,                                   \
       .state_size = sizeof(sparse_state_t)},                                                     \
          {WEIR_DEVICE_GPU, .types = "T: " WEIR_SEGMENT_FLOATS,   .compute = sparse_gpu,          \
           .init = init_fn, .state_size = sizeof(sparse_state_t), .host_inputs = host},           \
      {                                                                                           \
        0                                                                                         \
      }                                                                                           \
    }                                                                                             \
  }
#define SPARSE_OP(op_name, types_, text, grad, init_fn)                               \
  SPARSE_ROW(op_name,                                                                 \
             "T: " types_ "; " INDEX_TYPE("Tidx")                                     \
                 INDEX_TYPE("Tsegmentids") "sparse_gradient: bool = false",           \
             "data: T; indices: Tidx; segment_ids: Tsegmentids", text, grad, init_fn, \
             "segment_ids")
#define SPARSE_SIZED_OP(op_name, types_, text, grad, init_fn)                                \
  SPARSE_ROW(op_name "WithNumSegments",                                                      \
             "T: " types_ "; " INDEX_TYPE("Tidx") INDEX_TYPE("Tnumsegments")                 \
                 INDEX_TYPE("Tsegmentids") "sparse_gradient: bool = false",                  \
             "data: T; indices: Tidx; segment_ids: Tsegmentids; num_segments: Tnumsegments", \
             text ", num_segments of them", grad, init_fn, "num_segments")
#define SPARSE_PAIR(op_name, types_, text, grad, init_fn) \
  SPARSE_OP(op_name, types_, text, grad, init_fn),        \
      SPARSE_SIZED_OP(op_name, types_, text, grad, init_fn)

const weir_op_module_t weir_ops_math_sparse_segment = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        SPARSE_PAIR("SparseSegmentSum", REAL_TYPES, "Sums of gathered rows with equal, sorted ids",
                    sum_grad, sum_init),
        SPARSE_PAIR("SparseSegmentMean", FLOATING_TYPES,
                    "Means of gathered rows with equal, sorted ids", mean_grad, mean_init),
        SPARSE_PAIR("SparseSegmentSqrtN", FLOATING_TYPES,
                    "Sums of gathered rows with equal, sorted ids by the root of their number",
                    sqrt_grad, sqrt_init),
        {0}}};
