// worker_run.c — Steps of registered graphs: RunGraph and CleanupGraph.
#include "base/details.h"
#include "cluster/task/fields.h"
#include "cluster/worker/worker_internal.h"

// What a RunGraphRequest asks for.
typedef struct run_request_t {
  worker_graph_key_t graph;
  int64_t step_id, request_id;
  bool wants_timeline, wants_partitions, errors_in_body;
  bool is_partial, is_last;
} run_request_t;

// A step of a registered graph, from the request to the answer. A partial run has several requests:
// the first starts the step, the last waits for its end; the worker's table holds it, too.
typedef struct step_run_t {
  weir_ref_t ref;
  weir_worker_t* worker;
  weir_rpc_call_t* call;  // partial: the last one, NULL before it; guarded by the worker's mu
  int64_t step_id;
  worker_graph_t* graph;  // retained
  weir_rendezvous_t* rendezvous;
  weir_cancel_t* cancel;
  weir_trace_t trace;
  bool is_traced, wants_partitions;
  bool errors_in_body;
  bool is_partial;
  bool is_ended;          // partial; guarded by the worker's mu
  weir_status_t* status;  // partial: how it ended
  weir_tensor_t* none;    // the plan has no results
} step_run_t;

static void cancel_run(void* arg) { weir_cancel_start(((step_run_t*)arg)->cancel); }

static weir_status_t* run_response(step_run_t* run, weir_status_t* error,
                                   weir_rpc_message_t** out_message) {
  weir_message_builder_t builder = {.message = NULL};
  if (error) {
    weir_wire_put_int(&builder.head, RUN_GRAPH_RESPONSE_STATUS_CODE, weir_status_code(error));
    weir_wire_put_string(&builder.head, RUN_GRAPH_RESPONSE_STATUS_ERROR_MESSAGE,
                         weir_status_message(error));
  } else if (run->is_traced) {
    const weir_alias_t* alias = run->graph->owner->alias;
    const weir_runtime_t* runtime = run->worker->task->runtime;
    weir_trace_devices_t devices = {.items = runtime->devices,
                                    .count = runtime->device_count,
                                    .task = alias ? alias->task : NULL};
    builder.status =
        weir_step_stats_write(&run->trace, &devices, RUN_GRAPH_RESPONSE_STEP_STATS, &builder.head);
  }
  if (!error && !builder.status && run->wants_partitions) {
    size_t partition = weir_wire_begin(&builder.head, RUN_GRAPH_RESPONSE_PARTITION_GRAPH);
    builder.status = weir_graph_write(run->graph->program->graph, &builder.head);
    weir_wire_end(&builder.head, partition);
  }
  return weir_message_finish(&builder, out_message);
}

static void run_unref(step_run_t* run) {
  if (!run || !weir_ref_dec(&run->ref)) return;
  weir_worker_graph_release(run->graph);
  weir_rendezvous_release(run->rendezvous);
  weir_cancel_destroy(run->cancel);
  if (run->is_traced) weir_trace_free(&run->trace);
  weir_status_destroy(run->status);
  weir_free(run);
}

static void leave(weir_worker_t* worker) {
  weir_mutex_lock(&worker->mu);
  if (--worker->running_count == 0) weir_cond_broadcast(&worker->idle);
  weir_mutex_unlock(&worker->mu);
}

// Answers |call| with how the run ended, and gives up a reference to the run.
static void answer(step_run_t* take_run, weir_rpc_call_t* call, weir_status_t* take_status) {
  step_run_t* run = take_run;
  weir_rpc_message_t* message = NULL;
  weir_status_t* status = take_status;
  if (!status || run->errors_in_body) {
    weir_status_t* failed = run_response(run, status, &message);
    if (failed) weir_status_destroy(status);
    if (failed) status = failed;
  }
  run_unref(run);
  if (message) weir_rpc_call_respond(call, message);
  else weir_rpc_call_fail(call, weir_status_payloads(weir_status_copy(status)));
  weir_status_destroy(status);
}

// The step has left the gate when its master says that it is over everywhere. If that cannot be
// heard any more, or has been before this part came to its end, it has left now.
static void leave_gate(const step_run_t* run) {
  weir_task_t* task = run->worker->task;
  weir_gate_tie(task->gate, run->step_id, weir_rpc_call_connection(run->call));
  if (weir_rpc_call_is_cancelled(run->call) || !weir_task_has_step(task, run->step_id))
    weir_gate_leave(task->gate, run->step_id);
}

static void partial_done(step_run_t* run, weir_status_t* take_status);

static void run_done(void* arg, weir_status_t* take_status) {
  step_run_t* run = arg;
  weir_worker_t* worker = run->worker;
  weir_status_t* status = weir_status_mark_node(take_status);
  // Whoever waits for a tensor of this step, here or elsewhere, learns why it does not come.
  if (status && run->rendezvous) run->rendezvous->vtable->abort(run->rendezvous, status);
  if (run->is_partial) {
    partial_done(run, status);
  } else {
    weir_rpc_call_t* call = run->call;
    weir_rpc_call_on_cancel(call, NULL, NULL);
    leave_gate(run);
    // A master that gave up, or died, may not come to clean up; and it needs nothing of the step.
    if (status && run->rendezvous && weir_rpc_call_is_cancelled(call))
      weir_task_end_step(worker->task, run->step_id);
    answer(run, call, status);
  }
  leave(worker);
}

static weir_status_t* parse_exec_opts(weir_view_t message, run_request_t* request) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == EXECUTOR_OPTS_RECORD_TIMELINE)
      request->wants_timeline = weir_wire_bool(&reader);
    if (reader.field == EXECUTOR_OPTS_RECORD_PARTITION_GRAPHS)
      request->wants_partitions = weir_wire_bool(&reader);
  }
  return weir_wire_check(&reader, "ExecutorOpts");
}

static weir_status_t* parse_run_graph(weir_rpc_call_t* call, run_request_t* request) {
  weir_wire_reader_t reader = weir_worker_call_reader(call);
  while (weir_wire_next(&reader)) {
    bool is_bytes = reader.type == WEIR_WIRE_BYTES;
    switch (reader.field) {
      case RUN_GRAPH_REQUEST_GRAPH_HANDLE:
        if (is_bytes) request->graph.graph_handle = reader.bytes;
        break;
      case RUN_GRAPH_REQUEST_STEP_ID: request->step_id = weir_wire_int(&reader); break;
      case RUN_GRAPH_REQUEST_EXEC_OPTS:
        if (is_bytes) WEIR_TRY(parse_exec_opts(reader.bytes, request));
        break;
      case RUN_GRAPH_REQUEST_SESSION_HANDLE:
        if (is_bytes) request->graph.session_handle = reader.bytes;
        break;
      case RUN_GRAPH_REQUEST_IS_PARTIAL: request->is_partial = weir_wire_bool(&reader); break;
      case RUN_GRAPH_REQUEST_IS_LAST_PARTIAL_RUN: request->is_last = weir_wire_bool(&reader); break;
      case RUN_GRAPH_REQUEST_STORE_ERRORS_IN_RESPONSE_BODY:
        request->errors_in_body = weir_wire_bool(&reader);
        break;
      case RUN_GRAPH_REQUEST_CREATE_WORKER_SESSION_CALLED:
        request->graph.is_session_made = weir_wire_bool(&reader);
        break;
      case RUN_GRAPH_REQUEST_REQUEST_ID: request->request_id = weir_wire_int(&reader); break;
      case RUN_GRAPH_REQUEST_SEND:
      case RUN_GRAPH_REQUEST_RECV_KEY:
        return WEIR_STATUS(UNIMPLEMENTED,
                           "RunGraph with tensors in the request (field %u) is not supported",
                           reader.field);
      default: break;
    }
  }
  return weir_wire_check(&reader, "RunGraphRequest");
}

static weir_status_t* run_prepare(step_run_t* run, const run_request_t* request) {
  weir_worker_t* worker = run->worker;
  WEIR_TRY(weir_worker_find_graph(worker, &request->graph, &run->graph));
  return weir_task_step_as(worker->task, request->step_id, run->graph->owner->alias,
                           &run->rendezvous);
}

// Starts the step. What becomes of it is told to run_done, also when it cannot start.
static void run_start(step_run_t* run, const run_request_t* request) {
  weir_worker_t* worker = run->worker;
  weir_mutex_lock(&worker->mu);
  ++worker->running_count;
  weir_mutex_unlock(&worker->mu);
  weir_status_t* status = run_prepare(run, request);
  if (status) {
    run_done(run, status);
    return;
  }
  run->wants_partitions = request->wants_partitions;
  run->is_traced = request->wants_timeline && !run->is_partial;
  if (run->is_traced) weir_trace_init(&run->trace);
  atomic_fetch_add_explicit(&worker->task->steps_run, 1, memory_order_relaxed);  // a statistic
  if (!run->is_partial) weir_rpc_call_on_cancel(run->call, cancel_run, run);
  weir_run_params_t params = weir_program_step(run->graph->program, run->graph->plan);
  params.rets = &run->none;
  params.cancel = run->cancel;
  params.rendezvous = run->rendezvous;
  params.step_id = request->step_id;
  params.gate = worker->task->gate;
  params.scope = run->graph->owner->scope;
  params.trace = run->is_traced ? &run->trace : NULL;
  params.is_brief = true;
  weir_run_start(&params, (weir_done_t){.fn = run_done, .arg = run});
}

static weir_status_t* run_create(weir_worker_t* worker, const run_request_t* request,
                                 step_run_t** out_run) {
  step_run_t* run = weir_calloc(1, sizeof(*run));
  if (!run) return weir_out_of_memory();
  weir_ref_init(&run->ref);
  run->worker = worker;
  run->step_id = request->step_id;
  run->errors_in_body = request->errors_in_body;
  run->is_partial = request->is_partial;
  weir_status_t* status = weir_cancel_create(worker->cancel, &run->cancel);
  if (status) run_unref(run);
  else *out_run = run;
  return status;
}

// ---- partial runs ----

static weir_view_t key_of(const int64_t* step_id) {
  return weir_view((const char*)step_id, sizeof(*step_id));
}

// The step has ended. Its last call is answered now or, where it has not come yet, when it comes.
static void partial_done(step_run_t* run, weir_status_t* take_status) {
  weir_worker_t* worker = run->worker;
  weir_mutex_lock(&worker->mu);
  run->is_ended = true;
  run->status = take_status;
  weir_rpc_call_t* call = run->call;
  step_run_t* listed = call ? weir_map_remove(&worker->partials, key_of(&run->step_id)) : NULL;
  weir_mutex_unlock(&worker->mu);
  run_unref(listed);
  if (!call) {
    run_unref(run);
    return;
  }
  weir_rpc_call_on_cancel(call, NULL, NULL);
  answer(run, call, weir_status_copy(run->status));
}

// Finds the partial run of a step, or puts a new one, not started yet, into the table. Retained.
static weir_status_t* find_partial(weir_worker_t* worker, const run_request_t* request,
                                   bool* out_is_new, step_run_t** out_run) {
  enum { MAX_PARTIALS = 10000 };
  weir_status_t* status = NULL;
  weir_mutex_lock(&worker->mu);
  step_run_t* run = weir_map_find(&worker->partials, key_of(&request->step_id));
  *out_is_new = !run;
  if (!run && worker->partials.count >= MAX_PARTIALS)
    status = WEIR_STATUS(RESOURCE_EXHAUSTED, "%d partial runs have not been finished here",
                         MAX_PARTIALS);
  else if (!run) status = run_create(worker, request, &run);
  if (!status && *out_is_new)
    status = weir_map_put(&worker->partials, key_of(&request->step_id), run);
  if (status && *out_is_new) run_unref(run);
  else if (!status) weir_ref_inc(&run->ref, 1);
  weir_mutex_unlock(&worker->mu);
  *out_run = status ? NULL : run;
  return status;
}

// Lets |call|, the last one, wait for the end of the step.
static void wait_for_end(step_run_t* take_run, weir_rpc_call_t* call) {
  step_run_t* run = take_run;
  weir_worker_t* worker = run->worker;
  weir_rpc_call_on_cancel(call, cancel_run, run);
  weir_mutex_lock(&worker->mu);
  bool is_ended = run->is_ended;
  if (!is_ended) run->call = call;
  step_run_t* listed = is_ended ? weir_map_remove(&worker->partials, key_of(&run->step_id)) : NULL;
  weir_mutex_unlock(&worker->mu);
  run_unref(listed);
  if (is_ended) {
    weir_rpc_call_on_cancel(call, NULL, NULL);
    answer(run, call, weir_status_copy(run->status));
  } else {
    run_unref(run);
  }
}

static void handle_partial(weir_worker_t* worker, weir_rpc_call_t* call,
                           const run_request_t* request) {
  step_run_t* run = NULL;
  bool is_new = false;
  weir_status_t* status = find_partial(worker, request, &is_new, &run);
  if (status) {
    weir_worker_call_finish(call, status);
    return;
  }
  if (is_new) {
    weir_ref_inc(&run->ref, 1);  // for the step
    run_start(run, request);
  }
  if (request->is_last) {
    wait_for_end(run, call);
    return;
  }
  weir_mutex_lock(&worker->mu);
  status = run->is_ended ? weir_status_copy(run->status) : NULL;
  weir_mutex_unlock(&worker->mu);
  answer(run, call, status);
}

void weir_worker_end_partial(weir_worker_t* worker, int64_t step_id) {
  weir_mutex_lock(&worker->mu);
  step_run_t* run = weir_map_remove(&worker->partials, key_of(&step_id));
  weir_mutex_unlock(&worker->mu);
  if (run) weir_cancel_start(run->cancel);
  run_unref(run);
}

void weir_worker_end_partials(weir_worker_t* worker) {
  for (bool has_more = true; has_more;) {
    int64_t step_id = 0;
    size_t i = 0;
    weir_mutex_lock(&worker->mu);
    weir_map_entry_t* entry = weir_map_next(&worker->partials, &i);
    has_more = entry != NULL;
    if (entry) step_id = ((step_run_t*)entry->value)->step_id;
    weir_mutex_unlock(&worker->mu);
    if (has_more) weir_worker_end_partial(worker, step_id);
  }
}

// ---- handlers ----

void weir_handle_run_graph(void* self, weir_rpc_call_t* call) {
  weir_worker_t* worker = ((weir_task_t*)self)->worker;
  run_request_t request = {.step_id = 0};
  weir_status_t* status = parse_run_graph(call, &request);
  // An id twice is an error of the call, not of the step, which may be a partial run that goes on.
  if (!status)
    status = weir_request_ids_add(&worker->task->request_ids, request.request_id, "RunGraph");
  if (status) {
    weir_worker_call_finish(call, status);
    return;
  }
  if (request.is_partial) {
    handle_partial(worker, call, &request);
    return;
  }
  step_run_t* run = NULL;
  status = run_create(worker, &request, &run);
  if (status) {
    weir_worker_call_finish(call, status);
    return;
  }
  run->call = call;
  run_start(run, &request);
}

void weir_handle_cleanup_graph(void* self, weir_rpc_call_t* call) {
  weir_worker_t* worker = ((weir_task_t*)self)->worker;
  int64_t step_id = 0;
  weir_wire_reader_t reader = weir_worker_call_reader(call);
  while (weir_wire_next(&reader)) {
    if (reader.field == CLEANUP_GRAPH_REQUEST_STEP_ID) step_id = weir_wire_int(&reader);
  }
  weir_status_t* status = weir_wire_check(&reader, "CleanupGraphRequest");
  if (!status) weir_worker_end_partial(worker, step_id);
  if (!status) weir_task_end_step(worker->task, step_id);
  weir_worker_call_finish(call, status);
}
