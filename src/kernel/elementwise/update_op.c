// update_op.c — In-place updates of tensors.
#include "kernel/elementwise/update_op.h"

static weir_status_t* find(const weir_kernel_init_t* init, weir_binary_op_t op, void* state) {
  weir_dtype_t dtype = init->node->input_types[1];
  return weir_cuda_binary_find(init->device, op, dtype, dtype, state);
}

weir_status_t* weir_update_add_gpu(const weir_kernel_init_t* init, void* state) {
  return find(init, WEIR_BINARY_ADD, state);
}

weir_status_t* weir_update_sub_gpu(const weir_kernel_init_t* init, void* state) {
  return find(init, WEIR_BINARY_SUB, state);
}

weir_status_t* weir_kernel_update(weir_kernel_ctx_t* ctx, weir_update_op_t update,
                                  weir_tensor_t* target, const weir_tensor_t* value) {
  if (weir_device_is_cuda(ctx->device))
    return weir_cuda_binary_run(ctx->device, ctx->state, target->data, value->data, target->data,
                                value->count, WEIR_SPAN_BOTH);
  weir_dtype_t dtype = weir_tensor_type(value);
  weir_update_parallel(weir_kernel_pool(ctx), weir_update_find(update, dtype), dtype, target->data,
                       value->data, value->count);
  return NULL;
}
