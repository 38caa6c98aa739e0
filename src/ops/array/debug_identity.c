// debug_identity.c — DebugIdentity: hands its input on. Watching from elsewhere by debug URLs is
// refused.
#include "ops/array/common.h"

static weir_status_t* debug_identity_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_fn_unchanged(ctx));
  return array_pass_value(ctx, 0, 0);
}

// "node" or "node:slot".
static weir_status_t* check_tensor_name(weir_view_t name) {
  const char* colon = name.size ? memchr(name.data, ':', name.size) : NULL;
  if (name.size == 0 ||
      (colon && memchr(colon + 1, ':', name.size - 1 - (size_t)(colon - name.data)))) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Failed to parse tensor name: \"%.*s\"",
                       WEIR_VIEW_ARG(name));
  }
  const char* end = name.data + name.size;
  bool is_slot = !colon || colon + 1 < end;
  for (const char* c = colon ? colon + 1 : end; c < end; ++c) is_slot &= *c >= '0' && *c <= '9';
  if (is_slot) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid string value for output_slot: \"%.*s\"",
                     (int)(end - colon - 1), colon + 1);
}

static weir_status_t* debug_identity_cpu(weir_kernel_ctx_t* ctx) {
  if (weir_attrs_list(weir_kernel_attrs(ctx), "debug_urls")->count > 0) {
    return WEIR_STATUS(UNIMPLEMENTED, "%s: debug_urls are not supported", ctx->node->name);
  }
  WEIR_TRY(check_tensor_name(weir_attrs_string(weir_kernel_attrs(ctx), "tensor_name")));
  weir_kernel_pass(ctx, 0, 0);
  return NULL;
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
         .infer_shape = debug_identity_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = debug_identity_cpu)},
        {0}}};
