// shape.c — Shape, ShapeN, Size, Rank: the shape of a tensor as a value.
#include "ops/array/common.h"

static weir_status_t* shape_shape(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->node->input_count; ++i) {
    const weir_shape_t* in = weir_shape_input(ctx, i);
    WEIR_TRY(weir_shape_set_vector(ctx, i, in->rank));
    if (in->rank >= 0) WEIR_TRY(array_set_value(ctx, i, in->rank, in->dims));
  }
  return NULL;
}

static weir_status_t* size_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_set_scalar(ctx, 0));
  if (!weir_shape_is_full(in)) return NULL;
  int64_t count = 1;
  for (int i = 0; i < in->rank; ++i) {
    if (__builtin_mul_overflow(count, in->dims[i], &count)) return NULL;
  }
  return array_set_value(ctx, 0, 1, &count);
}

static weir_status_t* rank_shape(weir_shape_ctx_t* ctx) {
  int64_t rank = weir_shape_input(ctx, 0)->rank;
  WEIR_TRY(weir_shape_set_scalar(ctx, 0));
  return rank < 0 ? NULL : array_set_value(ctx, 0, 1, &rank);
}

static weir_status_t* write_shape(weir_kernel_ctx_t* ctx, int i) {
  const weir_tensor_t* in = weir_kernel_input(ctx, i);
  const int64_t rank = in->rank;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, i, 1, &rank, &out));
  for (int k = 0; k < in->rank; ++k) {
    if (out->dtype == WEIR_DTYPE_INT32 && in->dims[k] > INT32_MAX) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Shape output type is 32-bit  but dim %d is %lld", k,
                         (long long)in->dims[k]);
    }
    weir_move_set_int(out, k, in->dims[k]);
  }
  return NULL;
}

static weir_status_t* shape_cpu(weir_kernel_ctx_t* ctx) {
  for (int i = 0; i < ctx->input_count; ++i) WEIR_TRY(write_shape(ctx, i));
  return NULL;
}

static weir_status_t* size_cpu(weir_kernel_ctx_t* ctx) {
  int64_t count = weir_kernel_input(ctx, 0)->count;
  if (ctx->node->output_types[0] == WEIR_DTYPE_INT32 && count > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of elements was larger than representable by 32-bit output type");
  }
  return weir_kernel_output_int(ctx, 0, count);
}

static weir_status_t* rank_cpu(weir_kernel_ctx_t* ctx) {
  return weir_kernel_output_int(ctx, 0, weir_kernel_input(ctx, 0)->rank);
}

#define SHAPE_FLAGS (WEIR_OP_SHAPE_ONLY | WEIR_OP_CHEAP | WEIR_OP_NO_GRADIENT)

const weir_op_module_t weir_ops_array_shape = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Shape",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; out_type: {int32, int64} = DT_INT32",
         .inputs = "input: T",
         .outputs = "output: out_type",
         .flags = SHAPE_FLAGS,
         .summary = "Returns the shape of a tensor.",
         .infer_shape = shape_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = shape_cpu, .host_outputs = "output")},
        {.name = "ShapeN",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "N: int >= 1; T: type; out_type: {int32, int64} = DT_INT32",
         .inputs = "input: N * T",
         .outputs = "output: N * out_type",
         .flags = SHAPE_FLAGS,
         .summary = "Returns the shapes of several tensors.",
         .infer_shape = shape_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = shape_cpu, .host_outputs = "output")},
        {.name = "Size",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; out_type: {int32, int64} = DT_INT32",
         .inputs = "input: T",
         .outputs = "output: out_type",
         .flags = SHAPE_FLAGS,
         .summary = "Returns the number of elements of a tensor.",
         .infer_shape = size_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = size_cpu, .host_outputs = "output")},
        {.name = "Rank",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type",
         .inputs = "input: T",
         .outputs = "output: int32",
         .flags = SHAPE_FLAGS,
         .summary = "Returns the rank of a tensor.",
         .infer_shape = rank_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = rank_cpu, .host_outputs = "output")},
        {0}}};
