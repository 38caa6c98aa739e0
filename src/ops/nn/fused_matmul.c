// fused_matmul.c — _FusedMatMul: a product of matrices with a bias and an activation, as
// TensorFlow's graph optimizer joins them.
#include "kernel/gemm/cuda_gemm.h"
#include "kernel/gemm/gemm.h"
#include "kernel/move/staging.h"
#include "kernel/nn/bias.h"
#include "kernel/nn/cuda_fused_tail.h"
#include "kernel/nn/fused_tail.h"
#include "op/cost.h"
#include "op/shape_ctx.h"

typedef struct state_t {
  bool transpose_a, transpose_b;
  weir_fused_tail_t tail;
  weir_cuda_function_t gpu_tail;  // for what cuBLASLt has no epilogue
} state_t;

static weir_status_t* init_state(const weir_kernel_init_t* init, void* state) {
  state_t* s = state;
  s->transpose_a = weir_attrs_bool(init->node->attrs, "transpose_a");
  s->transpose_b = weir_attrs_bool(init->node->attrs, "transpose_b");
  return weir_fused_tail_init(init, (int)weir_attrs_int(init->node->attrs, "num_args"), &s->tail);
}

static weir_status_t* fused_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *a, *b;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &a));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 2, &b));
  int ta = weir_attrs_bool(weir_shape_attrs(ctx), "transpose_a");
  int tb = weir_attrs_bool(weir_shape_attrs(ctx), "transpose_b");
  int64_t inner;
  WEIR_TRY(weir_dim_join(ctx, a->dims[1 - ta], b->dims[tb], &inner));
  return weir_shape_set_dims(ctx, 0, 2, (const int64_t[]){a->dims[ta], b->dims[1 - tb]});
}

static weir_status_t* check_inputs(const state_t* s, const weir_tensor_t* a,
                                   const weir_tensor_t* b) {
  char a_text[WEIR_SHAPE_TEXT_SIZE], b_text[WEIR_SHAPE_TEXT_SIZE];
  if (a->rank != b->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "In[0] and In[1] has different ndims: %s vs. %s",
                       weir_tensor_shape_text(a, a_text), weir_tensor_shape_text(b, b_text));
  }
  if (a->rank != 2 || b->rank != 2) {
    const weir_tensor_t* wrong = a->rank != 2 ? a : b;
    return WEIR_STATUS(INVALID_ARGUMENT, "In[%d] is not a matrix. Instead it has shape %s",
                       wrong == b, weir_tensor_shape_text(wrong, a_text));
  }
  if (a->dims[s->transpose_a ? 0 : 1] == b->dims[s->transpose_b ? 1 : 0]) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Matrix size-incompatible: In[0]: %s, In[1]: %s",
                     weir_tensor_shape_text(a, a_text), weir_tensor_shape_text(b, b_text));
}

static weir_gemm_args_t gemm_args(weir_kernel_ctx_t* ctx, weir_dtype_t dtype, const int64_t* dims) {
  const state_t* s = ctx->state;
  return (weir_gemm_args_t){.dtype_a = dtype,
                            .dtype_b = dtype,
                            .dtype_c = dtype,
                            .trans_a = s->transpose_a ? WEIR_TRANS : WEIR_NO_TRANS,
                            .trans_b = s->transpose_b ? WEIR_TRANS : WEIR_NO_TRANS,
                            .m = dims[0],
                            .n = dims[1],
                            .k = weir_kernel_input(ctx, 0)->dims[s->transpose_a ? 0 : 1]};
}

static weir_status_t* multiply(weir_kernel_ctx_t* ctx, const void* a, const void* b,
                               weir_dtype_t dtype, const int64_t* dims, void* c) {
  const state_t* s = ctx->state;
  weir_gemm_args_t args = gemm_args(ctx, dtype, dims);
  args.a = a;
  args.b = b;
  args.c = c;
  WEIR_TRY(weir_gemm_any(weir_kernel_pool(ctx), &args));
  weir_tail_run_t run = {
      .first_arg = 2, .dtype = dtype, .rows = dims[0], .channels = dims[1], .y = c};
  return weir_fused_tail_apply(ctx, &s->tail, &run);
}

static weir_status_t* fused_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* s = ctx->state;
  const weir_tensor_t *a = weir_kernel_input(ctx, 0), *b = weir_kernel_input(ctx, 1);
  weir_staged_t x = {0}, w = {0}, y = {0};
  weir_tensor_t* out;
  WEIR_TRY(check_inputs(s, a, b));
  const int64_t dims[] = {a->dims[s->transpose_a ? 1 : 0], b->dims[s->transpose_b ? 0 : 1]};
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, dims, &out));
  weir_status_t* status = weir_stage_input(ctx, a, false, &x);
  if (!status) status = weir_stage_input(ctx, b, false, &w);
  if (!status) status = weir_stage_output(ctx, out, false, &y);
  if (!status) {
    status = multiply(ctx, x.data, w.data, weir_compute_type(weir_tensor_type(out)), dims, y.data);
  }
  if (!status) status = weir_stage_finish(ctx, out, false, &y);
  weir_staged_release(&x);
  weir_staged_release(&w);
  weir_staged_release(&y);
  return status;
}

// ---- GPU ----

static weir_status_t* gpu_init(const weir_kernel_init_t* init, void* state) {
  state_t* s = state;
  WEIR_TRY(init_state(init, state));
  return weir_cuda_tail_find(init->device, &s->tail, init->node->input_types[0], &s->gpu_tail);
}

static weir_status_t* check_args(weir_kernel_ctx_t* ctx, const int64_t* dims) {
  const state_t* s = ctx->state;
  const weir_tensor_t* bias = weir_kernel_input(ctx, 2);
  weir_status_t* status = weir_bias_check((weir_shape_view_t){2, dims},
                                          (weir_shape_view_t){bias->rank, bias->dims}, -1);
  if (status) return weir_extended_at_node(ctx->node, 1, status);
  if (!s->tail.has_add || weir_kernel_input(ctx, 3)->count == dims[0] * dims[1]) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "the fused addend is not of the output's shape");
}

// cuBLASLt does all of it, if it is a bias and a ReLU.
static weir_status_t* multiply_at_once(weir_kernel_ctx_t* ctx, const weir_gemm_args_t* args) {
  const weir_fused_tail_t* tail = &((const state_t*)ctx->state)->tail;
  bool is_relu = tail->function == WEIR_TAIL_RELU;
  if (tail->has_add || (tail->function && !is_relu))
    return WEIR_STATUS(UNIMPLEMENTED, "cuBLASLt has no such epilogue");
  weir_gemm_tail_t epilogue = {.bias = weir_kernel_input(ctx, 2)->data, .is_relu = is_relu};
  return weir_cuda_gemm_with_tail(ctx->device, args, &epilogue);
}

static weir_status_t* fused_gpu(weir_kernel_ctx_t* ctx) {
  const state_t* s = ctx->state;
  const weir_tensor_t *a = weir_kernel_input(ctx, 0), *b = weir_kernel_input(ctx, 1);
  weir_tensor_t* out;
  WEIR_TRY(check_inputs(s, a, b));
  const int64_t dims[] = {a->dims[s->transpose_a ? 1 : 0], b->dims[s->transpose_b ? 0 : 1]};
  WEIR_TRY(check_args(ctx, dims));
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, dims, &out));
  weir_gemm_args_t args = gemm_args(ctx, weir_tensor_type(out), dims);
  args.a = a->data;
  args.b = b->data;
  args.c = out->data;
  weir_status_t* status = multiply_at_once(ctx, &args);
  if (weir_status_code(status) != WEIR_UNIMPLEMENTED) return status;
  weir_status_destroy(status);
  WEIR_TRY(weir_cuda_gemm(ctx->device, &args, (weir_gemm_batch_t){.count = 1}));
  weir_cuda_tail_t run = {.rows = dims[0],
                          .channels = dims[1],
                          .bias = weir_kernel_input(ctx, 2)->data,
                          .side = s->tail.has_add ? weir_kernel_input(ctx, 3)->data : NULL,
                          .y = out->data};
  return weir_cuda_tail_apply(ctx->device, s->gpu_tail, &run);
}

const weir_op_module_t weir_ops_nn_fused_matmul = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "_FusedMatMul",
         .mixed = WEIR_MIXED_ALLOW,
         .summary = "The product of two matrices, a bias and an activation in one",
         .attrs = "transpose_a: bool = false; transpose_b: bool = false; T: {bfloat16, half, "
                  "float}; num_args: int >= 0; fused_ops: list(string) = []; epsilon: float = "
                  "0.0001; leakyrelu_alpha: float = 0.2",
         .inputs = "a: T; b: T; args: num_args * T",
         .outputs = "product: T",
         .infer_shape = fused_shape,
         .cost = weir_cost_fn_matmul,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .compute = fused_cpu, .init = init_state,
                  .state_size = sizeof(state_t)},
                 {WEIR_DEVICE_GPU, .types = "T: bfloat16, half, float", .compute = fused_gpu,
                  .init = gpu_init, .state_size = sizeof(state_t), .tails = "BiasAdd, Relu"},
                 {0}}},
        {0}}};
