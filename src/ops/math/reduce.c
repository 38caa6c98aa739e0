// reduce.c — Sum, Mean, Prod, Max, Min, EuclideanNorm, All, Any: kernels and shapes. The gradients
// are in reduce_grad.h.
#include "kernel/reduce/reduce.h"

#include <inttypes.h>

#include "kernel/reduce/cuda_reduce.h"
#include "ops/math/reduce_grad.h"

typedef struct reduce_state_t {
  weir_reduce_op_t op;
  bool keep_dims;
  bool is_gpu;
  weir_cuda_reduce_t gpu;  // if so
} reduce_state_t;

static weir_status_t* init_state(const weir_kernel_init_t* init, weir_reduce_op_t op, bool is_gpu,
                                 void* state) {
  reduce_state_t* s = state;
  s->op = op;
  s->keep_dims = weir_attrs_bool(init->node->attrs, "keep_dims");
  s->is_gpu = is_gpu;
  if (!is_gpu) return NULL;
  return weir_cuda_reduce_find(init->device, op, weir_dtype_base(init->node->input_types[0]),
                               &s->gpu);
}

// name_init and name_gpu_init.
#define REDUCE_INIT(name, OP)                                                          \
  static weir_status_t* name##_init(const weir_kernel_init_t* init, void* state) {     \
    return init_state(init, WEIR_REDUCE_##OP, false, state);                           \
  }                                                                                    \
  static weir_status_t* name##_gpu_init(const weir_kernel_init_t* init, void* state) { \
    return init_state(init, WEIR_REDUCE_##OP, true, state);                            \
  }
REDUCE_INIT(sum, SUM)
REDUCE_INIT(mean, MEAN)
REDUCE_INIT(prod, PROD)
REDUCE_INIT(max, MAX)
REDUCE_INIT(min, MIN)
REDUCE_INIT(norm, NORM)
REDUCE_INIT(all, ALL)
REDUCE_INIT(any, ANY)

// Marks the dimensions that |axes| names.
static weir_status_t* mark_axes(const weir_tensor_t* axes, int rank, bool* is_reduced) {
  memset(is_reduced, 0, sizeof(bool) * (size_t)WEIR_MAX(rank, 1));
  for (int64_t i = 0; i < axes->count; ++i) {
    int64_t axis = weir_tensor_int_at(axes, i);
    if (axis < -(int64_t)rank || axis >= rank) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Invalid reduction dimension (%" PRId64 " for input with %d dimension(s)",
                         axis, rank);
    }
    axis = axis < 0 ? axis + rank : axis;
    if (is_reduced[axis]) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Invalid reduction arguments: Axes contains duplicate dimension: %" PRId64,
                         axis);
    }
    is_reduced[axis] = true;
  }
  return NULL;
}

static weir_status_t* reduce_compute(weir_kernel_ctx_t* ctx) {
  const reduce_state_t* s = ctx->state;
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  bool is_reduced[WEIR_MAX_RANK];
  WEIR_TRY(mark_axes(weir_kernel_input(ctx, 1), x->rank, is_reduced));
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  bool is_trivial = true;
  for (int i = 0; i < x->rank; ++i) {
    if (!is_reduced[i] || s->keep_dims) dims[rank++] = is_reduced[i] ? 1 : x->dims[i];
    is_trivial &= !is_reduced[i] || x->dims[i] == 1;
  }
  // Nothing is reduced: as in TensorFlow, the output shares the input's memory.
  if (is_trivial && s->op != WEIR_REDUCE_NORM) {
    weir_tensor_t* view = NULL;
    WEIR_TRY(weir_tensor_reshape(ctx->inputs[0].tensor, rank, dims, &view));
    weir_kernel_set(ctx, 0, view);
    return NULL;
  }
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &y));
  if (s->is_gpu)
    return weir_cuda_reduce(ctx, &s->gpu, weir_tensor_type(x), x->rank, x->dims, is_reduced,
                            x->data, y->data);
  return weir_reduce(weir_kernel_pool(ctx), s->op, weir_tensor_type(x), x->rank, x->dims,
                     is_reduced, x->data, y->data);
}

// ---- shape ----

static weir_status_t* unknown_axes_shape(weir_shape_ctx_t* ctx, const weir_shape_t* x,
                                         bool keep_dims) {
  if (!keep_dims || x->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i < x->rank; ++i) dims[i] = -1;
  return weir_shape_set_dims(ctx, 0, x->rank, dims);
}

static weir_status_t* reduce_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* x = weir_shape_input(ctx, 0);
  const weir_tensor_t* axes = weir_shape_value(ctx, 1);
  bool keep_dims = weir_attrs_bool(weir_shape_attrs(ctx), "keep_dims");
  WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, 1), 1));
  if (!axes || x->rank < 0) return unknown_axes_shape(ctx, x, keep_dims);
  bool is_reduced[WEIR_MAX_RANK] = {false};
  for (int64_t i = 0; i < axes->count; ++i) {
    int64_t axis = weir_tensor_int_at(axes, i);
    if (axis < -(int64_t)x->rank || axis >= x->rank) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Invalid reduction dimension %" PRId64 " for input with %d dimensions.",
                         axis, x->rank);
    }
    is_reduced[axis < 0 ? axis + x->rank : axis] = true;
  }
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < x->rank; ++i) {
    if (!is_reduced[i] || keep_dims) dims[rank++] = is_reduced[i] ? 1 : x->dims[i];
  }
  return weir_shape_set_dims(ctx, 0, rank, dims);
}

// No axes, nothing to reduce; not for the norm, which takes magnitudes all the same.
static weir_status_t* reduce_simplify(weir_simplify_ctx_t* ctx) {
  const weir_tensor_t* axes = ctx->builder->vtable->constant(ctx->builder, ctx->inputs[1]);
  return axes && axes->count == 0 ? weir_simplify_to_input(ctx, 0) : NULL;
}

#define REDUCE_ATTRS(types_) \
  "keep_dims: bool = false; T: " types_ "; Tidx: {int32,int64} = DT_INT32"
#define ORDERED_TYPES                                                                           \
  "{float,double,int32,uint8,int16,int8,int64,bfloat16,uint16,half,uint32,uint64,qint8,quint8," \
  "qint32,qint16,quint16}"
#define GPU_NUMBER \
  "T: float, double, half, bfloat16, int8, int16, int64, uint8, uint16, uint32, uint64"
#define REDUCE_ROW(device, types_, init_fn)                                          \
  {                                                                                  \
    device, .types = types_, .compute = reduce_compute, .init = init_fn,             \
            .state_size = sizeof(reduce_state_t), .host_inputs = "reduction_indices" \
  }
// int32 stays in host memory.
#define REDUCE_KERNELS(name, constraint)                          \
  (const weir_kernel_def_t[]) {                                   \
    REDUCE_ROW(WEIR_DEVICE_CPU, constraint, name##_init),         \
        REDUCE_ROW(WEIR_DEVICE_GPU, GPU_NUMBER, name##_gpu_init), \
        {WEIR_DEVICE_GPU,                                         \
         .types = "T: int32",                                     \
         .compute = reduce_compute,                               \
         .init = name##_init,                                     \
         .state_size = sizeof(reduce_state_t),                    \
         .host_inputs = "input, reduction_indices",               \
         .host_outputs = "output"},                               \
    {                                                             \
      0                                                           \
    }                                                             \
  }
#define LOGICAL_KERNELS(name)                                 \
  (const weir_kernel_def_t[]) {                               \
    REDUCE_ROW(WEIR_DEVICE_CPU, NULL, name##_init),           \
        REDUCE_ROW(WEIR_DEVICE_GPU, NULL, name##_gpu_init), { \
      0                                                       \
    }                                                         \
  }
#define REDUCE_OP(op_name, types_, mixed_, text, grad, simplify_fn, init_fn, constraint)           \
  {                                                                                                \
    .name = op_name, .attrs = REDUCE_ATTRS(types_), .inputs = "input: T; reduction_indices: Tidx", \
    .outputs = "output: T", .flags = WEIR_OP_VIEW, .mixed = WEIR_MIXED_##mixed_, .summary = text,  \
    .infer_shape = reduce_shape, .build_grad = grad, .simplify = simplify_fn,                      \
    .kernels = REDUCE_KERNELS(init_fn, constraint)                                                 \
  }
#define LOGICAL_OP(op_name, text, init_fn)                                                     \
  {                                                                                            \
    .name = op_name, .attrs = "keep_dims: bool = false; Tidx: {int32,int64} = DT_INT32",       \
    .inputs = "input: bool; reduction_indices: Tidx", .outputs = "output: bool",               \
    .flags = WEIR_OP_VIEW | WEIR_OP_NO_GRADIENT, .summary = text, .infer_shape = reduce_shape, \
    .simplify = reduce_simplify, .kernels = LOGICAL_KERNELS(init_fn)                           \
  }

const weir_op_module_t weir_ops_math_reduce = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        REDUCE_OP("Sum", "numbertype", DENY, "The sum over some dimensions", sum_grad,
                  reduce_simplify, sum, CPU_NUMBER),
        REDUCE_OP("Mean", "numbertype", DENY, "The mean over some dimensions", mean_grad,
                  reduce_simplify, mean, CPU_NUMBER),
        REDUCE_OP("Prod", "numbertype", INFER, "The product over some dimensions", prod_grad,
                  reduce_simplify, prod, CPU_NUMBER),
        REDUCE_OP("Max", ORDERED_TYPES, CLEAR, "The largest over some dimensions", extreme_grad,
                  reduce_simplify, max, CPU_REAL_NUMBER),
        REDUCE_OP("Min", ORDERED_TYPES, CLEAR, "The smallest over some dimensions", extreme_grad,
                  reduce_simplify, min, CPU_REAL_NUMBER),
        REDUCE_OP("EuclideanNorm", "numbertype", DENY, "The Euclidean norm over some dimensions",
                  norm_grad, NULL, norm, CPU_NUMBER),
        LOGICAL_OP("All", "Whether all are true over some dimensions", all),
        LOGICAL_OP("Any", "Whether one is true over some dimensions", any),
        {0}}};
