// dynamic_async.c — Nodes that are through later than the thread that started them: asynchronous
// kernels, kernels in the stream of their device, and writes that wait for the gate.
#include "exec/dynamic_internal.h"
#include "exec/node_run.h"
#include "op/gate.h"
#include "op/promise.h"

// ---- asynchronous kernels ----

// An asynchronous kernel in flight: its context must outlive the call.
typedef struct async_t {
  ready_t item;
  weir_kernel_ctx_t ctx;
  int64_t start_ns;
  weir_stream_span_t span;  // only in traced runs
  weir_value_t outputs[];
} async_t;

// |start_ns| may be 0: it never came to that.
static void trace_async(run_t* run, const ready_t* item, int64_t start_ns,
                        weir_alloc_meter_t memory, weir_stream_span_t span,
                        const weir_value_t* outputs) {
  const weir_plan_node_t* node = &item->activation->plan->nodes[item->node];
  if (!run->params->trace) return;
  const int64_t end_ns = weir_clock_ns();
  weir_trace_event_t event = {.node = node->def,
                              .memory = memory,
                              .span = span,
                              .device = node->device,
                              .ready_ns = item->since_ns,
                              .start_ns = start_ns ? start_ns : end_ns,
                              .end_ns = end_ns};
  weir_trace_add(run->params->trace, event, outputs, node->output_count);
}

static void async_done(void* arg, weir_status_t* take_status) {
  async_t* async = arg;
  run_t* run = async->item.activation->run;
  const weir_plan_node_t* node = &async->item.activation->plan->nodes[async->item.node];
  weir_alloc_meter_t memory = {.host = {0}};
  if (node->is_copy && run->params->trace)
    memory = weir_trace_fresh(async->outputs, node->output_count);
  weir_span_forget(&async->span);  // the kernel may be done before its start returns
  trace_async(run, &async->item, async->start_ns, memory, async->span, async->outputs);
  int32_t output_count = node->output_count;
  weir_mutex_lock(&run->mu);
  // Of a run that is aborted nobody hears it, and there may be a million calls to unwind.
  weir_status_t* status = run->is_aborted ? take_status : weir_node_error(node, take_status);
  ++run->helpers;  // the run must not end while this thread, which may be anyone's, is in it
  weir_node_release_inputs(async->ctx.inputs, node->input_count);
  --async->item.activation->in_flight;
  // What arrives dead makes its receiver dead, also for those that only wait for it.
  bool is_dead = node->role == WEIR_ROLE_RECV && !async->outputs[0].tensor;
  weir_run_complete(run, &async->item, async->outputs, is_dead, status);
  weir_node_release_inputs(async->outputs, output_count);
  weir_free(async);
  weir_run_leave(run);
}

static void start_traced(async_t* async, const weir_plan_node_t* node) {
  weir_stream_span_t* outer = weir_span_set(&async->span);
  async->start_ns = weir_clock_ns();
  node->start(&async->ctx, (weir_done_t){.fn = async_done, .arg = async});
  weir_span_set(outer);
}

void weir_run_start_async(run_t* run, const ready_t* item, weir_plan_node_t* node)
    WEIR_REQUIRES(run->mu) {
  async_t* async =
      weir_calloc(1, sizeof(*async) + sizeof(weir_value_t) * (size_t)node->output_count);
  if (!async) {
    weir_run_complete(run, item, NULL, false, weir_out_of_memory());
    return;
  }
  async->item = *item;
  weir_run_fill_ctx(run, item, async->outputs, &async->ctx);
  ++item->activation->in_flight;
  weir_mutex_unlock(&run->mu);
  if (run->params->trace) start_traced(async, node);
  else node->start(&async->ctx, (weir_done_t){.fn = async_done, .arg = async});
  weir_mutex_lock(&run->mu);
}

// ---- kernels in the stream of their device ----

// Such a kernel has its inputs to itself: where its outputs are promised, they are handed on at
// once, and the iteration it belongs to may be over before it runs. The activation is not.
typedef struct queued_t {
  weir_ref_t ref;  // one is the stream's, one its submitter's
  ready_t item;
  weir_kernel_ctx_t ctx;
  weir_submit_trace_t trace;  // of promises and of the kernel; only in traced runs
  weir_value_t* promised;     // NULL: they come with the end of the kernel
  weir_value_t* handed;       // the same once more, for the readers
  int32_t value_count;
  weir_value_t values[];  // inputs, outputs, promised, handed
} queued_t;

static queued_t* queued_create(run_t* run, const ready_t* item, const weir_plan_node_t* node) {
  int32_t count = node->input_count + 3 * node->output_count;
  queued_t* queued = weir_calloc(1, sizeof(*queued) + sizeof(weir_value_t) * (size_t)count);
  if (!queued) return NULL;
  weir_ref_init(&queued->ref);
  queued->item = *item;
  queued->value_count = count;
  weir_run_fill_ctx(run, item, queued->values + node->input_count, &queued->ctx);
  size_t size = sizeof(weir_value_t) * (size_t)node->input_count;
  memcpy(queued->values, queued->ctx.inputs, size);
  memset(queued->ctx.inputs, 0, size);  // moved
  queued->ctx.inputs = queued->values;
  return queued;
}

static void queued_release(queued_t* queued) {
  if (!weir_ref_dec(&queued->ref)) return;
  weir_node_release_inputs(queued->values, queued->value_count);
  weir_free(queued);
}

static void queued_done(void* arg, weir_status_t* take_status) {
  queued_t* queued = arg;
  activation_t* activation = queued->item.activation;
  run_t* run = activation->run;
  trace_async(run, &queued->item, queued->trace.start_ns, queued->trace.memory,
              (weir_stream_span_t){0}, queued->ctx.outputs);
  weir_status_t* status = weir_node_error(&activation->plan->nodes[queued->item.node], take_status);
  weir_mutex_lock(&run->mu);
  ++run->helpers;
  --activation->in_flight;
  if (!queued->promised) {
    weir_run_complete(run, &queued->item, queued->ctx.outputs, false, status);
  } else if (status && !run->is_aborted) {
    weir_run_abort(run, status);
  } else {
    weir_status_destroy(status);
    weir_run_settle(run, activation);
  }
  queued_release(queued);
  weir_run_leave(run);
}

static void promise(queued_t* queued) {
  const weir_kernel_ctx_t* ctx = &queued->ctx;
  weir_value_t* promised = ctx->outputs + ctx->output_count;
  if (!weir_promise_make(ctx, promised)) return;
  queued->promised = promised;
  queued->handed = promised + ctx->output_count;
  for (int i = 0; i < ctx->output_count; ++i)
    queued->handed[i].tensor = weir_tensor_retain_inline(promised[i].tensor);
}

void weir_run_start_queued(run_t* run, const ready_t* item, const weir_plan_node_t* node)
    WEIR_REQUIRES(run->mu) {
  queued_t* queued = queued_create(run, item, node);
  if (!queued) {
    weir_run_complete(run, item, NULL, false, weir_out_of_memory());
    return;
  }
  item->activation->in_flight += 2;  // until it is through, and until it is handed on
  weir_ref_inc(&queued->ref, 1);
  weir_mutex_unlock(&run->mu);
  weir_submit_trace_t* trace = run->params->trace ? &queued->trace : NULL;
  if (trace) weir_alloc_meter_begin(&trace->memory);
  if (node->may_promise) promise(queued);
  if (trace) weir_alloc_meter_end(&trace->memory);
  weir_kernel_submit(&queued->ctx, queued->promised, trace,
                     (weir_done_t){.fn = queued_done, .arg = queued});
  weir_mutex_lock(&run->mu);
  --item->activation->in_flight;
  if (queued->promised) weir_run_complete(run, item, queued->handed, false, NULL);
  else weir_run_settle(run, item->activation);  // it may have ended meanwhile
  queued_release(queued);
}

// ---- the gate before writes ----

// A node that would write, and waits until its step may.
typedef struct held_back_t {
  run_t* run;
  ready_t item;
} held_back_t;

static void gate_passed(void* arg, weir_status_t* take_status) {
  held_back_t held = *(held_back_t*)arg;
  run_t* run = held.run;
  weir_free(arg);
  weir_mutex_lock(&run->mu);
  ++run->helpers;  // this thread, which may be anyone's
  --held.item.activation->in_flight;
  if (run->is_aborted || take_status) {
    weir_run_complete(run, &held.item, NULL, false, take_status);
  } else {
    run->has_passed = true;
    weir_run_put_back(run, &held.item);
    weir_run_settle(run, held.item.activation);
  }
  weir_run_leave(run);
}

bool weir_run_pass_gate(run_t* run, const ready_t* item) WEIR_REQUIRES(run->mu) {
  weir_gate_t* gate = run->params->gate;
  run->has_passed = weir_gate_try_pass(gate, run->step.id);
  if (run->has_passed) return true;
  held_back_t* held = weir_malloc(sizeof(*held));
  if (!held) {
    weir_run_complete(run, item, NULL, false, weir_out_of_memory());
    return false;
  }
  *held = (held_back_t){.run = run, .item = *item};
  ++item->activation->in_flight;
  weir_mutex_unlock(&run->mu);
  weir_gate_pass(gate, run->step.id, run->step.cancel,
                 (weir_done_t){.fn = gate_passed, .arg = held});
  weir_mutex_lock(&run->mu);
  return false;
}
