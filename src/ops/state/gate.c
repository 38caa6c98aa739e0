// gate.c — _HoldWrites, _AwaitWrites, _OpenWrites: the rounds in which a step takes the variables
// of its tasks between the steps that write to them (op/gate.h). Masters add them (pass/fence.h).
//
// Where steps pass no gate, in a process without a server, they do nothing.
#include "op/gate.h"

#include "base/alloc.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

static weir_gate_t* gate_of(const weir_kernel_ctx_t* ctx) {
  return weir_gate_of(ctx->step->session_resources);
}

// ---- _HoldWrites ----

static weir_status_t* list_passed(weir_kernel_ctx_t* ctx) {
  int64_t* steps = NULL;
  size_t count = 0;
  weir_tensor_t* out = NULL;
  weir_gate_t* gate = gate_of(ctx);
  if (gate) WEIR_TRY(weir_gate_list(gate, &steps, &count));
  weir_status_t* status = weir_kernel_output(ctx, 0, 1, &(int64_t){(int64_t)count}, &out);
  if (!status && count) memcpy(out->data, steps, count * sizeof(*steps));
  weir_free(steps);
  return status;
}

typedef struct holding_t {
  weir_kernel_ctx_t* ctx;
  weir_done_t done;
} holding_t;

static void is_held(void* arg, weir_status_t* take_status) {
  holding_t holding = *(holding_t*)arg;
  weir_free(arg);
  weir_done_call(holding.done, take_status ? take_status : list_passed(holding.ctx));
}

static void hold_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_gate_t* gate = gate_of(ctx);
  holding_t* holding = gate ? weir_malloc(sizeof(*holding)) : NULL;
  if (!holding) {
    weir_done_call(done, gate ? weir_out_of_memory() : list_passed(ctx));
    return;
  }
  *holding = (holding_t){.ctx = ctx, .done = done};
  weir_gate_hold(gate, ctx->step->id, ctx->step->cancel,
                 (weir_done_t){.fn = is_held, .arg = holding});
}

// ---- _AwaitWrites ----

static void await_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  const weir_tensor_t* steps = weir_kernel_input(ctx, 0);
  weir_gate_t* gate = gate_of(ctx);
  if (gate)
    weir_gate_await(gate, ctx->step->id, steps->data, (size_t)steps->count, ctx->step->cancel,
                    done);
  else weir_done_call(done, NULL);
}

// ---- _OpenWrites ----

static weir_status_t* open_cpu(weir_kernel_ctx_t* ctx) {
  weir_gate_t* gate = gate_of(ctx);
  return gate ? weir_gate_open(gate, ctx->step->id) : NULL;
}

static weir_status_t* hold_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set_vector(ctx, 0, -1);
}

const weir_op_module_t weir_ops_state_gate = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "_HoldWrites",
         .outputs = "steps: int64",
         .flags = WEIR_OP_STATEFUL,
         .summary =
             "Holds up steps that would write to variables of this task; says which have begun",
         .infer_shape = hold_shape,
         .kernels = WEIR_CPU_KERNEL(.compute_async = hold_cpu)},
        {.name = "_AwaitWrites",
         .inputs = "steps: int64",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Lets some steps write nevertheless, and waits for the end of all that do",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute_async = await_cpu)},
        {.name = "_OpenWrites",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Lets all steps write again",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute = open_cpu)},
        {0}}};
