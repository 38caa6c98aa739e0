// loop.c — Enter, Exit, NextIteration, LoopCond: the edges of loops. The executor does the framing;
// kernels pass values on.
#include "op/kernel.h"
#include "op/shape_ctx.h"

static weir_status_t* pass_cpu(weir_kernel_ctx_t* ctx) {
  ctx->outputs[0] = ctx->inputs[0];
  ctx->inputs[0] = (weir_value_t){.tensor = NULL, .ref = NULL};
  return NULL;
}

// A loop variable may change its shape in the loop; a constant does not. What a handle refers to
// stays.
static weir_status_t* enter_shape(weir_shape_ctx_t* ctx) {
  if (ctx->output_handles) ctx->output_handles[0] = ctx->input_handles[0];
  if (!weir_attrs_bool(weir_shape_attrs(ctx), "is_constant"))
    return weir_shape_set(ctx, 0, &weir_shape_unknown);
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

static weir_status_t* loop_cond_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  return weir_shape_set_scalar(ctx, 0);
}

#define PASS_KERNEL WEIR_PORTABLE_KERNEL(.compute = pass_cpu)
#define ENTER_ATTRS \
  "T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10"

const weir_op_module_t weir_ops_control_loop = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Enter",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = ENTER_ATTRS,
         .inputs = "data: T",
         .outputs = "output: T",
         .flags = WEIR_OP_CHEAP,
         .role = WEIR_ROLE_ENTER,
         .summary = "Makes a value available in a loop.",
         .infer_shape = enter_shape,
         .kernels = PASS_KERNEL},
        {.name = "RefEnter",
         .attrs = ENTER_ATTRS,
         .inputs = "data: Ref(T)",
         .outputs = "output: Ref(T)",
         .flags = WEIR_OP_CHEAP,
         .role = WEIR_ROLE_ENTER,
         .summary = "Makes a reference available in a loop.",
         .infer_shape = enter_shape,
         .kernels = PASS_KERNEL},
        {.name = "Exit",
         .attrs = "T: type",
         .inputs = "data: T",
         .outputs = "output: T",
         .flags = WEIR_OP_CHEAP,
         .role = WEIR_ROLE_EXIT,
         .summary = "Makes a loop's value available to its parent.",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = PASS_KERNEL},
        {.name = "RefExit",
         .attrs = "T: type",
         .inputs = "data: Ref(T)",
         .outputs = "output: Ref(T)",
         .flags = WEIR_OP_CHEAP,
         .role = WEIR_ROLE_EXIT,
         .summary = "Makes a loop's reference available to its parent.",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = PASS_KERNEL},
        {.name = "NextIteration",
         .attrs = "T: type",
         .inputs = "data: T",
         .outputs = "output: T",
         .flags = WEIR_OP_CHEAP,
         .role = WEIR_ROLE_NEXT_ITERATION,
         .summary = "Makes a value available in the next iteration.",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = PASS_KERNEL},
        {.name = "RefNextIteration",
         .attrs = "T: type",
         .inputs = "data: Ref(T)",
         .outputs = "output: Ref(T)",
         .flags = WEIR_OP_CHEAP,
         .role = WEIR_ROLE_NEXT_ITERATION,
         .summary = "Makes a reference available in the next iteration.",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = PASS_KERNEL},
        {.name = "LoopCond",
         .inputs = "input: bool",
         .outputs = "output: bool",
         .flags = WEIR_OP_CHEAP | WEIR_OP_NO_GRADIENT,
         .role = WEIR_ROLE_LOOP_COND,
         .summary = "Decides whether a loop goes on.",
         .infer_shape = loop_cond_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = pass_cpu, .host_inputs = "input",
                                         .host_outputs = "output")},
        {0}}};
