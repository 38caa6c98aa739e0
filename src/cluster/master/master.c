// master.c — The sessions of a master: made, extended, listed, closed, reset.
#include "cluster/master/master.h"

#include "base/alloc.h"
#include "base/details.h"
#include "base/log.h"
#include "cluster/master/master_internal.h"
#include "cluster/task/fields.h"
#include "cluster/task/messages.h"
#include "runtime/homes.h"

enum {
  RESET_TIMEOUT_S = 10,
  SESSION_LIMIT = 1024,  // one more ends the session that was idle for the longest time
  HOME_LIMIT = 10000,    // of state, placed by cost, that other sessions find again
};

void weir_master_enter(weir_master_t* master) {
  weir_mutex_lock(&master->mu);
  ++master->call_count;
  weir_mutex_unlock(&master->mu);
}

void weir_master_leave(weir_master_t* master) {
  weir_mutex_lock(&master->mu);
  if (--master->call_count == 0) weir_cond_broadcast(&master->idle);
  weir_mutex_unlock(&master->mu);
}

// ---- calls ----

master_call_t* weir_master_call_create(weir_master_t* master, weir_rpc_call_t* rpc) {
  master_call_t* call = weir_calloc(1, sizeof(*call));
  if (!call) {
    weir_rpc_call_fail(rpc, weir_out_of_memory());
    return NULL;
  }
  call->master = master;
  call->call = rpc;
  weir_master_enter(master);
  return call;
}

void weir_master_call_finish(master_call_t* call, weir_status_t* take_status,
                             weir_message_builder_t* builder) {
  weir_master_t* master = call->master;
  weir_rpc_call_t* rpc = call->call;
  weir_rpc_message_t* message = NULL;
  weir_status_t* status = take_status;
  if (status && builder) weir_message_abandon(builder);
  if (!status && builder) status = weir_message_finish(builder, &message);
  if (!status && !builder) message = weir_rpc_message_create();
  for (int i = 0; i < call->tensor_count; ++i) weir_tensor_release(call->tensors[i]);
  weir_master_run_release(call->session, call->run);
  weir_master_session_release(call->session);
  weir_arena_free(&call->arena);
  weir_free(call);
  if (status) weir_rpc_call_fail(rpc, weir_status_payloads(status));
  else weir_rpc_call_respond(rpc, message);
  weir_master_leave(master);
}

weir_status_t* weir_master_find(weir_master_t* master, weir_view_t handle,
                                weir_master_session_t** out_session) {
  weir_mutex_lock(&master->mu);
  weir_master_session_t* session = weir_map_find(&master->sessions, handle);
  if (session) weir_master_session_retain(session);
  if (session) session->last_used_ns = weir_clock_ns();
  weir_mutex_unlock(&master->mu);
  *out_session = session;
  if (session) return NULL;
  return WEIR_STATUS(ABORTED, "Session %.*s is not found.", WEIR_VIEW_ARG(handle));
}

static void cancel_call(void* arg) { weir_cancel_start(arg); }

// ---- CreateSession, ExtendSession ----

static void close_session(weir_master_session_t* take_session) {
  weir_master_session_close(take_session);
  weir_master_drop_partials(take_session);
  weir_master_session_release(take_session);
}

// Takes the session out of the table that was idle for the longest time; NULL when all of them are
// at work. Clients that end without a word leave sessions behind: only their number bounds them.
static weir_master_session_t* take_idle(weir_master_t* master) WEIR_REQUIRES(master->mu) {
  weir_map_entry_t *entry, *oldest = NULL;
  for (size_t i = 0; (entry = weir_map_next(&master->sessions, &i));) {
    weir_master_session_t* session = entry->value;
    const weir_master_session_t* rival = oldest ? oldest->value : NULL;
    bool is_idle = weir_ref_is_one(&session->ref);  // no call and no step holds it
    if (is_idle && (!rival || session->last_used_ns < rival->last_used_ns)) oldest = entry;
  }
  return oldest ? weir_map_remove(&master->sessions, oldest->key) : NULL;
}

static weir_status_t* add_session(weir_master_t* master, weir_master_session_t* take_session) {
  weir_master_session_t* idle = NULL;
  weir_status_t* status = NULL;
  weir_mutex_lock(&master->mu);
  take_session->last_used_ns = weir_clock_ns();
  bool is_full = master->sessions.count >= SESSION_LIMIT;
  if (is_full) idle = take_idle(master);
  if (is_full && !idle)
    status = WEIR_STATUS(RESOURCE_EXHAUSTED, "all of the %d sessions that a master has are at work",
                         SESSION_LIMIT);
  if (!status)
    status = weir_map_put(&master->sessions, weir_view_of(take_session->handle), take_session);
  weir_mutex_unlock(&master->mu);
  if (idle) {
    WEIR_LOG(WARNING, "session %s is closed: of %d it was idle for the longest time", idle->handle,
             SESSION_LIMIT);
    close_session(idle);
  }
  if (status) close_session(take_session);
  return status;
}

static weir_status_t* create_session(master_call_t* call, weir_cancel_t* cancel,
                                     weir_message_builder_t* builder) {
  weir_master_t* master = call->master;
  weir_master_config_t config;
  weir_master_session_t* session = NULL;
  WEIR_TRY(weir_parse_config(call->config, &call->arena, &config));
  config.target = call->target;
  WEIR_TRY(weir_master_session_create(master->task, &config, call->graph_def, cancel, &session));
  weir_wire_put_string(&builder->head, CREATE_SESSION_RESPONSE_SESSION_HANDLE, session->handle);
  return add_session(master, session);
}

static void create_session_task(void* arg) {
  master_call_t* call = arg;
  weir_message_builder_t builder = {.message = NULL};
  weir_cancel_t* cancel = NULL;
  weir_status_t* status = weir_cancel_create(call->master->cancel, &cancel);
  if (!status) {
    weir_rpc_call_on_cancel(call->call, cancel_call, cancel);
    status = create_session(call, cancel, &builder);
    weir_rpc_call_on_cancel(call->call, NULL, NULL);
  }
  weir_cancel_destroy(cancel);
  weir_master_call_finish(call, weir_status_mark_node(status), &builder);
}

static void handle_create_session(void* self, weir_rpc_call_t* rpc) {
  master_call_t* call = weir_master_call_create(((weir_task_t*)self)->master, rpc);
  if (!call) return;
  weir_status_t* status = weir_parse_create_session(call);
  if (status) weir_master_call_finish(call, status, NULL);
  else weir_task_wait(call->master->task, create_session_task, call);
}

static void handle_extend_session(void* self, weir_rpc_call_t* rpc) {
  master_call_t* call = weir_master_call_create(((weir_task_t*)self)->master, rpc);
  if (!call) return;
  int64_t version = 0;
  weir_message_builder_t builder = {.message = NULL};
  weir_status_t* status = weir_parse_extend_session(call);
  if (!status) status = weir_master_find(call->master, call->session_handle, &call->session);
  if (!status)
    status = weir_master_session_extend(call->session, call->graph_def, call->version, &version);
  if (!status) weir_wire_put_int(&builder.head, EXTEND_SESSION_RESPONSE_NEW_GRAPH_VERSION, version);
  weir_master_call_finish(call, weir_status_mark_node(status), &builder);
}

// ---- ListDevices ----

static void put_devices(const weir_master_session_t* session, weir_strbuf_t* out) {
  for (int i = 0; i < session->device_count; ++i) {
    const weir_placement_t* device = &session->devices[i];
    weir_device_attributes_t attributes = {.name = device->device,
                                           .type = device->type,
                                           .memory_limit = session->memory_limits[i],
                                           .incarnation = device->incarnation,
                                           .description = session->descriptions[i]};
    uint32_t field = device->task == 0 ? LIST_DEVICES_RESPONSE_LOCAL_DEVICE
                                       : LIST_DEVICES_RESPONSE_REMOTE_DEVICE;
    weir_device_attributes_write(&attributes, field, out);
  }
}

static void handle_list_devices(void* self, weir_rpc_call_t* rpc) {
  master_call_t* call = weir_master_call_create(((weir_task_t*)self)->master, rpc);
  if (!call) return;
  weir_message_builder_t builder = {.message = NULL};
  weir_status_t* status = weir_parse_handle(call, "ListDevicesRequest");
  if (!status) {
    weir_status_t* absent = weir_master_find(call->master, call->session_handle, &call->session);
    if (absent)
      status = WEIR_STATUS(INVALID_ARGUMENT,
                           "Session %.*s is not found. Possibly, this master has "
                           "restarted.",
                           WEIR_VIEW_ARG(call->session_handle));
    weir_status_destroy(absent);
  }
  if (!status) put_devices(call->session, &builder.head);
  weir_master_call_finish(call, status, &builder);
}

// ---- CloseSession, Reset ----

static void handle_close_session(void* self, weir_rpc_call_t* rpc) {
  master_call_t* call = weir_master_call_create(((weir_task_t*)self)->master, rpc);
  if (!call) return;
  weir_master_t* master = call->master;
  weir_status_t* status = weir_parse_handle(call, "CloseSessionRequest");
  if (!status) {
    weir_mutex_lock(&master->mu);
    weir_master_session_t* session = weir_map_remove(&master->sessions, call->session_handle);
    weir_mutex_unlock(&master->mu);
    if (session) close_session(session);
    else
      status = WEIR_STATUS(ABORTED,
                           "Session %.*s is not found. Possibly, this master has "
                           "restarted.",
                           WEIR_VIEW_ARG(call->session_handle));
  }
  weir_master_call_finish(call, status, NULL);
}

static void close_all(weir_master_t* master) {
  for (;;) {
    size_t i = 0;
    weir_mutex_lock(&master->mu);
    weir_map_entry_t* entry = weir_map_next(&master->sessions, &i);
    weir_master_session_t* session = entry ? weir_map_remove(&master->sessions, entry->key) : NULL;
    weir_mutex_unlock(&master->mu);
    if (!session) return;
    close_session(session);
  }
}

static weir_status_t* clean_peer(weir_task_t* task, const master_call_t* call, weir_view_t name) {
  weir_rpc_channel_t* channel = NULL;
  weir_rpc_buffer_t* response = NULL;
  weir_strbuf_t request = {0};
  WEIR_TRY(weir_task_channel(task, NULL, name, &channel));
  for (int i = 0; i < call->name_count; ++i)
    weir_wire_put_bytes(&request, CLEANUP_ALL_REQUEST_CONTAINER, call->names[i].data,
                        call->names[i].size);
  int64_t deadline = weir_clock_ns() + RESET_TIMEOUT_S * INT64_C(1000000000);
  weir_status_t* status =
      weir_peer_call(channel, "CleanupAll", &request, call->master->cancel, deadline, &response);
  weir_rpc_buffer_release(response);
  return weir_status_prefix(status, "%.*s: ", WEIR_VIEW_ARG(name));
}

static void clean_self(weir_task_t* task, const master_call_t* call) {
  for (int i = 0; i < call->name_count; ++i)
    weir_resources_clear(task->runtime->resources, call->names[i]);
  if (call->name_count == 0) weir_resources_clear_all(task->runtime->resources);
}

// Empties the containers on one task, if the filters allow it.
static weir_status_t* clean_task(weir_task_t* task, const master_call_t* call,
                                 const weir_cluster_job_t* job, int k) {
  bool is_allowed = false;
  bool is_self = job->name == task->job && job->tasks[k].index == task->index;
  weir_strbuf_t name = {0};
  weir_strbuf_printf(&name, "/job:%s/replica:0/task:%d", job->name, job->tasks[k].index);
  weir_status_t* status = weir_strbuf_finish(&name);
  if (!status)
    status = weir_master_filter(call->filters, call->filter_count, name.data, &is_allowed);
  if (!status && is_allowed && is_self) clean_self(task, call);
  else if (!status && is_allowed) status = clean_peer(task, call, weir_strbuf_view(&name));
  weir_strbuf_free(&name);
  return status;
}

// Closes every session and empties the containers on every task that the filters allow; also on the
// others when one of them fails.
static void reset_task(void* arg) {
  master_call_t* call = arg;
  weir_task_t* task = call->master->task;
  weir_status_t* status = NULL;
  close_all(call->master);
  for (int i = 0; i < task->spec.job_count; ++i) {
    const weir_cluster_job_t* job = &task->spec.jobs[i];
    for (int k = 0; k < job->task_count; ++k) {
      weir_status_t* of_task = clean_task(task, call, job, k);
      if (status) weir_status_destroy(of_task);
      else status = of_task;
    }
  }
  weir_master_call_finish(call, status, NULL);
}

static void handle_reset(void* self, weir_rpc_call_t* rpc) {
  master_call_t* call = weir_master_call_create(((weir_task_t*)self)->master, rpc);
  if (!call) return;
  weir_status_t* status = weir_parse_reset(call);
  if (status) weir_master_call_finish(call, status, NULL);
  else weir_task_wait(call->master->task, reset_task, call);
}

// ---- the master ----

#define MASTER(method) "/tensorflow.MasterService/" #method
const weir_rpc_method_t weir_master_methods[] = {
    {MASTER(CreateSession), handle_create_session, .is_inline = false},
    {MASTER(ExtendSession), handle_extend_session, .is_inline = false},
    {MASTER(PartialRunSetup), weir_handle_partial_setup, .is_inline = false},
    {MASTER(RunStep), weir_handle_run_step, .is_inline = true, .is_step = true},
    {MASTER(CloseSession), handle_close_session, .is_inline = false},
    {MASTER(ListDevices), handle_list_devices, .is_inline = true},
    {MASTER(Reset), handle_reset, .is_inline = false},
    {MASTER(MakeCallable), weir_handle_make_callable, .is_inline = false},
    {MASTER(RunCallable), weir_handle_run_callable, .is_inline = true, .is_step = true},
    {MASTER(ReleaseCallable), weir_handle_release_callable, .is_inline = true},
    {WEIR_SNAPSHOT_SETUP_PATH, weir_handle_snapshot_setup, .is_inline = false},
    {.path = NULL}};

weir_status_t* weir_master_create(weir_task_t* task, weir_master_t** out_master) {
  weir_master_t* master = weir_calloc(1, sizeof(*master));
  if (!master) return weir_out_of_memory();
  weir_mutex_init(&master->mu);
  weir_mutex_init(&master->rates_mu);
  weir_cond_init(&master->idle);
  master->task = task;
  master->sessions.owns_keys = true;
  weir_status_t* status = weir_cancel_create(NULL, &master->cancel);
  if (!status) status = weir_homes_create(HOME_LIMIT, &master->homes);
  if (status) weir_master_destroy(master);
  else *out_master = master;
  return status;
}

void weir_master_stop(weir_master_t* master) {
  if (!master) return;
  weir_cancel_start(master->cancel);
  close_all(master);
}

void weir_master_destroy(weir_master_t* master) {
  if (!master) return;
  weir_master_stop(master);
  weir_mutex_lock(&master->mu);
  while (master->call_count > 0) weir_cond_wait(&master->idle, &master->mu);
  weir_mutex_unlock(&master->mu);
  weir_map_free(&master->sessions);
  weir_cancel_destroy(master->cancel);
  weir_cond_destroy(&master->idle);
  weir_homes_destroy(master->homes);
  weir_mutex_destroy(&master->rates_mu);
  weir_mutex_destroy(&master->mu);
  weir_free(master);
}

int weir_master_session_count(weir_master_t* master) {
  weir_mutex_lock(&master->mu);
  int count = (int)master->sessions.count;
  weir_mutex_unlock(&master->mu);
  return count;
}
