// call.c — A call that a server received: from its headers to the handler, and back.
//
// A call is created with its stream and ends on the io thread: with the stream while no handler has
// it, otherwise when the handler's answer arrives there. So either side may go first.
#include "base/alloc.h"
#include "rpc/header.h"
#include "rpc/server.h"

static void answer_task(weir_rpc_task_t* task);
static void deadline_passed(weir_rpc_timer_t* timer);

// ---- life ----
bool weir_rpc_call_opened(weir_rpc_stream_t* stream) {
  weir_rpc_server_part_t* part = stream->conn->owner;
  weir_rpc_call_t* call = weir_calloc(1, sizeof(*call));
  if (!call) return false;
  call->task.run = answer_task;
  call->server = part->server;
  call->thread = part->thread;
  call->stream = stream;
  call->timer.fire = deadline_passed;
  call->deadline_ns = INT64_MAX;
  call->connection = stream->conn->number;
  memcpy(call->peer, stream->conn->peer, sizeof(call->peer));
  weir_mutex_init(&call->mu);
  weir_cond_init(&call->cond);
  stream->owner = call;
  return true;
}

static void call_free(weir_rpc_call_t* call) {
  weir_rpc_server_t* server = call->server;
  weir_rpc_timer_clear(call->thread, &call->timer);
  weir_rpc_buffer_release(call->request);
  weir_rpc_message_destroy(call->response);
  weir_status_destroy(call->status);
  weir_strbuf_free(&call->metadata);
  weir_free(call->path);
  weir_cond_destroy(&call->cond);
  weir_mutex_destroy(&call->mu);
  bool is_dispatched = call->is_dispatched, is_step = is_dispatched && call->entry->is_step;
  weir_free(call);
  if (!is_dispatched) return;
  weir_mutex_lock(&server->mu);
  if (is_step) --server->step_count;
  if (--server->call_count == 0) weir_cond_broadcast(&server->cond);
  weir_mutex_unlock(&server->mu);
}

// Parts call and stream; frees the call unless a handler has it.
static void leave_stream(weir_rpc_call_t* call) {
  call->stream = NULL;
  weir_rpc_timer_clear(call->thread, &call->timer);
  if (!call->is_dispatched) call_free(call);
}

// ---- cancellation ----
static void cancel_call(weir_rpc_call_t* call) {
  weir_mutex_lock(&call->mu);
  bool must_run = !call->is_cancelled && call->cancel_fn;
  call->is_cancelled = true;
  if (must_run) {
    call->is_running = true;
    call->runner = pthread_self();
    void (*fn)(void*) = call->cancel_fn;
    void* arg = call->cancel_arg;
    call->cancel_fn = NULL;
    weir_mutex_unlock(&call->mu);
    fn(arg);  // may answer the call; it is freed on this thread, but later
    weir_mutex_lock(&call->mu);
    call->is_running = false;
    weir_cond_broadcast(&call->cond);
  }
  weir_mutex_unlock(&call->mu);
}

void weir_rpc_call_on_cancel(weir_rpc_call_t* call, void (*fn)(void* arg), void* arg) {
  weir_mutex_lock(&call->mu);
  while (call->is_running && !pthread_equal(call->runner, pthread_self()))
    weir_cond_wait(&call->cond, &call->mu);
  bool must_run = call->is_cancelled && fn;
  call->cancel_fn = must_run ? NULL : fn;
  call->cancel_arg = arg;
  weir_mutex_unlock(&call->mu);
  if (must_run) fn(arg);
}

bool weir_rpc_call_is_cancelled(weir_rpc_call_t* call) {
  weir_mutex_lock(&call->mu);
  bool is_cancelled = call->is_cancelled;
  weir_mutex_unlock(&call->mu);
  return is_cancelled;
}

static void deadline_passed(weir_rpc_timer_t* timer) {
  weir_rpc_call_t* call = (weir_rpc_call_t*)((char*)timer - offsetof(weir_rpc_call_t, timer));
  weir_status_t* status = WEIR_STATUS(DEADLINE_EXCEEDED, "Deadline Exceeded");
  weir_rpc_answer_status(call->stream, status);
  weir_status_destroy(status);
  cancel_call(call);
  leave_stream(call);
}

// ---- what comes from the connection ----
void weir_rpc_call_header(weir_rpc_stream_t* stream, weir_view_t name, weir_view_t value) {
  weir_rpc_call_t* call = stream->owner;
  if (call->has_headers) return;  // trailers of a request mean nothing to gRPC
  if (weir_view_is(name, ":path")) {
    call->path = weir_strndup(value.data, value.size);
  } else if (weir_view_is(name, ":method")) {
    call->is_post = weir_view_is(value, "POST");
  } else if (weir_view_is(name, "content-type")) {
    call->is_grpc = weir_view_starts_with(value, "application/grpc");
  } else if (weir_view_is(name, "grpc-timeout")) {
    int64_t timeout_ns = 0;
    call->has_bad_timeout = !weir_rpc_timeout_parse(value, &timeout_ns);
    int64_t now = weir_clock_ns();
    if (!call->has_bad_timeout && timeout_ns < INT64_MAX - now)
      call->deadline_ns = now + timeout_ns;
  } else if (name.size && name.data[0] != ':') {
    weir_strbuf_append(&call->metadata, name.data, name.size);
    weir_strbuf_putc(&call->metadata, '\0');
    weir_strbuf_append(&call->metadata, value.data, value.size);
    weir_strbuf_putc(&call->metadata, '\0');
  }
}

// Tells the observer how the call ended.
static void observe(const weir_rpc_call_t* call, const weir_status_t* status) {
  const weir_rpc_server_t* server = call->server;
  if (!server->observer) return;
  weir_rpc_record_t record = {
      .method = call->entry ? (int)(call->entry - server->entries) : -1,
      .code = weir_status_code(status),
      .duration_ns = call->started_ns ? weir_clock_ns() - call->started_ns : 0,
      .request_size = weir_rpc_buffer_view(call->request).size,
      .response_size = weir_rpc_message_size(call->response)};
  server->observer(server->observer_arg, &record);
}

// Ends a call that no handler has seen.
static void reject(weir_rpc_call_t* call, weir_status_t* take_status) {
  observe(call, take_status);
  weir_rpc_answer_status(call->stream, take_status);
  weir_status_destroy(take_status);
  leave_stream(call);
}

// Probes of health bear no secrets and learn none.
static weir_status_t* check_token(const weir_rpc_call_t* call) {
  weir_rpc_token_t* token = call->server->token;
  weir_view_t given;
  if (!token || strcmp(call->path, WEIR_RPC_HEALTH_PATH) == 0) return NULL;
  if (!weir_rpc_call_metadata(call, "authorization", &given))
    return WEIR_STATUS(UNAUTHENTICATED, "the call bears no token, which this server asks for");
  if (!weir_rpc_token_is_in(token, given))
    return WEIR_STATUS(UNAUTHENTICATED, "the call bears another token than this server's");
  call->stream->conn->is_stranger = false;
  return NULL;
}

static weir_status_t* check_headers(weir_rpc_call_t* call) {
  if (!call->path || call->metadata.failed) return weir_out_of_memory();
  WEIR_TRY(check_token(call));
  if (call->has_bad_timeout) return WEIR_STATUS(INTERNAL, "malformed grpc-timeout");
  call->entry = weir_map_find(&call->server->by_path, weir_view_of(call->path));
  if (!call->entry) return WEIR_STATUS(UNIMPLEMENTED, "unknown method '%s'", call->path);
  if (call->deadline_ns != INT64_MAX &&
      !weir_rpc_timer_set(call->thread, &call->timer, call->deadline_ns))
    return weir_out_of_memory();
  return NULL;
}

// Of a connection that is one too many.
static void refuse_connection(weir_rpc_call_t* call) {
  weir_rpc_conn_t* conn = call->stream->conn;
  reject(call, WEIR_STATUS(RESOURCE_EXHAUSTED,
                           "the server has %d connections, as many as it may (--max-connections)",
                           call->server->max_connections));
  weir_rpc_conn_end(conn);
}

void weir_rpc_call_headers_ended(weir_rpc_stream_t* stream) {
  weir_rpc_call_t* call = stream->owner;
  if (call->has_headers) return;
  call->has_headers = true;
  if (!call->is_post || !call->is_grpc) {
    weir_rpc_answer_http(stream, call->is_post ? 415 : 405);
    leave_stream(call);
    return;
  }
  if (stream->conn->is_surplus) {
    refuse_connection(call);
    return;
  }
  weir_status_t* status = check_headers(call);
  if (status) reject(call, status);
}

// Counts a call that is about to run, or says why it must not.
static weir_status_t* admit(weir_rpc_server_t* server, bool is_step) {
  weir_mutex_lock(&server->mu);
  bool has_calls = server->call_count >= server->max_calls;
  bool has_steps = is_step && server->step_count >= server->max_steps;
  if (!has_calls && !has_steps) {
    ++server->call_count;
    server->step_count += is_step;
  }
  weir_mutex_unlock(&server->mu);
  if (has_calls)
    return WEIR_STATUS(RESOURCE_EXHAUSTED,
                       "the server has %d calls to answer, as many as it may (--max-calls)",
                       server->max_calls);
  if (has_steps)
    return WEIR_STATUS(RESOURCE_EXHAUSTED,
                       "the server runs %d steps, as many as it may (--max-steps)",
                       server->max_steps);
  return NULL;
}

static void run_handler(void* arg) {
  weir_rpc_call_t* call = arg;
  call->entry->handler(call->entry->self, call);
}

void weir_rpc_call_ended(weir_rpc_stream_t* stream) {
  weir_rpc_call_t* call = stream->owner;
  weir_rpc_server_t* server = call->server;
  call->request = weir_rpc_receiver_finish(stream);
  if (!call->request) {
    reject(call, WEIR_STATUS(INTERNAL, "the request ended before its message was complete"));
    return;
  }
  weir_status_t* status = admit(server, call->entry->is_step);
  if (status) {
    reject(call, status);
    return;
  }
  call->is_dispatched = true;
  if (server->observer) call->started_ns = weir_clock_ns();
  if (call->entry->is_inline || !server->pool) run_handler(call);
  else weir_pool_submit(server->pool, run_handler, call);
}

void weir_rpc_call_failed(weir_rpc_stream_t* stream, weir_status_t* take_status) {
  reject(stream->owner, take_status);
}

void weir_rpc_call_closed(weir_rpc_stream_t* stream, uint32_t error, const weir_status_t* reason) {
  (void)error;
  (void)reason;
  weir_rpc_call_t* call = stream->owner;
  stream->owner = NULL;
  cancel_call(call);
  leave_stream(call);
}

// ---- the handler's side ----
weir_rpc_buffer_t* weir_rpc_call_request(weir_rpc_call_t* call) { return call->request; }
const char* weir_rpc_call_path(const weir_rpc_call_t* call) { return call->path; }
const char* weir_rpc_call_peer(const weir_rpc_call_t* call) { return call->peer; }
uint64_t weir_rpc_call_connection(const weir_rpc_call_t* call) { return call->connection; }
int64_t weir_rpc_call_deadline(const weir_rpc_call_t* call) { return call->deadline_ns; }

bool weir_rpc_call_metadata(const weir_rpc_call_t* call, const char* name, weir_view_t* out_value) {
  const char* at = call->metadata.data;
  const char* end = at ? at + call->metadata.size : at;
  while (at < end) {
    const char* value = at + strlen(at) + 1;
    if (strcmp(at, name) == 0) {
      *out_value = weir_view_of(value);
      return true;
    }
    at = value + strlen(value) + 1;
  }
  return false;
}

static void answer_task(weir_rpc_task_t* task) {
  weir_rpc_call_t* call = (weir_rpc_call_t*)task;
  weir_rpc_stream_t* stream = call->stream;
  if (stream && call->status) {
    weir_rpc_answer_status(stream, call->status);
  } else if (stream) {
    weir_rpc_answer_message(stream, call->response);
    call->response = NULL;
  }
  call_free(call);
}

static void post_answer(weir_rpc_call_t* call) {
  weir_rpc_call_on_cancel(call, NULL, NULL);
  observe(call, call->status);
  weir_rpc_post(call->thread, &call->task);
}

void weir_rpc_call_respond(weir_rpc_call_t* call, weir_rpc_message_t* take_message) {
  call->response = take_message;
  call->status = weir_rpc_message_seal(take_message);
  post_answer(call);
}

void weir_rpc_call_fail(weir_rpc_call_t* call, weir_status_t* take_status) {
  if (!take_status) {
    weir_rpc_call_respond(call, weir_rpc_message_create());
    return;
  }
  call->status = take_status;
  post_answer(call);
}
