// client.c — A session on a master elsewhere: the graph is sent as it grows, steps are RPCs.
//
// The master's session is lost when the master or one of its tasks restarts: a step then ends with
// ABORTED, which its caller gets, for what it was to do may be half done and state may be gone. The
// next step makes a new one, so the client's session lasts as long as it is wanted. A task that is
// gone (UNAVAILABLE) is no reason: steps that do not need it go on, while a new session would wait
// for it. Steps hold the master's session that they run on; it is closed when the last is through.
#include "cluster/client/client.h"

#include <sys/random.h>

#include "base/alloc.h"
#include "base/details.h"
#include "base/log.h"
#include "base/outcome.h"
#include "cluster/task/fields.h"
#include "cluster/task/messages.h"
#include "cluster/task/tensor_message.h"
#include "pass/pass.h"
#include "rpc/address.h"
#include "rpc/token.h"
#include "wire/wire.h"

#define MASTER "/tensorflow.MasterService/"
enum { CLOSE_TIMEOUT_S = 10 };

// A session of the master.
typedef struct hosted_t {
  char* handle;
  int64_t version;    // of the master's graph,
  size_t sent_count;  // and how many nodes it has; both are of the thread that is sending
  int users;          // guarded by the client's mu: the steps, and the client until it is lost
} hosted_t;

typedef struct client_t {
  weir_remote_session_t base;
  weir_graph_t* graph;
  weir_rpc_loop_t* loop;
  weir_rpc_channel_t* channel;
  weir_session_options_t options;  // without its strings
  char* device_filters;            // separated by commas; NULL: none
  weir_dtype_t mixed;              // of mixed precision; INVALID: none
  weir_mutex_t mu;                 // guards the next three
  weir_cond_t sent;                // signalled when |is_sending| ends
  bool is_sending;         // one thread makes the master's session, and brings its graph up to date
  hosted_t* hosted;        // NULL before the first run, and after it was lost
  weir_mutex_t cancel_mu;  // guards all below; taken after |mu|
  weir_cancel_t**
      cancels;  // the last is of the calls started now; one more each weir_session_cancel
  size_t cancel_count, cancel_capacity;
} client_t;

// ---- calling ----

// A call being waited for, which a cancellation can end.
typedef struct pending_t {
  weir_outcome_t outcome;
  weir_rpc_buffer_t* response;
  weir_rpc_request_t* request;  // set before the cancellations are registered
} pending_t;

static void call_done(void* self, weir_status_t* take_status, weir_rpc_buffer_t* take_message) {
  pending_t* pending = self;
  pending->response = take_message;
  weir_outcome_set(&pending->outcome, take_status);
}

static void cancel_call(void* arg) { weir_rpc_request_cancel(((pending_t*)arg)->request); }

// 0: none. |options| may be NULL, here and below.
static int64_t deadline_of(const weir_run_options_t* options) {
  bool has_any = options && options->timeout_ms > 0;
  return has_any ? weir_clock_ns() + options->timeout_ms * INT64_C(1000000) : 0;
}
static weir_cancel_t* cancel_of(const weir_run_options_t* options) {
  return options && options->cancellation ? weir_cancellation_get(options->cancellation) : NULL;
}

static weir_cancel_t* shared_cancel(client_t* client) {
  weir_mutex_lock(&client->cancel_mu);
  weir_cancel_t* shared = client->cancels[client->cancel_count - 1];
  weir_mutex_unlock(&client->cancel_mu);
  return shared;
}

static weir_status_t* call_and_wait(client_t* client, const char* method,
                                    weir_rpc_message_t* take_message,
                                    const weir_run_options_t* options,
                                    weir_rpc_buffer_t** out_response) {
  pending_t pending = {.response = NULL};
  weir_outcome_init(&pending.outcome);
  weir_rpc_call_options_t call = {.deadline_ns = deadline_of(options)};
  weir_cancel_t* own = cancel_of(options);
  weir_cancel_t* shared = shared_cancel(client);
  weir_rpc_channel_call_async(client->channel, method, take_message, &call, call_done, &pending,
                              &pending.request);
  weir_cancel_token_t own_token = weir_cancel_register(own, cancel_call, &pending);
  weir_cancel_token_t shared_token = weir_cancel_register(shared, cancel_call, &pending);
  if (weir_cancel_is_cancelled(own) || weir_cancel_is_cancelled(shared)) cancel_call(&pending);
  weir_status_t* status = weir_outcome_wait(&pending.outcome);
  if (own_token) weir_cancel_deregister(own, own_token);
  if (shared_token) weir_cancel_deregister(shared, shared_token);
  weir_rpc_request_release(pending.request);
  *out_response = pending.response;
  return status;
}

// ---- the master's session ----

static hosted_t* hold(client_t* client) {
  weir_mutex_lock(&client->mu);
  hosted_t* hosted = client->hosted;
  if (hosted) ++hosted->users;
  weir_mutex_unlock(&client->mu);
  return hosted;
}

static weir_rpc_message_t* close_request(const hosted_t* hosted) {
  weir_strbuf_t request = {0};
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_wire_put_string(&request, CLOSE_SESSION_REQUEST_SESSION_HANDLE, hosted->handle);
  weir_rpc_message_append_strbuf(message, &request);
  return message;
}

static weir_rpc_call_options_t close_options(void) {
  const int64_t timeout_ns = CLOSE_TIMEOUT_S * INT64_C(1000000000);
  return (weir_rpc_call_options_t){.deadline_ns = weir_clock_ns() + timeout_ns};
}

static void closed(void* self, weir_status_t* take_status, weir_rpc_buffer_t* take_message) {
  (void)self;
  if (take_status) WEIR_LOG(INFO, "CloseSession: %s", weir_status_message(take_status));
  weir_status_destroy(take_status);
  weir_rpc_buffer_release(take_message);
}

static void hosted_free(hosted_t* hosted) {
  if (!hosted) return;
  weir_free(hosted->handle);
  weir_free(hosted);
}

// Whoever lets go of a lost session last has it closed, and does not wait for that: a master that
// is alive keeps what the session has until then.
static void let_go(client_t* client, hosted_t* hosted) {
  if (!hosted) return;
  weir_mutex_lock(&client->mu);
  const bool is_last = --hosted->users == 0;
  weir_mutex_unlock(&client->mu);
  if (!is_last) return;
  const weir_rpc_call_options_t options = close_options();
  weir_rpc_channel_call_async(client->channel, MASTER "CloseSession", close_request(hosted),
                              &options, closed, NULL, NULL);
  hosted_free(hosted);
}

// The next step makes another.
static void lose(client_t* client, hosted_t* hosted) {
  weir_mutex_lock(&client->mu);
  const bool is_current = hosted && client->hosted == hosted;
  if (is_current) client->hosted = NULL;
  weir_mutex_unlock(&client->mu);
  if (is_current) let_go(client, hosted);
}

// ---- creating and extending ----

static weir_status_t* call_master(client_t* client, const char* method, weir_strbuf_t* take_request,
                                  const weir_run_options_t* options,
                                  weir_rpc_buffer_t** out_response) {
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append_strbuf(message, take_request);
  return call_and_wait(client, method, message, options, out_response);
}

// ConfigProto.device_filters, one entry each.
static void put_filters(weir_strbuf_t* config, const char* filters) {
  while (filters && *filters) {
    size_t size = strcspn(filters, ",");
    if (size) weir_wire_put_bytes(config, CONFIG_PROTO_DEVICE_FILTERS, filters, size);
    filters += size + (filters[size] != 0);
  }
}

// Appends the nodes from |first| on as a field of |request|. The graph is locked no longer than
// that: a master may wait for its peers before it answers, and the graph may grow meanwhile.
static weir_status_t* put_graph(client_t* client, int field, size_t first, weir_strbuf_t* request,
                                size_t* out_count) {
  size_t begin = weir_wire_begin(request, field);
  weir_mutex_lock(&client->graph->mu);
  *out_count = client->graph->node_count;
  weir_status_t* status = weir_graph_write_portable(client->graph, first, request);
  weir_mutex_unlock(&client->graph->mu);
  weir_wire_end(request, begin);
  return status;
}

static void put_config(const client_t* client, weir_strbuf_t* request) {
  size_t config = weir_wire_begin(request, CREATE_SESSION_REQUEST_CONFIG);
  put_filters(request, client->device_filters);
  if (client->options.allow_soft_placement)
    weir_wire_put_bool(request, CONFIG_PROTO_ALLOW_SOFT_PLACEMENT, true);
  if (client->options.isolate_state)
    weir_wire_put_bool(request, CONFIG_PROTO_ISOLATE_SESSION_STATE, true);
  weir_config_put_mixed_precision(client->mixed, request);
  weir_wire_end(request, config);
}

static weir_status_t* parse_created(weir_rpc_buffer_t* response, hosted_t* hosted) {
  weir_wire_reader_t reader = weir_wire_reader(weir_rpc_buffer_view(response));
  while (weir_wire_next(&reader)) {
    if (reader.field == CREATE_SESSION_RESPONSE_SESSION_HANDLE && reader.type == WEIR_WIRE_BYTES &&
        !hosted->handle) {
      hosted->handle = weir_strndup(reader.bytes.data, reader.bytes.size);
      if (!hosted->handle) return weir_out_of_memory();
    }
    if (reader.field == CREATE_SESSION_RESPONSE_GRAPH_VERSION)
      hosted->version = weir_wire_int(&reader);
  }
  return hosted->handle ? NULL : WEIR_STATUS(INTERNAL, "CreateSession gave no session handle");
}

// |out_hosted| is held for the caller.
static weir_status_t* create_session(client_t* client, const weir_run_options_t* options,
                                     hosted_t** out_hosted) {
  weir_strbuf_t request = {0};
  weir_rpc_buffer_t* response = NULL;
  hosted_t* hosted = weir_calloc(1, sizeof(*hosted));
  if (!hosted) return weir_out_of_memory();
  weir_status_t* status =
      put_graph(client, CREATE_SESSION_REQUEST_GRAPH_DEF, 0, &request, &hosted->sent_count);
  put_config(client, &request);
  if (!status) status = call_master(client, MASTER "CreateSession", &request, options, &response);
  weir_strbuf_free(&request);
  if (!status) status = parse_created(response, hosted);
  weir_rpc_buffer_release(response);
  if (status) {
    hosted_free(hosted);
    return status;
  }
  hosted->users = 2;  // the client, and its caller
  weir_mutex_lock(&client->mu);
  client->hosted = hosted;
  weir_mutex_unlock(&client->mu);
  *out_hosted = hosted;
  return NULL;
}

static weir_status_t* extend_session(client_t* client, hosted_t* hosted,
                                     const weir_run_options_t* options) {
  weir_strbuf_t request = {0};
  size_t count = 0;
  weir_wire_put_string(&request, EXTEND_SESSION_REQUEST_SESSION_HANDLE, hosted->handle);
  weir_status_t* status =
      put_graph(client, EXTEND_SESSION_REQUEST_GRAPH_DEF, hosted->sent_count, &request, &count);
  weir_wire_put_int(&request, EXTEND_SESSION_REQUEST_CURRENT_GRAPH_VERSION, hosted->version);
  weir_rpc_buffer_t* response = NULL;
  if (!status) status = call_master(client, MASTER "ExtendSession", &request, options, &response);
  weir_strbuf_free(&request);
  weir_wire_reader_t reader = weir_wire_reader(weir_rpc_buffer_view(response));
  while (!status && weir_wire_next(&reader)) {
    if (reader.field == EXTEND_SESSION_RESPONSE_NEW_GRAPH_VERSION)
      hosted->version = weir_wire_int(&reader);
  }
  weir_rpc_buffer_release(response);
  if (!status) hosted->sent_count = count;
  return status;
}

static void wake_senders(void* arg) {
  client_t* client = arg;
  weir_mutex_lock(&client->mu);
  weir_cond_broadcast(&client->sent);
  weir_mutex_unlock(&client->mu);
}

// Waits until another thread has sent the graph, no longer than the step may take.
static weir_status_t* wait_turn(client_t* client, const weir_run_options_t* options) {
  const int64_t deadline = deadline_of(options);
  weir_status_t* status = NULL;
  weir_cancel_t* cancels[] = {cancel_of(options), shared_cancel(client)};
  weir_cancel_token_t tokens[2];
  for (int i = 0; i < 2; ++i) tokens[i] = weir_cancel_register(cancels[i], wake_senders, client);
  weir_mutex_lock(&client->mu);
  while (client->is_sending && !status) {
    if (weir_cancel_is_cancelled(cancels[0]) || weir_cancel_is_cancelled(cancels[1]))
      status = WEIR_STATUS(CANCELLED, "the step was cancelled before the master had its graph");
    else if (!deadline) weir_cond_wait(&client->sent, &client->mu);
    else if (!weir_cond_wait_until(&client->sent, &client->mu, deadline))
      status = WEIR_STATUS(DEADLINE_EXCEEDED, "the master did not have the graph in time");
  }
  if (!status) client->is_sending = true;
  weir_mutex_unlock(&client->mu);
  for (int i = 0; i < 2; ++i) {
    if (tokens[i]) weir_cancel_deregister(cancels[i], tokens[i]);
  }
  return status;
}

static weir_status_t* start_sending(client_t* client, const weir_run_options_t* options) {
  weir_mutex_lock(&client->mu);
  bool is_free = !client->is_sending;
  if (is_free) client->is_sending = true;
  weir_mutex_unlock(&client->mu);
  return is_free ? NULL : wait_turn(client, options);
}

static void end_sending(client_t* client) {
  weir_mutex_lock(&client->mu);
  client->is_sending = false;
  weir_cond_broadcast(&client->sent);
  weir_mutex_unlock(&client->mu);
}

static bool is_sent(client_t* client, const hosted_t* hosted) {
  weir_mutex_lock(&client->graph->mu);
  size_t count = client->graph->node_count;
  weir_mutex_unlock(&client->graph->mu);
  return count <= hosted->sent_count;
}

// A session of the master whose graph is what the client's is, held for the caller: also after an
// error, unless it is NULL.
static weir_status_t* get_ready(client_t* client, const weir_run_options_t* options,
                                hosted_t** out_hosted) {
  weir_status_t* status = NULL;
  WEIR_TRY(start_sending(client, options));
  hosted_t* hosted = hold(client);
  if (!hosted) status = create_session(client, options, &hosted);
  else if (!is_sent(client, hosted)) status = extend_session(client, hosted, options);
  end_sending(client);
  *out_hosted = hosted;
  return status;
}

// ---- running ----

// Without memory for the name there is no message, rather than one with another name.
static void put_edge_name(weir_message_builder_t* builder, weir_edge_t edge, weir_strbuf_t* name) {
  weir_strbuf_printf(name, "%s:%d", edge.node->def.name, edge.index);
  if (name->failed) builder->head.failed = true;
}

static void put_request_id(weir_strbuf_t* request, uint32_t field) {
  uint64_t id = 0;
  if (getrandom(&id, sizeof(id), 0) == (ssize_t)sizeof(id))
    weir_wire_put_int(request, field, (int64_t)(id >> 1));
}

// |partial|: the partial run it continues; NULL: it is a step of its own.
static weir_status_t* run_request(const hosted_t* hosted, const weir_step_spec_t* spec,
                                  const char* partial, const weir_run_options_t* run,
                                  weir_rpc_message_t** out_message) {
  weir_message_builder_t builder = {.message = NULL};
  weir_wire_put_string(&builder.head, RUN_STEP_REQUEST_SESSION_HANDLE, hosted->handle);
  for (int i = 0; i < spec->feed_count; ++i) {
    weir_strbuf_t name = {0};
    put_edge_name(&builder, spec->feeds[i].edge, &name);
    weir_message_put_named_tensor(&builder, RUN_STEP_REQUEST_FEED, weir_strbuf_view(&name),
                                  spec->feeds[i].tensor);
    weir_strbuf_free(&name);
  }
  for (int i = 0; i < spec->fetch_count; ++i) {
    weir_strbuf_t name = {0};
    put_edge_name(&builder, spec->fetches[i], &name);
    weir_wire_put_bytes(&builder.head, RUN_STEP_REQUEST_FETCH, name.data, name.size);
    weir_strbuf_free(&name);
  }
  for (int i = 0; i < spec->target_count; ++i)
    weir_wire_put_string(&builder.head, RUN_STEP_REQUEST_TARGET, spec->targets[i]->def.name);
  size_t options = weir_wire_begin(&builder.head, RUN_STEP_REQUEST_OPTIONS);
  if (run && run->trace)
    weir_wire_put_int(&builder.head, RUN_OPTIONS_TRACE_LEVEL, RUN_OPTIONS_FULL_TRACE);
  weir_wire_end(&builder.head, options);
  if (partial) weir_wire_put_string(&builder.head, RUN_STEP_REQUEST_PARTIAL_RUN_HANDLE, partial);
  weir_wire_put_bool(&builder.head, RUN_STEP_REQUEST_STORE_ERRORS_IN_RESPONSE_BODY, true);
  put_request_id(&builder.head, RUN_STEP_REQUEST_REQUEST_ID);
  return weir_message_finish(&builder, out_message);
}

// The tensor of a NamedTensorProto.
static weir_status_t* parse_result(weir_rpc_buffer_t* buffer, weir_view_t message,
                                   weir_tensor_t** out_tensor) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  weir_view_t proto = weir_view("", 0);
  while (weir_wire_next(&reader)) {
    if (reader.field == NAMED_TENSOR_TENSOR && reader.type == WEIR_WIRE_BYTES) proto = reader.bytes;
  }
  WEIR_TRY(weir_wire_check(&reader, "NamedTensorProto"));
  return weir_message_get_tensor(buffer, proto, out_tensor);
}

// Results arrive in the order of the fetches.
static weir_status_t* parse_response(weir_rpc_buffer_t* buffer, const weir_step_spec_t* spec,
                                     weir_tensor_t** results, weir_strbuf_t* out_metadata) {
  int64_t code = 0;
  int count = 0;
  weir_view_t text = weir_view("", 0);
  weir_wire_reader_t reader = weir_wire_reader(weir_rpc_buffer_view(buffer));
  while (weir_wire_next(&reader)) {
    bool is_bytes = reader.type == WEIR_WIRE_BYTES;
    if (reader.field == RUN_STEP_RESPONSE_TENSOR && is_bytes && count < spec->fetch_count) {
      WEIR_TRY(parse_result(buffer, reader.bytes, &results[count]));
      ++count;
    }
    if (reader.field == RUN_STEP_RESPONSE_METADATA && is_bytes && out_metadata)
      weir_strbuf_append(out_metadata, reader.bytes.data, reader.bytes.size);
    if (reader.field == RUN_STEP_RESPONSE_STATUS_CODE && !is_bytes) code = weir_wire_int(&reader);
    if (reader.field == RUN_STEP_RESPONSE_STATUS_ERROR_MESSAGE && is_bytes) text = reader.bytes;
  }
  WEIR_TRY(weir_wire_check(&reader, "RunStepResponse"));
  if (code > 0 && code <= WEIR_UNAUTHENTICATED)
    return weir_status_received((weir_code_t)code, text);
  if (count == spec->fetch_count) return NULL;
  return WEIR_STATUS(INTERNAL, "the master gave %d results where %d were asked for", count,
                     spec->fetch_count);
}

static weir_status_t* client_run(weir_remote_session_t* self, const weir_step_spec_t* spec,
                                 const weir_run_options_t* options, weir_tensor_t** results,
                                 weir_strbuf_t* out_metadata) {
  client_t* client = (client_t*)self;
  weir_rpc_message_t* message = NULL;
  weir_rpc_buffer_t* response = NULL;
  for (int i = 0; i < spec->feed_count; ++i)
    WEIR_TRY(weir_signature_check_feed(spec->feeds[i].edge, spec->feeds[i].tensor));
  memset(results, 0, sizeof(*results) * (size_t)spec->fetch_count);
  hosted_t* hosted = NULL;
  weir_status_t* status = get_ready(client, options, &hosted);
  if (!status) status = run_request(hosted, spec, NULL, options, &message);
  if (!status) status = call_and_wait(client, MASTER "RunStep", message, options, &response);
  if (!status) status = parse_response(response, spec, results, out_metadata);
  weir_rpc_buffer_release(response);
  if (weir_status_code(status) == WEIR_ABORTED) lose(client, hosted);
  let_go(client, hosted);
  for (int i = 0; i < spec->fetch_count && status; ++i) {
    weir_tensor_release(results[i]);
    results[i] = NULL;
  }
  return status;
}

// ---- snapshots: a partial run that feeds everything and fetches twice ----

typedef struct snapshot_t {
  hosted_t* hosted;  // held
  char* handle;      // of the partial run
  weir_edge_t last;  // what is fetched at its end
} snapshot_t;

static void snapshot_free(client_t* client, snapshot_t* snapshot, const weir_status_t* status) {
  if (weir_status_code(status) == WEIR_ABORTED) lose(client, snapshot->hosted);
  let_go(client, snapshot->hosted);
  weir_free(snapshot->handle);
  weir_free(snapshot);
}

static weir_status_t* setup_request(const snapshot_t* snapshot, const weir_step_spec_t* spec,
                                    weir_rpc_message_t** out_message) {
  weir_message_builder_t builder = {.message = NULL};
  weir_wire_put_string(&builder.head, PARTIAL_RUN_SETUP_REQUEST_SESSION_HANDLE,
                       snapshot->hosted->handle);
  for (int i = 0; i < spec->feed_count + spec->fetch_count; ++i) {
    const bool is_feed = i < spec->feed_count;
    weir_strbuf_t name = {0};
    put_edge_name(&builder, is_feed ? spec->feeds[i].edge : spec->fetches[i - spec->feed_count],
                  &name);
    weir_wire_put_bytes(&builder.head,
                        is_feed ? PARTIAL_RUN_SETUP_REQUEST_FEED : PARTIAL_RUN_SETUP_REQUEST_FETCH,
                        name.data, name.size);
    weir_strbuf_free(&name);
  }
  put_request_id(&builder.head, PARTIAL_RUN_SETUP_REQUEST_REQUEST_ID);
  return weir_message_finish(&builder, out_message);
}

static weir_status_t* parse_setup(weir_rpc_buffer_t* response, snapshot_t* snapshot) {
  weir_wire_reader_t reader = weir_wire_reader(weir_rpc_buffer_view(response));
  while (weir_wire_next(&reader)) {
    bool is_handle = reader.field == PARTIAL_RUN_SETUP_RESPONSE_PARTIAL_RUN_HANDLE &&
                     reader.type == WEIR_WIRE_BYTES && !snapshot->handle;
    if (is_handle) snapshot->handle = weir_strndup(reader.bytes.data, reader.bytes.size);
    if (is_handle && !snapshot->handle) return weir_out_of_memory();
  }
  return snapshot->handle ? NULL : WEIR_STATUS(INTERNAL, "SnapshotSetup gave no handle");
}

static weir_status_t* set_up(client_t* client, snapshot_t* snapshot, const weir_step_spec_t* spec) {
  weir_rpc_message_t* message = NULL;
  weir_rpc_buffer_t* response = NULL;
  WEIR_TRY(get_ready(client, NULL, &snapshot->hosted));
  WEIR_TRY(setup_request(snapshot, spec, &message));
  weir_status_t* status = call_and_wait(client, WEIR_SNAPSHOT_SETUP_PATH, message, NULL, &response);
  if (!status) status = parse_setup(response, snapshot);
  weir_rpc_buffer_release(response);
  return status;
}

// Feeds what |spec| does and fetches its only fetch.
static weir_status_t* go_on(client_t* client, const snapshot_t* snapshot,
                            const weir_step_spec_t* spec) {
  weir_rpc_message_t* message = NULL;
  weir_rpc_buffer_t* response = NULL;
  weir_tensor_t* result = NULL;
  WEIR_TRY(run_request(snapshot->hosted, spec, snapshot->handle, NULL, &message));
  weir_status_t* status = call_and_wait(client, MASTER "RunStep", message, NULL, &response);
  if (!status) status = parse_response(response, spec, &result, NULL);
  weir_rpc_buffer_release(response);
  weir_tensor_release(result);
  return status;
}

static weir_status_t* client_begin_snapshot(weir_remote_session_t* self,
                                            const weir_step_spec_t* spec, void** out_step) {
  client_t* client = (client_t*)self;
  snapshot_t* snapshot = weir_calloc(1, sizeof(*snapshot));
  if (!snapshot) return weir_out_of_memory();
  snapshot->last = spec->fetches[1];
  weir_step_spec_t first = *spec;
  first.fetch_count = 1;
  weir_status_t* status = set_up(client, snapshot, spec);
  if (!status) status = go_on(client, snapshot, &first);
  if (status) snapshot_free(client, snapshot, status);
  else *out_step = snapshot;
  return status;
}

static weir_status_t* client_end_snapshot(weir_remote_session_t* self, void* take_step) {
  client_t* client = (client_t*)self;
  snapshot_t* snapshot = take_step;
  const weir_step_spec_t second = {.fetches = &snapshot->last, .fetch_count = 1};
  weir_status_t* status = go_on(client, snapshot, &second);
  snapshot_free(client, snapshot, status);
  return status;
}

// ---- the rest of a session ----

static weir_status_t* add_cancel(client_t* client) {
  if (!WEIR_GROW(client->cancels, client->cancel_capacity, client->cancel_count + 1))
    return weir_out_of_memory();
  WEIR_TRY(weir_cancel_create(NULL, &client->cancels[client->cancel_count]));
  ++client->cancel_count;
  return NULL;
}

// Ends the steps that run now. They may look at their cancellation until they are through, so it is
// kept as long as the client.
static void client_cancel(weir_remote_session_t* self) {
  client_t* client = (client_t*)self;
  weir_mutex_lock(&client->cancel_mu);
  weir_cancel_t* old = client->cancels[client->cancel_count - 1];
  weir_status_destroy(add_cancel(client));  // without it, later steps are cancelled, too
  weir_mutex_unlock(&client->cancel_mu);
  weir_cancel_start(old);
}

static void client_reset(weir_remote_session_t* self, const char* const* containers, int count) {
  client_t* client = (client_t*)self;
  weir_strbuf_t request = {0};
  weir_rpc_buffer_t* response = NULL;
  for (int i = 0; i < count; ++i)
    weir_wire_put_string(&request, RESET_REQUEST_CONTAINER, containers[i]);
  weir_status_t* status = call_master(client, MASTER "Reset", &request, NULL, &response);
  if (status) WEIR_LOG(WARNING, "Reset: %s", weir_status_message(status));
  weir_status_destroy(status);
  weir_rpc_buffer_release(response);
  weir_mutex_lock(&client->mu);
  while (client->is_sending) weir_cond_wait(&client->sent, &client->mu);
  hosted_t* hosted = client->hosted;
  weir_mutex_unlock(&client->mu);
  lose(client, hosted);  // Reset closes every session
}

static void close_session(client_t* client) {
  weir_rpc_buffer_t* response = NULL;
  const weir_rpc_call_options_t options = close_options();
  weir_status_t* status = weir_rpc_channel_call(client->channel, MASTER "CloseSession",
                                                close_request(client->hosted), &options, &response);
  closed(NULL, status, response);
}

static void client_destroy(weir_remote_session_t* self) {
  client_t* client = (client_t*)self;
  if (client->hosted) close_session(client);
  weir_rpc_channel_destroy(client->channel);
  weir_rpc_loop_destroy(client->loop);
  for (size_t i = 0; i < client->cancel_count; ++i) weir_cancel_destroy(client->cancels[i]);
  weir_free(client->cancels);
  weir_cond_destroy(&client->sent);
  weir_mutex_destroy(&client->mu);
  weir_mutex_destroy(&client->cancel_mu);
  weir_graph_unref(client->graph);
  hosted_free(client->hosted);
  weir_free(client->device_filters);
  weir_free(client);
}

static const weir_remote_session_vtable_t client_vtable = {.destroy = client_destroy,
                                                           .run = client_run,
                                                           .begin_snapshot = client_begin_snapshot,
                                                           .end_snapshot = client_end_snapshot,
                                                           .cancel = client_cancel,
                                                           .reset = client_reset};

static weir_status_t* load_token(const char* target, bool is_tls, const char* file,
                                 weir_rpc_token_t** out_token) {
  weir_rpc_address_t address;
  WEIR_TRY(weir_rpc_address_parse(target, &address));
  if (!is_tls && !weir_rpc_address_is_local(&address))
    WEIR_LOG(ERROR, "the token is sent to %s in plain text: use TLS (grpc+tls://)", target);
  return weir_rpc_token_open(file, out_token);
}

// TLS is for "grpc+tls://": files given for another target are a mistake that must not pass for
// encryption.
static weir_status_t* channel_options(const char* target, const weir_session_options_t* options,
                                      weir_rpc_channel_options_t* out_channel,
                                      weir_rpc_token_t** out_token) {
  bool is_tls = weir_view_starts_with(weir_view_of(target), "grpc+tls://");
  bool has_files = options->tls_ca || options->tls_cert || options->tls_key;
  if (has_files && !is_tls)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "TLS files are given, but target '%s' is not 'grpc+tls://'", target);
  if (options->tls_key && !options->tls_cert)
    return WEIR_STATUS(INVALID_ARGUMENT, "tls_key '%s' is given without tls_cert",
                       options->tls_key);
  if (options->token_file) WEIR_TRY(load_token(target, is_tls, options->token_file, out_token));
  *out_channel = (weir_rpc_channel_options_t){.address = target,
                                              .token = *out_token,
                                              .tls = {.is_enabled = is_tls,
                                                      .ca_file = options->tls_ca,
                                                      .cert_file = options->tls_cert,
                                                      .key_file = options->tls_key}};
  return NULL;
}

weir_status_t* weir_client_create(weir_graph_t* graph, const char* target,
                                  const weir_session_options_t* options,
                                  weir_remote_session_t** out_remote) {
  client_t* client = weir_calloc(1, sizeof(*client));
  if (!client) return weir_out_of_memory();
  client->base.vtable = &client_vtable;
  weir_mutex_init(&client->mu);
  weir_cond_init(&client->sent);
  weir_mutex_init(&client->cancel_mu);
  client->graph = weir_graph_ref(graph);
  client->options = *options;
  weir_rpc_channel_options_t channel;
  weir_rpc_token_t* token = NULL;
  weir_status_t* status = channel_options(target, options, &channel, &token);
  if (options->device_filters && !status) {
    client->device_filters = weir_strdup(options->device_filters);
    if (!client->device_filters) status = weir_out_of_memory();
  }
  if (!status) status = weir_mixed_parse(options->mixed_precision, &client->mixed);
  if (!status) status = add_cancel(client);
  if (!status) status = weir_rpc_loop_create(NULL, &client->loop);
  if (!status) status = weir_rpc_channel_create(client->loop, &channel, &client->channel);
  weir_rpc_token_release(token);
  if (status) client_destroy(&client->base);
  else *out_remote = &client->base;
  return status;
}
