// request.c — A call that a channel makes: from the caller's thread to a stream, and its answer.
#include <stdio.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/details.h"
#include "base/outcome.h"
#include "rpc/channel.h"
#include "rpc/header.h"

#define MAX_ATTEMPTS 5  // of a request that the peer says it has not looked at

static void start_task(weir_rpc_task_t* task);
static void cancel_task(weir_rpc_task_t* task);
static void deadline_passed(weir_rpc_timer_t* timer);

// ---- life ----
void weir_rpc_request_release(weir_rpc_request_t* request) {
  if (!request || !weir_ref_dec(&request->ref)) return;
  weir_free(request->path);
  weir_strbuf_free(&request->metadata);
  weir_strbuf_free(&request->grpc_message);
  weir_strbuf_free(&request->details);
  weir_free(request);
}

static void run_done(void* arg) {
  weir_rpc_request_t* request = arg;
  weir_rpc_channel_t* channel = request->channel;
  if (request->result && request->details.size && !request->details.failed)
    request->result =
        weir_status_with_details(request->result, weir_strbuf_view(&request->details));
  request->done(request->self, request->result, request->response);
  weir_rpc_request_release(request);
  weir_rpc_channel_count(channel, -1);
}

static void leave_queue(weir_rpc_request_t* request) {
  weir_rpc_channel_t* channel = request->channel;
  if (!request->is_queued) return;
  request->is_queued = false;
  if (request->prev) request->prev->next = request->next;
  else channel->queue = request->next;
  if (request->next) request->next->prev = request->prev;
  else channel->last_queued = request->prev;
}

static void enter_queue(weir_rpc_request_t* request) {
  weir_rpc_channel_t* channel = request->channel;
  request->is_queued = true;
  request->next = NULL;
  request->prev = channel->last_queued;
  if (channel->last_queued) channel->last_queued->next = request;
  else channel->queue = request;
  channel->last_queued = request;
}

void weir_rpc_request_finish(weir_rpc_request_t* request, weir_status_t* take_status,
                             weir_rpc_buffer_t* take_response) {
  leave_queue(request);
  weir_rpc_timer_clear(request->channel->thread, &request->timer);
  if (request->stream) weir_rpc_stream_reset(request->stream, NGHTTP2_CANCEL);
  request->stream = NULL;
  weir_rpc_message_destroy(request->message);
  request->message = NULL;
  request->is_finished = true;
  request->result = take_status;
  request->response = take_response;
  if (request->pool) weir_pool_submit(request->pool, run_done, request);
  else run_done(request);
}

static void deadline_passed(weir_rpc_timer_t* timer) {
  weir_rpc_request_t* request =
      (weir_rpc_request_t*)((char*)timer - offsetof(weir_rpc_request_t, timer));
  weir_rpc_channel_t* channel = request->channel;
  weir_status_t* status = request->is_queued && channel->last_error
                              ? WEIR_STATUS(DEADLINE_EXCEEDED, "Deadline Exceeded: %s",
                                            weir_status_message(channel->last_error))
                              : WEIR_STATUS(DEADLINE_EXCEEDED, "Deadline Exceeded");
  weir_rpc_request_finish(request, status, NULL);
}

// ---- the caller's side ----
// Names and values that HTTP/2 would refuse must not reach it: it would drop the connection.
static bool is_good_metadata(const weir_rpc_metadata_t* pair) {
  if (!pair->value || pair->name[0] == '\0') return false;
  for (const char* p = pair->name; *p; ++p) {
    bool is_good = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || strchr("-_.", *p);
    if (!is_good) return false;
  }
  for (const char* p = pair->value; *p; ++p) {
    if ((uint8_t)*p < 0x20 || (uint8_t)*p > 0x7e) return false;
  }
  return true;
}

static weir_status_t* request_init(weir_rpc_request_t* request, const char* path,
                                   const weir_rpc_call_options_t* options) {
  request->path = weir_strdup(path);
  if (!request->path) return weir_out_of_memory();
  const weir_rpc_metadata_t* pair = options ? options->metadata : NULL;
  for (; pair && pair->name; ++pair) {
    if (!is_good_metadata(pair))
      return WEIR_STATUS(INVALID_ARGUMENT, "'%s' cannot be sent as metadata", pair->name);
    weir_strbuf_append(&request->metadata, pair->name, strlen(pair->name) + 1);
    weir_strbuf_append(&request->metadata, pair->value, strlen(pair->value) + 1);
    ++request->metadata_count;
  }
  WEIR_TRY(weir_strbuf_finish(&request->metadata));
  return weir_rpc_message_seal(request->message);
}

void weir_rpc_channel_call_async(weir_rpc_channel_t* channel, const char* path,
                                 weir_rpc_message_t* take_message,
                                 const weir_rpc_call_options_t* options, weir_rpc_done_fn_t done,
                                 void* self, weir_rpc_request_t** out_request) {
  weir_rpc_request_t* request = weir_calloc(1, sizeof(*request));
  if (!request) {
    weir_rpc_message_destroy(take_message);
    if (out_request) *out_request = NULL;
    done(self, weir_out_of_memory(), NULL);
    return;
  }
  weir_ref_init(&request->ref);
  request->task.run = start_task;
  request->cancel_task.run = cancel_task;
  request->timer.fire = deadline_passed;
  request->channel = channel;
  request->thread = channel->thread;
  request->message = take_message;
  request->deadline_ns = options && options->deadline_ns ? options->deadline_ns : INT64_MAX;
  request->wait_for_ready = options && options->wait_for_ready;
  request->pool = options ? options->pool : NULL;
  request->done = done;
  request->self = self;
  request->grpc_status = -1;
  request->early = request_init(request, path, options);
  if (out_request) {
    weir_ref_inc(&request->ref, 1);
    *out_request = request;
  }
  weir_rpc_channel_count(channel, 1);
  weir_rpc_post(channel->thread, &request->task);
}

void weir_rpc_request_cancel(weir_rpc_request_t* request) {
  if (!request || atomic_exchange(&request->is_cancel_posted, true)) return;
  weir_ref_inc(&request->ref, 1);
  weir_rpc_post(request->thread, &request->cancel_task);
}

static void cancel_task(weir_rpc_task_t* task) {
  weir_rpc_request_t* request =
      (weir_rpc_request_t*)((char*)task - offsetof(weir_rpc_request_t, cancel_task));
  if (!request->is_finished)
    weir_rpc_request_finish(request, WEIR_STATUS(CANCELLED, "Cancelled by the caller"), NULL);
  weir_rpc_request_release(request);
}

// ---- on the io thread ----
static void start_request(weir_rpc_request_t* request) {
  weir_status_t* status = request->early;
  request->early = NULL;
  if (!status && request->channel->is_closing)
    status = WEIR_STATUS(CANCELLED, "the channel is closed");
  if (!status && request->deadline_ns != INT64_MAX && !request->timer.place &&
      !weir_rpc_timer_set(request->channel->thread, &request->timer, request->deadline_ns))
    status = weir_out_of_memory();
  if (status) weir_rpc_request_finish(request, status, NULL);
  else weir_rpc_request_route(request);
}

static void start_task(weir_rpc_task_t* task) {
  weir_rpc_request_t* request = (weir_rpc_request_t*)task;
  bool is_retry = request->attempts > 0;
  if (!request->is_finished) start_request(request);  // a retry may have ended while it was posted
  if (is_retry) weir_rpc_request_release(request);
}

void weir_rpc_request_route(weir_rpc_request_t* request) {
  weir_rpc_channel_t* channel = request->channel;
  switch (channel->state) {
    case WEIR_RPC_CHANNEL_READY: weir_rpc_request_send(request); return;
    case WEIR_RPC_CHANNEL_BACKOFF:
      if (request->wait_for_ready) enter_queue(request);
      else weir_rpc_request_finish(request, weir_status_copy(channel->last_error), NULL);
      return;
    case WEIR_RPC_CHANNEL_CONNECTING: enter_queue(request); return;
    case WEIR_RPC_CHANNEL_IDLE:
      enter_queue(request);
      weir_rpc_channel_start(channel);
      return;
  }
}

static nghttp2_nv pair(const char* name, const char* value) {
  // nghttp2 copies both, and does not write to them.
  return (nghttp2_nv){.name = (uint8_t*)(uintptr_t)name,
                      .value = (uint8_t*)(uintptr_t)value,
                      .namelen = strlen(name),
                      .valuelen = strlen(value)};
}

#define OWN_HEADERS 9

// What headers are made of that the request does not have.
typedef struct texts_t {
  char timeout[WEIR_RPC_TIMEOUT_TEXT_SIZE];
  char authorization[WEIR_RPC_TOKEN_HEADER_SIZE];
} texts_t;

static size_t fill_headers(const weir_rpc_request_t* request, nghttp2_nv* headers, texts_t* texts) {
  const weir_rpc_channel_t* channel = request->channel;
  size_t count = 0;
  headers[count++] = pair(":method", "POST");
  headers[count++] = pair(":scheme", channel->tls ? "https" : "http");
  headers[count++] = pair(":path", request->path);
  headers[count++] = pair(":authority", channel->text);
  headers[count++] = pair("te", "trailers");
  headers[count++] = pair("content-type", "application/grpc");
  headers[count++] = pair("user-agent", "weir/" WEIR_VERSION);
  if (request->deadline_ns != INT64_MAX) {
    weir_rpc_timeout_format(request->deadline_ns - weir_clock_ns(), texts->timeout);
    headers[count++] = pair("grpc-timeout", texts->timeout);
  }
  if (channel->token) {
    weir_rpc_token_header(channel->token, texts->authorization);
    headers[count] = pair("authorization", texts->authorization);
    headers[count++].flags = NGHTTP2_NV_FLAG_NO_INDEX;  // no table of the connection keeps it
  }
  const char* at = request->metadata.data;
  for (size_t i = 0; i < request->metadata_count; ++i) {
    const char* value = at + strlen(at) + 1;
    headers[count++] = pair(at, value);
    at = value + strlen(value) + 1;
  }
  return count;
}

void weir_rpc_request_send(weir_rpc_request_t* request) {
  weir_rpc_conn_t* conn = request->channel->conn;
  leave_queue(request);
  ++request->attempts;
  nghttp2_nv few[OWN_HEADERS + 8];
  size_t room = OWN_HEADERS + request->metadata_count;
  nghttp2_nv* headers = room <= WEIR_COUNT_OF(few) ? few : weir_alloc_array(room, sizeof(*headers));
  weir_rpc_stream_t* stream = headers ? weir_rpc_stream_create(conn, -1, request) : NULL;
  int32_t id = NGHTTP2_ERR_NOMEM;
  if (stream) {
    texts_t texts;
    size_t count = fill_headers(request, headers, &texts);
    nghttp2_data_provider provider =
        weir_rpc_stream_provider(stream, weir_rpc_message_retain(request->message));
    id = nghttp2_submit_request(conn->session, NULL, headers, count, &provider, stream);
    if (request->channel->token) weir_rpc_token_forget(texts.authorization);
  }
  if (headers != few) weir_free(headers);
  if (id > 0) {
    stream->id = id;
    request->stream = stream;
    weir_rpc_conn_flush_later(conn);
    return;
  }
  if (stream) weir_rpc_stream_free(stream);
  if (id == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE) {  // after 2^30 calls: the next one starts anew
    request->channel->conn = NULL;
    request->channel->state = WEIR_RPC_CHANNEL_IDLE;
    weir_rpc_conn_end(conn);
  }
  weir_rpc_request_finish(
      request, WEIR_STATUS(UNAVAILABLE, "cannot send a request: %s", nghttp2_strerror(id)), NULL);
}

// ---- answers ----
void weir_rpc_request_header(weir_rpc_stream_t* stream, weir_view_t name, weir_view_t value) {
  weir_rpc_request_t* request = stream->owner;
  int64_t number = 0;
  if (weir_view_is(name, ":status")) {
    request->http_status = weir_parse_int64(value, &number) ? (int)number : 0;
  } else if (weir_view_is(name, "grpc-status")) {
    bool is_code = weir_parse_int64(value, &number) && number >= 0 && number <= 16;
    request->grpc_status = is_code ? (int)number : WEIR_UNKNOWN;
  } else if (weir_view_is(name, "grpc-message")) {
    weir_rpc_percent_decode(&request->grpc_message, value);
  } else if (weir_view_is(name, "grpc-status-details-bin")) {
    weir_strbuf_free(&request->details);
    if (!weir_base64_read(value, &request->details)) weir_strbuf_free(&request->details);
  }
}

static weir_status_t* http_status(int code) {
  switch (code) {
    case 400: return WEIR_STATUS(INTERNAL, "HTTP status %d without a gRPC status", code);
    case 401: return WEIR_STATUS(UNAUTHENTICATED, "HTTP status %d without a gRPC status", code);
    case 403: return WEIR_STATUS(PERMISSION_DENIED, "HTTP status %d without a gRPC status", code);
    case 404: return WEIR_STATUS(UNIMPLEMENTED, "HTTP status %d without a gRPC status", code);
    case 429:
    case 502:
    case 503:
    case 504: return WEIR_STATUS(UNAVAILABLE, "HTTP status %d without a gRPC status", code);
    default: return WEIR_STATUS(UNKNOWN, "HTTP status %d without a gRPC status", code);
  }
}

// The status that the peer's headers and trailers state.
static weir_status_t* stated_status(const weir_rpc_request_t* request) {
  if (request->grpc_status < 0) return http_status(request->http_status);
  return weir_status_received((weir_code_t)request->grpc_status,
                              weir_strbuf_view(&request->grpc_message));
}

void weir_rpc_request_ended(weir_rpc_stream_t* stream) {
  weir_rpc_request_t* request = stream->owner;
  weir_status_t* status = stated_status(request);
  weir_rpc_buffer_t* response = status ? NULL : weir_rpc_receiver_finish(stream);
  if (!status && !response)
    status = WEIR_STATUS(INTERNAL, "the response ended before its message was complete");
  if (stream->is_local_ended) {  // both sides are done: nothing to reset
    stream->owner = NULL;
    request->stream = NULL;
  }
  weir_rpc_request_finish(request, status, response);
}

void weir_rpc_request_failed(weir_rpc_stream_t* stream, weir_status_t* take_status) {
  weir_rpc_request_finish(stream->owner, take_status, NULL);
}

static weir_status_t* reset_status(uint32_t error) {
  const char* text = nghttp2_http2_strerror(error);
  switch (error) {
    case NGHTTP2_REFUSED_STREAM:
      return WEIR_STATUS(UNAVAILABLE, "the peer refused the call (%s)", text);
    case NGHTTP2_CANCEL: return WEIR_STATUS(CANCELLED, "the peer cancelled the call (%s)", text);
    case NGHTTP2_ENHANCE_YOUR_CALM:
      return WEIR_STATUS(RESOURCE_EXHAUSTED, "the peer is overloaded (%s)", text);
    case NGHTTP2_INADEQUATE_SECURITY:
      return WEIR_STATUS(PERMISSION_DENIED, "the peer wants better security (%s)", text);
    default: return WEIR_STATUS(INTERNAL, "the peer reset the call (%s)", text);
  }
}

void weir_rpc_request_closed(weir_rpc_stream_t* stream, uint32_t error,
                             const weir_status_t* reason) {
  weir_rpc_request_t* request = stream->owner;
  stream->owner = NULL;
  request->stream = NULL;
  if (reason) {
    weir_status_t* status = WEIR_STATUS(UNAVAILABLE, "%s", weir_status_message(reason));
    weir_rpc_request_finish(request, status, NULL);
  } else if (error == NGHTTP2_REFUSED_STREAM && request->attempts < MAX_ATTEMPTS) {
    // Not looked at, so it may be sent again; not from here, where the session is in the middle of
    // something.
    weir_ref_inc(&request->ref, 1);
    weir_rpc_post(request->thread, &request->task);
  } else {
    weir_status_t* status = request->grpc_status > 0 ? stated_status(request) : reset_status(error);
    weir_rpc_request_finish(request, status, NULL);
  }
}

// ---- waiting ----
typedef struct wait_t {
  weir_outcome_t outcome;
  weir_rpc_buffer_t* message;
} wait_t;

static void wake_caller(void* self, weir_status_t* take_status, weir_rpc_buffer_t* take_message) {
  wait_t* wait = self;
  wait->message = take_message;
  weir_outcome_set(&wait->outcome, take_status);
}

static void cancel_request(void* arg) { weir_rpc_request_cancel(arg); }

weir_status_t* weir_rpc_channel_call(weir_rpc_channel_t* channel, const char* path,
                                     weir_rpc_message_t* take_message,
                                     const weir_rpc_call_options_t* options,
                                     weir_rpc_buffer_t** out_message) {
  WEIR_CHECK(!weir_rpc_on_any_thread());
  wait_t wait = {.message = NULL};
  weir_outcome_init(&wait.outcome);
  weir_cancel_t* cancel = options ? options->cancel : NULL;
  weir_rpc_request_t* request = NULL;
  weir_rpc_channel_call_async(channel, path, take_message, options, wake_caller, &wait, &request);
  weir_cancel_token_t token = weir_cancel_register(cancel, cancel_request, request);
  if (!token && weir_cancel_is_cancelled(cancel)) weir_rpc_request_cancel(request);
  weir_status_t* status = weir_outcome_wait(&wait.outcome);
  if (token) weir_cancel_deregister(cancel, token);
  weir_rpc_request_release(request);
  if (!status) *out_message = wait.message;
  return status;
}
