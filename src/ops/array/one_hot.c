// one_hot.c — OneHot: rows that are on at one place.
#include "ops/array/common.h"

static weir_status_t* one_hot_axis(weir_attrs_t attrs, int rank, int* out_axis) {
  int64_t axis = weir_attrs_int(attrs, "axis");
  if (axis < -1 || axis > rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected axis to be -1 or between [0, %d).  But received: %lld", rank + 1,
                       (long long)axis);
  }
  *out_axis = axis < 0 ? rank : (int)axis;
  return NULL;
}

static weir_status_t* one_hot_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  array_ints_t depth;
  int64_t dims[WEIR_MAX_RANK + 1];
  for (int i = 1; i < 4; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  if (weir_attrs_int(weir_shape_attrs(ctx), "axis") < -1)
    return WEIR_STATUS(INVALID_ARGUMENT, "axis must be >= -1");
  array_input_ints(ctx, 1, &depth);
  int64_t size = depth.is_known && depth.count == 1 ? depth.values[0] : -1;
  if (depth.is_exact && size < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Dimension size, given by scalar input 1, must be non-negative but is %lld",
                       (long long)size);
  }
  if (in->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  int axis = 0;
  WEIR_TRY(one_hot_axis(weir_shape_attrs(ctx), in->rank, &axis));
  for (int i = 0; i <= in->rank; ++i)
    dims[i] = i < axis ? in->dims[i] : i == axis ? size : in->dims[i - 1];
  return weir_shape_set_dims(ctx, 0, in->rank + 1, dims);
}

typedef struct one_hot_job_t {
  const weir_tensor_t* indices;
  const void* on;
  weir_dtype_t dtype;
  int64_t depth;
  int64_t suffix;  // elements after the axis
  char* out;
} one_hot_job_t;

static weir_status_t* turn_on(const one_hot_job_t* job) {
  size_t size = weir_dtype_size(job->dtype);
  bool is_plain = weir_dtype_is_plain(job->dtype);
  for (int64_t i = 0; i < job->indices->count; ++i) {
    int64_t index = weir_move_int_at(job->indices, i);
    if (index < 0 || index >= job->depth) continue;
    int64_t at = (i / job->suffix * job->depth + index) * job->suffix + i % job->suffix;
    char* dst = job->out + (size_t)at * size;
    if (is_plain) {
      memcpy(dst, job->on, size);
    } else {
      WEIR_TRY(weir_elements_copy(job->dtype, dst, job->on, 1));
    }
  }
  return NULL;
}

static weir_status_t* one_hot_gpu(const weir_kernel_init_t* init, void* state) {
  return weir_move_indexed_gpu_init(init, state, "one_hot", 0);
}

static weir_status_t* run_on_gpu(const weir_kernel_ctx_t* ctx, const one_hot_job_t* job,
                                 int64_t count) {
  const void* indices = job->indices->data;
  const void* off = weir_kernel_input(ctx, 3)->data;
  int64_t depth = job->depth, suffix = job->suffix;
  void* out = job->out;
  int size_class = __builtin_ctz((unsigned)weir_dtype_size(job->dtype));
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, count);
  return weir_cuda_launch(
      ctx->device, weir_move_gpu(ctx)->indexed[size_class], &size,
      WEIR_CUDA_ARGS(&indices, &out, (void*)&job->on, &off, &count, &depth, &suffix));
}

static weir_status_t* one_hot(weir_kernel_ctx_t* ctx) {
  static const char* const names[] = {"depth", "on_value", "off_value"};
  const weir_tensor_t* indices = weir_kernel_input(ctx, 0);
  char text[WEIR_SHAPE_TEXT_SIZE];
  int64_t dims[WEIR_MAX_RANK + 1];
  int axis = 0;
  WEIR_TRY(one_hot_axis(weir_kernel_attrs(ctx), indices->rank, &axis));
  for (int i = 1; i < 4; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, i);
    if (t->rank != 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar, but got: %s", names[i - 1],
                         weir_tensor_shape_text(t, text));
    }
  }
  int64_t depth = weir_tensor_int_at(weir_kernel_input(ctx, 1), 0);
  if (depth < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "depth must be non-negative, got: %lld", (long long)depth);
  one_hot_job_t job = {
      .indices = indices, .on = weir_kernel_input(ctx, 2)->data, .depth = depth, .suffix = 1};
  for (int i = 0; i <= indices->rank; ++i) {
    dims[i] = i < axis ? indices->dims[i] : i == axis ? depth : indices->dims[i - 1];
    if (i > axis) job.suffix *= dims[i];
  }
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, indices->rank + 1, dims, &out));
  if (out->count == 0) return NULL;
  job.dtype = weir_tensor_type(out);
  job.out = out->data;
  if (weir_move_gpu(ctx)) return run_on_gpu(ctx, &job, out->count);
  WEIR_TRY(weir_move_fill(weir_kernel_pool(ctx), job.dtype, weir_kernel_input(ctx, 3)->data,
                          out->data, out->count));
  return turn_on(&job);
}

const weir_op_module_t weir_ops_array_one_hot = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "OneHot",
         .attrs = "axis: int = -1; T: type; TI: {uint8, int8, int32, int64} = DT_INT64",
         .inputs = "indices: TI; depth: int32; on_value: T; off_value: T",
         .outputs = "output: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Returns rows that are on at the given places and off elsewhere.",
         .infer_shape = one_hot_shape,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .compute = one_hot, .host_inputs = "depth"},
                 WEIR_MOVE_GPU_ROW("T: int32, " WEIR_MOVED_TYPES, one_hot_gpu, .compute = one_hot,
                                   .host_inputs = "depth"),
                 {0}}},
        {0}}};
