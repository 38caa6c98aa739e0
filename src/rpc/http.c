// http.c — HTTP/1.1 connections on io threads: reading requests, writing answers, time, the end.
#include "rpc/http.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/thread.h"
#include "rpc/address.h"
#include "rpc/http_connection.h"

static const char plain_text[] = "text/plain; charset=utf-8";

static weir_http_call_t* of_watch(weir_rpc_watch_t* watch) {
  return (weir_http_call_t*)((char*)watch - offsetof(weir_http_call_t, watch));
}
static weir_http_call_t* of_timer(weir_rpc_timer_t* timer) {
  return (weir_http_call_t*)((char*)timer - offsetof(weir_http_call_t, timer));
}
static weir_http_call_t* of_task(weir_rpc_task_t* task) {
  return (weir_http_call_t*)((char*)task - offsetof(weir_http_call_t, task));
}

const weir_http_request_t* weir_http_call_request(const weir_http_call_t* call) {
  return &call->parser.request;
}

// ---- the end of a connection ----

static void unlist(weir_http_call_t* call) {
  weir_http_t* http = call->http;
  weir_mutex_lock(&http->mu);
  if (call->prev) call->prev->next = call->next;
  else http->calls = call->next;
  if (call->next) call->next->prev = call->prev;
  --http->call_count;
  weir_cond_broadcast(&http->cond);
  weir_mutex_unlock(&http->mu);
}

static void call_free(weir_http_call_t* call) {
  unlist(call);
  weir_http_parser_free(&call->parser);
  weir_strbuf_free(&call->rest);
  weir_strbuf_free(&call->head);
  weir_strbuf_free(&call->body);
  weir_free(call);
}

// Frees it, too, unless a handler still has it: then the answer does.
static void call_close(weir_http_call_t* call) {
  if (call->fd >= 0) {
    if (call->is_watched) weir_rpc_watch_remove(call->thread, &call->watch);
    weir_rpc_timer_clear(call->thread, &call->timer);
    weir_rpc_tls_stream_destroy(call->tls);
    call->tls = NULL;
    close(call->fd);
    call->fd = -1;
  }
  if (call->state != WEIR_HTTP_CALL_BUSY) call_free(call);
}

static void set_deadline(weir_http_call_t* call, int64_t ms) {
  if (!weir_rpc_timer_set(call->thread, &call->timer, weir_clock_ns() + ms * 1000000))
    WEIR_LOG(ERROR, "HTTP: no memory for a timer; a connection has no limit on its time");
}

// ---- answers ----

static const char* reason_of(int code) {
  static const struct {
    int code;
    const char* reason;
  } reasons[] = {{200, "OK"},
                 {400, "Bad Request"},
                 {401, "Unauthorized"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {408, "Request Timeout"},
                 {409, "Conflict"},
                 {413, "Content Too Large"},
                 {417, "Expectation Failed"},
                 {429, "Too Many Requests"},
                 {431, "Request Header Fields Too Large"},
                 {499, "Client Closed Request"},
                 {501, "Not Implemented"},
                 {503, "Service Unavailable"},
                 {504, "Gateway Timeout"}};
  for (size_t i = 0; i < WEIR_COUNT_OF(reasons); ++i) {
    if (reasons[i].code == code) return reasons[i].reason;
  }
  return "Internal Server Error";
}

static const char* extra_field(int code) {
  if (code == 401) return "WWW-Authenticate: Bearer\r\n";
  return code == 405 ? "Allow: GET, HEAD\r\n" : "";
}

// Puts together what |code|, |content_type| and |body| say.
static void put_answer(weir_http_call_t* call) {
  bool is_failed = call->body.failed;
  if (is_failed) weir_strbuf_free(&call->body);
  int code = is_failed ? 500 : call->code;
  bool stays = call->parser.keeps_alive && !atomic_load(&call->http->is_stopping);
  call->closes = !stays;
  call->head.size = 0;
  call->sent = 0;
  weir_strbuf_printf(&call->head,
                     "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                     "Cache-Control: no-store\r\n%s%s\r\n",
                     code, reason_of(code), is_failed ? plain_text : call->content_type,
                     call->body.size, stays ? "" : "Connection: close\r\n", extra_field(code));
  if (weir_view_is(call->parser.request.method, "HEAD")) call->body.size = 0;
}

static void answer_code(weir_http_call_t* call, int code) {
  call->code = code;
  call->content_type = plain_text;
  call->parser.keeps_alive = false;
  weir_strbuf_free(&call->body);
  weir_strbuf_puts(&call->body, reason_of(code));
  weir_strbuf_putc(&call->body, '\n');
  put_answer(call);
  call->state = WEIR_HTTP_CALL_WRITING;
}

// ---- writing ----

// True once all is out. IO_BLOCKED arms the watch; IO_OVER: the peer is gone.
static weir_http_io_t write_answer(weir_http_call_t* call) {
  size_t total = call->head.size + call->body.size;
  while (call->sent < total) {
    size_t size = 0;
    weir_http_io_t result = weir_http_put(call, &size);
    if (result != WEIR_HTTP_IO_OK) return result;
    call->sent += size;
  }
  return WEIR_HTTP_IO_OK;
}

// TLS says that nothing follows; what is under it ends its own way. What still comes is dropped for
// a while, for closing on it would reset the connection before the answer was read.
static void start_draining(weir_http_call_t* call) {
  weir_rpc_tls_stream_destroy(call->tls);
  call->tls = NULL;
  call->state = WEIR_HTTP_CALL_DRAINING;
  if (shutdown(call->fd, SHUT_WR) != 0) {
    call_close(call);
    return;
  }
  weir_rpc_watch_change(call->thread, &call->watch, EPOLLIN);
  set_deadline(call, WEIR_HTTP_DRAIN_MS);
}

static void begin_request(weir_http_call_t* call) {
  call->state = WEIR_HTTP_CALL_READING;
  weir_http_parser_reset(&call->parser);
  if (call->body.capacity > WEIR_HTTP_KEPT_SIZE) weir_strbuf_free(&call->body);
  call->body.size = 0;
  weir_rpc_watch_change(call->thread, &call->watch, EPOLLIN);
  set_deadline(call, call->http->idle_ms);
}

static void advance(weir_http_call_t* call);

// Goes on after an answer was put together, or when the socket takes bytes again.
static void flush(weir_http_call_t* call) {
  switch (call->head.failed ? WEIR_HTTP_IO_OVER : write_answer(call)) {
    case WEIR_HTTP_IO_OVER: call_close(call); return;
    case WEIR_HTTP_IO_BLOCKED: set_deadline(call, call->http->patience_ms); return;
    case WEIR_HTTP_IO_OK: break;
  }
  if (call->closes) {
    start_draining(call);
    return;
  }
  begin_request(call);
  // The next request may have come with this one.
  if (call->rest.size > 0 || (call->tls && weir_rpc_tls_has_pending(call->tls))) advance(call);
}

static void run_response(weir_rpc_task_t* task) {
  weir_http_call_t* call = of_task(task);
  call->state = WEIR_HTTP_CALL_WRITING;
  if (call->fd < 0) {
    call_free(call);
    return;
  }
  put_answer(call);
  flush(call);
}

void weir_http_call_respond(weir_http_call_t* call, int code, const char* content_type,
                            weir_strbuf_t* take_body) {
  call->code = code;
  call->content_type = content_type ? content_type : plain_text;
  weir_strbuf_free(&call->body);
  call->body = *take_body;
  *take_body = (weir_strbuf_t){0};
  call->task.run = run_response;
  weir_rpc_post(call->thread, &call->task);
}

// ---- reading ----

static void handle(weir_http_call_t* call) {
  call->state = WEIR_HTTP_CALL_BUSY;
  weir_rpc_timer_clear(call->thread, &call->timer);
  weir_rpc_watch_change(call->thread, &call->watch, 0);
  call->http->handler(call->http->arg, call);
}

// "Expect: 100-continue" gets its go-ahead before the body. So small that the socket takes it.
static bool tell_to_continue(weir_http_call_t* call) {
  static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
  call->parser.awaits_continue = false;
  call->head.size = call->body.size = call->sent = 0;
  weir_strbuf_puts(&call->head, text);
  return write_answer(call) == WEIR_HTTP_IO_OK;
}

// Feeds the parser; what is behind the request is kept for the next.
static void take_bytes(weir_http_call_t* call, const char* data, size_t size) {
  size_t used = weir_http_parser_feed(&call->parser, data, size);
  call->progress += used;
  if (used < size) weir_strbuf_append(&call->rest, data + used, size - used);
}

// Does what the parser's state asks for. False: the connection waits for more bytes.
static bool act(weir_http_call_t* call) {
  if (call->rest.failed) {
    call_close(call);
    return true;
  }
  if (call->parser.state == WEIR_HTTP_BAD) {
    answer_code(call, call->parser.code);
    flush(call);
    return true;
  }
  if (call->parser.state == WEIR_HTTP_DONE) {
    handle(call);
    return true;
  }
  if (call->parser.awaits_continue && !tell_to_continue(call)) {
    call_close(call);
    return true;
  }
  return false;
}

static void drain(weir_http_call_t* call) {
  size_t size = 0;
  weir_http_io_t result;
  do {
    result =
        weir_http_get(call, (char*)weir_rpc_thread_spill(call->thread), WEIR_RPC_SPILL_SIZE, &size);
  } while (result == WEIR_HTTP_IO_OK);
  if (result == WEIR_HTTP_IO_OVER) call_close(call);
}

// Reads until the socket is empty or a request is complete.
static void advance(weir_http_call_t* call) {
  if (call->rest.size > 0) {
    weir_strbuf_t rest = call->rest;
    call->rest = (weir_strbuf_t){0};
    take_bytes(call, rest.data, rest.size);
    weir_strbuf_free(&rest);
    if (act(call)) return;
  }
  bool was_idle = call->parser.head.size == 0;
  for (int i = 0; i < WEIR_HTTP_READS_A_TURN || (call->tls && weir_rpc_tls_has_pending(call->tls));
       ++i) {
    char* spill = (char*)weir_rpc_thread_spill(call->thread);
    size_t size = 0;
    weir_http_io_t result = weir_http_get(call, spill, WEIR_RPC_SPILL_SIZE, &size);
    if (result == WEIR_HTTP_IO_OVER) call_close(call);
    if (result == WEIR_HTTP_IO_OVER) return;
    if (result == WEIR_HTTP_IO_BLOCKED) break;
    take_bytes(call, spill, size);
    if (act(call)) return;
    if (!call->tls && size < WEIR_RPC_SPILL_SIZE) break;
  }
  if (was_idle && call->parser.head.size > 0) set_deadline(call, call->http->patience_ms);
}

// ---- events ----

static void shake_hands(weir_http_call_t* call) {
  weir_http_io_t result = weir_http_shake_hands(call);
  if (result == WEIR_HTTP_IO_OVER) {
    WEIR_LOG(INFO, "HTTP: TLS: %s", weir_rpc_tls_error(call->tls));
    call_close(call);
    return;
  }
  if (result == WEIR_HTTP_IO_BLOCKED) return;
  begin_request(call);
  set_deadline(call, call->http->patience_ms);
  advance(call);
}

static void call_ready(weir_rpc_watch_t* watch, uint32_t events) {
  (void)events;
  weir_http_call_t* call = of_watch(watch);
  switch (call->state) {
    case WEIR_HTTP_CALL_HANDSHAKE: shake_hands(call); break;
    case WEIR_HTTP_CALL_READING: advance(call); break;
    case WEIR_HTTP_CALL_WRITING: flush(call); break;
    case WEIR_HTTP_CALL_DRAINING: drain(call); break;
    case WEIR_HTTP_CALL_BUSY: call_close(call); break;  // reset: nothing else is watched for
  }
}

// Time is up, unless enough of a body has come since it was set.
static void time_out(weir_rpc_timer_t* timer) {
  weir_http_call_t* call = of_timer(timer);
  bool has_begun = call->state == WEIR_HTTP_CALL_READING && call->parser.head.size > 0;
  bool is_body = has_begun && call->parser.state > WEIR_HTTP_HEAD;
  if (is_body && call->progress >= WEIR_HTTP_LEAST_PROGRESS) {
    call->progress = 0;
    set_deadline(call, call->http->patience_ms);
  } else if (has_begun) {
    answer_code(call, 408);
    flush(call);
  } else {
    call_close(call);
  }
}

// ---- accepting ----

static void call_start(weir_rpc_task_t* task) {
  weir_http_call_t* call = of_task(task);
  call->watch = (weir_rpc_watch_t){.fd = call->fd, .events = EPOLLIN, .ready = call_ready};
  call->timer.fire = time_out;
  call->parser.max_body_size = call->http->max_body_size;
  weir_http_parser_reset(&call->parser);
  weir_rpc_socket_tune(call->fd);
  weir_status_t* status = NULL;
  call->state = call->http->tls ? WEIR_HTTP_CALL_HANDSHAKE : WEIR_HTTP_CALL_READING;
  if (call->http->tls)
    status = weir_rpc_tls_stream_create(call->http->tls, call->fd, NULL, &call->tls);
  if (!status) status = weir_rpc_watch_add(call->thread, &call->watch);
  call->is_watched = !status;
  if (status) call_close(call);
  else set_deadline(call, call->http->patience_ms);
  weir_status_destroy(status);
}

static void open_call(weir_http_t* http, int fd) {
  weir_mutex_lock(&http->mu);
  bool has_room = http->call_count < http->max_connections;
  weir_http_call_t* call = has_room ? weir_calloc(1, sizeof(*call)) : NULL;
  if (call) {
    call->next = http->calls;
    if (http->calls) http->calls->prev = call;
    http->calls = call;
    ++http->call_count;
  }
  weir_mutex_unlock(&http->mu);
  if (!call) {
    close(fd);
    return;
  }
  call->http = http;
  call->fd = fd;
  call->thread = weir_rpc_loop_pick_thread(http->loop);
  call->task.run = call_start;
  weir_rpc_post(call->thread, &call->task);
}

static void accept_again(weir_rpc_timer_t* timer) {
  weir_http_t* http = (weir_http_t*)((char*)timer - offsetof(weir_http_t, accept_pause));
  weir_rpc_watch_change(weir_rpc_loop_thread(http->loop, 0), &http->listener, EPOLLIN);
}

static void accept_ready(weir_rpc_watch_t* watch, uint32_t events) {
  (void)events;
  weir_http_t* http = (weir_http_t*)((char*)watch - offsetof(weir_http_t, listener));
  for (int i = 0; i < WEIR_HTTP_ACCEPTS_A_TURN; ++i) {
    int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      open_call(http, fd);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    // No descriptors or memory: trying again at once would keep the thread busy.
    WEIR_LOG(ERROR, "HTTP: cannot accept connections: %s", strerror(errno));
    weir_rpc_thread_t* thread = weir_rpc_loop_thread(http->loop, 0);
    if (weir_rpc_timer_set(thread, &http->accept_pause, weir_clock_ns() + 100000000))
      weir_rpc_watch_change(thread, watch, 0);
    return;
  }
}

// ---- life ----

static void start_listening(void* arg) {
  weir_http_t* http = arg;
  http->start_status = weir_rpc_watch_add(weir_rpc_loop_thread(http->loop, 0), &http->listener);
  http->is_listening = !http->start_status;
}

static void stop_listening(void* arg) {
  weir_http_t* http = arg;
  weir_rpc_thread_t* thread = weir_rpc_loop_thread(http->loop, 0);
  if (http->listener.fd < 0) return;
  weir_rpc_timer_clear(thread, &http->accept_pause);
  if (http->is_listening) weir_rpc_watch_remove(thread, &http->listener);
  close(http->listener.fd);
  http->listener.fd = -1;
}

static weir_status_t* start(weir_http_t* http, const char* text) {
  weir_rpc_address_t address;
  struct sockaddr_storage name = {0};
  socklen_t size = sizeof(name);
  WEIR_TRY(weir_rpc_address_parse(text, &address));
  WEIR_TRY(weir_rpc_listen(&address, &http->listener.fd));
  if (getsockname(http->listener.fd, (struct sockaddr*)&name, &size) != 0)
    return WEIR_STATUS(INTERNAL, "getsockname: %s", strerror(errno));
  // The port is at the same place in both families.
  // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): getsockname has filled it
  if (!address.is_unix) http->port = ntohs(((const struct sockaddr_in*)&name)->sin_port);
  weir_rpc_run_on(weir_rpc_loop_thread(http->loop, 0), start_listening, http);
  return http->start_status;
}

static weir_http_t* http_alloc(const weir_http_options_t* options) {
  weir_http_t* http = weir_calloc(1, sizeof(*http));
  if (!http) return NULL;
  weir_mutex_init(&http->mu);
  weir_cond_init(&http->cond);
  http->handler = options->handler;
  http->arg = options->arg;
  http->max_connections = options->max_connections ? options->max_connections : 32;
  http->max_body_size = options->max_body_size ? options->max_body_size : 8192;
  http->patience_ms = options->patience_ms ? options->patience_ms : 5000;
  http->idle_ms = options->idle_ms ? options->idle_ms : 60000;
  http->listener = (weir_rpc_watch_t){.fd = -1, .events = EPOLLIN, .ready = accept_ready};
  http->accept_pause.fire = accept_again;
  http->loop = options->loop;
  return http;
}

weir_status_t* weir_http_create(const weir_http_options_t* options, weir_http_t** out_http) {
  weir_http_t* http = http_alloc(options);
  if (!http) return weir_out_of_memory();
  weir_rpc_tls_t tls = options->tls;
  tls.is_http1 = true;
  weir_status_t* status =
      tls.is_enabled ? weir_rpc_tls_context_create(&tls, true, &http->tls) : NULL;
  if (!status && !http->loop) {
    status = weir_rpc_loop_create(NULL, &http->own_loop);
    http->loop = http->own_loop;
  }
  if (!status) status = start(http, options->address);
  if (status) weir_http_destroy(http);
  else *out_http = http;
  return status;
}

int weir_http_port(const weir_http_t* http) { return http->port; }

int weir_http_connection_count(weir_http_t* http) {
  weir_mutex_lock(&http->mu);
  int count = http->call_count;
  weir_mutex_unlock(&http->mu);
  return count;
}

// One thread's connections to end; all of them, or those between requests.
typedef struct ending_t {
  weir_http_t* http;
  weir_rpc_thread_t* thread;
  bool is_last;
} ending_t;

static bool may_end(const weir_http_call_t* call, const ending_t* ending) {
  if (call->thread != ending->thread || call->is_over) return false;
  bool is_idle = call->state == WEIR_HTTP_CALL_READING && call->parser.head.size == 0;
  return ending->is_last || is_idle;
}

// On the thread. Calls leave the list as they are closed, so it is looked at anew each time.
static void end_calls(void* arg) {
  ending_t* ending = arg;
  for (;;) {
    weir_mutex_lock(&ending->http->mu);
    weir_http_call_t* call = ending->http->calls;
    while (call && !may_end(call, ending)) call = call->next;
    weir_mutex_unlock(&ending->http->mu);
    if (!call) return;
    call->is_over = true;  // once is enough for what a handler still has
    call_close(call);
  }
}

static void end_all(weir_http_t* http, bool is_last) {
  for (int i = 0; i < weir_rpc_loop_thread_count(http->loop); ++i) {
    ending_t ending = {http, weir_rpc_loop_thread(http->loop, i), is_last};
    weir_rpc_run_on(ending.thread, end_calls, &ending);
  }
}

static bool wait_for_calls(weir_http_t* http, int64_t deadline_ns) {
  bool is_in_time = true;
  weir_mutex_lock(&http->mu);
  while (http->call_count > 0 && is_in_time) {
    if (deadline_ns == INT64_MAX) weir_cond_wait(&http->cond, &http->mu);
    else is_in_time = weir_cond_wait_until(&http->cond, &http->mu, deadline_ns);
  }
  bool is_empty = http->call_count == 0;
  weir_mutex_unlock(&http->mu);
  return is_empty;
}

void weir_http_shutdown(weir_http_t* http, int grace_ms) {
  if (!http->loop) return;
  int64_t deadline_ns = weir_clock_ns() + WEIR_MAX(grace_ms, 0) * INT64_C(1000000);
  atomic_store(&http->is_stopping, true);
  weir_rpc_run_on(weir_rpc_loop_thread(http->loop, 0), stop_listening, http);
  end_all(http, false);
  if (!wait_for_calls(http, deadline_ns)) end_all(http, true);
}

void weir_http_destroy(weir_http_t* http) {
  if (!http) return;
  weir_http_shutdown(http, 0);
  wait_for_calls(http, INT64_MAX);
  if (http->own_loop) weir_rpc_loop_destroy(http->own_loop);
  weir_rpc_tls_context_destroy(http->tls);
  weir_cond_destroy(&http->cond);
  weir_mutex_destroy(&http->mu);
  weir_free(http);
}
