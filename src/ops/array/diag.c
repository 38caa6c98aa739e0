// diag.c — Diag and DiagPart: a tensor as the diagonal of one of twice its rank.
#include "ops/array/common.h"

static weir_status_t* diag_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_at_least(ctx, in, 1));
  return weir_shape_set(ctx, 0, weir_shape_concat(ctx, in, in));
}

static weir_status_t* diag_part_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  if (in->rank < 0) return weir_shape_set(ctx, 0, in);
  if (in->rank == 0 || in->rank % 2 != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input must have even and non-zero rank, input rank is %d",
                       in->rank);
  }
  int64_t dims[WEIR_MAX_RANK];
  int half = in->rank / 2;
  for (int i = 0; i < half; ++i)
    WEIR_TRY(weir_dim_join(ctx, in->dims[i], in->dims[half + i], &dims[i]));
  return weir_shape_set_dims(ctx, 0, half, dims);
}

static weir_status_t* diag(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_tensor_type(in);
  int64_t dims[2 * WEIR_MAX_RANK];
  if (in->rank < 1 || 2 * in->rank > WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input must be at least rank 1, got %d", in->rank);
  }
  for (int i = 0; i < in->rank; ++i) dims[i] = dims[in->rank + i] = in->dims[i];
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 2 * in->rank, dims, &out));
  WEIR_TRY(weir_kernel_move_zero(ctx, dtype, out->data, out->count));
  weir_move_dim_t box[] = {{in->count, 1, in->count + 1}};
  return weir_kernel_move_box(ctx, dtype, 1, box, in->data, out->data);
}

static weir_status_t* diag_part(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  char text[WEIR_SHAPE_TEXT_SIZE];
  int half = in->rank / 2;
  if (in->rank == 0 || in->rank % 2 != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The rank of the tensor should be even and positive, got shape %s",
                       weir_tensor_shape_text(in, text));
  }
  for (int i = 0; i < half; ++i) {
    if (in->dims[i] != in->dims[half + i]) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Invalid shape %s: dimensions %d and %d do not match.",
                         weir_tensor_shape_text(in, text), i, half + i);
    }
  }
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, half, in->dims, &out));
  weir_move_dim_t box[] = {{out->count, out->count + 1, 1}};
  return weir_kernel_move_box(ctx, weir_tensor_type(in), 1, box, in->data, out->data);
}

static weir_status_t* diag_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, weir_grad_node(g, "DiagPart", WEIR_EDGES(weir_grad_dy(g, 0))));
}

static weir_status_t* diag_part_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, weir_grad_node(g, "Diag", WEIR_EDGES(weir_grad_dy(g, 0))));
}

#define DIAG_TYPES "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"
#define GPU_TYPES "T: bfloat16, half, float, double, int64, complex64, complex128"
#define DIAG_KERNELS(fn)                                                                        \
  ((const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .compute = fn},                                \
                               WEIR_MOVE_GPU_ROW(GPU_TYPES, weir_move_gpu_init, .compute = fn), \
                               {0}})

const weir_op_module_t weir_ops_array_diag = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Diag",
         .attrs = DIAG_TYPES,
         .inputs = "diagonal: T",
         .outputs = "output: T",
         .summary = "Returns a tensor of twice the rank with the given diagonal.",
         .infer_shape = diag_shape,
         .build_grad = diag_grad,
         .kernels = DIAG_KERNELS(diag)},
        {.name = "DiagPart",
         .attrs = DIAG_TYPES,
         .inputs = "input: T",
         .outputs = "diagonal: T",
         .summary = "Returns the diagonal of a tensor of even rank.",
         .infer_shape = diag_part_shape,
         .build_grad = diag_part_grad,
         .kernels = DIAG_KERNELS(diag_part)},
        {0}}};
