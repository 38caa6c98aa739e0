// parallel_concat.c — ParallelConcat: tensors of one row each, put together along the first
// dimension; and the ops TensorFlow makes of it, by which each row is written when it is ready.
#include "ops/array/common.h"

static weir_status_t* concat_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = weir_attrs_shape(weir_shape_attrs(ctx), "shape");
  if (!weir_shape_is_full(shape))
    return WEIR_STATUS(INVALID_ARGUMENT, "shape attr must be fully defined.");
  WEIR_TRY(weir_shape_at_least(ctx, shape, 1));
  if (shape->dims[0] != ctx->node->input_count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "shape's first dimension is %lld, but there are %d values",
                       (long long)shape->dims[0], ctx->node->input_count);
  }
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i < shape->rank; ++i) dims[i] = i == 0 ? 1 : shape->dims[i];
  const weir_shape_t* row = weir_shape_make(ctx->arena, shape->rank, dims);
  if (!row) return weir_out_of_memory();
  for (int i = 0; i < ctx->node->input_count; ++i) {
    const weir_shape_t *joined = NULL, *in = weir_shape_input(ctx, i);
    if (in->rank == 0) {
      return WEIR_STATUS(
          INVALID_ARGUMENT,
          "The rank of all input shapes must be greater than 0, but input %d had rank 0.", i);
    }
    if (in->rank > 0 && in->dims[0] >= 0 && in->dims[0] != 1)
      return WEIR_STATUS(INVALID_ARGUMENT, "Size of first dimension must be 1.");
    WEIR_TRY(weir_shape_join(ctx, row, in, &joined));
  }
  return weir_shape_set(ctx, 0, shape);
}

static bool is_row_of(const weir_tensor_t* row, int rank, const int64_t* dims) {
  if (row->rank != rank || row->dims[0] != 1) return false;
  for (int i = 1; i < row->rank; ++i) {
    if (row->dims[i] != dims[i]) return false;
  }
  return true;
}

static weir_status_t* concat(weir_kernel_ctx_t* ctx) {
  const weir_shape_t* shape = weir_attrs_shape(weir_kernel_attrs(ctx), "shape");
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (!weir_shape_is_full(shape) || shape->rank < 1 || shape->dims[0] != ctx->input_count)
    return WEIR_STATUS(INVALID_ARGUMENT, "shape must be known and have a row a value");
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, shape->rank, shape->dims, &out));
  const weir_dtype_t dtype = weir_tensor_type(out);
  for (int i = 0; i < ctx->input_count; ++i) {
    const weir_tensor_t* row = weir_kernel_input(ctx, i);
    if (!is_row_of(row, shape->rank, shape->dims)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "value %d of shape %s is no row of the output", i,
                         weir_tensor_shape_text(row, text));
    }
    char* dst = (char*)out->data + (size_t)(i * row->count) * weir_dtype_size(dtype);
    WEIR_TRY(weir_kernel_move_copy(ctx, dtype, row->data, dst, row->count));
  }
  return NULL;
}

static weir_status_t* start_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set(ctx, 0, weir_attrs_shape(weir_shape_attrs(ctx), "shape"));
}

static weir_status_t* start(weir_kernel_ctx_t* ctx) {
  const weir_shape_t* shape = weir_attrs_shape(weir_kernel_attrs(ctx), "shape");
  if (!weir_shape_is_full(shape))
    return WEIR_STATUS(INVALID_ARGUMENT, "shape attr must be fully defined.");
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, shape->rank, shape->dims, &out));
  return weir_kernel_move_zero(ctx, weir_tensor_type(out), out->data, out->count);
}

// Writes into memory that others hold: what reads it waits for every row by control edges.
static weir_status_t* put_row(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *value = weir_kernel_input(ctx, 0), *row = weir_kernel_input(ctx, 1);
  int64_t at = weir_attrs_int(weir_kernel_attrs(ctx), "loc");  // from the end where negative
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (value->rank < 1) return WEIR_STATUS(INVALID_ARGUMENT, "value should be at least rank 1.");
  if (at >= value->dims[0] || value->dims[0] == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "0th dimension of value = %lld must be greater than loc_ = %lld",
                       (long long)value->dims[0], (long long)at);
  }
  if (!is_row_of(row, value->rank, value->dims)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "value and update shape doesn't match: %s vs. %s",
                       weir_tensor_shape_text(value, b), weir_tensor_shape_text(row, a));
  }
  if (at < 0) at = (at % value->dims[0] + value->dims[0]) % value->dims[0];
  const weir_dtype_t dtype = weir_tensor_type(value);
  char* dst = (char*)value->data + (size_t)(at * row->count) * weir_dtype_size(dtype);
  WEIR_TRY(weir_kernel_move_copy(ctx, dtype, row->data, dst, row->count));
  weir_kernel_pass(ctx, 0, 0);
  return NULL;
}

#define ROW_TYPES                                                                            \
  "string, bool, complex128, complex64, double, float, bfloat16, half, int32, int8, uint8, " \
  "int16, uint16, uint32, int64, uint64"
// Rows are copied whole: on GPUs without a function.
#define ROW_KERNELS(attr, fn, in)                                                                  \
  ((const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .types = attr ": " ROW_TYPES, .compute = fn},     \
                               WEIR_MOVE_GPU_ROW(attr ": " WEIR_MOVED_TYPES, NULL, .compute = fn), \
                               {WEIR_DEVICE_GPU, .types = attr ": int32", .compute = fn,           \
                                .host_inputs = in, .host_outputs = "output"},                      \
                               {0}})

const weir_op_module_t weir_ops_array_parallel_concat = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ParallelConcat",
         .attrs = "N: int >= 1; T: type; shape: shape",
         .inputs = "values: N * T",
         .outputs = "output: T",
         .summary = "Puts tensors of one row each together along the first dimension.",
         .infer_shape = concat_shape,
         .kernels = ROW_KERNELS("T", concat, "values")},
        {.name = "_ParallelConcatStart",
         .attrs = "shape: shape; dtype: type",
         .outputs = "output: dtype",
         .flags = WEIR_OP_STATEFUL,
         .summary = "A tensor whose rows _ParallelConcatUpdate writes",
         .infer_shape = start_shape,
         .kernels = ROW_KERNELS("dtype", start, NULL)},
        {.name = "_ParallelConcatUpdate",
         .attrs = "T: type; loc: int",
         .inputs = "value: T; update: T",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_NO_FOLD,  // its effect is on its input
         .summary = "Writes row |loc| in place",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = ROW_KERNELS("T", put_row, "value, update")},
        {0}}};
