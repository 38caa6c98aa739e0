// master_devices.c — Which devices a session may use: every task that its filters leave is asked.
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cluster/master/master_session.h"
#include "cluster/task/fields.h"
#include "cluster/task/messages.h"
#include "wire/wire.h"

weir_status_t* weir_peer_call(weir_rpc_channel_t* channel, const char* method,
                              weir_strbuf_t* take_request, weir_cancel_t* cancel,
                              int64_t deadline_ns, weir_rpc_buffer_t** out_response) {
  char path[96];
  snprintf(path, sizeof(path), "/tensorflow.WorkerService/%s", method);
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append_strbuf(message, take_request);
  weir_rpc_call_options_t options = {.deadline_ns = deadline_ns, .cancel = cancel};
  return weir_rpc_channel_call(channel, path, message, &options, out_response);
}

// ---- devices ----

// What the session calls task number |task|: in a cluster of its own, by the name there.
static const char* task_name(const weir_master_session_t* session, int task) {
  if (task > 0) return session->peers[task - 1].name;
  return session->alias ? session->alias->task : session->task->name;
}

static weir_status_t* grow(weir_master_session_t* session) {
  size_t count = (size_t)session->device_count + 1;
  weir_placement_t* devices =
      weir_realloc_array(session->devices, count, sizeof(*session->devices));
  if (!devices) return weir_out_of_memory();
  session->devices = devices;
  int64_t* limits = weir_realloc_array(session->memory_limits, count, sizeof(*limits));
  if (!limits) return weir_out_of_memory();
  session->memory_limits = limits;
  char** descriptions = weir_realloc_array(session->descriptions, count, sizeof(*descriptions));
  if (!descriptions) return weir_out_of_memory();
  session->descriptions = descriptions;
  return NULL;
}

// Adds a device of |task|. Of its name only type and number count: whose it is, the master knows
// better than the task, which may have another name for itself, or lie.
static weir_status_t* add_device(weir_master_session_t* session,
                                 const weir_device_attributes_t* device, int task) {
  weir_device_name_t name;
  WEIR_TRY(weir_device_name_parse(weir_view_of(device->name), &name));
  if (!name.type[0] || name.index < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "'%s' is not the full name of a device", device->name);
  WEIR_TRY(grow(session));
  weir_strbuf_t full = {0};
  weir_strbuf_printf(&full, "%s/device:%s:%d", task_name(session, task), name.type, name.index);
  weir_status_t* status = weir_strbuf_finish(&full);
  char* type = status ? NULL : weir_strdup(name.type);
  char* description = device->description ? weir_strdup(device->description) : NULL;
  if (!type || (device->description && !description)) {
    weir_strbuf_free(&full);
    weir_free(type);
    weir_free(description);
    return status ? status : weir_out_of_memory();
  }
  const weir_device_kind_t* kind = weir_device_kind_find(weir_view_of(type));
  session->memory_limits[session->device_count] = device->memory_limit;
  session->descriptions[session->device_count] = description;
  session->devices[session->device_count++] =
      (weir_placement_t){.device = full.data,
                         .type = type,
                         .kernel_type = kind ? kind->kernel_type : NULL,
                         .has_queue = kind && kind->has_queue,
                         .preference = kind ? kind->preference : -1,
                         .incarnation = device->incarnation,
                         .task = task};
  return NULL;
}

static weir_status_t* add_own_devices(weir_master_session_t* session) {
  const weir_runtime_t* runtime = session->task->runtime;
  for (int i = 0; i < runtime->device_count; ++i) {
    weir_device_attributes_t device = weir_device_attributes(runtime->devices[i]);
    WEIR_TRY(add_device(session, &device, 0));
  }
  return NULL;
}

static weir_status_t* add_attributes(weir_master_session_t* session, weir_view_t message,
                                     int task) {
  weir_device_attributes_t device = {.name = NULL};
  weir_view_t name = weir_view("", 0), description = weir_view("", 0);
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == DEVICE_ATTRIBUTES_NAME && reader.type == WEIR_WIRE_BYTES)
      name = reader.bytes;
    if (reader.field == DEVICE_ATTRIBUTES_DESCRIPTION && reader.type == WEIR_WIRE_BYTES)
      description = reader.bytes;
    if (reader.field == DEVICE_ATTRIBUTES_MEMORY_LIMIT)
      device.memory_limit = weir_wire_int(&reader);
    if (reader.field == DEVICE_ATTRIBUTES_INCARNATION) device.incarnation = reader.value;
  }
  WEIR_TRY(weir_wire_check(&reader, "DeviceAttributes"));
  char* copy = weir_strndup(name.data, name.size);
  char* words = weir_strndup(description.data, description.size);
  device.name = copy;
  device.description = description.size ? words : NULL;
  weir_status_t* status = copy && words ? add_device(session, &device, task) : weir_out_of_memory();
  weir_free(copy);
  weir_free(words);
  return status;
}

static weir_status_t* add_status(weir_master_session_t* session, weir_rpc_buffer_t* response,
                                 int task) {
  enum { MAX_DEVICES = 1024 };  // of a task: every placement looks at all of them
  int count = 0;
  weir_wire_reader_t reader = weir_wire_reader(weir_rpc_buffer_view(response));
  while (weir_wire_next(&reader)) {
    bool is_device = reader.field == GET_STATUS_RESPONSE_DEVICE_ATTRIBUTES;
    if (!is_device || reader.type != WEIR_WIRE_BYTES) continue;
    if (++count > MAX_DEVICES)
      return WEIR_STATUS(INVALID_ARGUMENT, "it says that it has more than %d devices", MAX_DEVICES);
    WEIR_TRY(add_attributes(session, reader.bytes, task));
  }
  return weir_wire_check(&reader, "GetStatusResponse");
}

// ---- tasks ----

// Asks a task until it answers: clusters start in any order.
static weir_status_t* ask(weir_master_session_t* session, int task, weir_cancel_t* cancel) {
  enum { PATIENCE_S = 10 };
  const weir_peer_t* peer = &session->peers[task - 1];
  for (;;) {
    weir_strbuf_t request = {0};
    weir_rpc_buffer_t* response = NULL;
    int64_t deadline = weir_clock_ns() + PATIENCE_S * INT64_C(1000000000);
    weir_rpc_message_t* message = weir_rpc_message_create();
    weir_rpc_message_append_strbuf(message, &request);
    weir_rpc_call_options_t options = {
        .deadline_ns = deadline, .wait_for_ready = true, .cancel = cancel};
    weir_status_t* status = weir_rpc_channel_call(
        peer->channel, "/tensorflow.WorkerService/GetStatus", message, &options, &response);
    if (!status) status = add_status(session, response, task);
    weir_rpc_buffer_release(response);
    weir_code_t code = weir_status_code(status);
    bool is_absent = code == WEIR_DEADLINE_EXCEEDED || code == WEIR_UNAVAILABLE;
    bool has_given_up = status && weir_cancel_is_cancelled(cancel);
    if (!is_absent && !has_given_up) return weir_status_prefix(status, "%s: ", peer->name);
    weir_status_destroy(status);
    if (has_given_up)
      return WEIR_STATUS(CANCELLED, "no answer from %s before the client gave up", peer->name);
    WEIR_LOG(INFO, "CreateSession still waiting for response from worker: %s", peer->name);
  }
}

weir_status_t* weir_master_filter(const weir_view_t* filters, int count, const char* task,
                                  bool* out_is_allowed) {
  weir_device_name_t name, filter;
  *out_is_allowed = count == 0;
  WEIR_TRY(weir_device_name_parse(weir_view_of(task), &name));
  for (int i = 0; i < count && !*out_is_allowed; ++i) {
    WEIR_TRY(weir_status_prefix(weir_device_name_parse(filters[i], &filter), "device filter: "));
    filter.type[0] = 0;
    filter.index = -1;
    *out_is_allowed = weir_device_name_matches(&filter, &name);
  }
  return NULL;
}

static weir_status_t* add_peer(weir_master_session_t* session, const char* name) {
  size_t count = (size_t)session->peer_count + 1;
  weir_peer_t* peers = weir_realloc_array(session->peers, count, sizeof(*peers));
  if (!peers) return weir_out_of_memory();
  session->peers = peers;
  weir_peer_t peer = {.name = weir_strdup(name)};
  if (!peer.name) return weir_out_of_memory();
  weir_status_t* status =
      weir_task_channel(session->task, session->alias, weir_view_of(name), &peer.channel);
  if (status) weir_free(peer.name);
  else peers[session->peer_count++] = peer;
  return status;
}

static weir_status_t* add_peers(weir_master_session_t* session, const weir_master_config_t* config,
                                const weir_cluster_spec_t* spec) {
  const char* own = session->alias ? session->alias->task : session->task->name;
  for (int i = 0; i < spec->job_count; ++i) {
    const weir_cluster_job_t* job = &spec->jobs[i];
    for (int k = 0; k < job->task_count; ++k) {
      bool is_peer = false;
      weir_strbuf_t name = {0};
      weir_strbuf_printf(&name, "/job:%s/replica:0/task:%d", job->name, job->tasks[k].index);
      weir_status_t* status = weir_strbuf_finish(&name);
      if (!status && strcmp(name.data, own))
        status = weir_master_filter(config->filters, config->filter_count, name.data, &is_peer);
      if (!status && is_peer) status = add_peer(session, name.data);
      weir_strbuf_free(&name);
      if (status) return status;
    }
  }
  return NULL;
}

weir_status_t* weir_master_find_devices(weir_master_session_t* session,
                                        const weir_master_config_t* config, weir_cancel_t* cancel) {
  WEIR_TRY(add_own_devices(session));
  weir_status_t* status =
      add_peers(session, config, session->alias ? &session->alias->spec : &session->task->spec);
  for (int i = 0; i < session->peer_count && !status; ++i) status = ask(session, i + 1, cancel);
  return status;
}
