// symbolic_gradient.c — SymbolicGradient: calls the gradient of a function.
#include "op/call.h"
#include "op/shape_ctx.h"

// The session knows the op's name for a function whose attribute f names the one to differentiate.
typedef struct gradient_state_t {
  weir_callee_t callee;
  weir_func_t func;
} gradient_state_t;

static weir_status_t* gradient_init(const weir_kernel_init_t* init, void* state) {
  gradient_state_t* s = state;
  s->func = (weir_func_t){.name = weir_view_of(init->node->op_name), .attrs = init->node->attrs};
  weir_callee_init(&s->callee, &s->func);
  return NULL;
}

static void gradient_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  gradient_state_t* s = ctx->state;
  weir_callee_call(&s->callee, ctx, 0, done);
}

// A gradient has the shape of what it is a gradient of.
static weir_status_t* gradient_shape(weir_shape_ctx_t* ctx) {
  if (ctx->node->input_count < ctx->node->output_count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "len(inputs) < len(outputs): %d < %d",
                       ctx->node->input_count, ctx->node->output_count);
  }
  for (int i = 0; i < ctx->node->output_count; ++i) {
    const bool has_shape = weir_dtype_base(ctx->node->input_types[i]) != WEIR_DTYPE_RESOURCE;
    if (has_shape) WEIR_TRY(weir_shape_set(ctx, i, weir_shape_input(ctx, i)));
  }
  return NULL;
}

const weir_op_module_t weir_ops_control_symbolic_gradient = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SymbolicGradient",
         .attrs = "Tin: list(type) >= 1; Tout: list(type) >= 1; f: func",
         .inputs = "input: Tin",
         .outputs = "output: Tout",
         .flags = WEIR_OP_NO_FOLD,
         .summary = "The gradient of a function",
         .infer_shape = gradient_shape,
         .kernels = WEIR_CPU_KERNEL(.compute_async = gradient_cpu,
                                    .state_size = sizeof(gradient_state_t), .init = gradient_init)},
        {0}}};
