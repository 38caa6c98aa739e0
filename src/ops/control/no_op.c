// no_op.c — NoOp, ControlTrigger, RefIdentity, Assert, Abort: ops run for their order or their
// failure.
#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/string/summarize.h"

static weir_status_t* nothing_cpu(weir_kernel_ctx_t* ctx) {
  (void)ctx;
  return NULL;
}

// ---- RefIdentity ----

static weir_status_t* ref_identity_cpu(weir_kernel_ctx_t* ctx) {
  ctx->outputs[0] = ctx->inputs[0];
  ctx->inputs[0] = (weir_value_t){.tensor = NULL, .ref = NULL};
  return NULL;
}

static weir_status_t* ref_identity_grad(weir_grad_ctx_t* g) {
  return weir_grad_set_value(g, 0, weir_grad_dy_value(g, 0));
}

// ---- Assert ----

static weir_status_t* assert_failed(weir_kernel_ctx_t* ctx) {
  int64_t limit = weir_attrs_int(weir_kernel_attrs(ctx), "summarize");
  weir_strbuf_t text = {0};
  for (int i = 1; i < ctx->input_count; ++i) {
    weir_strbuf_puts(&text, i > 1 ? " [" : "[");
    weir_tensor_summarize(weir_kernel_input(ctx, i), limit, &text);
    weir_strbuf_putc(&text, ']');
  }
  weir_status_t* status =
      WEIR_STATUS(INVALID_ARGUMENT, "assertion failed: %s", text.data ? text.data : "");
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* assert_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* condition = weir_kernel_input(ctx, 0);
  if (condition->rank != 0) {
    char shape[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "In[0] should be a scalar: %s",
                       weir_tensor_shape_text(condition, shape));
  }
  return *WEIR_TENSOR_DATA(condition, const bool) ? NULL : assert_failed(ctx);
}

// ---- Abort ----

// TensorFlow ends the process; here the step fails, which is what a library may do to its host.
static weir_status_t* abort_cpu(weir_kernel_ctx_t* ctx) {
  if (weir_attrs_bool(weir_kernel_attrs(ctx), "exit_without_error")) return NULL;
  weir_view_t message = weir_attrs_string(weir_kernel_attrs(ctx), "error_msg");
  return WEIR_STATUS(ABORTED, "Abort_op intentional failure; %.*s", WEIR_VIEW_ARG(message));
}

const weir_op_module_t weir_ops_control_no_op = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "NoOp",
         .flags = WEIR_OP_CHEAP,
         .role = WEIR_ROLE_NO_OP,
         .summary = "Does nothing: a place to order others by.",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = nothing_cpu)},
        {.name = "ControlTrigger",
         .flags = WEIR_OP_CHEAP,
         .role = WEIR_ROLE_CONTROL_TRIGGER,
         .summary = "Does nothing, also after dead inputs.",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = nothing_cpu)},
        {.name = "RefIdentity",
         .attrs = "T: type",
         .inputs = "input: Ref(T)",
         .outputs = "output: Ref(T)",
         .flags = WEIR_OP_CHEAP | WEIR_OP_UNINITIALIZED_INPUT,
         .summary = "Returns the same reference.",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = ref_identity_grad,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = ref_identity_cpu)},
        {.name = "Assert",
         .attrs = "T: list(type) >= 1; summarize: int = 3",
         .inputs = "condition: bool; data: T",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .summary = "Fails with its inputs in the message when the condition is false.",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute = assert_cpu)},
        {.name = "Abort",
         .attrs = "error_msg: string = ''; exit_without_error: bool = false",
         .flags = WEIR_OP_CHEAP | WEIR_OP_NO_FOLD,
         .summary = "Fails the step.",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute = abort_cpu)},
        {0}}};
