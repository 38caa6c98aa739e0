// dynamic.c — The general executor's threads: taking ready nodes, running kernels. How activations
// end is in dynamic_finish.c, what is through later than it was started in dynamic_async.c.
//
// A step is a run: one lock, a stack of ready nodes, and any number of threads that take from it.
// Whoever completes a node propagates its outputs (propagate.c) under the lock, which pushes what
// became ready, and takes the newest: its inputs are warm. Kernels run without the lock, except
// those that only hand values on and would be over before it is taken again. Functions that kernels
// call within their step are activations of the same run, with a callback, so that calls of any
// depth share one stack of ready nodes and no thread waits for a callee.
//
// Three things make it hard, and most of the three files is about them.
// - Nobody may be left waiting. The thread that called weir_dynamic_run sleeps when it finds
//   nothing; helpers are woken only for what is worth a thread, by measured cost; a thread that
//   brings the result of an asynchronous kernel is anyone's, a socket's or a device's, and may only
//   run what is brief. Ready nodes therefore always have someone who will look: a thread in |work|,
//   the sleeping caller, or a pool thread that weir_run_leave asks for.
// - The end. A run ends when its root activation is through and |helpers| is zero; an activation is
//   through when nothing of it is outstanding and no kernel is in flight. Every other thread that
//   comes in counts itself in |helpers| before it may touch anything, and weir_run_leave is the
//   last thing it does.
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
#include "base/subnormal.h"
#include "exec/dynamic_internal.h"
#include "exec/linear.h"
#include "exec/node_run.h"

enum { EXPENSIVE_NS = 10000 };  // a node this slow is worth waking a thread for

static run_t* run_of(weir_step_t* step) { return (run_t*)step; }

// ---- running one node ----

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

void weir_run_leave(run_t* run) WEIR_RELEASE(run->mu) {
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
    weir_run_complete(run, item, NULL, false, weir_out_of_memory());
    return;
  }
  weir_kernel_ctx_t ctx;
  weir_run_fill_ctx(run, item, outputs, &ctx);
  ++item->activation->in_flight;
  if (!node->runs_locked) weir_mutex_unlock(&run->mu);
  weir_status_t* status = weir_node_error(node, compute(run, item, node, &ctx));
  weir_node_release_inputs(ctx.inputs, node->input_count);
  if (!node->runs_locked) weir_mutex_lock(&run->mu);
  --item->activation->in_flight;
  weir_run_complete(run, item, outputs, false, status);
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
    weir_run_complete(run, item, NULL, true, NULL);
    return;
  }
  if (WEIR_UNLIKELY(node->is_write && !run->has_passed) && !weir_run_pass_gate(run, item)) return;
  if (node->const_count) weir_node_bind_consts(plan, node, inputs);
  weir_status_t* status =
      node->input_work && !item->is_dead ? weir_node_prepare_inputs(node, inputs) : NULL;
  if (!status && !node->kernel && node->ret >= 0) status = take_ret(item, node, inputs);
  if (status || !node->kernel) {
    weir_run_complete(run, item, NULL, item->is_dead, weir_node_error(node, status));
  } else if (node->compute) {
    run_sync(run, item, node);
  } else if (node->start) {
    weir_run_start_async(run, item, node);
  } else {
    weir_run_start_queued(run, item, node);
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
  const weir_float_mode_t before = weir_flush_subnormals();
  while (run->ready_count > 0) {
    if (is_overdue(run)) {
      weir_run_abort(run, WEIR_STATUS(DEADLINE_EXCEEDED, "Timed out while running the step"));
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
  weir_float_mode_restore(before);
}

static void help(void* arg) {
  run_t* run = arg;
  weir_mutex_lock(&run->mu);
  work(run);
  weir_run_leave(run);
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
    weir_run_finish_aborted(run);
  }
  weir_run_leave(run);
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
    weir_run_abort(run, WEIR_STATUS(DEADLINE_EXCEEDED, "Timed out while running the step"));
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
  run->has_passed = !params->gate;
  weir_mutex_init(&run->mu);
  weir_cond_init(&run->wake);
  *out_run = run;
  return NULL;
}

// Makes the first nodes ready.
static void launch(run_t* run) {
  weir_mutex_lock(&run->mu);
  weir_done_t done = {.fn = weir_run_root_done, .arg = run};
  activation_t* root = weir_activation_create(run, run->params->plan, run->params->rets, done);
  if (root) {
    weir_propagate_start(root, run->params->args);
    weir_run_settle(run, root);
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
  weir_run_leave(run);
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
  bool is_held = plan->has_writes && run->params->gate;  // its writes may have to wait
  if (!status && plan->is_linear && !is_held && !weir_perturb_is_on()) {
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
  weir_run_settle(run, activation);
  weir_run_leave(run);
}
