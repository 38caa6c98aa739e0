// l2_loss.c — L2Loss: half the sum of squares.
#include "kernel/reduce/cuda_reduce.h"
#include "ops/math/common.h"

static weir_status_t* l2_loss_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* t = weir_kernel_input(ctx, 0);
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 0, NULL, &y));
  return weir_reduce(weir_kernel_pool(ctx), WEIR_REDUCE_HALF_SQUARES, weir_tensor_type(t), 1,
                     &t->count, (const bool[]){true}, t->data, y->data);
}

static weir_status_t* l2_loss_gpu_init(const weir_kernel_init_t* init, void* state) {
  return weir_cuda_reduce_find(init->device, WEIR_REDUCE_HALF_SQUARES,
                               weir_dtype_base(init->node->input_types[0]), state);
}

static weir_status_t* l2_loss_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* t = weir_kernel_input(ctx, 0);
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 0, NULL, &y));
  return weir_cuda_reduce(ctx, ctx->state, weir_tensor_type(t), 1, &t->count, (const bool[]){true},
                          t->data, y->data);
}

static weir_status_t* l2_loss_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, weir_grad_mul(g, weir_grad_input(g, 0), weir_grad_dy(g, 0)));
}

const weir_op_module_t weir_ops_math_l2_loss = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "L2Loss",
         .mixed = WEIR_MIXED_DENY,
         .attrs = "T: {half,bfloat16,float,double}",
         .inputs = "t: T",
         .outputs = "output: T",
         .summary = "sum(t^2) / 2",
         .infer_shape = weir_shape_fn_scalar,
         .build_grad = l2_loss_grad,
         .kernels = (const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .compute = l2_loss_cpu},
                                                {WEIR_DEVICE_GPU, .compute = l2_loss_gpu,
                                                 .init = l2_loss_gpu_init,
                                                 .state_size = sizeof(weir_cuda_reduce_t)},
                                                {0}}},
        {0}}};
