// handle_count.c — IsResourceHandleRefCounting and MakeWeakResourceHandle: whether a handle keeps
// its resource alive, and one that does not.
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "tensor/handle.h"

static weir_status_t* read_handle(weir_kernel_ctx_t* ctx, const weir_handle_t** out_handle) {
  *out_handle = weir_tensor_handle(weir_kernel_input(ctx, 0));
  if (*out_handle) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s needs a resource handle", ctx->node->name);
}

// What dies with the step is held by its step as well.
static weir_status_t* is_counting_cpu(weir_kernel_ctx_t* ctx) {
  const weir_handle_t* handle = NULL;
  WEIR_TRY(read_handle(ctx, &handle));
  const bool is_of_step = strcmp(handle->container, WEIR_STEP_CONTAINER) == 0;
  return weir_kernel_output_bool(ctx, 0, handle->object && !is_of_step);
}

static weir_status_t* weak_cpu(weir_kernel_ctx_t* ctx) {
  const weir_handle_t* handle = NULL;
  weir_handle_t* weak = NULL;
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(read_handle(ctx, &handle));
  WEIR_TRY(weir_handle_create(handle->device, handle->container, handle->name, handle->type_name,
                              &weak));
  weak->type_hash = handle->type_hash;
  weak->dtype = handle->dtype;
  weir_status_t* status = NULL;
  if (handle->shape) {
    weak->shape = weir_shape_clone(handle->shape);
    if (!weak->shape) status = weir_out_of_memory();
  }
  if (!status) status = weir_tensor_create_handle(weak, &tensor);
  weir_handle_release(weak);
  if (!status) weir_kernel_set(ctx, 0, tensor);
  return status;
}

const weir_op_module_t weir_ops_state_handle_count = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "IsResourceHandleRefCounting",
         .inputs = "handle: resource",
         .outputs = "result: bool",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .summary = "Whether a handle keeps its resource alive",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = is_counting_cpu)},
        {.name = "MakeWeakResourceHandle",
         .inputs = "handle: resource",
         .outputs = "dup: resource",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .summary = "A handle of the same resource that does not keep it alive",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = weak_cpu)},
        {0}}};
