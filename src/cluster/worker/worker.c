// worker.c — Worker sessions and the graphs registered with them.
//
// A worker does what masters ask, TensorFlow's as well as Weir's: it keeps, for each session of a
// master, the parts of graphs that were registered, and runs them (worker_run.c). A part is
// compiled once, with everything that nothing reads as its targets: it has no feeds or fetches,
// values come and go by transfers.
//
// Masters die, are restarted, give up, and call again, so nothing here relies on being told the
// end.
// - A session of an earlier life of the same master (its incarnation tells) is dropped when the
//   master makes a new one, and where the table is full, the one that was not used for longest.
// - A request may be cancelled while its session is made. The request to delete that session may
//   have come before, and found nothing; so a session whose call was cancelled is taken out again.
// - Dropping takes the session out of the table and its graphs with it. Steps that run hold their
//   graph, which holds the session: memory goes with the last of them.
// - A handle that is not known is ABORTED, "possibly this worker just restarted", which makes
//   clients build a new session.
//
// Variables are not the session's: sessions that are not isolated share the runtime's resources,
// and only CleanupAll, by container, ends those. What is the session's own is the state of stateful
// kernels (random generators, counters), which goes on from graph to graph.
#include <stdio.h>

#include "base/details.h"
#include "cluster/task/collective_message.h"
#include "cluster/task/collectives.h"
#include "cluster/task/fields.h"
#include "cluster/task/ucx.h"
#include "cluster/worker/worker_internal.h"
#include "pass/partition.h"
#include "weir/graph.h"

enum { SESSION_LIMIT = 4096 };  // one more ends the session that was not used for the longest time

// ---- sessions and graphs ----

static void session_unref(worker_session_t* session) {
  if (!session || !weir_ref_dec(&session->ref)) return;
  weir_kernel_cache_free(&session->kernels);
  weir_resources_destroy(session->own_resources);
  weir_map_free(&session->graphs);
  weir_alias_release(session->alias);
  weir_free(session->master);
  weir_free(session);
}

void weir_worker_graph_release(worker_graph_t* graph) {
  if (!graph || !weir_ref_dec(&graph->ref)) return;
  weir_plan_release(graph->plan);
  weir_program_destroy(graph->program);
  session_unref(graph->owner);
  weir_free(graph);
}

static weir_status_t* session_create(weir_worker_t* worker, bool is_isolated,
                                     worker_session_t** out_session) {
  worker_session_t* session = weir_calloc(1, sizeof(*session));
  if (!session) return weir_out_of_memory();
  weir_ref_init(&session->ref);
  session->worker = worker;
  session->graphs.owns_keys = true;
  weir_kernel_cache_init(&session->kernels);
  if (is_isolated) {
    weir_status_t* status = weir_resources_create(worker->task->job, &session->own_resources);
    if (status) {
      session_unref(session);
      return status;
    }
    weir_gate_set(session->own_resources, worker->task->gate);
  }
  *out_session = session;
  return NULL;
}

// Ends a session that is no longer in the table. Graphs that run live on until they are through.
static void session_drop(weir_worker_t* worker, worker_session_t* take_session) {
  if (!take_session) return;
  weir_mutex_lock(&worker->mu);
  weir_map_t graphs = take_session->graphs;
  take_session->graphs = (weir_map_t){.owns_keys = true};
  take_session->is_dropped = true;
  weir_mutex_unlock(&worker->mu);
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&graphs, &i));) weir_worker_graph_release(entry->value);
  weir_map_free(&graphs);
  session_unref(take_session);
}

// Finds and retains. A master that made no worker session uses the task's own, whose handle is "".
static weir_status_t* find_session(weir_worker_t* worker, weir_view_t handle, bool is_made,
                                   worker_session_t** out_session) {
  weir_status_t* status = NULL;
  if (!is_made) handle = weir_view("", 0);
  weir_mutex_lock(&worker->mu);
  worker_session_t* session = weir_map_find(&worker->sessions, handle);
  if (!session && handle.size == 0) {
    status = session_create(worker, false, &session);
    if (!status) status = weir_map_put(&worker->sessions, handle, session);
    if (status) session_unref(session);
  }
  if (!status && session) {
    weir_ref_inc(&session->ref, 1);
    session->last_used_ns = weir_clock_ns();
  }
  weir_mutex_unlock(&worker->mu);
  if (status) return status;
  *out_session = session;
  if (session) return NULL;
  return WEIR_STATUS(ABORTED,
                     "Session handle is not found: %.*s. Possibly this worker (\"%s\") just "
                     "restarted.",
                     WEIR_VIEW_ARG(handle), worker->task->name);
}

static weir_status_t* graph_create(worker_session_t* owner, weir_view_t def, weir_view_t config,
                                   worker_graph_t** out_graph) {
  weir_task_t* task = owner->worker->task;
  weir_graph_t *source = NULL, *copy = NULL;
  weir_node_t** sinks = NULL;
  int sink_count = 0;
  weir_arena_t arena = {0};
  worker_graph_t* graph = weir_calloc(1, sizeof(*graph));
  if (!graph) return weir_out_of_memory();
  weir_ref_init(&graph->ref);
  weir_ref_inc(&owner->ref, 1);
  graph->owner = owner;
  weir_status_t* status = weir_graph_create(&source);
  weir_import_params_t import = {.prefix = NULL};
  if (!status) status = weir_graph_import(source, def, &import);
  weir_program_options_t program = {
      .runtime = task->runtime,
      .graph = source,
      .resources = owner->own_resources,
      .kernels = &owner->kernels,
      .disabled_passes = weir_config_is_unoptimized(config) ? "all" : NULL,
      .mixed_precision = weir_config_mixed_precision(config),
      .is_placed = true};
  if (!status) status = weir_program_create(&program, &graph->program);
  if (!status) status = weir_graph_copy(source, NULL, &arena, &copy, NULL);
  if (!status) status = weir_graph_sinks(copy, &sinks, &sink_count);
  if (!status) {
    weir_source_t wanted = {
        .graph = copy, .targets = sinks, .target_count = sink_count, .is_part = true};
    status = weir_program_compile(graph->program, &wanted, &graph->plan);
    copy = NULL;
  }
  weir_graph_unref(copy);
  weir_graph_unref(source);
  weir_arena_free(&arena);
  if (status) weir_worker_graph_release(graph);
  else *out_graph = graph;
  return status;
}

static void respond_empty(weir_rpc_call_t* call) {
  weir_rpc_call_respond(call, weir_rpc_message_create());
}

void weir_worker_call_finish(weir_rpc_call_t* call, weir_status_t* take_status) {
  if (take_status) weir_rpc_call_fail(call, weir_status_payloads(take_status));
  else respond_empty(call);
}

// ---- handlers: sessions ----

static void handle_get_status(void* self, weir_rpc_call_t* call) {
  weir_message_builder_t builder = {.message = NULL};
  weir_rpc_message_t* message = NULL;
  const weir_runtime_t* runtime = ((weir_task_t*)self)->runtime;
  for (int i = 0; i < runtime->device_count; ++i) {
    weir_device_attributes_t attributes = weir_device_attributes(runtime->devices[i]);
    weir_device_attributes_write(&attributes, GET_STATUS_RESPONSE_DEVICE_ATTRIBUTES, &builder.head);
  }
  weir_status_t* status = weir_message_finish(&builder, &message);
  if (status) weir_worker_call_finish(call, status);
  else weir_rpc_call_respond(call, message);
}

// Takes one session out of the table that should make place: one of an earlier life of |master|, or
// else, where the table is full, the one that was not used for the longest time. NULL: none.
static worker_session_t* take_stale(weir_worker_t* worker, weir_view_t master, int64_t incarnation)
    WEIR_REQUIRES(worker->mu) {
  weir_map_entry_t *entry, *oldest = NULL;
  for (size_t i = 0; (entry = weir_map_next(&worker->sessions, &i));) {
    const worker_session_t* session = entry->value;
    bool is_of_master = session->master && weir_view_is(master, session->master);
    if (is_of_master && session->incarnation != incarnation)
      return weir_map_remove(&worker->sessions, entry->key);
    const worker_session_t* rival = oldest ? oldest->value : NULL;
    if (!rival || session->last_used_ns < rival->last_used_ns) oldest = entry;
  }
  bool is_full = worker->sessions.count >= SESSION_LIMIT;
  return oldest && is_full ? weir_map_remove(&worker->sessions, oldest->key) : NULL;
}

// Puts a session into the table in place of those that are stale.
static weir_status_t* add_session(weir_worker_t* worker, weir_view_t handle,
                                  worker_session_t* take_session) {
  worker_session_t* stale;
  weir_view_t master = weir_view_of(take_session->master ? take_session->master : "");
  do {
    weir_mutex_lock(&worker->mu);
    stale = take_stale(worker, master, take_session->incarnation);
    weir_mutex_unlock(&worker->mu);
    session_drop(worker, stale);
  } while (stale);
  weir_mutex_lock(&worker->mu);
  worker_session_t* old = weir_map_remove(&worker->sessions, handle);
  take_session->last_used_ns = weir_clock_ns();
  weir_status_t* status = weir_map_put(&worker->sessions, handle, take_session);
  weir_mutex_unlock(&worker->mu);
  session_drop(worker, old);
  if (status) session_unref(take_session);
  return status;
}

// As add, and out again where the call was cancelled meanwhile: the request to delete the session,
// which its master sends then, may have come before there was anything to delete.
static weir_status_t* add_session_for(weir_rpc_call_t* call, weir_worker_t* worker,
                                      weir_view_t handle, worker_session_t* take_session) {
  weir_ref_inc(&take_session->ref, 1);  // else it may be gone when it is looked for
  weir_status_t* status = add_session(worker, handle, take_session);
  bool is_there = false;
  if (!status && weir_rpc_call_is_cancelled(call)) {
    weir_mutex_lock(&worker->mu);
    is_there = weir_map_find(&worker->sessions, handle) == take_session;
    if (is_there) weir_map_remove(&worker->sessions, handle);
    weir_mutex_unlock(&worker->mu);
  }
  if (is_there) session_drop(worker, take_session);
  session_unref(take_session);
  return status;
}

// What a ServerDef calls this task, if it describes the cluster, too; NULL otherwise.
static weir_status_t* parse_server_def(weir_view_t message, weir_alias_t** out_alias) {
  weir_view_t cluster = weir_view("", 0), job = weir_view("", 0);
  int64_t index = 0;
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == SERVER_DEF_CLUSTER && reader.type == WEIR_WIRE_BYTES)
      cluster = reader.bytes;
    if (reader.field == SERVER_DEF_JOB_NAME && reader.type == WEIR_WIRE_BYTES) job = reader.bytes;
    if (reader.field == SERVER_DEF_TASK_INDEX) index = weir_wire_int(&reader);
  }
  WEIR_TRY(weir_wire_check(&reader, "ServerDef"));
  return cluster.size ? weir_alias_create(job, index, cluster, out_alias) : NULL;
}

static void handle_create_session(void* self, weir_rpc_call_t* call) {
  weir_worker_t* worker = ((weir_task_t*)self)->worker;
  weir_view_t handle = weir_view("", 0), master = weir_view("", 0), server = weir_view("", 0);
  weir_alias_t* alias = NULL;
  int64_t incarnation = 0;
  bool is_isolated = false;
  weir_wire_reader_t reader = weir_worker_call_reader(call);
  while (weir_wire_next(&reader)) {
    if (reader.field == CREATE_WORKER_SESSION_REQUEST_SESSION_HANDLE &&
        reader.type == WEIR_WIRE_BYTES)
      handle = reader.bytes;
    if (reader.field == CREATE_WORKER_SESSION_REQUEST_SERVER_DEF && reader.type == WEIR_WIRE_BYTES)
      server = reader.bytes;
    if (reader.field == CREATE_WORKER_SESSION_REQUEST_ISOLATE_SESSION_STATE)
      is_isolated = weir_wire_bool(&reader);
    if (reader.field == CREATE_WORKER_SESSION_REQUEST_MASTER_TASK && reader.type == WEIR_WIRE_BYTES)
      master = reader.bytes;
    if (reader.field == CREATE_WORKER_SESSION_REQUEST_MASTER_INCARNATION)
      incarnation = weir_wire_int(&reader);
  }
  worker_session_t* session = NULL;
  weir_status_t* status = weir_wire_check(&reader, "CreateWorkerSessionRequest");
  if (!status && handle.size == 0)
    status = WEIR_STATUS(INVALID_ARGUMENT, "Session must be non-empty.");
  if (!status) status = parse_server_def(server, &alias);
  if (!status) status = session_create(worker, is_isolated, &session);
  if (status) weir_alias_release(alias);
  else session->alias = alias;
  if (!status) session->scope = weir_collectives_scope(handle);
  if (!status && master.size) {
    session->incarnation = incarnation;
    session->master = weir_strndup(master.data, master.size);
    if (!session->master) {
      session_unref(session);
      status = weir_out_of_memory();
    }
  }
  if (!status) status = add_session_for(call, worker, handle, session);
  weir_worker_call_finish(call, status);
}

static void handle_delete_session(void* self, weir_rpc_call_t* call) {
  weir_worker_t* worker = ((weir_task_t*)self)->worker;
  weir_view_t handle = weir_view("", 0);
  weir_wire_reader_t reader = weir_worker_call_reader(call);
  while (weir_wire_next(&reader)) {
    if (reader.field == DELETE_WORKER_SESSION_REQUEST_SESSION_HANDLE &&
        reader.type == WEIR_WIRE_BYTES)
      handle = reader.bytes;
  }
  weir_status_t* status = weir_wire_check(&reader, "DeleteWorkerSessionRequest");
  if (!status) {
    weir_mutex_lock(&worker->mu);
    worker_session_t* session = weir_map_remove(&worker->sessions, handle);
    weir_mutex_unlock(&worker->mu);
    session_drop(worker, session);
  }
  weir_worker_call_finish(call, status);
}

// Gives |take_graph| a handle in |session|.
static weir_status_t* add_graph(worker_session_t* session, worker_graph_t* take_graph,
                                char out_handle[32]) {
  weir_worker_t* worker = session->worker;
  weir_status_t* status = NULL;
  weir_mutex_lock(&worker->mu);
  snprintf(out_handle, 32, "%016llx", (unsigned long long)++worker->next_graph);
  if (session->is_dropped)
    status = WEIR_STATUS(ABORTED, "the session was deleted while a graph was registered with it");
  else status = weir_map_put(&session->graphs, weir_view_of(out_handle), take_graph);
  weir_mutex_unlock(&worker->mu);
  if (status) weir_worker_graph_release(take_graph);
  return status;
}

static void handle_register_graph(void* self, weir_rpc_call_t* call) {
  weir_worker_t* worker = ((weir_task_t*)self)->worker;
  weir_view_t handle = weir_view("", 0), def = weir_view("", 0), config = weir_view("", 0);
  bool is_made = false;
  worker_session_t* session = NULL;
  worker_graph_t* graph = NULL;
  weir_wire_reader_t reader = weir_worker_call_reader(call);
  while (weir_wire_next(&reader)) {
    if (reader.field == REGISTER_GRAPH_REQUEST_SESSION_HANDLE && reader.type == WEIR_WIRE_BYTES)
      handle = reader.bytes;
    if (reader.field == REGISTER_GRAPH_REQUEST_GRAPH_DEF && reader.type == WEIR_WIRE_BYTES)
      def = reader.bytes;
    if (reader.field == REGISTER_GRAPH_REQUEST_CREATE_WORKER_SESSION_CALLED)
      is_made = weir_wire_bool(&reader);
    if (reader.field == REGISTER_GRAPH_REQUEST_CONFIG_PROTO && reader.type == WEIR_WIRE_BYTES)
      config = reader.bytes;
  }
  weir_status_t* status = weir_wire_check(&reader, "RegisterGraphRequest");
  if (!status) status = weir_task_check_graph(worker->task, def.size);
  if (!status) status = find_session(worker, handle, is_made, &session);
  if (!status) status = graph_create(session, def, config, &graph);
  weir_message_builder_t builder = {.message = NULL};
  weir_rpc_message_t* message = NULL;
  if (!status) {
    char name[32];
    status = add_graph(session, graph, name);
    weir_wire_put_string(&builder.head, REGISTER_GRAPH_RESPONSE_GRAPH_HANDLE, name);
  }
  session_unref(session);
  if (status) weir_message_abandon(&builder);
  else status = weir_message_finish(&builder, &message);
  if (status) weir_worker_call_finish(call, weir_status_mark_node(status));
  else weir_rpc_call_respond(call, message);
}

weir_status_t* weir_worker_find_graph(weir_worker_t* worker, const worker_graph_key_t* key,
                                      worker_graph_t** out_graph) {
  worker_session_t* session = NULL;
  WEIR_TRY(find_session(worker, key->session_handle, key->is_session_made, &session));
  weir_mutex_lock(&worker->mu);
  worker_graph_t* graph = weir_map_find(&session->graphs, key->graph_handle);
  if (graph) weir_ref_inc(&graph->ref, 1);
  weir_mutex_unlock(&worker->mu);
  session_unref(session);
  *out_graph = graph;
  if (graph) return NULL;
  return WEIR_STATUS(ABORTED,
                     "Graph handle is not found: %.*s. Possibly, this worker just restarted.",
                     WEIR_VIEW_ARG(key->graph_handle));
}

static void handle_deregister_graph(void* self, weir_rpc_call_t* call) {
  weir_worker_t* worker = ((weir_task_t*)self)->worker;
  worker_graph_key_t key = {.is_session_made = false};
  weir_wire_reader_t reader = weir_worker_call_reader(call);
  while (weir_wire_next(&reader)) {
    if (reader.field == DEREGISTER_GRAPH_REQUEST_GRAPH_HANDLE && reader.type == WEIR_WIRE_BYTES)
      key.graph_handle = reader.bytes;
    if (reader.field == DEREGISTER_GRAPH_REQUEST_SESSION_HANDLE && reader.type == WEIR_WIRE_BYTES)
      key.session_handle = reader.bytes;
    if (reader.field == DEREGISTER_GRAPH_REQUEST_CREATE_WORKER_SESSION_CALLED)
      key.is_session_made = weir_wire_bool(&reader);
  }
  weir_status_t* status = weir_wire_check(&reader, "DeregisterGraphRequest");
  worker_graph_t* graph = NULL;
  if (!status) status = weir_worker_find_graph(worker, &key, &graph);
  if (!status) {
    weir_mutex_lock(&worker->mu);
    bool is_removed = weir_map_remove(&graph->owner->graphs, key.graph_handle) == graph;
    weir_mutex_unlock(&worker->mu);
    if (is_removed) weir_worker_graph_release(graph);
    weir_worker_graph_release(graph);
  }
  weir_worker_call_finish(call, status);
}

static void handle_cleanup_all(void* self, weir_rpc_call_t* call) {
  weir_worker_t* worker = ((weir_task_t*)self)->worker;
  int count = 0;
  weir_wire_reader_t reader = weir_worker_call_reader(call);
  while (weir_wire_next(&reader)) continue;  // all or nothing
  weir_status_t* status = weir_wire_check(&reader, "CleanupAllRequest");
  reader = weir_worker_call_reader(call);
  while (!status && weir_wire_next(&reader)) {
    if (reader.field != CLEANUP_ALL_REQUEST_CONTAINER || reader.type != WEIR_WIRE_BYTES) continue;
    ++count;
    weir_resources_clear(worker->task->runtime->resources, reader.bytes);
  }
  if (!status && count == 0) weir_resources_clear_all(worker->task->runtime->resources);
  weir_worker_call_finish(call, status);
}

// TensorFlow's master asks for the transfers of a step that it traces; the timeline itself comes
// with RunGraph.
static void handle_logging(void* self, weir_rpc_call_t* call) {
  weir_transfer_log_t* log = &((weir_task_t*)self)->transfers;
  weir_message_builder_t builder = {.message = NULL};
  weir_rpc_message_t* message = NULL;
  weir_wire_reader_t reader = weir_worker_call_reader(call);
  while (weir_wire_next(&reader)) continue;  // all or nothing
  weir_status_t* status = weir_wire_check(&reader, "LoggingRequest");
  reader = weir_worker_call_reader(call);
  while (!status && weir_wire_next(&reader)) {
    bool is_set = reader.type == WEIR_WIRE_VARINT && weir_wire_bool(&reader);
    if (reader.field == LOGGING_REQUEST_ENABLE_RPC_LOGGING && is_set)
      weir_transfer_log_switch(log, true);
    if (reader.field == LOGGING_REQUEST_DISABLE_RPC_LOGGING && is_set)
      weir_transfer_log_switch(log, false);
    if (reader.field == LOGGING_REQUEST_CLEAR && is_set) weir_transfer_log_clear(log);
    if (reader.field != LOGGING_REQUEST_FETCH_STEP_ID) continue;
    uint64_t step_id = 0;
    weir_wire_packed_t steps = weir_wire_packed(&reader, WEIR_WIRE_VARINT);
    while (weir_wire_packed_next(&steps, &step_id))
      weir_transfer_log_take(log, (int64_t)step_id, LOGGING_RESPONSE_STEP, &builder.head);
  }
  if (!status) status = weir_message_finish(&builder, &message);
  if (status) weir_worker_call_finish(call, status);
  else weir_rpc_call_respond(call, message);
}

static void handle_nothing(void* self, weir_rpc_call_t* call) {
  (void)self;
  respond_empty(call);
}

static void handle_ucx_address(void* self, weir_rpc_call_t* call) {
  weir_task_t* task = self;
  if (!task->ucx) {
    weir_rpc_call_fail(call, WEIR_STATUS(UNIMPLEMENTED, "tensors do not go by UCX here"));
    return;
  }
  weir_strbuf_t response = {0};
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_ucx_put_address(task->ucx, &response);
  weir_rpc_message_append_strbuf(message, &response);
  weir_rpc_call_respond(call, message);
}

// ---- the worker ----

#define WORKER(method) "/tensorflow.WorkerService/" #method
const weir_rpc_method_t weir_worker_methods[] = {
    {WORKER(GetStatus), handle_get_status, .is_inline = true},
    {WORKER(CreateWorkerSession), handle_create_session, .is_inline = false},
    {WORKER(DeleteWorkerSession), handle_delete_session, .is_inline = false},
    {WORKER(RegisterGraph), handle_register_graph, .is_inline = false},
    {WORKER(DeregisterGraph), handle_deregister_graph, .is_inline = false},
    {WORKER(RunGraph), weir_handle_run_graph, .is_inline = true, .is_step = true},
    {WORKER(CleanupGraph), weir_handle_cleanup_graph, .is_inline = true},
    {WORKER(CleanupAll), handle_cleanup_all, .is_inline = false},
    {WORKER(RecvTensor), weir_handle_recv_tensor, .is_inline = true},
    {WORKER(Logging), handle_logging, .is_inline = true},
    {WORKER(Tracing), handle_nothing, .is_inline = true},
    {WORKER(MarkRecvFinished), weir_handle_mark_recv_finished, .is_inline = true},
    {WEIR_UCX_ADDRESS_PATH, handle_ucx_address, .is_inline = true},
    {WEIR_JOIN_COLLECTIVE_PATH, weir_handle_join_collective, .is_inline = false},
    {.path = NULL}};

weir_status_t* weir_worker_create(weir_task_t* task, weir_worker_t** out_worker) {
  weir_worker_t* worker = weir_calloc(1, sizeof(*worker));
  if (!worker) return weir_out_of_memory();
  weir_mutex_init(&worker->mu);
  weir_cond_init(&worker->idle);
  worker->task = task;
  worker->sessions.owns_keys = worker->partials.owns_keys = true;
  weir_status_t* status = weir_cancel_create(NULL, &worker->cancel);
  if (status) weir_worker_destroy(worker);
  else *out_worker = worker;
  return status;
}

void weir_worker_stop(weir_worker_t* worker) {
  if (worker) weir_cancel_start(worker->cancel);
}

void weir_worker_destroy(weir_worker_t* worker) {
  if (!worker) return;
  weir_worker_stop(worker);
  weir_mutex_lock(&worker->mu);
  while (worker->running_count > 0) weir_cond_wait(&worker->idle, &worker->mu);
  weir_mutex_unlock(&worker->mu);
  weir_worker_end_partials(worker);
  weir_map_free(&worker->partials);
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&worker->sessions, &i));)
    session_drop(worker, entry->value);
  weir_map_free(&worker->sessions);
  weir_cancel_destroy(worker->cancel);
  weir_cond_destroy(&worker->idle);
  weir_mutex_destroy(&worker->mu);
  weir_free(worker);
}

void weir_worker_load(weir_worker_t* worker, int* out_sessions, int* out_running) {
  weir_mutex_lock(&worker->mu);
  *out_sessions = (int)worker->sessions.count;
  *out_running = worker->running_count;
  weir_mutex_unlock(&worker->mu);
}
