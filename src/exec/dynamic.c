// dynamic.c — The general executor's threads: taking ready nodes, running kernels, finishing
// activations.
//
// A step is a run: one lock, a stack of ready nodes, and any number of threads that take from it.
// Whoever completes a node propagates its outputs (propagate.c) under the lock, which pushes what
// became ready, and takes the newest: its inputs are warm. Kernels run without the lock, except
// those that only hand values on and would be over before it is taken again. Functions that kernels
// call within their step are activations of the same run, with a callback, so that calls of any
// depth share one stack of ready nodes and no thread waits for a callee.
//
// Three things make it hard, and most of the file is about them.
// - Nobody may be left waiting. The thread that called weir_dynamic_run sleeps when it finds
//   nothing; helpers are woken only for what is worth a thread, by measured cost; a thread that
//   brings the result of an asynchronous kernel is anyone's, a socket's or a device's, and may only
//   run what is brief. Ready nodes therefore always have someone who will look: a thread in |work|,
//   the sleeping caller, or a pool thread that |leave| asks for.
// - The end. A run ends when its root activation is through and |helpers| is zero; an activation is
//   through when nothing of it is outstanding and no kernel is in flight. Every other thread that
//   comes in counts itself in |helpers| before it may touch anything, and |leave| is the last thing
//   it does.
// - Callbacks run without the lock and may complete further nodes, of the same run too. They are
//   queued in |through| and called from one loop a thread, so the stack does not grow with the
//   depth of calls, and an activation is unlinked before its callback, which may destroy what it
//   refers to.
//
// After the first error nothing is propagated any more: kernels in flight are waited for, since
// they read memory of the run, and the cancellation of the step wakes those that block. That too
// calls back, so it is started once and outside the lock.
#include "exec/dynamic.h"

#include "base/perturb.h"
#include "exec/dynamic_state.h"
#include "exec/linear.h"
#include "exec/node_run.h"
#include "op/promise.h"

// An asynchronous kernel in flight: its context must outlive the call.
typedef struct async_t {
  ready_t item;
  weir_kernel_ctx_t ctx;
  int64_t start_ns;
  weir_stream_span_t span;  // only in traced runs
  weir_value_t outputs[];
} async_t;

enum { EXPENSIVE_NS = 10000 };  // a node this slow is worth waking a thread for

static run_t* run_of(weir_step_t* step) { return (run_t*)step; }

// ---- finishing ----

static void root_done(void* arg, weir_status_t* take_status);

// The codes are TensorFlow's: it is the client's fault to fetch a dead value, a function's not to
// have one.
static weir_status_t* missing_result(const activation_t* activation, int32_t index) {
  weir_code_t code = activation->done.fn == root_done ? WEIR_INVALID_ARGUMENT : WEIR_INTERNAL;
  return weir_status_create(code, __FILE__, __LINE__,
                            "Retval[%d] does not have value: it was computed on a branch not taken",
                            (int)index);
}

// What the caller of |activation| is told. Only a success keeps its results.
static weir_status_t* outcome(run_t* run, activation_t* activation) WEIR_REQUIRES(run->mu) {
  weir_status_t* status = weir_status_copy(run->status);
  for (int32_t i = 0; i < activation->plan->ret_count && !status; ++i) {
    if (!activation->rets[i]) status = missing_result(activation, i);
  }
  for (int32_t i = 0; i < activation->plan->ret_count && status; ++i) {
    weir_tensor_release(activation->rets[i]);
    activation->rets[i] = NULL;
  }
  return status;
}

// If nothing of |activation| is left, takes it off the run; call_back tells its caller.
static void finish_if_through(run_t* run, activation_t* activation) WEIR_REQUIRES(run->mu) {
  if (!weir_activation_is_through(activation)) return;
  activation->status = outcome(run, activation);
  weir_activation_unlink(activation);
  activation->next = run->through;
  run->through = activation;
}

// Runs for which a thread is calling back, innermost first.
typedef struct caller_t {
  const run_t* run;
  const struct caller_t* outer;
} caller_t;
static _Thread_local const caller_t* callers;

static bool is_calling_back(const run_t* run) {
  const caller_t* caller = callers;
  while (caller && caller->run != run) caller = caller->outer;
  return caller != NULL;
}

// Calls the callbacks of activations that are through, without the lock. They may end others, whose
// callbacks come next in this loop and not within the callback that ended them: the stack does not
// grow with the depth of calls.
static void call_back(run_t* run) WEIR_REQUIRES(run->mu) {
  if (!run->through || is_calling_back(run)) return;
  caller_t caller = {.run = run, .outer = callers};
  callers = &caller;
  while (run->through) {
    activation_t* activation = run->through;
    run->through = activation->next;
    weir_done_t done = activation->done;
    weir_status_t* status = activation->status;
    weir_activation_destroy(activation);
    weir_mutex_unlock(&run->mu);
    weir_done_call(done, status);
    weir_mutex_lock(&run->mu);
  }
  callers = caller.outer;
}

// Whoever aborted the run ends every activation that has no kernel in flight. The others end with
// their last kernel.
static void finish_aborted(run_t* run) WEIR_REQUIRES(run->mu) {
  for (activation_t *activation = run->activations, *next; activation; activation = next) {
    next = activation->next;
    finish_if_through(run, activation);
  }
  call_back(run);
}

// Cancels what is blocked once the run is aborted, outside the lock since it calls back.
static void cancel_if_aborted(run_t* run) WEIR_REQUIRES(run->mu) {
  if (!run->is_aborted || run->is_cancel_started) return;
  run->is_cancel_started = true;
  weir_mutex_unlock(&run->mu);
  weir_cancel_start(run->step.cancel);
  weir_mutex_lock(&run->mu);
}

// Aborts the run, unless it is.
static void fail(run_t* run, weir_status_t* take_status) WEIR_REQUIRES(run->mu) {
  bool is_first = !run->is_aborted;
  weir_run_fail(run, take_status);
  if (!is_first) return;
  cancel_if_aborted(run);
  finish_aborted(run);
}

static __attribute__((noinline)) void end_ended(run_t* run, activation_t* activation)
    WEIR_REQUIRES(run->mu) {
  if (run->is_aborted) {  // before, or because memory is exhausted
    cancel_if_aborted(run);
    finish_aborted(run);
  } else {
    finish_if_through(run, activation);
    call_back(run);
  }
}

// Ends what ended with the last propagation into |activation|: mostly nothing.
WEIR_INLINE void settle(run_t* run, activation_t* activation) WEIR_REQUIRES(run->mu) {
  if (WEIR_LIKELY(!run->is_aborted && activation->outstanding_ops > 0 && !run->through)) return;
  end_ended(run, activation);
}

// The node of |item| is through: propagate, then see whether that was the last one.
static void complete(run_t* run, const ready_t* item, weir_value_t* outputs, bool is_dead,
                     weir_status_t* take_status) WEIR_REQUIRES(run->mu) {
  if (run->is_aborted) {
    weir_status_destroy(take_status);
    finish_if_through(run, item->activation);
    call_back(run);
  } else if (take_status) {
    fail(run, take_status);
  } else {
    weir_propagate(item, outputs, is_dead);
    settle(run, item->activation);
  }
}

// ---- running one node ----

static void fill_ctx(run_t* run, const ready_t* item, weir_value_t* outputs,
                     weir_kernel_ctx_t* ctx) {
  const weir_plan_t* plan = item->activation->plan;
  const weir_plan_node_t* node = &plan->nodes[item->node];
  *ctx = (weir_kernel_ctx_t){.node = node->def,
                             .kernel = node->kernel,
                             .state = node->state,
                             .inputs = item->iteration->slots + node->first_slot,
                             .outputs = outputs,
                             .device = node->device,
                             .host_outputs = node->host_outputs,
                             .step = &run->step,
                             .input_count = node->input_count,
                             .output_count = node->output_count,
                             .frame_id = item->iteration->frame->id,
                             .iteration = item->iteration->number,
                             .is_input_dead = item->is_dead};
}

static void note_cost(weir_plan_node_t* node, int64_t elapsed_ns, int64_t bytes) {
  int32_t old = atomic_load_explicit(&node->cost_ns,
                                     memory_order_relaxed);  // a statistic: lost updates do no harm
  int64_t cost = old < 0 ? elapsed_ns : old + (elapsed_ns - old) / 8;
  atomic_store_explicit(&node->cost_ns, (int32_t)WEIR_MIN(cost, INT32_MAX), memory_order_relaxed);
  atomic_store_explicit(&node->cost_bytes, bytes, memory_order_relaxed);
}

static void help(void* arg);
static void end(run_t* run);

static void run_node(run_t* run, const ready_t* item) WEIR_REQUIRES(run->mu);

// Whether a thread that has other things to do may run |item|.
static bool is_brief(const ready_t* item) {
  const weir_plan_node_t* node = &item->activation->plan->nodes[item->node];
  int32_t cost = atomic_load_explicit(&node->cost_ns, memory_order_relaxed);
  if (node->is_cheap || item->is_dead) return true;
  if (cost < 0 || cost >= EXPENSIVE_NS || node->is_unbounded) return false;
  int64_t known = atomic_load_explicit(&node->cost_bytes, memory_order_relaxed);
  const weir_value_t* inputs = item->iteration->slots + node->first_slot;
  return weir_node_bytes(inputs, node->input_count) <= WEIR_MAX(known, WEIR_FEW_BYTES);
}

static void put_on_top(run_t* run, size_t chosen) WEIR_REQUIRES(run->mu) {
  ready_t item = run->ready[chosen];
  size_t above = run->ready_count - 1 - chosen;
  memmove(run->ready + chosen, run->ready + chosen + 1, above * sizeof(*run->ready));
  run->ready[run->ready_count - 1] = item;
}

// What streams should get next: a copy, since it waits for all that its device was given before,
// and someone else for it; or else the oldest, or one device waits for what another does last.
static size_t find_next(const run_t* run) WEIR_REQUIRES(run->mu) {
  for (size_t i = 0; i < run->ready_count; ++i) {
    const ready_t* item = &run->ready[i];
    if (item->activation->plan->nodes[item->node].is_copy) return i;
  }
  return 0;
}

// Puts the node to be taken next on top of the stack. The newest is there: what it reads is in the
// cache. Perturbed, any order will do.
static void choose_next(run_t* run) WEIR_REQUIRES(run->mu) {
  if (run->ready_count < 2) return;
  if (weir_perturb_is_on()) put_on_top(run, weir_perturb_draw(run->ready_count));
  else if (WEIR_UNLIKELY(run->params->plan->has_streams)) put_on_top(run, find_next(run));
}

// Runs what is ready and brief, on a thread that is only passing by: not for long, since a loop is
// many short nodes. Not when another thread is in the run already, which may be a caller of this
// one.
static void work_briefly(run_t* run) WEIR_REQUIRES(run->mu) {
  enum { STAY_NS = 500000, LOOK_EVERY = 16 };
  if (run->helpers > 1) return;
  int64_t start = 0;
  choose_next(run);
  for (int i = 1; run->ready_count > 0 && is_brief(&run->ready[run->ready_count - 1]); ++i) {
    ready_t item = run->ready[--run->ready_count];
    run_node(run, &item);
    choose_next(run);
    if (i % LOOK_EVERY != 0) continue;
    if (!start) start = weir_clock_ns();
    else if (weir_clock_ns() - start > STAY_NS) return;
  }
}

// Whether what is ready needs one more thread: nobody else is in the run, or it is worth a thread
// of its own.
static bool needs_thread(run_t* run) WEIR_REQUIRES(run->mu) {
  if (run->ready_count == 0) return false;
  if (run->helpers == 1) return true;
  return run->helpers < weir_pool_thread_count(run->params->inter_pool) &&
         !is_brief(&run->ready[0]);
}

// This thread, counted among the helpers, is through with the run for now. What became ready is for
// the thread that waits; where none does, for this one if it is brief, else for a pool thread. What
// is part of a cancellation does not end the run itself, since the end has to wait for it.
static void leave(run_t* run) WEIR_RELEASE(run->mu) {
  bool is_unattended = run->finished.fn != NULL;
  if (is_unattended) work_briefly(run);
  bool is_last = is_unattended && run->is_done && run->helpers == 1;
  bool is_cancelled = weir_cancel_is_cancelled(run->step.cancel) && !run->is_on_pool;
  if ((is_last && is_cancelled) || (is_unattended && needs_thread(run))) {
    run->is_on_pool = is_last;
    weir_mutex_unlock(&run->mu);  // and stays a helper, in the person of a pool thread
    weir_pool_submit(run->params->inter_pool, help, run);
    return;
  }
  --run->helpers;
  if (is_last) run->is_ended = true;
  weir_cond_broadcast(&run->wake);  // under the lock: the run may be gone once it is released
  weir_mutex_unlock(&run->mu);
  if (is_last) end(run);
}

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
  complete(run, &async->item, async->outputs, is_dead, status);
  weir_node_release_inputs(async->outputs, output_count);
  weir_free(async);
  leave(run);
}

static void start_traced(async_t* async, const weir_plan_node_t* node) {
  weir_stream_span_t* outer = weir_span_set(&async->span);
  async->start_ns = weir_clock_ns();
  node->start(&async->ctx, (weir_done_t){.fn = async_done, .arg = async});
  weir_span_set(outer);
}

static void start_async(run_t* run, const ready_t* item, weir_plan_node_t* node)
    WEIR_REQUIRES(run->mu) {
  async_t* async =
      weir_calloc(1, sizeof(*async) + sizeof(weir_value_t) * (size_t)node->output_count);
  if (!async) {
    complete(run, item, NULL, false, weir_out_of_memory());
    return;
  }
  async->item = *item;
  fill_ctx(run, item, async->outputs, &async->ctx);
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
  fill_ctx(run, item, queued->values + node->input_count, &queued->ctx);
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
    complete(run, &queued->item, queued->ctx.outputs, false, status);
  } else if (status && !run->is_aborted) {
    fail(run, status);
  } else {
    weir_status_destroy(status);
    settle(run, activation);
  }
  queued_release(queued);
  leave(run);
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

static void start_queued(run_t* run, const ready_t* item, const weir_plan_node_t* node)
    WEIR_REQUIRES(run->mu) {
  queued_t* queued = queued_create(run, item, node);
  if (!queued) {
    complete(run, item, NULL, false, weir_out_of_memory());
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
  if (queued->promised) complete(run, item, queued->handed, false, NULL);
  else settle(run, item->activation);  // it may have ended meanwhile
  queued_release(queued);
}

// Not inline: it would crowd the path of all other runs.
static __attribute__((noinline)) weir_status_t* compute_traced(run_t* run, const ready_t* item,
                                                               const weir_plan_node_t* node,
                                                               weir_kernel_ctx_t* ctx) {
  weir_trace_event_t event;
  weir_trace_begin(&event, node->def, node->device, item->since_ns);
  weir_status_t* status = node->compute(ctx);
  weir_trace_end(run->params->trace, &event, ctx->outputs, node->output_count);
  return status;
}

static weir_status_t* compute_measured(run_t* run, const ready_t* item,
                                       const weir_plan_node_t* plan_node, weir_kernel_ctx_t* ctx) {
  weir_plan_node_t* node = (weir_plan_node_t*)plan_node;  // statistics only
  if (WEIR_UNLIKELY(run->params->trace != NULL)) return compute_traced(run, item, node, ctx);
  bool is_due =
      atomic_load_explicit(&node->cost_ns, memory_order_relaxed) < 0 || (ctx->iteration & 15) == 0;
  if (!is_due) return node->compute(ctx);
  int64_t bytes = weir_node_bytes(ctx->inputs, node->input_count);
  int64_t start = weir_clock_ns();
  weir_status_t* status = node->compute(ctx);
  note_cost(node, weir_clock_ns() - start, bytes);
  return status;
}

static weir_status_t* compute(run_t* run, const ready_t* item, const weir_plan_node_t* node,
                              weir_kernel_ctx_t* ctx) {
  if (node->is_cheap && !run->params->trace) return node->compute(ctx);
  weir_node_interrupt_t interrupt = weir_node_interrupt(ctx, run->params->deadline_ns);
  weir_interrupt_t* before = weir_interrupt_set(&interrupt.base);
  weir_status_t* status = compute_measured(run, item, node, ctx);
  weir_interrupt_set(before);
  if (WEIR_LIKELY(!weir_node_interrupt_is_hit(&interrupt))) return status;
  weir_status_destroy(status);  // left undone: what it made is of no use
  return weir_step_check(ctx->step, interrupt.deadline_ns);
}

WEIR_NO_THREAD_SAFETY  // the lock is released or not by what the node is
    static void
    run_sync(run_t* run, const ready_t* item, weir_plan_node_t* node) {
  enum { INLINE_OUTPUTS = 8 };
  weir_value_t few[INLINE_OUTPUTS] = {{NULL, NULL}};
  weir_value_t* outputs = few;
  if (node->output_count > INLINE_OUTPUTS)
    outputs = weir_calloc((size_t)node->output_count, sizeof(*outputs));
  if (!outputs) {
    complete(run, item, NULL, false, weir_out_of_memory());
    return;
  }
  weir_kernel_ctx_t ctx;
  fill_ctx(run, item, outputs, &ctx);
  ++item->activation->in_flight;
  if (!node->runs_locked) weir_mutex_unlock(&run->mu);
  weir_status_t* status = weir_node_error(node, compute(run, item, node, &ctx));
  weir_node_release_inputs(ctx.inputs, node->input_count);
  if (!node->runs_locked) weir_mutex_lock(&run->mu);
  --item->activation->in_flight;
  complete(run, item, outputs, false, status);
  weir_node_release_inputs(outputs, node->output_count);
  if (outputs != few) weir_free(outputs);
}

static weir_status_t* take_ret(const ready_t* item, const weir_plan_node_t* node,
                               weir_value_t* inputs) {
  if (item->is_dead) return NULL;  // stays empty; finish_if_through says so if it is still wanted
  item->activation->rets[node->ret] = inputs[0].tensor;
  inputs[0].tensor = NULL;
  return NULL;
}

// Runs one ready node. The lock is held on entry and on return.
static void run_node(run_t* run, const ready_t* item) WEIR_REQUIRES(run->mu) {
  weir_plan_t* plan = item->activation->plan;
  weir_plan_node_t* node = &plan->nodes[item->node];
  weir_value_t* inputs = item->iteration->slots + node->first_slot;
  bool runs_dead = node->role == WEIR_ROLE_SEND;
  if (item->is_dead && !runs_dead) {
    weir_node_release_inputs(inputs, node->input_count);
    complete(run, item, NULL, true, NULL);
    return;
  }
  if (node->const_count) weir_node_bind_consts(plan, node, inputs);
  weir_status_t* status =
      node->input_work && !item->is_dead ? weir_node_prepare_inputs(node, inputs) : NULL;
  if (!status && !node->kernel && node->ret >= 0) status = take_ret(item, node, inputs);
  if (status || !node->kernel) {
    complete(run, item, NULL, item->is_dead, weir_node_error(node, status));
  } else if (node->compute) {
    run_sync(run, item, node);
  } else if (node->start) {
    start_async(run, item, node);
  } else {
    start_queued(run, item, node);
  }
}

// ---- threads ----

// Whether there is more to do than this thread and its helpers have at hand, and it is worth a
// thread.
static bool is_help_due(const run_t* run) {
  bool is_perturbed = weir_perturb_is_on();
  if (run->ready_count <= 2 && !is_perturbed) return false;
  int threads = weir_pool_thread_count(run->params->inter_pool);
  if (run->helpers >= threads - 1) return false;
  return is_perturbed ? weir_perturb_draw(2) == 1 : !is_brief(&run->ready[0]);
}

// Wakes another thread. Lets go of the lock: whatever was ready may have been taken, or the run
// aborted, when it returns.
static void get_help(run_t* run) WEIR_REQUIRES(run->mu) {
  ++run->helpers;
  weir_mutex_unlock(&run->mu);
  weir_pool_submit(run->params->inter_pool, help, run);
  weir_mutex_lock(&run->mu);
}

static bool is_overdue(const run_t* run) {
  int64_t deadline = run->params->deadline_ns;
  return deadline && !run->is_aborted && weir_clock_ns() > deadline;
}

// Runs ready nodes until there are none. The lock is held on entry and on return. A node is taken
// and run under one hold of the lock: in between, nothing but the stack of ready nodes would keep
// its activation from being destroyed.
static void work(run_t* run) WEIR_REQUIRES(run->mu) {
  while (run->ready_count > 0) {
    if (is_overdue(run)) {
      fail(run, WEIR_STATUS(DEADLINE_EXCEEDED, "Timed out while running the step"));
      continue;
    }
    if (is_help_due(run)) {
      get_help(run);
      if (run->ready_count == 0) break;
    }
    choose_next(run);
    ready_t item = run->ready[--run->ready_count];
    run_node(run, &item);
  }
}

static void help(void* arg) {
  run_t* run = arg;
  weir_mutex_lock(&run->mu);
  work(run);
  leave(run);
}

static void root_done(void* arg, weir_status_t* take_status) {
  run_t* run = arg;
  weir_mutex_lock(&run->mu);
  if (take_status && !run->status) run->status = take_status;
  else weir_status_destroy(take_status);
  run->is_done = true;
  weir_cond_broadcast(&run->wake);
  weir_mutex_unlock(&run->mu);
}

static void on_cancel(void* arg) {
  run_t* run = arg;
  weir_mutex_lock(&run->mu);
  if (run->is_ended) {  // and waits for this callback to return
    weir_mutex_unlock(&run->mu);
    return;
  }
  ++run->helpers;
  if (!run->is_aborted && !run->is_done) {
    weir_run_fail(run, WEIR_STATUS(CANCELLED, "Step was cancelled"));
    run->is_cancel_started = true;  // by whoever called
    finish_aborted(run);
  }
  leave(run);
}

// While others run nodes of this step, the calling thread lends itself to their kernels: it is one
// of the pool's threads, too.
static bool lend_thread(run_t* run) WEIR_REQUIRES(run->mu) {
  enum { LOOK_AGAIN_NS = 50000 };
  if (run->helpers == 0) return false;
  weir_mutex_unlock(&run->mu);
  bool was_useful = weir_pool_assist(run->params->inter_pool);
  weir_mutex_lock(&run->mu);
  if (!was_useful && run->ready_count == 0 && !run->is_done) {
    weir_cond_wait_until(&run->wake, &run->mu, weir_clock_ns() + LOOK_AGAIN_NS);
  }
  return true;
}

static void wait_for_work(run_t* run) WEIR_REQUIRES(run->mu) {
  int64_t deadline = run->params->deadline_ns;
  bool is_late = deadline && weir_clock_ns() > deadline;
  if (!is_late && lend_thread(run)) return;
  if (!deadline || run->is_aborted) {
    weir_cond_wait(&run->wake, &run->mu);
  } else if (is_late || !weir_cond_wait_until(&run->wake, &run->mu, deadline)) {
    fail(run, WEIR_STATUS(DEADLINE_EXCEEDED, "Timed out while running the step"));
  }
}

static void run_to_end(run_t* run) WEIR_REQUIRES(run->mu) {
  while (!run->is_done || run->helpers > 0) {
    work(run);
    if (run->is_done && run->helpers == 0) break;
    if (run->ready_count == 0) wait_for_work(run);
  }
}

static weir_status_t* check_args(const weir_plan_t* plan, weir_tensor_t* const* args) {
  for (int32_t i = 0; i < plan->arg_count; ++i) {
    if (plan->args[i] >= 0) WEIR_TRY(weir_node_check_arg(&plan->nodes[plan->args[i]], i, args[i]));
  }
  return NULL;
}

// ---- beginning and end ----

static weir_status_t* begin(const weir_run_params_t* params, const weir_step_t* step_template,
                            run_t** out_run) {
  WEIR_TRY(check_args(params->plan, params->args));
  run_t* run = weir_calloc(1, sizeof(*run));
  if (!run) return weir_out_of_memory();
  memcpy(&run->step, step_template, sizeof(run->step));
  run->params = params;
  weir_mutex_init(&run->mu);
  weir_cond_init(&run->wake);
  *out_run = run;
  return NULL;
}

// Makes the first nodes ready.
static void launch(run_t* run) {
  weir_mutex_lock(&run->mu);
  weir_done_t done = {.fn = root_done, .arg = run};
  activation_t* root = weir_activation_create(run, run->params->plan, run->params->rets, done);
  if (root) {
    weir_propagate_start(root, run->params->args);
    settle(run, root);
  } else {
    run->status = weir_out_of_memory();
    run->is_done = true;
  }
  weir_mutex_unlock(&run->mu);
  run->cancel_token = weir_cancel_register(run->step.cancel, on_cancel, run);
  if (!run->cancel_token && weir_cancel_is_cancelled(run->step.cancel)) on_cancel(run);
}

static weir_status_t* destroy(run_t* run) {
  if (run->cancel_token) weir_cancel_deregister(run->step.cancel, run->cancel_token);
  weir_status_t* status = run->status;
  // A cancellation or the deadline may come between the last result and the end.
  for (int32_t i = 0; i < run->params->plan->ret_count && status; ++i) {
    weir_tensor_release(run->params->rets[i]);
    run->params->rets[i] = NULL;
  }
  weir_free(run->ready);
  weir_cond_destroy(&run->wake);
  weir_mutex_destroy(&run->mu);
  weir_free(run);
  return status;
}

// Ends a run that nobody waits for.
static void end(run_t* run) {
  weir_done_t finished = run->finished;
  weir_done_call(finished, destroy(run));
}

weir_status_t* weir_dynamic_run(const weir_run_params_t* params, const weir_step_t* step_template) {
  run_t* run = NULL;
  WEIR_TRY(begin(params, step_template, &run));
  launch(run);
  weir_mutex_lock(&run->mu);
  run_to_end(run);
  weir_mutex_unlock(&run->mu);
  return destroy(run);
}

void weir_dynamic_start(const weir_run_params_t* params, const weir_step_t* step_template,
                        weir_done_t finished) {
  run_t* run = NULL;
  weir_status_t* status = begin(params, step_template, &run);
  if (status) {
    weir_done_call(finished, status);
    return;
  }
  run->own_params = *params;
  run->params = &run->own_params;
  run->finished = finished;
  run->helpers = 1;  // this thread
  launch(run);
  weir_mutex_lock(&run->mu);
  if (!params->is_brief) work(run);
  leave(run);
}

// RESOURCE_EXHAUSTED when so many calls are under way that one more might be one too many.
static weir_status_t* check_depth(const weir_plan_t* plan, const char* name) {
  if (weir_activation_fits(plan)) return NULL;
  return WEIR_STATUS(RESOURCE_EXHAUSTED,
                     "Function '%s' cannot be called: the calls under way take all the memory that "
                     "calls may. Does it call itself without end?",
                     name);
}

void weir_run_call(weir_plan_t* plan, const char* name, weir_kernel_ctx_t* ctx,
                   weir_tensor_t* const* args, weir_tensor_t** rets, weir_done_t done) {
  weir_status_t* status = check_args(plan, args);
  run_t* run = run_of(ctx->step);
  if (!status && plan->is_linear && !weir_perturb_is_on()) {
    status =
        weir_linear_run(plan, ctx->step, args, rets, run->params->trace, run->params->deadline_ns);
    weir_done_call(done, status);
    return;
  }
  if (!status) status = check_depth(plan, name);
  if (status) {
    weir_done_call(done, status);
    return;
  }
  weir_mutex_lock(&run->mu);
  activation_t* activation = weir_activation_create(run, plan, rets, done);
  if (!activation) {
    weir_mutex_unlock(&run->mu);
    weir_done_call(done, weir_out_of_memory());
    return;
  }
  ++run->helpers;  // the caller may be anyone's thread
  weir_propagate_start(activation, args);
  settle(run, activation);
  leave(run);
}
