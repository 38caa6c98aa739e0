// in_top_k.c — InTopK and InTopKV2: whether the targets are among the k likeliest predictions.
#include <math.h>

#include "kernel/cuda/source.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

static weir_status_t* in_top_k_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *predictions, *targets;
  int64_t rows;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &predictions));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &targets));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(predictions, 0), weir_shape_dim(targets, 0), &rows));
  return weir_shape_set_vector(ctx, 0, rows);
}

// False, too, where nothing can be said: a target that is no class, or a prediction that is not
// finite.
static bool is_in_top_k(const float* row, int64_t classes, int64_t target, int64_t k) {
  if (target < 0 || target >= classes || !isfinite(row[target])) return false;
  int64_t likelier = 0;
  for (int64_t c = 0; c < classes; ++c) {
    if (!isfinite(row[c])) return false;
    if (row[c] > row[target] && ++likelier > k) break;
  }
  return likelier < k;
}

static weir_status_t* check(const weir_kernel_ctx_t* ctx, int64_t* out_k) {
  const weir_tensor_t *predictions = weir_kernel_input(ctx, 0),
                      *targets = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (ctx->input_count > 2) {
    if (weir_kernel_input(ctx, 2)->rank != 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "k must be 0-D, got shape %s",
                         weir_tensor_shape_text(weir_kernel_input(ctx, 2), text));
    WEIR_TRY(weir_kernel_int(ctx, 2, out_k));
  } else {
    *out_k = weir_attrs_int(weir_kernel_attrs(ctx), "k");
  }
  if (predictions->rank != 2)
    return WEIR_STATUS(INVALID_ARGUMENT, "predictions must be 2-dimensional");
  if (targets->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "targets must be 1-dimensional");
  if (predictions->dims[0] != targets->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "First dimension of predictions %lld must match length of targets %lld",
                       (long long)predictions->dims[0], (long long)targets->dims[0]);
  }
  return NULL;
}

static weir_status_t* in_top_k_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *predictions = weir_kernel_input(ctx, 0),
                      *targets = weir_kernel_input(ctx, 1);
  weir_tensor_t* out = NULL;
  int64_t k = 0;
  WEIR_TRY(check(ctx, &k));
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, targets->dims, &out));
  int64_t classes = predictions->dims[1];
  for (int64_t i = 0; i < targets->count; ++i) {
    const float* row = WEIR_TENSOR_DATA(predictions, const float) + i * classes;
    WEIR_TENSOR_DATA(out, bool)[i] = is_in_top_k(row, classes, weir_tensor_int_at(targets, i), k);
  }
  return NULL;
}

WEIR_CUDA_SOURCE(in_top_k);
static weir_status_t* in_top_k_gpu_init(const weir_kernel_init_t* init, void* state) {
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "#define L %s\n",
                     weir_cuda_type_name(weir_dtype_base(init->node->input_types[1])));
  return weir_cuda_build(init->device, &text, weir_cuda_source_in_top_k, "in_top_k", state);
}

static weir_status_t* in_top_k_gpu(weir_kernel_ctx_t* ctx) {
  enum { WARP = 32 };
  const weir_tensor_t *predictions = weir_kernel_input(ctx, 0),
                      *targets = weir_kernel_input(ctx, 1);
  const void *x = predictions->data, *chosen = targets->data;
  weir_tensor_t* out = NULL;
  int64_t k = 0;
  WEIR_TRY(check(ctx, &k));
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, targets->dims, &out));
  int64_t rows = out->count, classes = predictions->dims[1];
  if (rows == 0) return NULL;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, rows * WARP);
  return weir_cuda_launch(ctx->device, *(const weir_cuda_function_t*)ctx->state, &size,
                          WEIR_CUDA_ARGS(&x, &chosen, &out->data, &rows, &classes, &k));
}

#define IN_TOP_K_KERNELS(...)                                               \
  ((const weir_kernel_def_t[]){                                             \
      {WEIR_DEVICE_CPU, .compute = in_top_k_cpu, __VA_ARGS__},              \
      {WEIR_DEVICE_GPU, .compute = in_top_k_gpu, .init = in_top_k_gpu_init, \
       .state_size = sizeof(weir_cuda_function_t), __VA_ARGS__},            \
      {0}})

const weir_op_module_t weir_ops_nn_in_top_k = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "InTopK",
                                    .summary = "Whether targets are among the top k predictions",
                                    .attrs = "k: int; T: {int32, int64} = DT_INT32",
                                    .inputs = "predictions: float; targets: T",
                                    .outputs = "precision: bool",
                                    .infer_shape = in_top_k_shape,
                                    .kernels = IN_TOP_K_KERNELS(.host_inputs = NULL)},
                                   {.name = "InTopKV2",
                                    .summary = "Whether targets are among the top k predictions",
                                    .attrs = "T: {int32, int64} = DT_INT32",
                                    .inputs = "predictions: float; targets: T; k: T",
                                    .outputs = "precision: bool",
                                    .infer_shape = in_top_k_shape,
                                    .kernels = IN_TOP_K_KERNELS(.host_inputs = "k")},
                                   {0}}};
