// arg_max.c — ArgMax, ArgMin: where the largest and smallest elements along a dimension are.
#include <float.h>
#include <inttypes.h>

#include "kernel/cuda/source.h"
#include "ops/math/common.h"
#include "tensor/numeric.h"

#define T float
#define SUFFIX float
#define KEY float
#define LOAD(v) (v)
#define LOWEST (-FLT_MAX)
#define HIGHEST FLT_MAX
#include "kernel/reduce/arg_reduce.inc"
#define T double
#define SUFFIX double
#define KEY double
#define LOAD(v) (v)
#define LOWEST (-DBL_MAX)
#define HIGHEST DBL_MAX
#include "kernel/reduce/arg_reduce.inc"
#define T weir_half_t
#define SUFFIX half
#define KEY float
#define LOAD(v) weir_half_to_float(v)
#define LOWEST (-65504.0f)
#define HIGHEST 65504.0f
#include "kernel/reduce/arg_reduce.inc"
#define T weir_bfloat16_t
#define SUFFIX bfloat16
#define KEY float
#define LOAD(v) weir_bfloat16_to_float(v)
#define LOWEST (-0x1.fep127f)
#define HIGHEST 0x1.fep127f
#include "kernel/reduce/arg_reduce.inc"
#define T int8_t
#define SUFFIX int8
#define KEY int8_t
#define LOAD(v) (v)
#define LOWEST INT8_MIN
#define HIGHEST INT8_MAX
#include "kernel/reduce/arg_reduce.inc"
#define T int16_t
#define SUFFIX int16
#define KEY int16_t
#define LOAD(v) (v)
#define LOWEST INT16_MIN
#define HIGHEST INT16_MAX
#include "kernel/reduce/arg_reduce.inc"
#define T int32_t
#define SUFFIX int32
#define KEY int32_t
#define LOAD(v) (v)
#define LOWEST INT32_MIN
#define HIGHEST INT32_MAX
#include "kernel/reduce/arg_reduce.inc"
#define T int64_t
#define SUFFIX int64
#define KEY int64_t
#define LOAD(v) (v)
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#include "kernel/reduce/arg_reduce.inc"
#define T uint8_t
#define SUFFIX uint8
#define KEY uint8_t
#define LOAD(v) (v)
#define LOWEST 0
#define HIGHEST UINT8_MAX
#include "kernel/reduce/arg_reduce.inc"
#define T uint16_t
#define SUFFIX uint16
#define KEY uint16_t
#define LOAD(v) (v)
#define LOWEST 0
#define HIGHEST UINT16_MAX
#include "kernel/reduce/arg_reduce.inc"
#define T uint32_t
#define SUFFIX uint32
#define KEY uint32_t
#define LOAD(v) (v)
#define LOWEST 0
#define HIGHEST UINT32_MAX
#include "kernel/reduce/arg_reduce.inc"
#define T uint64_t
#define SUFFIX uint64
#define KEY uint64_t
#define LOAD(v) (v)
#define LOWEST 0
#define HIGHEST UINT64_MAX
#include "kernel/reduce/arg_reduce.inc"
#define T uint8_t
#define SUFFIX logical
#define KEY uint8_t
#define LOAD(v) (v)
#define LOWEST 0
#define HIGHEST 1
#include "kernel/reduce/arg_reduce.inc"

typedef void (*arg_reduce_fn_t)(const void* x, int64_t n, int64_t stride, bool is_max,
                                int64_t* out_index);

static const arg_reduce_fn_t functions[WEIR_DTYPE_COUNT] = {
    [WEIR_DTYPE_FLOAT] = arg_reduce_float,   [WEIR_DTYPE_DOUBLE] = arg_reduce_double,
    [WEIR_DTYPE_HALF] = arg_reduce_half,     [WEIR_DTYPE_BFLOAT16] = arg_reduce_bfloat16,
    [WEIR_DTYPE_INT8] = arg_reduce_int8,     [WEIR_DTYPE_INT16] = arg_reduce_int16,
    [WEIR_DTYPE_INT32] = arg_reduce_int32,   [WEIR_DTYPE_INT64] = arg_reduce_int64,
    [WEIR_DTYPE_UINT8] = arg_reduce_uint8,   [WEIR_DTYPE_UINT16] = arg_reduce_uint16,
    [WEIR_DTYPE_UINT32] = arg_reduce_uint32, [WEIR_DTYPE_UINT64] = arg_reduce_uint64,
    [WEIR_DTYPE_BOOL] = arg_reduce_logical,
};

typedef struct arg_job_t {
  arg_reduce_fn_t fn;
  const char* x;
  weir_tensor_t* y;
  size_t size;
  int64_t length;  // of the dimension
  int64_t inner;   // elements behind it
  bool is_max;
} arg_job_t;

static void put_index(weir_tensor_t* y, int64_t at, int64_t value) {
  switch (y->dtype) {
    case WEIR_DTYPE_INT64: WEIR_TENSOR_DATA(y, int64_t)[at] = value; return;
    case WEIR_DTYPE_INT32: WEIR_TENSOR_DATA(y, int32_t)[at] = (int32_t)value; return;
    default: WEIR_TENSOR_DATA(y, uint16_t)[at] = (uint16_t)value; return;
  }
}

static void arg_range(void* arg, int64_t begin, int64_t end) {
  const arg_job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    int64_t first = i / job->inner * job->inner * job->length + i % job->inner;
    int64_t index;
    job->fn(job->x + (size_t)first * job->size, job->length, job->inner, job->is_max, &index);
    put_index(job->y, i, index);
  }
}

static weir_status_t* read_axis(const weir_tensor_t* t, int rank, int* out_axis) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->rank != 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "dim must be a scalar, but received tensor of shape: %s",
                       weir_tensor_shape_text(t, text));
  int64_t axis =
      t->dtype == WEIR_DTYPE_INT16 ? WEIR_TENSOR_DATA(t, int16_t)[0] : weir_tensor_int_at(t, 0);
  return weir_kernel_axis(axis, rank, out_axis);
}

// Output 0, and what |out_job| says of lengths.
static weir_status_t* prepare(weir_kernel_ctx_t* ctx, arg_job_t* out_job) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  int axis;
  WEIR_TRY(read_axis(weir_kernel_input(ctx, 1), x->rank, &axis));
  if (x->dims[axis] <= 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Reduction axis %d is empty in shape %s", axis,
                       weir_tensor_shape_text(x, text));
  }
  int64_t dims[WEIR_MAX_RANK];
  *out_job = (arg_job_t){.x = x->data, .length = x->dims[axis], .inner = 1};
  for (int i = 0, out = 0; i < x->rank; ++i) {
    if (i > axis) out_job->inner *= x->dims[i];
    if (i != axis) dims[out++] = x->dims[i];
  }
  return weir_kernel_output(ctx, 0, x->rank - 1, dims, &out_job->y);
}

static weir_status_t* arg_cpu(weir_kernel_ctx_t* ctx, bool is_max) {
  weir_dtype_t dtype = weir_tensor_type(weir_kernel_input(ctx, 0));
  arg_job_t job;
  WEIR_TRY(prepare(ctx, &job));
  job.fn = functions[dtype];
  job.size = weir_dtype_size(dtype);
  job.is_max = is_max;
  weir_pool_for(weir_kernel_pool(ctx), job.y->count, (double)job.length, arg_range, &job);
  return NULL;
}
static weir_status_t* arg_max_cpu(weir_kernel_ctx_t* ctx) { return arg_cpu(ctx, true); }
static weir_status_t* arg_min_cpu(weir_kernel_ctx_t* ctx) { return arg_cpu(ctx, false); }

// ---- GPU ----

WEIR_CUDA_SOURCE(arg_reduce);

typedef struct arg_state_t {
  weir_cuda_function_t rows, columns;
} arg_state_t;

// What an element must be above, or for ArgMin below; of integers by their size.
static const char* worst(weir_dtype_t dtype, bool is_max) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: return is_max ? "-0x1.fffffep127f" : "0x1.fffffep127f";
    case WEIR_DTYPE_DOUBLE: return is_max ? "-0x1.fffffffffffffp1023" : "0x1.fffffffffffffp1023";
    case WEIR_DTYPE_HALF: return is_max ? "-65504" : "65504";
    case WEIR_DTYPE_BFLOAT16: return is_max ? "-0x1.fep127f" : "0x1.fep127f";
    case WEIR_DTYPE_BOOL: return is_max ? "0" : "1";
    default: break;
  }
  return is_max ? "((T)-1 < (T)0 ? (T)(~0ull << (8 * sizeof(T) - 1)) : (T)0)"
                : "((T)-1 < (T)0 ? (T)~(~0ull << (8 * sizeof(T) - 1)) : (T)-1)";
}

static weir_status_t* arg_gpu_init(const weir_kernel_init_t* init, arg_state_t* out, bool is_max) {
  weir_dtype_t dtype = weir_dtype_base(init->node->input_types[0]);
  const char* const names[] = {"arg_rows", "arg_columns"};
  weir_cuda_function_t* const found[] = {&out->rows, &out->columns};
  for (int i = 0; i < 2; ++i) {
    weir_strbuf_t text = {0};
    weir_strbuf_printf(&text, "#define T %s\n#define OUT %s\n#define BETTER %s\n#define WORST %s\n",
                       weir_cuda_type_name(dtype), weir_cuda_type_name(init->node->output_types[0]),
                       is_max ? ">" : "<", worst(dtype, is_max));
    WEIR_TRY(weir_cuda_build(init->device, &text, weir_cuda_source_arg_reduce, names[i], found[i]));
  }
  return NULL;
}
static weir_status_t* arg_max_gpu_init(const weir_kernel_init_t* init, void* state) {
  return arg_gpu_init(init, state, true);
}
static weir_status_t* arg_min_gpu_init(const weir_kernel_init_t* init, void* state) {
  return arg_gpu_init(init, state, false);
}

static weir_status_t* arg_gpu(weir_kernel_ctx_t* ctx) {
  enum { WARPS = 8, LONG = 4096 };  // of a block; elements that a block should see to
  const arg_state_t* s = ctx->state;
  arg_job_t job;
  WEIR_TRY(prepare(ctx, &job));
  void* y = job.y->data;
  int64_t outputs = job.y->count;
  if (outputs == 0) return NULL;
  int is_long = job.length >= LONG;
  weir_cuda_size_t size = weir_cuda_size_for(
      ctx->device, job.inner > 1 ? outputs : outputs * (is_long ? WARPS : 1) * 32);
  if (job.inner > 1)
    return weir_cuda_launch(ctx->device, s->columns, &size,
                            WEIR_CUDA_ARGS(&job.x, &y, &outputs, &job.length, &job.inner));
  return weir_cuda_launch(ctx->device, s->rows, &size,
                          WEIR_CUDA_ARGS(&job.x, &y, &outputs, &job.length, &is_long));
}

static weir_status_t* arg_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* x = weir_shape_input(ctx, 0);
  const weir_tensor_t* axis_value = weir_shape_value(ctx, 1);
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  if (x->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  if (x->rank <= 1) return weir_shape_set_scalar(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i < x->rank - 1; ++i) dims[i] = -1;
  if (axis_value) {
    int64_t axis = axis_value->dtype == WEIR_DTYPE_INT16 ? WEIR_TENSOR_DATA(axis_value, int16_t)[0]
                                                         : weir_tensor_int_at(axis_value, 0);
    if (axis < -(int64_t)x->rank || axis >= x->rank) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Dimension (%" PRId64
                         ") must be in the range [%d, %d), where %d is the number of "
                         "dimensions in the input.",
                         axis, -x->rank, x->rank, x->rank);
    }
    axis = axis < 0 ? axis + x->rank : axis;
    for (int i = 0, out = 0; i < x->rank; ++i) {
      if (i != axis) dims[out++] = x->dims[i];
    }
  }
  return weir_shape_set_dims(ctx, 0, x->rank - 1, dims);
}

#define ARG_TYPES                                                                               \
  "{float,double,int32,uint8,int16,int8,int64,bfloat16,uint16,half,uint32,uint64,qint8,quint8," \
  "qint32,qint16,quint16,bool}"
#define ARG_KERNELS(name)                                                                         \
  (const weir_kernel_def_t[]) {                                                                   \
    {WEIR_DEVICE_CPU, .types = CPU_REAL_NUMBER ", bool", .compute = name##_cpu,                   \
     .host_inputs = "dimension"},                                                                 \
        {WEIR_DEVICE_GPU,         .types = CPU_REAL_NUMBER ", bool", .compute = arg_gpu,          \
         .init = name##_gpu_init, .state_size = sizeof(arg_state_t), .host_inputs = "dimension"}, \
    {                                                                                             \
      0                                                                                           \
    }                                                                                             \
  }

const weir_op_module_t weir_ops_math_arg_max = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ArgMax",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: " ARG_TYPES "; Tidx: {int16,int32,int64} = DT_INT32; output_type: "
                  "{int16,uint16,int32,int64} = DT_INT64",
         .inputs = "input: T; dimension: Tidx",
         .outputs = "output: output_type",
         .summary = "The index of the largest element along a dimension, the first of equals",
         .infer_shape = arg_shape,
         .build_grad = weir_grad_fn_none,
         .kernels = ARG_KERNELS(arg_max)},
        {.name = "ArgMin",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: " ARG_TYPES
                  "; Tidx: {int32,int64} = DT_INT32; output_type: {int32,int64} = DT_INT64",
         .inputs = "input: T; dimension: Tidx",
         .outputs = "output: output_type",
         .summary = "The index of the smallest element along a dimension, the first of equals",
         .infer_shape = arg_shape,
         .build_grad = weir_grad_fn_none,
         .kernels = ARG_KERNELS(arg_min)},
        {0}}};
