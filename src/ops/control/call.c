// call.c — PartitionedCall, StatefulPartitionedCall: a function called as one node.
#include "op/call.h"

#include "op/shape_ctx.h"

static weir_status_t* call_init(const weir_kernel_init_t* init, void* state) {
  weir_callee_init(state, weir_attrs_func(init->node->attrs, "f"));
  return NULL;
}

static void call_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_callee_call(ctx->state, ctx, 0, done);
}

#define CALL_OP(op_name, op_flags)                                                      \
  {                                                                                     \
    .name = op_name,                                                                    \
    .attrs =                                                                            \
        "Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; config: string = ''; "   \
        "config_proto: string = ''; executor_type: string = ''",                        \
    .inputs = "args: Tin", .outputs = "output: Tout", .flags = op_flags,                \
    .summary = "Calls a function.", .infer_shape = weir_shape_fn_unknown,               \
    .kernels = (const weir_kernel_def_t[]) {                                            \
      {WEIR_DEVICE_CPU, .compute_async = call_cpu, .state_size = sizeof(weir_callee_t), \
       .init = call_init},                                                              \
      {                                                                                 \
        0                                                                               \
      }                                                                                 \
    }                                                                                   \
  }

const weir_op_module_t weir_ops_control_call = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        CALL_OP("PartitionedCall", WEIR_OP_NO_FOLD),
        CALL_OP("StatefulPartitionedCall", WEIR_OP_STATEFUL | WEIR_OP_ALLOW_DISTRIBUTED),
        {0}}};
