// debug_identity.c — DebugIdentity, DebugIdentityV2, DebugGradientIdentity,
// DebugGradientRefIdentity: hand their input on. Watching from elsewhere by debug URLs is refused.
#include "ops/array/common.h"

static weir_status_t* debug_identity_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_fn_unchanged(ctx));
  return array_pass_value(ctx, 0, 0);
}

static weir_status_t* gated_identity_shape(weir_shape_ctx_t* ctx) {
  if (array_is_gated_off(weir_shape_attrs(ctx))) return weir_shape_set_vector(ctx, 0, 0);
  return debug_identity_shape(ctx);
}

static weir_status_t* debug_identity_cpu(weir_kernel_ctx_t* ctx) {
  if (weir_attrs_list(weir_kernel_attrs(ctx), "debug_urls")->count > 0) {
    return WEIR_STATUS(UNIMPLEMENTED, "%s: debug_urls are not supported", ctx->node->name);
  }
  WEIR_TRY(array_check_tensor_name(weir_attrs_string(weir_kernel_attrs(ctx), "tensor_name")));
  if (array_is_gated_off(weir_kernel_attrs(ctx))) return array_gated_off(ctx);
  weir_kernel_pass(ctx, 0, 0);
  return NULL;
}

static weir_status_t* debug_v2_cpu(weir_kernel_ctx_t* ctx) {
  if (weir_attrs_list(weir_kernel_attrs(ctx), "debug_urls")->count > 0) {
    return WEIR_STATUS(UNIMPLEMENTED, "%s: debug_urls are not supported", ctx->node->name);
  }
  weir_kernel_pass(ctx, 0, 0);
  return NULL;
}

static weir_status_t* pass_cpu(weir_kernel_ctx_t* ctx) {
  weir_kernel_pass(ctx, 0, 0);
  return NULL;
}

static weir_status_t* pass_ref_cpu(weir_kernel_ctx_t* ctx) {
  weir_kernel_set_ref(ctx, 0, weir_kernel_input_ref(ctx, 0));
  return NULL;
}

static weir_status_t* pass_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, weir_grad_dy(g, 0));
}

const weir_op_module_t weir_ops_array_debug_identity = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DebugIdentity",
         .attrs = "T: type; device_name: string = ''; tensor_name: string = ''; debug_urls: "
                  "list(string) = []; gated_grpc: bool = false",
         .inputs = "input: T",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_UNINITIALIZED_INPUT | WEIR_OP_CHEAP,
         .summary = "Returns its input.",
         .infer_shape = gated_identity_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = debug_identity_cpu)},
        {.name = "DebugIdentityV2",
         .attrs =
             "T: type; tfdbg_context_id: string = ''; op_name: string = ''; output_slot: int = "
             "-1; tensor_debug_mode: int = -1; debug_urls: list(string) = []; "
             "circular_buffer_size: int = 1000; tfdbg_run_id: string = ''",
         .inputs = "input: T",
         .outputs = "output: T",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_VIEW | WEIR_OP_CHEAP,
         .summary = "Returns its input.",
         .infer_shape = debug_identity_shape,
         .build_grad = pass_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = debug_v2_cpu)},
        {.name = "DebugGradientIdentity",
         .attrs = "T: type",
         .inputs = "input: T",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_UNINITIALIZED_INPUT | WEIR_OP_CHEAP,
         .summary = "Returns its input, whose gradient a debugger looks for.",
         .infer_shape = debug_identity_shape,
         .build_grad = pass_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = pass_cpu)},
        {.name = "DebugGradientRefIdentity",
         .attrs = "T: type",
         .inputs = "input: Ref(T)",
         .outputs = "output: Ref(T)",
         .flags = WEIR_OP_VIEW | WEIR_OP_UNINITIALIZED_INPUT | WEIR_OP_CHEAP,
         .summary = "Returns its input, whose gradient a debugger looks for.",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = pass_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = pass_ref_cpu)},
        {0}}};
