// parallel_concat.c — ParallelConcat: tensors of one row each, put together along the first
// dimension.
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
    const weir_shape_t* joined = NULL;
    WEIR_TRY(weir_shape_join(ctx, row, weir_shape_input(ctx, i), &joined));
  }
  return weir_shape_set(ctx, 0, shape);
}

static bool is_row_of(const weir_tensor_t* row, const weir_shape_t* shape) {
  if (row->rank != shape->rank || row->dims[0] != 1) return false;
  for (int i = 1; i < row->rank; ++i) {
    if (row->dims[i] != shape->dims[i]) return false;
  }
  return true;
}

static weir_status_t* concat_cpu(weir_kernel_ctx_t* ctx) {
  const weir_shape_t* shape = weir_attrs_shape(weir_kernel_attrs(ctx), "shape");
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (!weir_shape_is_full(shape) || shape->rank < 1 || shape->dims[0] != ctx->input_count)
    return WEIR_STATUS(INVALID_ARGUMENT, "shape must be known and have a row a value");
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, shape->rank, shape->dims, &out));
  const weir_dtype_t dtype = weir_tensor_type(out);
  for (int i = 0; i < ctx->input_count; ++i) {
    const weir_tensor_t* row = weir_kernel_input(ctx, i);
    if (!is_row_of(row, shape)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "value %d of shape %s is no row of the output", i,
                         weir_tensor_shape_text(row, text));
    }
    char* dst = (char*)out->data + (size_t)(i * row->count) * weir_dtype_size(dtype);
    WEIR_TRY(weir_move_copy(weir_kernel_pool(ctx), dtype, row->data, dst, row->count));
  }
  return NULL;
}

const weir_op_module_t weir_ops_array_parallel_concat = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ParallelConcat",
         .attrs = "N: int >= 1; T: type; shape: shape",
         .inputs = "values: N * T",
         .outputs = "output: T",
         .summary = "Puts tensors of one row each together along the first dimension.",
         .infer_shape = concat_shape,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU,
                  .types = "T: string, bool, complex128, complex64, double, float, bfloat16, half, "
                           "int32, int8, uint8, int16, uint16, uint32, int64, uint64",
                  .compute = concat_cpu},
                 {0}}},
        {0}}};
