// unsorted_segment.c — UnsortedSegmentSum, Prod, Max, Min: reductions of rows by id, in any order;
// negative ids are dropped.
#include <float.h>
#include <inttypes.h>

#include "kernel/move/scatter_op.h"
#include "ops/array/common.h"
#include "ops/math/segment.h"

typedef struct unsorted_state_t {
  weir_binary_op_t op;
  bool is_gpu;
  weir_scatter_state_t scatter;  // of a GPU
} unsorted_state_t;

static weir_status_t* unsorted_init(const weir_kernel_init_t* init, weir_binary_op_t op,
                                    weir_scatter_t scatter, unsorted_state_t* s) {
  s->op = op;
  s->is_gpu = weir_device_is_cuda(init->device);
  return s->is_gpu ? weir_scatter_find(init, scatter, 0, 1, &s->scatter) : NULL;
}

#define UNSORTED_INIT(name, OP, SCATTER)                                         \
  static weir_status_t* name(const weir_kernel_init_t* init, void* state) {      \
    return unsorted_init(init, WEIR_BINARY_##OP, WEIR_SCATTER_##SCATTER, state); \
  }
UNSORTED_INIT(sum_init, ADD, ADD)
UNSORTED_INIT(prod_init, MUL, MUL)
UNSORTED_INIT(max_init, MAXIMUM, MAX)
UNSORTED_INIT(min_init, MINIMUM, MIN)

static int64_t id_at(const weir_tensor_t* ids, int64_t i) {
  return ids->dtype == WEIR_DTYPE_INT16 ? WEIR_TENSOR_DATA(ids, int16_t)[i]
                                        : weir_tensor_int_at(ids, i);
}

// The largest or lowest finite value of a type; wide integers saturate in the cast.
static double bound(weir_dtype_t dtype, bool is_high) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: return is_high ? (double)FLT_MAX : -(double)FLT_MAX;
    case WEIR_DTYPE_HALF: return is_high ? 65504.0 : -65504.0;
    case WEIR_DTYPE_BFLOAT16: return is_high ? 0x1.fep127 : -0x1.fep127;
    case WEIR_DTYPE_INT8: return is_high ? INT8_MAX : INT8_MIN;
    case WEIR_DTYPE_INT16: return is_high ? INT16_MAX : INT16_MIN;
    case WEIR_DTYPE_UINT8: return is_high ? UINT8_MAX : 0;
    case WEIR_DTYPE_UINT16: return is_high ? UINT16_MAX : 0;
    default: return is_high ? DBL_MAX : -DBL_MAX;
  }
}

// What a segment without rows holds, as an element.
static weir_status_t* empty_value(weir_binary_op_t op, weir_dtype_t dtype, void* out_value) {
  double value = op == WEIR_BINARY_MUL ? 1 : 0;
  if (op == WEIR_BINARY_MAXIMUM || op == WEIR_BINARY_MINIMUM)
    value = bound(dtype, op == WEIR_BINARY_MINIMUM);
  return weir_cast_elements(dtype, out_value, WEIR_DTYPE_DOUBLE, &value, 1);
}

typedef struct unsorted_job_t {
  const weir_tensor_t* ids;
  const char* x;
  char* y;
  weir_binary_fn_t fn;
  weir_dtype_t dtype;
  size_t size;
  int64_t inner;
  bool forgets_nan;
} unsorted_job_t;

// Columns [begin, end) of all rows, in order: the result does not depend on the split.
static void unsorted_range(void* arg, int64_t begin, int64_t end) {
  const unsorted_job_t* job = arg;
  size_t row = (size_t)job->inner * job->size;
  size_t offset = (size_t)begin * job->size;
  for (int64_t i = 0; i < job->ids->count; ++i) {
    int64_t id = id_at(job->ids, i);
    if (id < 0) continue;
    char* out = job->y + (size_t)id * row + offset;
    const char* next = job->x + (size_t)i * row + offset;
    const char* sum = job->forgets_nan ? segment_without_nan(job->dtype, out, next) : out;
    job->fn(sum, next, out, end - begin, WEIR_SPAN_BOTH);
  }
}

static weir_status_t* check_inputs(const weir_tensor_t* data, const weir_tensor_t* ids,
                                   int64_t segments) {
  bool is_prefix = ids->rank <= data->rank;
  for (int i = 0; is_prefix && i < ids->rank; ++i) is_prefix = ids->dims[i] == data->dims[i];
  if (!is_prefix) {
    char a[WEIR_SHAPE_TEXT_SIZE];
    char b[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "data.shape = %s does not start with segment_ids.shape = %s",
                       weir_tensor_shape_text(data, a), weir_tensor_shape_text(ids, b));
  }
  if (segments < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input num_segments == %" PRId64 " must not be negative.",
                       segments);
  }
  return NULL;
}

static weir_status_t* check_ids(const weir_tensor_t* ids, int64_t segments) {
  for (int64_t i = 0; i < ids->count; ++i) {
    int64_t id = id_at(ids, i);
    if (id < segments) continue;
    char place[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "segment_ids%s = %" PRId64 " is out of range [0, %" PRId64 ")",
                       array_place_text(ids, i, place), id, segments);
  }
  return NULL;
}

// Ids that are too large are dropped, too.
static weir_status_t* run_on_gpu(weir_kernel_ctx_t* ctx, int64_t segments, int64_t inner,
                                 const void* value, weir_tensor_t* y) {
  const unsorted_state_t* s = ctx->state;
  const weir_tensor_t* ids = weir_kernel_input(ctx, 1);
  weir_move_places_t places = {
      .indices = ids, .count = ids->count, .depth = 1, .dims = &segments, .inner = inner};
  WEIR_TRY(weir_gpu_scatter_fill(ctx, &s->scatter, value, y));
  return weir_gpu_scatter(ctx, &s->scatter, &places, weir_kernel_input(ctx, 0), false, y);
}

static weir_status_t* unsorted(weir_kernel_ctx_t* ctx) {
  const unsorted_state_t* s = ctx->state;
  const weir_tensor_t* data = weir_kernel_input(ctx, 0);
  const weir_tensor_t* ids = weir_kernel_input(ctx, 1);
  const weir_tensor_t* segments = weir_kernel_input(ctx, 2);
  if (segments->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "num_segments should be a scalar, not shape %s",
                       weir_tensor_shape_text(segments, text));
  }
  int64_t dims[WEIR_MAX_RANK + 1];
  dims[0] = weir_tensor_int_at(segments, 0);
  WEIR_TRY(check_inputs(data, ids, dims[0]));
  // Ids of rows of nothing may be any, as in TensorFlow.
  if (!s->is_gpu && data->count > 0) WEIR_TRY(check_ids(ids, dims[0]));
  weir_dtype_t dtype = weir_tensor_type(data);
  unsorted_job_t job = {.ids = ids,
                        .x = data->data,
                        .fn = weir_binary_find(s->op, dtype),
                        .dtype = dtype,
                        .size = weir_dtype_size(dtype),
                        .inner = 1};
  int rank = 1;
  for (int i = ids->rank; i < data->rank; ++i) {
    dims[rank++] = data->dims[i];
    job.inner *= data->dims[i];
  }
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &y));
  job.y = y->data;
  job.forgets_nan = segment_forgets_nan(s->op, dtype, job.inner);
  char value[16];
  WEIR_TRY(empty_value(s->op, dtype, value));
  if (s->is_gpu) return run_on_gpu(ctx, dims[0], job.inner, value, y);
  WEIR_TRY(weir_move_fill(weir_kernel_pool(ctx), dtype, value, job.y, y->count));
  if (y->count > 0)
    weir_pool_for(weir_kernel_pool(ctx), job.inner, 1.0 + 0.5 * (double)ids->count, unsorted_range,
                  &job);
  return NULL;
}

// ---- gradients: rows gathered back by id, 0 for dropped ids ----

typedef struct rows_t {
  weir_edge_t clipped;      // ids, 0 where negative
  weir_edge_t is_positive;  // ids >= 0, in the shape of the ids and 1 for the rest
} rows_t;

static rows_t rows_of(weir_grad_ctx_t* g) {
  weir_edge_t ids = weir_grad_input(g, 1);
  weir_edge_t zero = weir_grad_scalar(g, ids, 0);
  rows_t rows = {.clipped = node2(g, "Maximum", ids, zero),
                 .is_positive = node2(g, "GreaterEqual", ids, zero)};
  weir_edge_t rank = node1(g, "Rank", weir_grad_input(g, 0));
  weir_edge_t missing = node2(g, "Sub", rank, node1(g, "Rank", ids));
  weir_edge_t vector = node2(g, "ExpandDims", missing, weir_build_int32(g->builder, 0));
  weir_edge_t ones = node2(g, "Fill", vector, weir_build_int32(g->builder, 1));
  weir_edge_t shape =
      node3(g, "ConcatV2", node1(g, "Shape", ids), ones, weir_build_int32(g->builder, 0));
  rows.is_positive = node2(g, "Reshape", rows.is_positive, shape);
  return rows;
}

static weir_edge_t gather(weir_grad_ctx_t* g, const rows_t* rows, weir_edge_t params) {
  return node3(g, "GatherV2", params, rows->clipped, weir_build_int32(g->builder, 0));
}
static weir_edge_t gather_kept(weir_grad_ctx_t* g, const rows_t* rows, weir_edge_t params) {
  return node3(g, "SelectV2", rows->is_positive, gather(g, rows, params),
               weir_grad_scalar(g, params, 0));
}

static weir_status_t* sum_grad(weir_grad_ctx_t* g) {
  rows_t rows = rows_of(g);
  return weir_grad_set(g, 0, gather_kept(g, &rows, weir_grad_dy(g, 0)));
}

static weir_status_t* extreme_grad(weir_grad_ctx_t* g) {
  rows_t rows = rows_of(g);
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t chosen =
      node2(g, "Equal", weir_grad_input(g, 0), gather_kept(g, &rows, weir_grad_output(g, 0)));
  chosen = node2(g, "LogicalAnd", chosen, rows.is_positive);
  weir_edge_t counts = node3(g, "UnsortedSegmentSum", cast_to(g, chosen, weir_grad_dtype(g, dy)),
                             weir_grad_input(g, 1), weir_grad_input(g, 2));
  weir_edge_t share = gather_kept(g, &rows, node2(g, "RealDiv", dy, counts));
  return weir_grad_set(g, 0, node3(g, "SelectV2", chosen, share, weir_grad_scalar(g, dy, 0)));
}

// As SegmentProd's: by division without zeros, by the product without the zero where there is one,
// else 0.
static weir_status_t* prod_grad(weir_grad_ctx_t* g) {
  rows_t rows = rows_of(g);
  weir_edge_t x = weir_grad_input(g, 0);
  weir_edge_t ids = weir_grad_input(g, 1);
  weir_edge_t segments = weir_grad_input(g, 2);
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t is_zero = node2(g, "Equal", x, weir_grad_scalar(g, x, 0));
  weir_edge_t zeros =
      node3(g, "UnsortedSegmentSum", cast_to(g, is_zero, WEIR_DTYPE_INT32), ids, segments);
  weir_edge_t many = node2(g, "Greater", zeros, weir_build_int32(g->builder, 1));
  dy = node3(g, "SelectV2", many, weir_grad_scalar(g, dy, 0), dy);
  weir_edge_t non_zero = node3(g, "SelectV2", is_zero, weir_grad_scalar(g, x, 1), x);
  weir_edge_t without = gather(g, &rows, node3(g, "UnsortedSegmentProd", non_zero, ids, segments));
  weir_edge_t divided = node2(g, "RealDiv", gather(g, &rows, weir_grad_output(g, 0)), x);
  weir_edge_t slope = node3(g, "SelectV2", is_zero, without, divided);
  return weir_grad_set(g, 0, weir_grad_mul(g, gather_kept(g, &rows, dy), slope));
}

#define UNSORTED_OP(op_name, types_, id_types, text, grad, init_fn, constraint)               \
  {                                                                                           \
    .name = op_name,                                                                          \
    .attrs = "T: " types_ "; Tindices: " id_types "; Tnumsegments: {int32,int64} = DT_INT32", \
    .inputs = "data: T; segment_ids: Tindices; num_segments: Tnumsegments",                   \
    .outputs = "output: T", .summary = text, .infer_shape = weir_shape_fn_unsorted_segment,   \
    .build_grad = grad, .kernels = (const weir_kernel_def_t[]) {                              \
      {WEIR_DEVICE_CPU,                                                                       \
       .types = constraint,                                                                   \
       .compute = unsorted,                                                                   \
       .init = init_fn,                                                                       \
       .state_size = sizeof(unsorted_state_t),                                                \
       .host_inputs = "num_segments"},                                                        \
          {WEIR_DEVICE_GPU,                                                                   \
           .types = "T: int32, " WEIR_SCATTERED_NUMBERS,                                      \
           .compute = unsorted,                                                               \
           .init = init_fn,                                                                   \
           .state_size = sizeof(unsorted_state_t),                                            \
           .host_inputs = "num_segments"},                                                    \
      {                                                                                       \
        0                                                                                     \
      }                                                                                       \
    }                                                                                         \
  }

const weir_op_module_t weir_ops_math_unsorted_segment = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        UNSORTED_OP("UnsortedSegmentSum", "numbertype", "{int16,int32,int64}",
                    "Sums of rows with equal ids", sum_grad, sum_init, CPU_NUMBER),
        UNSORTED_OP("UnsortedSegmentProd", "numbertype", "{int32,int64}",
                    "Products of rows with equal ids", prod_grad, prod_init, CPU_NUMBER),
        UNSORTED_OP("UnsortedSegmentMax", "realnumbertype", "{int32,int64}",
                    "Maxima of rows with equal ids", extreme_grad, max_init, NULL),
        UNSORTED_OP("UnsortedSegmentMin", "realnumbertype", "{int32,int64}",
                    "Minima of rows with equal ids", extreme_grad, min_init, NULL),
        {0}}};
