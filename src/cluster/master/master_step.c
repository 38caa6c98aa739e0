// master_step.c — One step of a session: one message to each task that takes part, and the part of
// this process.
#include "cluster/master/master_step.h"

#include "base/alloc.h"
#include "base/details.h"
#include "cluster/master/master.h"
#include "cluster/task/collectives.h"
#include "cluster/task/fields.h"
#include "cluster/task/messages.h"
#include "wire/wire.h"

#define RUN_GRAPH "/tensorflow.WorkerService/RunGraph"
#define CLEANUP_GRAPH "/tensorflow.WorkerService/CleanupGraph"

// A part on another task.
typedef struct remote_t {
  weir_master_step_t* step;
  weir_rpc_request_t* request;  // guarded by the step's mu
} remote_t;

struct weir_master_step_t {
  weir_master_session_t* session;
  weir_master_run_t* run;
  int64_t id;
  weir_rendezvous_t* rendezvous;
  weir_cancel_t* cancel;
  weir_cancel_token_t token;
  weir_step_done_fn_t done;
  void* arg;
  weir_tensor_t** args;
  weir_tensor_t** rets;
  bool is_traced;
  bool is_partial;  // results wait at the rendezvous, which is not ours to end
  weir_trace_t trace;
  remote_t* remotes;
  weir_mutex_t mu;  // guards all below
  int pending;      // parts that run, and one for the start itself
  bool is_cancelled;
  weir_status_t* status;
  weir_strbuf_t stats;  // dev_stats fields of the StepStats that other tasks sent
};

// ---- ending ----

static void step_free(weir_master_step_t* step) {
  weir_master_run_t* run = step->run;
  for (int i = 0; step->args && i < run->feed_count; ++i) weir_tensor_release(step->args[i]);
  for (int i = 0; step->rets && i < run->fetch_count; ++i) weir_tensor_release(step->rets[i]);
  for (int i = 0; step->remotes && i < run->part_count; ++i)
    weir_rpc_request_release(step->remotes[i].request);
  weir_free(step->args);
  weir_free(step->rets);
  weir_free(step->remotes);
  weir_rendezvous_release(step->rendezvous);
  weir_cancel_destroy(step->cancel);
  weir_strbuf_free(&step->stats);
  if (step->is_traced) weir_trace_free(&step->trace);
  weir_status_destroy(step->status);
  weir_mutex_destroy(&step->mu);
  weir_master_t* master = step->session->task->master;
  weir_master_run_release(step->session, run);
  weir_master_session_release(step->session);
  weir_free(step);
  weir_master_leave(master);
}

static void ignore(void* self, weir_status_t* take_status, weir_rpc_buffer_t* take_message) {
  (void)self;
  weir_status_destroy(take_status);  // a peer that is gone needs no cleaning
  weir_rpc_buffer_release(take_message);
}

static void clean_up(weir_master_step_t* step) {
  for (int i = 0; i < step->run->part_count; ++i) {
    weir_strbuf_t request = {0};
    weir_wire_put_int(&request, CLEANUP_GRAPH_REQUEST_STEP_ID, step->id);
    weir_rpc_message_t* message = weir_rpc_message_create();
    weir_rpc_message_append_strbuf(message, &request);
    weir_rpc_channel_t* channel = step->session->peers[step->run->parts[i].peer].channel;
    weir_rpc_channel_call_async(channel, CLEANUP_GRAPH, message, NULL, ignore, NULL, NULL);
  }
  if (!step->is_partial) weir_task_end_step(step->session->task, step->id);
}

static void finish(weir_master_step_t* step) {
  if (step->token) weir_cancel_deregister(step->cancel, step->token);
  clean_up(step);
  weir_status_t* status = step->status;
  step->status = NULL;
  step->done(step->arg, step, status);
  step_free(step);
}

// Notes the outcome of a part. An error ends the others; one that says more than "cancelled" wins.
static void part_done(weir_master_step_t* step, weir_status_t* take_status) {
  weir_mutex_lock(&step->mu);
  bool is_first = take_status && !step->status;
  bool is_better = take_status && step->status &&
                   weir_status_code(step->status) == WEIR_CANCELLED && !step->is_cancelled &&
                   weir_status_code(take_status) != WEIR_CANCELLED;
  weir_status_t* unused = take_status;
  if (is_first || is_better) {
    unused = step->status;
    step->status = take_status;
  }
  weir_mutex_unlock(&step->mu);
  weir_status_destroy(unused);
  if (is_first) weir_cancel_start(step->cancel);
  weir_mutex_lock(&step->mu);
  bool is_last = --step->pending == 0;
  weir_mutex_unlock(&step->mu);
  if (is_last) finish(step);
}

// Runs when the step is cancelled from outside and when one of its parts failed. Counts as a part:
// what it aborts may be the last of the step, and end it on this very thread.
static void on_cancel(void* arg) {
  weir_master_step_t* step = arg;
  weir_mutex_lock(&step->session->mu);
  bool is_closed = step->session->is_closed;
  weir_mutex_unlock(&step->session->mu);
  weir_mutex_lock(&step->mu);
  if (step->pending == 0) {  // it is ending, and waits for this call to return
    weir_mutex_unlock(&step->mu);
    return;
  }
  ++step->pending;
  if (!step->status) {
    step->is_cancelled = true;
    step->status =
        is_closed ? WEIR_STATUS(CANCELLED,
                                "Step was cancelled by an explicit call to `Session::Close()`.")
                  : WEIR_STATUS(CANCELLED, "Step was cancelled");
  }
  weir_status_t* status = weir_status_copy(step->status);
  weir_mutex_unlock(&step->mu);
  step->rendezvous->vtable->abort(step->rendezvous, status);
  weir_status_destroy(status);
  for (int i = 0; i < step->run->part_count; ++i) {
    weir_mutex_lock(&step->mu);
    weir_rpc_request_t* request = step->remotes[i].request;
    weir_mutex_unlock(&step->mu);
    if (request) weir_rpc_request_cancel(request);
  }
  part_done(step, NULL);
}

void weir_master_step_cancel(weir_master_step_t* step) { weir_cancel_start(step->cancel); }

// ---- parts on other tasks ----

static weir_rpc_message_t* run_request(weir_master_step_t* step, int part) {
  weir_strbuf_t request = {0};
  weir_wire_put_string(&request, RUN_GRAPH_REQUEST_GRAPH_HANDLE, step->run->parts[part].handle);
  weir_wire_put_int(&request, RUN_GRAPH_REQUEST_STEP_ID, step->id);
  size_t options = weir_wire_begin(&request, RUN_GRAPH_REQUEST_EXEC_OPTS);
  if (step->is_traced) weir_wire_put_bool(&request, EXECUTOR_OPTS_RECORD_TIMELINE, true);
  weir_wire_end(&request, options);
  weir_wire_put_string(&request, RUN_GRAPH_REQUEST_SESSION_HANDLE, step->session->handle);
  weir_wire_put_bool(&request, RUN_GRAPH_REQUEST_STORE_ERRORS_IN_RESPONSE_BODY, true);
  weir_wire_put_bool(&request, RUN_GRAPH_REQUEST_CREATE_WORKER_SESSION_CALLED, true);
  weir_wire_put_int(&request, RUN_GRAPH_REQUEST_REQUEST_ID, (int64_t)(weir_task_random() >> 1));
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append_strbuf(message, &request);
  return message;
}

// Reads a RunGraphResponse: an error in its body, or timings.
static weir_status_t* parse_response(weir_master_step_t* step, weir_view_t message) {
  int64_t code = 0;
  weir_view_t text = weir_view("", 0);
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    bool is_bytes = reader.type == WEIR_WIRE_BYTES;
    if (reader.field == RUN_GRAPH_RESPONSE_STATUS_CODE && !is_bytes) code = weir_wire_int(&reader);
    if (reader.field == RUN_GRAPH_RESPONSE_STATUS_ERROR_MESSAGE && is_bytes) text = reader.bytes;
    if (reader.field == RUN_GRAPH_RESPONSE_STEP_STATS && is_bytes) {
      weir_mutex_lock(&step->mu);
      weir_strbuf_append(&step->stats, reader.bytes.data, reader.bytes.size);
      weir_mutex_unlock(&step->mu);
    }
  }
  WEIR_TRY(weir_wire_check(&reader, "RunGraphResponse"));
  if (code == WEIR_OK) return NULL;
  if (code < 0 || code > WEIR_UNAUTHENTICATED) code = WEIR_UNKNOWN;
  return weir_status_received((weir_code_t)code, text);
}

static void remote_done(void* self, weir_status_t* take_status, weir_rpc_buffer_t* take_message) {
  remote_t* remote = self;
  weir_master_step_t* step = remote->step;
  weir_status_t* status = take_status;
  if (!status) status = parse_response(step, weir_rpc_buffer_view(take_message));
  weir_rpc_buffer_release(take_message);
  int part = (int)(remote - step->remotes);
  status = weir_status_from(status, step->session->peers[step->run->parts[part].peer].name);
  part_done(step, status);
}

static void start_remote(weir_master_step_t* step, int part) {
  remote_t* remote = &step->remotes[part];
  weir_rpc_channel_t* channel = step->session->peers[step->run->parts[part].peer].channel;
  weir_rpc_request_t* request = NULL;
  remote->step = step;
  weir_rpc_channel_call_async(channel, RUN_GRAPH, run_request(step, part), NULL, remote_done,
                              remote, &request);
  weir_mutex_lock(&step->mu);
  remote->request = request;
  weir_mutex_unlock(&step->mu);
  if (weir_cancel_is_cancelled(step->cancel)) weir_rpc_request_cancel(request);
}

// ---- the part of this process ----

static void local_done(void* arg, weir_status_t* take_status) {
  part_done(arg, weir_status_mark_node(take_status));
}

static void start_local(weir_master_step_t* step) {
  weir_run_params_t params = weir_program_step(step->session->program, step->run->local);
  params.args = step->args;
  params.rets = step->rets;
  params.cancel = step->cancel;
  params.rendezvous = step->rendezvous;
  params.step_id = step->id;
  params.gate = step->session->task->gate;
  params.scope = weir_collectives_scope(weir_view_of(step->session->handle));
  params.trace = step->is_traced ? &step->trace : NULL;
  params.is_brief = true;
  weir_run_start(&params, (weir_done_t){.fn = local_done, .arg = step});
}

// ---- starting ----

static weir_status_t* init(weir_master_step_t* step, const weir_step_params_t* params) {
  const weir_master_run_t* run = params->run;
  step->args = weir_calloc((size_t)run->feed_count, sizeof(*step->args));
  step->rets = weir_calloc((size_t)run->fetch_count, sizeof(*step->rets));
  step->remotes = weir_calloc((size_t)run->part_count, sizeof(*step->remotes));
  if (!step->args || !step->rets || !step->remotes) return weir_out_of_memory();
  for (int i = 0; params->args && i < run->feed_count; ++i) {
    WEIR_TRY(weir_signature_check_feed(run->feeds[i], params->args[i]));
    step->args[i] = weir_tensor_retain(params->args[i]);
  }
  WEIR_TRY(weir_cancel_create(step->session->cancel, &step->cancel));
  return weir_task_step_as(step->session->task, step->id, step->session->alias, &step->rendezvous);
}

weir_status_t* weir_master_step_create(const weir_step_params_t* params,
                                       weir_master_step_t** out_step) {
  weir_master_step_t* step = weir_calloc(1, sizeof(*step));
  if (!step) return weir_out_of_memory();
  weir_mutex_init(&step->mu);
  weir_master_session_retain(params->session);
  weir_master_enter(params->session->task->master);
  step->session = params->session;
  step->run = weir_master_run_retain(params->run);
  step->done = params->done;
  step->arg = params->arg;
  step->id = (int64_t)(weir_task_random() >> 8) | INT64_C(1) << 56;
  step->is_partial = params->args == NULL;
  step->is_traced = params->is_traced;
  if (step->is_traced) weir_trace_init(&step->trace);
  weir_status_t* status = init(step, params);
  if (status) step_free(step);
  else *out_step = step;
  return status;
}

void weir_master_step_start(weir_master_step_t* step) {
  weir_master_run_t* run = step->run;
  step->pending = run->part_count + (run->local != NULL) + 1;
  step->token = weir_cancel_register(step->cancel, on_cancel, step);
  if (!step->token && weir_cancel_is_cancelled(step->cancel)) on_cancel(step);
  atomic_fetch_add_explicit(&step->session->task->steps_run, 1,
                            memory_order_relaxed);  // a statistic
  for (int i = 0; i < run->part_count; ++i) start_remote(step, i);
  if (run->local) start_local(step);
  part_done(step, NULL);
}

// ---- results ----

weir_tensor_t* weir_master_step_result(const weir_master_step_t* step, int i) {
  return step->rets[i];
}

int64_t weir_master_step_id(const weir_master_step_t* step) { return step->id; }

weir_rendezvous_t* weir_master_step_rendezvous(const weir_master_step_t* step) {
  return step->rendezvous;
}

weir_status_t* weir_master_step_metadata(weir_master_step_t* step, weir_strbuf_t* out) {
  weir_strbuf_t own = {0};
  weir_status_t* status = NULL;
  size_t stats = weir_wire_begin(out, RUN_METADATA_STEP_STATS);
  const weir_runtime_t* runtime = step->session->task->runtime;
  const weir_alias_t* alias = step->session->alias;
  weir_trace_devices_t devices = {.items = runtime->devices,
                                  .count = runtime->device_count,
                                  .task = alias ? alias->task : NULL};
  if (step->run->local)
    status = weir_step_stats_write(&step->trace, &devices, RUN_METADATA_STEP_STATS, &own);
  weir_wire_reader_t reader = weir_wire_reader(weir_strbuf_view(&own));
  while (weir_wire_next(&reader)) weir_strbuf_append(out, reader.bytes.data, reader.bytes.size);
  weir_strbuf_append(out, step->stats.data, step->stats.size);
  weir_wire_end(out, stats);
  weir_strbuf_free(&own);
  return status;
}
