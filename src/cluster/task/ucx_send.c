// ucx_send.c — The producer's side of UCX: the tasks that it has endpoints to, and the tensors on
// their way to them.
#include <stdio.h>

#include "base/log.h"
#include "cluster/task/ucx_internal.h"
#include "wire/wire.h"

enum { MAX_ADDRESS_SIZE = 64 << 10, MAX_NAME_SIZE = 256 };
enum { NOTICES_DEATH = 1 };  // the error mode in which UCX does
#define SECOND_NS INT64_C(1000000000)
#define ASK_LIMIT_NS (10 * SECOND_NS)      // for a task to tell its address
#define CONNECT_LIMIT_NS (60 * SECOND_NS)  // until one that does not answer UCX is asked again
#define PAUSE_NS (10 * SECOND_NS)          // until one that cannot be reached by UCX is
#define RETRY_NS (2 * SECOND_NS)           // until one that was reached before is
#define SEND_LIMIT_NS (10 * SECOND_NS)     // for a tensor to be sent, and
#define SEND_NS_PER_KB (SECOND_NS / (10 << 10))  // for each KB of it: 10 MB/s

// A task that tensors are sent to. Lives as long as the transport.
typedef struct ucx_peer_t {
  weir_ucx_t* ucx;
  char name[MAX_NAME_SIZE];
  ucx_endpoint_t* ready;  // guarded by mu; NULL: there is none that is connected
  uint64_t connection;    // guarded by mu; over which the last offer came
  int64_t retry_ns;       // guarded by mu; not asked before
} ucx_peer_t;

// A connection of UCX's to one instance of a task.
struct ucx_endpoint_t {
  ucx_endpoint_t *next, **place;  // of the thread
  ucx_peer_t* peer;
  uint64_t instance;
  ucp_endpoint_t* handle;
  bool notices_death;
  int request_count;  // of the thread; of UCX's, which come back with it: it stays until they have
  bool is_closing;    // of the thread; the last of them is on its way
  bool has_failed;    // guarded by mu; to be closed
};

// A tensor on its way.
struct ucx_send_t {
  ucx_job_t job;
  ucx_send_t *next, **place;  // of the thread
  ucx_peer_t* peer;
  ucx_endpoint_t* endpoint;  // of the thread
  uint64_t instance;
  weir_passing_t passing;
  weir_tensor_t* tensor;  // retained
  weir_strbuf_t header;
  weir_cancel_token_t token;
  int64_t deadline_ns;
  bool is_answered;   // of the thread; the producer knows how it ended
  bool is_cancelled;  // guarded by mu
};

static weir_ucx_t* ucx_of(weir_transport_t* base) { return (weir_ucx_t*)base; }

// ---- endpoints ----

// A request has come back. After the last one of an endpoint that is closed nothing knows it.
static void request_ended(ucx_endpoint_t* endpoint, void* request) {
  if (request) endpoint->peer->ucx->api->free_request(request);
  if (--endpoint->request_count > 0 || !endpoint->is_closing) return;
  *endpoint->place = endpoint->next;
  if (endpoint->next) endpoint->next->place = endpoint->place;
  weir_free(endpoint);
}

static void closed(void* request, ucs_status_t status, void* arg) {
  (void)status;
  request_ended(arg, request);
}

// Ends what is under way there, too. One that does not notice deaths cannot be closed so: it stays.
static void close_endpoint(ucx_endpoint_t* endpoint) {
  const ucx_api_t* api = endpoint->peer->ucx->api;
  ucp_request_params_t params = {.mask = UCP_REQUEST_FN | UCP_REQUEST_ARG | UCP_REQUEST_FLAGS,
                                 .flags = UCP_CLOSE_AT_ONCE,
                                 .fn.sent = closed,
                                 .arg = endpoint};
  if (endpoint->is_closing || !endpoint->notices_death) return;
  endpoint->is_closing = true;
  ++endpoint->request_count;
  ucs_result_t result = api->close_endpoint(endpoint->handle, &params);
  if (!result || ucs_is_error(result)) closed(NULL, ucs_status_of(result), endpoint);
}

// No more is sent there, and it is to be closed. The task is asked again after a while.
static void fail_endpoint(ucx_endpoint_t* endpoint) {
  ucx_peer_t* peer = endpoint->peer;
  weir_ucx_t* ucx = peer->ucx;
  weir_mutex_lock(&ucx->mu);
  endpoint->has_failed = true;
  if (peer->ready == endpoint) peer->ready = NULL;
  peer->retry_ns = weir_clock_ns() + RETRY_NS;
  ucx->must_look = true;
  weir_mutex_unlock(&ucx->mu);
}

static void noticed_death(void* arg, ucp_endpoint_t* handle, ucs_status_t status) {
  ucx_endpoint_t* endpoint = arg;
  (void)handle;
  WEIR_LOG(INFO, "%s cannot be reached by UCX any more: %s", endpoint->peer->name,
           endpoint->peer->ucx->api->status_text(status));
  fail_endpoint(endpoint);
}

// ---- connecting ----

// The address that a task told, on its way to the thread.
typedef struct connect_t {
  ucx_job_t job;
  ucx_peer_t* peer;
  uint64_t instance;
  uint64_t address[];  // aligned, as UCX reads it
} connect_t;

// The task is not reached: it is asked again in |pause_ns|.
static void give_up(ucx_peer_t* peer, int64_t pause_ns) {
  weir_mutex_lock(&peer->ucx->mu);
  peer->retry_ns = weir_clock_ns() + pause_ns;
  weir_mutex_unlock(&peer->ucx->mu);
}

static void connected(void* request, ucs_status_t status, void* arg) {
  ucx_endpoint_t* endpoint = arg;
  ucx_peer_t* peer = endpoint->peer;
  weir_ucx_t* ucx = peer->ucx;
  if (status) {
    WEIR_LOG(INFO, "%s cannot be reached by UCX: %s", peer->name, ucx->api->status_text(status));
    fail_endpoint(endpoint);
    give_up(peer, PAUSE_NS);
  } else {
    weir_mutex_lock(&ucx->mu);
    if (peer->ready) endpoint->has_failed = true;  // it took so long that another was faster
    if (!endpoint->has_failed) peer->ready = endpoint;
    peer->retry_ns = weir_clock_ns() + RETRY_NS;  // of its next instance
    weir_mutex_unlock(&ucx->mu);
    WEIR_LOG(INFO, "large tensors go to %s by UCX", peer->name);
  }
  request_ended(endpoint, request);
}

// Where UCX cannot notice deaths, as in shared memory, it is to go without.
static ucs_status_t create_endpoint(weir_ucx_t* ucx, const connect_t* connect,
                                    ucx_endpoint_t* endpoint) {
  ucp_endpoint_params_t params = {
      .mask = UCP_ENDPOINT_ADDRESS | UCP_ENDPOINT_ERROR_MODE | UCP_ENDPOINT_ERROR_FN,
      .address = connect->address,
      .error_mode = NOTICES_DEATH,
      .error_fn = noticed_death,
      .error_arg = endpoint};
  ucs_status_t code = ucx->api->create_endpoint(ucx->worker, &params, &endpoint->handle);
  endpoint->notices_death = code != UCS_ERR_UNREACHABLE;
  if (endpoint->notices_death) return code;
  params.mask = UCP_ENDPOINT_ADDRESS;
  return ucx->api->create_endpoint(ucx->worker, &params, &endpoint->handle);
}

// Nothing is sent before the peer has answered UCX: so none waits for what is not reached.
static void await_connection(weir_ucx_t* ucx, ucx_endpoint_t* endpoint) {
  ucp_request_params_t params = {
      .mask = UCP_REQUEST_FN | UCP_REQUEST_ARG, .fn.sent = connected, .arg = endpoint};
  ++endpoint->request_count;
  ucs_result_t result = ucx->api->flush_endpoint(endpoint->handle, &params);
  if (!result || ucs_is_error(result)) connected(NULL, ucs_status_of(result), endpoint);
}

// Has the endpoint to an earlier instance closed. True: it is to this one, whatever offers say.
static bool is_connected(ucx_peer_t* peer, uint64_t instance) {
  weir_mutex_lock(&peer->ucx->mu);
  ucx_endpoint_t* old = peer->ready;
  bool is_to_instance = old && old->instance == instance;
  weir_mutex_unlock(&peer->ucx->mu);
  if (old && !is_to_instance) fail_endpoint(old);
  return is_to_instance;
}

static void run_connect(weir_ucx_t* ucx, ucx_job_t* job) {
  connect_t* connect = (connect_t*)job;
  ucx_peer_t* peer = connect->peer;
  if (is_connected(peer, connect->instance)) {
    weir_free(connect);
    give_up(peer, RETRY_NS);
    return;
  }
  ucx_endpoint_t* endpoint = weir_calloc(1, sizeof(*endpoint));
  ucs_status_t code = UCS_ERR_NO_MEMORY;
  if (endpoint) {
    endpoint->peer = peer;
    endpoint->instance = connect->instance;
    code = create_endpoint(ucx, connect, endpoint);
  }
  weir_free(connect);
  if (code) {
    WEIR_LOG(INFO, "%s has no way for UCX: %s", peer->name, ucx->api->status_text(code));
    weir_free(endpoint);
    give_up(peer, PAUSE_NS);
    return;
  }
  endpoint->next = ucx->endpoints;
  endpoint->place = &ucx->endpoints;
  if (endpoint->next) endpoint->next->place = &endpoint->next;
  ucx->endpoints = endpoint;
  await_connection(ucx, endpoint);
}

// ---- asking a task for its address ----

// Reads an answer to WEIR_UCX_ADDRESS_PATH. NULL: it is not one that this UCX understands.
static connect_t* parse_address(ucx_peer_t* peer, weir_view_t answer) {
  weir_view_t address = weir_view("", 0), version = weir_view("", 0);
  uint64_t instance = 0;
  weir_wire_reader_t reader = weir_wire_reader(answer);
  while (weir_wire_next(&reader)) {
    bool is_bytes = reader.type == WEIR_WIRE_BYTES;
    if (reader.field == ADDRESS_INSTANCE && !is_bytes) instance = reader.value;
    if (reader.field == ADDRESS_BYTES && is_bytes) address = reader.bytes;
    if (reader.field == ADDRESS_VERSION && is_bytes) version = reader.bytes;
  }
  if (reader.error || !instance || address.size == 0 || address.size > MAX_ADDRESS_SIZE)
    return NULL;
  if (!weir_view_is(version, peer->ucx->version)) {
    WEIR_LOG(INFO, "%s has UCX %.*s and not %s: tensors go there as ever", peer->name,
             WEIR_VIEW_ARG(version), peer->ucx->version);
    return NULL;
  }
  connect_t* connect = weir_calloc(1, sizeof(*connect) + address.size);
  if (!connect) return NULL;
  connect->job.run = run_connect;
  connect->peer = peer;
  connect->instance = instance;
  memcpy(connect->address, address.data, address.size);
  return connect;
}

static void asked(void* self, weir_status_t* take_status, weir_rpc_buffer_t* take_message) {
  ucx_peer_t* peer = self;
  bool is_without = weir_status_code(take_status) == WEIR_UNIMPLEMENTED;
  connect_t* connect = NULL;
  if (!take_status) connect = parse_address(peer, weir_rpc_buffer_view(take_message));
  weir_status_destroy(take_status);
  weir_rpc_buffer_release(take_message);
  if (connect) weir_ucx_queue(peer->ucx, &connect->job);
  else give_up(peer, is_without ? PAUSE_NS : RETRY_NS);
}

// Asks the task for its address, unless that is under way or has just failed.
static void ask(ucx_peer_t* peer) {
  weir_ucx_t* ucx = peer->ucx;
  int64_t now_ns = weir_clock_ns();
  weir_rpc_channel_t* channel = NULL;
  weir_mutex_lock(&ucx->mu);
  bool is_due = now_ns >= peer->retry_ns;
  if (is_due) peer->retry_ns = now_ns + CONNECT_LIMIT_NS;
  weir_mutex_unlock(&ucx->mu);
  if (!is_due) return;
  weir_status_t* status = weir_task_channel(ucx->task, NULL, weir_view_of(peer->name), &channel);
  if (status) {
    weir_status_destroy(status);
    give_up(peer, PAUSE_NS);
    return;
  }
  weir_rpc_call_options_t options = {.deadline_ns = now_ns + ASK_LIMIT_NS};
  weir_rpc_channel_call_async(channel, WEIR_UCX_ADDRESS_PATH, weir_rpc_message_create(), &options,
                              asked, peer, NULL);
}

// The peer of the name, if that is a task of the cluster.
static ucx_peer_t* find_peer(weir_ucx_t* ucx, weir_view_t name) {
  weir_device_name_t task;
  char full_name[MAX_NAME_SIZE];
  weir_status_t* status = weir_device_name_parse(name, &task);
  bool is_task = !status && weir_cluster_spec_find(&ucx->task->spec, task.job, task.task) &&
                 snprintf(full_name, sizeof(full_name), "/job:%s/replica:0/task:%d", task.job,
                          task.task) < (int)sizeof(full_name);
  weir_status_destroy(status);
  if (!is_task) return NULL;
  weir_mutex_lock(&ucx->mu);
  ucx_peer_t* peer = weir_map_find(&ucx->peers, weir_view_of(full_name));
  if (!peer && (peer = weir_calloc(1, sizeof(*peer)))) {
    peer->ucx = ucx;
    memcpy(peer->name, full_name, sizeof(full_name));
    status = weir_map_put(&ucx->peers, weir_view_of(peer->name), peer);
  }
  weir_mutex_unlock(&ucx->mu);
  if (peer && status) {
    weir_free(peer);
    peer = NULL;
    weir_status_destroy(status);
  }
  return peer;
}

// ---- sending ----

static void send_free(ucx_send_t* send) {
  weir_tensor_release(send->tensor);
  weir_strbuf_free(&send->header);
  weir_free(send);
}

// Tells the producer, unless it knows already.
static void answer(ucx_send_t* send, weir_status_t* take_status) {
  if (send->is_answered) {
    weir_status_destroy(take_status);
    return;
  }
  send->is_answered = true;
  weir_cancel_deregister(send->passing.cancel, send->token);
  send->passing.done(send->passing.arg, take_status);
}

static void sent(void* request, ucs_status_t code, void* arg) {
  ucx_send_t* send = arg;
  weir_ucx_t* ucx = send->peer->ucx;
  if (send->endpoint) request_ended(send->endpoint, request);
  *send->place = send->next;
  if (send->next) send->next->place = send->place;
  weir_status_t* status = NULL;
  if (code) status = WEIR_STATUS(UNAVAILABLE, "by UCX: %s", ucx->api->status_text(code));
  if (code) WEIR_LOG(INFO, "a tensor goes as bytes, not %s", weir_status_message(status));
  // Statistics, ordered with nothing.
  if (!code) atomic_fetch_add_explicit(&ucx->tensors_sent, 1, memory_order_relaxed);
  if (!code)
    atomic_fetch_add_explicit(&ucx->bytes_sent, (long long)weir_tensor_byte_size(send->tensor),
                              memory_order_relaxed);
  atomic_fetch_sub_explicit(&ucx->sends_open, 1, memory_order_relaxed);
  weir_tensor_release(send->tensor);  // before the producer goes on
  send->tensor = NULL;
  answer(send, status);
  send_free(send);
}

static void run_send(weir_ucx_t* ucx, ucx_job_t* job) {
  ucx_send_t* send = (ucx_send_t*)job;
  send->next = ucx->sends;
  send->place = &ucx->sends;
  if (send->next) send->next->place = &send->next;
  ucx->sends = send;
  weir_mutex_lock(&ucx->mu);
  ucx_endpoint_t* endpoint = send->peer->ready;
  bool is_wanted = !send->is_cancelled;
  weir_mutex_unlock(&ucx->mu);
  if (!endpoint || endpoint->instance != send->instance || !is_wanted) {
    sent(NULL, UCS_ERR_CANCELED, send);
    return;
  }
  ucp_request_params_t params = {.mask = UCP_REQUEST_FN | UCP_REQUEST_ARG | UCP_REQUEST_FLAGS,
                                 .flags = UCP_SEND_BY_RENDEZVOUS,
                                 .fn.sent = sent,
                                 .arg = send};
  send->endpoint = endpoint;
  ++endpoint->request_count;
  ucs_result_t result =
      ucx->api->send(endpoint->handle, UCX_MESSAGE_ID, send->header.data, send->header.size,
                     weir_tensor_data(send->tensor), weir_tensor_byte_size(send->tensor), &params);
  if (!result || ucs_is_error(result)) sent(NULL, ucs_status_of(result), send);
}

static void cancel_send(void* arg) {
  ucx_send_t* send = arg;
  weir_ucx_t* ucx = send->peer->ucx;
  weir_mutex_lock(&ucx->mu);
  send->is_cancelled = true;
  weir_mutex_unlock(&ucx->mu);
  weir_ucx_look_soon(ucx);
}

static void put_header(weir_strbuf_t* out, const weir_tensor_t* tensor, weir_view_t token) {
  weir_wire_put_bytes(out, HEADER_TOKEN, token.data, token.size);
  weir_wire_put_int(out, HEADER_DTYPE, weir_tensor_type(tensor));
  for (int i = 0; i < tensor->rank; ++i)
    weir_wire_put_fixed64(out, HEADER_DIM, (uint64_t)tensor->dims[i]);
}

// Gives the tensor to the thread. False: it goes as bytes.
static bool begin_send(ucx_peer_t* peer, uint64_t instance, weir_view_t token,
                       const weir_passing_t* passing) {
  ucx_send_t* send = weir_calloc(1, sizeof(*send));
  if (!send) return false;
  send->job.run = run_send;
  send->peer = peer;
  send->instance = instance;
  send->passing = *passing;
  send->tensor = weir_tensor_retain(passing->tensor);
  put_header(&send->header, passing->tensor, token);
  bool is_fit = !send->header.failed && send->header.size <= peer->ucx->max_header_size;
  if (is_fit) send->token = weir_cancel_register(passing->cancel, cancel_send, send);
  if (!send->token) {
    send_free(send);
    return false;
  }
  int64_t size_kb = (int64_t)(weir_tensor_byte_size(passing->tensor) >> 10);
  send->deadline_ns = weir_clock_ns() + SEND_LIMIT_NS + size_kb * SEND_NS_PER_KB;
  atomic_fetch_add_explicit(&peer->ucx->sends_open, 1, memory_order_relaxed);  // a statistic
  weir_ucx_queue(peer->ucx, &send->job);
  return true;
}

bool weir_ucx_pass(weir_transport_t* base, const weir_passing_t* passing) {
  weir_view_t task = weir_view("", 0), token = weir_view("", 0);
  uint64_t instance = 0;
  weir_wire_reader_t reader = weir_wire_reader(passing->offer);
  while (weir_wire_next(&reader)) {
    bool is_bytes = reader.type == WEIR_WIRE_BYTES;
    if (reader.field == OFFER_TASK && is_bytes) task = reader.bytes;
    if (reader.field == OFFER_INSTANCE && !is_bytes) instance = reader.value;
    if (reader.field == OFFER_TOKEN && is_bytes) token = reader.bytes;
  }
  if (reader.error || !instance || token.size != UCX_TOKEN_SIZE) return false;
  ucx_peer_t* peer = find_peer(ucx_of(base), task);
  if (!peer) return false;
  weir_mutex_lock(&peer->ucx->mu);
  peer->connection = passing->connection;
  bool is_ready = peer->ready && peer->ready->instance == instance;
  weir_mutex_unlock(&peer->ucx->mu);
  if (is_ready) return begin_send(peer, instance, token, passing);
  ask(peer);
  return false;
}

void weir_ucx_end_connection(weir_ucx_t* ucx, uint64_t connection) {
  weir_map_entry_t* entry;
  if (!ucx) return;
  weir_mutex_lock(&ucx->mu);
  for (size_t i = 0; ucx->peers.count && (entry = weir_map_next(&ucx->peers, &i));) {
    ucx_peer_t* peer = entry->value;
    if (peer->connection != connection || !peer->ready) continue;
    peer->ready->has_failed = true;
    peer->ready = NULL;
  }
  weir_mutex_unlock(&ucx->mu);
  weir_ucx_look_soon(ucx);
}

// ---- looking after them ----

// Answers those that are not waited for, that take too long, or that are on a lost way.
static void look_at_send(weir_ucx_t* ucx, ucx_send_t* send, bool is_end, int64_t now_ns) {
  weir_mutex_lock(&ucx->mu);
  bool is_cancelled = send->is_cancelled || is_end;
  bool has_failed = send->endpoint && send->endpoint->has_failed;
  weir_mutex_unlock(&ucx->mu);
  bool is_late = now_ns >= send->deadline_ns;
  if (send->is_answered || (!is_cancelled && !has_failed && !is_late)) return;
  if (is_late && send->endpoint) fail_endpoint(send->endpoint);
  answer(send, is_cancelled ? WEIR_STATUS(CANCELLED, "the receiver does not wait any more")
                            : WEIR_STATUS(UNAVAILABLE, "UCX does not send the tensor"));
}

// Closes the endpoints that have failed, or all.
static void close_endpoints(weir_ucx_t* ucx, bool is_end) {
  for (ucx_endpoint_t *endpoint = ucx->endpoints, *next; endpoint; endpoint = next) {
    next = endpoint->next;
    weir_mutex_lock(&ucx->mu);
    bool has_failed = endpoint->has_failed;
    weir_mutex_unlock(&ucx->mu);
    if (has_failed || is_end) close_endpoint(endpoint);
  }
}

void weir_ucx_look_at_sends(weir_ucx_t* ucx, bool is_end) {
  int64_t now_ns = weir_clock_ns();
  for (ucx_send_t* send = ucx->sends; send; send = send->next)
    look_at_send(ucx, send, is_end, now_ns);
  close_endpoints(ucx, is_end);
}

bool weir_ucx_has_sends(const weir_ucx_t* ucx) {
  for (const ucx_endpoint_t* endpoint = ucx->endpoints; endpoint; endpoint = endpoint->next) {
    if (endpoint->is_closing) return true;
  }
  return ucx->sends != NULL;
}

void weir_ucx_forget_sends(weir_ucx_t* ucx) {
  weir_map_entry_t* entry;
  while (ucx->sends) {
    ucx_send_t* send = ucx->sends;
    ucx->sends = send->next;
    send_free(send);
  }
  while (ucx->endpoints) {
    ucx_endpoint_t* endpoint = ucx->endpoints;
    ucx->endpoints = endpoint->next;
    weir_free(endpoint);
  }
  for (size_t i = 0; ucx->peers.count && (entry = weir_map_next(&ucx->peers, &i));)
    weir_free(entry->value);
}
