// queue_runner.c — Queue runners: threads that run an enqueue node until the data or the patience
// of the coordinator ends.
#include "api/coordinator.h"
#include "base/alloc.h"

// What the threads of one runner share. The last one to leave frees it.
typedef struct group_t {
  weir_queue_runner_t runner;
  weir_session_t* session;
  weir_coordinator_t* coordinator;
  weir_cancellation_t* cancellation;  // of the steps that run now
  weir_ref_t ref;
  atomic_int working;  // threads that enqueue
  atomic_int runs;     // begun, where they are limited
  bool is_finished;    // guarded by the coordinator's mutex: none enqueues any more
} group_t;

static void release(group_t* group) {
  if (!weir_ref_dec(&group->ref)) return;
  weir_cancellation_destroy(group->cancellation);
  weir_free(group);
}

static weir_status_t* run_node(group_t* group, weir_node_t* node, bool is_cancellable) {
  weir_step_spec_t spec = {.targets = &node, .target_count = 1};
  weir_run_options_t options = {.cancellation = is_cancellable ? group->cancellation : NULL};
  weir_tensor_t* none = NULL;
  return weir_session_run_with(group->session, &spec, &options, &none, NULL, NULL);
}

// What a step ends with once a stop is requested says nothing.
static weir_status_t* unless_stopping(group_t* group, weir_status_t* take_status) {
  if (!take_status || !weir_coordinator_should_stop(group->coordinator)) return take_status;
  weir_code_t code = weir_status_code(take_status);
  if (code != WEIR_CANCELLED && code != WEIR_ABORTED && code != WEIR_OUT_OF_RANGE)
    return take_status;
  weir_status_destroy(take_status);
  return NULL;
}

static bool may_run(group_t* group) {
  if (weir_coordinator_should_stop(group->coordinator)) return false;
  return group->runner.runs <= 0 || atomic_fetch_add(&group->runs, 1) < group->runner.runs;
}

static weir_status_t* enqueue_thread(weir_coordinator_t* coordinator, void* arg) {
  group_t* group = arg;
  weir_status_t* status = NULL;
  while (!status && may_run(group)) status = run_node(group, group->runner.enqueue, true);
  if (weir_status_code(status) == WEIR_OUT_OF_RANGE) {  // the data is used up
    weir_status_destroy(status);
    status = NULL;
  }
  status = unless_stopping(group, status);
  if (status) weir_coordinator_request_stop(coordinator, weir_status_copy(status));
  if (atomic_fetch_sub(&group->working, 1) == 1) {
    if (!weir_coordinator_should_stop(coordinator) && group->runner.close)
      status = unless_stopping(group, run_node(group, group->runner.close, false));
    weir_coordinator_set_flag(coordinator, &group->is_finished);
  }
  release(group);
  return status;
}

// Waits for a stop, to wake those who are blocked in a step.
static weir_status_t* cancel_thread(weir_coordinator_t* coordinator, void* arg) {
  group_t* group = arg;
  weir_status_t* status = NULL;
  if (weir_coordinator_wait_flag(coordinator, &group->is_finished)) {
    if (group->runner.cancel)
      status = unless_stopping(group, run_node(group, group->runner.cancel, false));
    weir_cancellation_cancel(group->cancellation);
  }
  release(group);
  return status;
}

static weir_status_t* create_group(const weir_queue_runner_t* runner, weir_session_t* session,
                                   weir_coordinator_t* coordinator, group_t** out_group) {
  group_t* group = weir_calloc(1, sizeof(*group));
  if (!group) return weir_out_of_memory();
  weir_status_t* status = weir_cancellation_create(&group->cancellation);
  if (status) {
    weir_free(group);
    return status;
  }
  group->runner = *runner;
  group->session = session;
  group->coordinator = coordinator;
  weir_ref_init(&group->ref);
  *out_group = group;
  return NULL;
}

weir_status_t* weir_queue_runner_start(const weir_queue_runner_t* runner, weir_session_t* session,
                                       weir_coordinator_t* coordinator) {
  WEIR_REQUIRE_ARG(runner);
  group_t* group = NULL;
  const int count = runner->threads > 0 ? runner->threads : 1;
  if (!runner->enqueue) return WEIR_STATUS(INVALID_ARGUMENT, "a queue runner has no enqueue node");
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(coordinator);
  WEIR_TRY(create_group(runner, session, coordinator, &group));
  atomic_init(&group->working, count);
  atomic_init(&group->runs, 0);
  weir_ref_inc(&group->ref, count + 1);
  int started = 0;
  weir_status_t* status = weir_coordinator_start(coordinator, cancel_thread, group);
  bool is_watched = !status;
  for (; started < count && !status; started += !status)
    status = weir_coordinator_start(coordinator, enqueue_thread, group);
  if (status) {  // those that run must not wait for those that never came
    weir_coordinator_request_stop(coordinator, weir_status_copy(status));
    for (int i = started; i < count; ++i) release(group);
    if (!is_watched) release(group);
  }
  release(group);
  return status;
}
