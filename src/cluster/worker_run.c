// worker_run.c — Steps of registered graphs: RunGraph and CleanupGraph.
#include "cluster/worker_internal.h"

// What a RunGraphRequest asks for.
typedef struct run_request_t {
  worker_graph_key_t graph;
  int64_t step_id, request_id;
  bool wants_timeline, wants_partitions, errors_in_body;
} run_request_t;

// A step of a registered graph, from the request to the answer.
typedef struct step_run_t {
  weir_worker_t* worker;
  weir_rpc_call_t* call;
  int64_t step_id;
  worker_graph_t* graph;  // retained
  weir_rendezvous_t* rendezvous;
  weir_cancel_t* cancel;
  weir_trace_t trace;
  bool is_traced;
  bool errors_in_body;
  weir_tensor_t* none;  // the plan has no results
} step_run_t;

static void cancel_run(void* arg) { weir_cancel_start(((step_run_t*)arg)->cancel); }

static weir_status_t* run_response(step_run_t* run, weir_status_t* error,
                                   weir_rpc_message_t** out_message) {
  weir_message_builder_t builder = {.message = NULL};
  if (error) {
    weir_wire_put_int(&builder.head, 5, weir_status_code(error));
    weir_wire_put_string(&builder.head, 6, weir_status_message(error));
  } else if (run->is_traced) {
    builder.status =
        weir_step_stats_write(&run->trace, run->worker->task->device->name, 2, &builder.head);
  }
  return weir_message_finish(&builder, out_message);
}

static void run_free(step_run_t* run) {
  weir_worker_t* worker = run->worker;
  weir_worker_graph_release(run->graph);
  weir_rendezvous_release(run->rendezvous);
  weir_cancel_destroy(run->cancel);
  if (run->is_traced) weir_trace_free(&run->trace);
  weir_free(run);
  weir_mutex_lock(&worker->mu);
  if (--worker->running_count == 0) weir_cond_broadcast(&worker->idle);
  weir_mutex_unlock(&worker->mu);
}

static void run_done(void* arg, weir_status_t* take_status) {
  step_run_t* run = arg;
  weir_rpc_call_t* call = run->call;
  weir_rpc_message_t* message = NULL;
  weir_status_t* status = weir_client_status(take_status);
  // Whoever waits for a tensor of this step, here or elsewhere, learns why it does not come.
  if (status && run->rendezvous) run->rendezvous->vtable->abort(run->rendezvous, status);
  weir_rpc_call_on_cancel(call, NULL, NULL);
  // A master that gave up, or died, may not come to clean up; and it needs nothing of the step.
  if (status && run->rendezvous && weir_rpc_call_is_cancelled(call))
    weir_task_end_step(run->worker->task, run->step_id);
  if (!status || run->errors_in_body) {
    weir_status_t* failed = run_response(run, status, &message);
    if (failed) weir_status_destroy(status);
    if (failed) status = failed;
  }
  run_free(run);
  if (message) weir_rpc_call_respond(call, message);
  else weir_rpc_call_fail(call, weir_status_copy(status), weir_view("", 0));
  weir_status_destroy(status);
}

static weir_status_t* parse_exec_opts(weir_view_t message, run_request_t* request) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == 3) request->wants_timeline = weir_wire_bool(&reader);
    if (reader.field == 4) request->wants_partitions = weir_wire_bool(&reader);
  }
  return weir_wire_check(&reader, "ExecutorOpts");
}

static weir_status_t* parse_run_graph(weir_rpc_call_t* call, run_request_t* request) {
  weir_wire_reader_t reader = weir_worker_call_reader(call);
  while (weir_wire_next(&reader)) {
    bool is_bytes = reader.type == WEIR_WIRE_BYTES;
    switch (reader.field) {
      case 1:
        if (is_bytes) request->graph.graph_handle = reader.bytes;
        break;
      case 2: request->step_id = weir_wire_int(&reader); break;
      case 5:
        if (is_bytes) WEIR_TRY(parse_exec_opts(reader.bytes, request));
        break;
      case 8:
        if (is_bytes) request->graph.session_handle = reader.bytes;
        break;
      case 9: request->errors_in_body = weir_wire_bool(&reader); break;
      case 10: request->graph.is_session_made = weir_wire_bool(&reader); break;
      case 11: request->request_id = weir_wire_int(&reader); break;
      case 3:
      case 4:
      case 6:
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
  WEIR_TRY(weir_request_ids_add(&worker->task->request_ids, request->request_id, "RunGraph"));
  WEIR_TRY(weir_worker_find_graph(worker, &request->graph, &run->graph));
  WEIR_TRY(weir_cancel_create(worker->cancel, &run->cancel));
  return weir_task_step(worker->task, request->step_id, &run->rendezvous);
}

void weir_handle_run_graph(void* self, weir_rpc_call_t* call) {
  weir_worker_t* worker = ((weir_task_t*)self)->worker;
  run_request_t request = {.step_id = 0};
  step_run_t* run = weir_calloc(1, sizeof(*run));
  weir_status_t* status = run ? parse_run_graph(call, &request) : weir_out_of_memory();
  if (!run) {
    weir_worker_call_finish(call, status);
    return;
  }
  run->worker = worker;
  run->call = call;
  run->step_id = request.step_id;
  run->errors_in_body = request.errors_in_body;
  weir_mutex_lock(&worker->mu);
  ++worker->running_count;
  weir_mutex_unlock(&worker->mu);
  if (!status) status = run_prepare(run, &request);
  if (status) {
    run_done(run, status);
    return;
  }
  run->is_traced = request.wants_timeline;
  if (run->is_traced) weir_trace_init(&run->trace);
  atomic_fetch_add_explicit(&worker->task->steps_run, 1, memory_order_relaxed);  // a statistic
  weir_rpc_call_on_cancel(call, cancel_run, run);
  weir_session_t* session = run->graph->session;
  weir_run_params_t params = {.plan = run->graph->plan,
                              .rets = &run->none,
                              .cancel = run->cancel,
                              .session_resources = session->resources,
                              .rendezvous = run->rendezvous,
                              .functions = weir_session_functions_base(session->functions),
                              .inter_pool = session->pool,
                              .step_id = request.step_id,
                              .trace = run->is_traced ? &run->trace : NULL,
                              .is_brief = true};
  weir_run_start(&params, (weir_done_t){.fn = run_done, .arg = run});
}

void weir_handle_cleanup_graph(void* self, weir_rpc_call_t* call) {
  weir_worker_t* worker = ((weir_task_t*)self)->worker;
  int64_t step_id = 0;
  weir_wire_reader_t reader = weir_worker_call_reader(call);
  while (weir_wire_next(&reader)) {
    if (reader.field == 1) step_id = weir_wire_int(&reader);
  }
  weir_status_t* status = weir_wire_check(&reader, "CleanupGraphRequest");
  if (!status) weir_task_end_step(worker->task, step_id);
  weir_worker_call_finish(call, status);
}
