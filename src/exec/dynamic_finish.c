// dynamic_finish.c — How activations end, and with the last one the run: by their results, or
// because the run is aborted.
#include "exec/dynamic_internal.h"

void weir_run_root_done(void* arg, weir_status_t* take_status) {
  run_t* run = arg;
  weir_mutex_lock(&run->mu);
  if (take_status && !run->status) run->status = take_status;
  else weir_status_destroy(take_status);
  run->is_done = true;
  weir_cond_broadcast(&run->wake);
  weir_mutex_unlock(&run->mu);
}

// The codes are TensorFlow's: it is the client's fault to fetch a dead value, a function's not to
// have one.
static weir_status_t* missing_result(const activation_t* activation, int32_t index) {
  weir_code_t code =
      activation->done.fn == weir_run_root_done ? WEIR_INVALID_ARGUMENT : WEIR_INTERNAL;
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

void weir_run_finish_aborted(run_t* run) WEIR_REQUIRES(run->mu) {
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

void weir_run_abort(run_t* run, weir_status_t* take_status) WEIR_REQUIRES(run->mu) {
  bool is_first = !run->is_aborted;
  weir_run_fail(run, take_status);
  if (!is_first) return;
  cancel_if_aborted(run);
  weir_run_finish_aborted(run);
}

void weir_run_end_ended(run_t* run, activation_t* activation) WEIR_REQUIRES(run->mu) {
  if (run->is_aborted) {  // before, or because memory is exhausted
    cancel_if_aborted(run);
    weir_run_finish_aborted(run);
  } else {
    finish_if_through(run, activation);
    call_back(run);
  }
}

void weir_run_complete(run_t* run, const ready_t* item, weir_value_t* outputs, bool is_dead,
                       weir_status_t* take_status) WEIR_REQUIRES(run->mu) {
  if (run->is_aborted) {
    weir_status_destroy(take_status);
    finish_if_through(run, item->activation);
    call_back(run);
  } else if (take_status) {
    weir_run_abort(run, take_status);
  } else {
    weir_propagate(item, outputs, is_dead);
    weir_run_settle(run, item->activation);
  }
}
