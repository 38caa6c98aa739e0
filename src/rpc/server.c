// server.c — Listening, accepting, and the orderly end of a server.
#include "rpc/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"

#define ACCEPT_PAUSE_NS ((int64_t)100 * 1000000)

enum {
  MAX_CONNECTIONS = 10000,
  MAX_SURPLUS = 64,  // connections that are told why they are refused; more are closed at once
  MAX_CALLS = 100000,
  MAX_STEPS = 10000,
};

// ---- connections ----
// Counts one more. False: there are too many even to refuse it in words.
static bool conn_came(weir_rpc_server_t* server, bool* out_is_surplus) {
  weir_mutex_lock(&server->mu);
  bool is_surplus = server->conn_count - server->surplus_count >= server->max_connections;
  bool has_room = !is_surplus || server->surplus_count < MAX_SURPLUS;
  if (has_room) ++server->conn_count;
  if (has_room && is_surplus) ++server->surplus_count;
  weir_mutex_unlock(&server->mu);
  *out_is_surplus = is_surplus;
  return has_room;
}

static void conn_went(weir_rpc_server_t* server, bool is_surplus) {
  weir_mutex_lock(&server->mu);
  if (is_surplus) --server->surplus_count;
  if (--server->conn_count == 0) weir_cond_broadcast(&server->cond);
  weir_mutex_unlock(&server->mu);
}

static void conn_noted(weir_rpc_conn_t* conn) { (void)conn; }

static void conn_lost(weir_rpc_conn_t* conn, const weir_status_t* reason) {
  weir_rpc_server_part_t* part = conn->owner;
  WEIR_LOG(INFO, "%s: %s", conn->peer, weir_status_message(reason));
  if (conn->next) conn->next->prev = conn->prev;
  if (conn->prev) conn->prev->next = conn->next;
  else part->conns = conn->next;
  if (part->server->disconnected) part->server->disconnected(part->server->self, conn->number);
  conn_went(part->server, conn->is_surplus);
}

const weir_rpc_role_t weir_rpc_server_role = {
    .opened = weir_rpc_call_opened,
    .header = weir_rpc_call_header,
    .headers_ended = weir_rpc_call_headers_ended,
    .ended = weir_rpc_call_ended,
    .failed = weir_rpc_call_failed,
    .closed = weir_rpc_call_closed,
    .ready = conn_noted,
    .going_away = conn_noted,
    .lost = conn_lost,
};

typedef struct adoption_t {
  weir_rpc_task_t task;
  weir_rpc_server_part_t* part;
  int fd;
  bool is_surplus;
} adoption_t;

static void adopt_task(weir_rpc_task_t* task) {
  adoption_t adoption = *(adoption_t*)task;
  weir_free(task);
  weir_rpc_server_part_t* part = adoption.part;
  weir_rpc_server_t* server = part->server;
  if (atomic_load(&server->is_stopping)) {
    close(adoption.fd);
    conn_went(server, adoption.is_surplus);
    return;
  }
  weir_rpc_conn_options_t options = {.thread = part->thread,
                                     .role = &weir_rpc_server_role,
                                     .owner = part,
                                     .is_server = true,
                                     .tls = server->tls,
                                     .keepalive_ms = server->keepalive_ms,
                                     .max_concurrent_streams = server->max_concurrent_calls,
                                     .max_message_size = server->max_message_size,
                                     .is_surplus = adoption.is_surplus,
                                     .is_stranger = server->token != NULL,
                                     .greeting_ms = server->greeting_ms};
  weir_rpc_conn_t* conn = NULL;
  weir_status_t* status = weir_rpc_conn_create(&options, adoption.fd, &conn);
  if (status) {
    WEIR_LOG(ERROR, "cannot serve a connection: %s", weir_status_message(status));
    weir_status_destroy(status);
    conn_went(server, adoption.is_surplus);
    return;
  }
  conn->number = atomic_fetch_add(&server->last_conn, 1) + 1;
  conn->next = part->conns;
  if (part->conns) part->conns->prev = conn;
  part->conns = conn;
}

void weir_rpc_server_adopt(weir_rpc_server_t* server, int take_fd) {
  adoption_t* adoption = weir_malloc(sizeof(*adoption));
  if (!adoption) {
    WEIR_LOG(ERROR, "cannot serve a connection: out of memory");
    close(take_fd);
    return;
  }
  if (!conn_came(server, &adoption->is_surplus)) {
    weir_free(adoption);
    close(take_fd);
    return;
  }
  unsigned turn = atomic_fetch_add(&server->next_part, 1);
  adoption->task.run = adopt_task;
  adoption->part = &server->parts[turn % (unsigned)server->part_count];
  adoption->fd = take_fd;
  weir_rpc_post(adoption->part->thread, &adoption->task);
}

// ---- listening ----
static void accept_ready(weir_rpc_watch_t* watch, uint32_t events) {
  (void)events;
  weir_rpc_server_t* server =
      (weir_rpc_server_t*)((char*)watch - offsetof(weir_rpc_server_t, listener));
  for (;;) {
    int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      weir_rpc_server_adopt(server, fd);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    // No descriptors or memory: the connection stays in the queue, and trying again at once would
    // keep the thread busy.
    WEIR_LOG(ERROR, "cannot accept connections on %s: %s", server->address, strerror(errno));
    if (weir_rpc_timer_set(server->parts[0].thread, &server->accept_pause,
                           weir_clock_ns() + ACCEPT_PAUSE_NS))
      weir_rpc_watch_change(server->parts[0].thread, watch, 0);
    return;
  }
}

static void accept_again(weir_rpc_timer_t* timer) {
  weir_rpc_server_t* server =
      (weir_rpc_server_t*)((char*)timer - offsetof(weir_rpc_server_t, accept_pause));
  weir_rpc_watch_change(server->parts[0].thread, &server->listener, EPOLLIN);
}

typedef struct listen_errand_t {
  weir_rpc_server_t* server;
  weir_status_t* status;
} listen_errand_t;

static void start_listening(void* arg) {
  listen_errand_t* errand = arg;
  errand->status = weir_rpc_watch_add(errand->server->parts[0].thread, &errand->server->listener);
}

static void stop_listening(void* arg) {
  weir_rpc_server_t* server = arg;
  if (server->listener.fd < 0) return;
  weir_rpc_timer_clear(server->parts[0].thread, &server->accept_pause);
  weir_rpc_watch_remove(server->parts[0].thread, &server->listener);
  close(server->listener.fd);
  server->listener.fd = -1;
  if (server->unix_path[0]) unlink(server->unix_path);
}

static weir_status_t* server_listen(weir_rpc_server_t* server, const char* text) {
  weir_rpc_address_t address;
  WEIR_TRY(weir_rpc_address_parse(text, &address));
  int fd = -1;
  WEIR_TRY(weir_rpc_listen(&address, &fd));
  struct sockaddr_storage name = {0};
  socklen_t size = sizeof(name);
  weir_status_t* status = NULL;
  if (getsockname(fd, (struct sockaddr*)&name, &size) != 0)
    status = WEIR_STATUS(INTERNAL, "getsockname: %s", strerror(errno));
  weir_rpc_socket_text(&name, server->address);
  if (address.is_unix)
    memcpy(server->unix_path, address.unix_name.sun_path, sizeof(server->unix_path));
  else  // the port is at the same place in both families
    // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): getsockname has filled it
    server->port = ntohs(((const struct sockaddr_in*)&name)->sin_port);
  server->listener.fd = fd;
  listen_errand_t errand = {.server = server};
  if (!status) {
    weir_rpc_run_on(server->parts[0].thread, start_listening, &errand);
    status = errand.status;
  }
  if (status) {
    close(fd);
    server->listener.fd = -1;
    if (server->unix_path[0]) unlink(server->unix_path);
  }
  return status;
}

// ---- methods ----
static weir_status_t* add_method(weir_rpc_server_t* server, const weir_rpc_method_t* method,
                                 void* self) {
  if (method->path[0] != '/' || !method->handler)
    return WEIR_STATUS(INVALID_ARGUMENT, "'%s' is no path of a method", method->path);
  if (weir_map_find(&server->by_path, weir_view_of(method->path)))
    return WEIR_STATUS(ALREADY_EXISTS, "method '%s' is given twice", method->path);
  weir_rpc_entry_t* entry = &server->entries[server->entry_count];
  entry->path = weir_strdup(method->path);
  if (!entry->path) return weir_out_of_memory();
  ++server->entry_count;
  entry->handler = method->handler;
  entry->self = self;
  entry->is_inline = method->is_inline;
  entry->is_step = method->is_step;
  return weir_map_put(&server->by_path, weir_view_of(entry->path), entry);
}

static weir_status_t* add_methods(weir_rpc_server_t* server, const weir_rpc_method_t* methods,
                                  void* self) {
  size_t count = 0;
  while (methods && methods[count].path) ++count;
  server->entries = weir_calloc(count + 1, sizeof(*server->entries));
  if (!server->entries) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) WEIR_TRY(add_method(server, &methods[i], self));
  const weir_rpc_method_t health = {WEIR_RPC_HEALTH_PATH, weir_rpc_health_check, .is_inline = true};
  return add_method(server, &health, server);
}

// ---- limits ----
// Half of what the process may open: graphs need files, too.
static int default_connections(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 2 > MAX_CONNECTIONS)
    return MAX_CONNECTIONS;
  return WEIR_MAX((int)(limit.rlim_cur / 2), 1);
}

static void set_limits(weir_rpc_server_t* server, const weir_rpc_server_options_t* options) {
  server->max_concurrent_calls = options->max_concurrent_calls;
  server->max_connections =
      options->max_connections ? options->max_connections : default_connections();
  server->max_calls = options->max_calls ? options->max_calls : MAX_CALLS;
  server->max_steps = options->max_steps ? options->max_steps : MAX_STEPS;
  server->max_message_size = options->max_message_size;
}

// ---- life ----
weir_status_t* weir_rpc_server_create(weir_rpc_loop_t* loop,
                                      const weir_rpc_server_options_t* options,
                                      const weir_rpc_method_t* methods,
                                      weir_rpc_server_t** out_server) {
  int count = weir_rpc_loop_thread_count(loop);
  weir_rpc_server_t* server =
      weir_calloc(1, sizeof(*server) + (size_t)count * sizeof(server->parts[0]));
  if (!server) return weir_out_of_memory();
  server->loop = loop;
  server->token = options->token;
  server->pool = options->pool;
  server->keepalive_ms = options->keepalive_ms;
  server->greeting_ms = options->greeting_ms;
  set_limits(server, options);
  server->observer = options->observer;
  server->observer_arg = options->observer_arg;
  server->disconnected = options->disconnected;
  server->self = options->self;
  server->listener = (weir_rpc_watch_t){.fd = -1, .events = EPOLLIN, .ready = accept_ready};
  server->accept_pause.fire = accept_again;
  weir_mutex_init(&server->mu);
  weir_cond_init(&server->cond);
  server->part_count = count;
  for (int i = 0; i < count; ++i) {
    server->parts[i].server = server;
    server->parts[i].thread = weir_rpc_loop_thread(loop, i);
  }
  weir_status_t* status = add_methods(server, methods, options->self);
  if (!status && options->tls.is_enabled)
    status = weir_rpc_tls_context_create(&options->tls, true, &server->tls);
  if (!status && options->address) status = server_listen(server, options->address);
  if (status) {
    weir_rpc_server_destroy(server);
    return status;
  }
  *out_server = server;
  return NULL;
}

int weir_rpc_server_port(const weir_rpc_server_t* server) { return server->port; }
const char* weir_rpc_server_address(const weir_rpc_server_t* server) { return server->address; }

void weir_rpc_server_load(weir_rpc_server_t* server, int* out_connections, int* out_calls) {
  weir_mutex_lock(&server->mu);
  *out_connections = server->conn_count;
  *out_calls = server->call_count;
  weir_mutex_unlock(&server->mu);
}

static void end_conns(void* arg) {
  weir_rpc_server_part_t* part = arg;
  for (weir_rpc_conn_t* conn = part->conns; conn; conn = conn->next) weir_rpc_conn_end(conn);
}

static void close_conns(void* arg) {
  weir_rpc_server_part_t* part = arg;
  while (part->conns)
    weir_rpc_conn_close(part->conns, WEIR_STATUS(UNAVAILABLE, "the server shuts down"));
}

// Waits until |count| (guarded by mu) is 0; false when |deadline_ns| passed before.
static bool wait_for_zero(weir_rpc_server_t* server, const int* count, int64_t deadline_ns) {
  bool is_in_time = true;
  weir_mutex_lock(&server->mu);
  while (*count > 0 && is_in_time) {
    if (deadline_ns == INT64_MAX) weir_cond_wait(&server->cond, &server->mu);
    else is_in_time = weir_cond_wait_until(&server->cond, &server->mu, deadline_ns);
  }
  bool is_zero = *count == 0;
  weir_mutex_unlock(&server->mu);
  return is_zero;
}

static void on_every_part(weir_rpc_server_t* server, void (*fn)(void* part)) {
  for (int i = 0; i < server->part_count; ++i)
    weir_rpc_run_on(server->parts[i].thread, fn, &server->parts[i]);
}

void weir_rpc_server_shutdown(weir_rpc_server_t* server, int grace_ms) {
  int64_t deadline_ns = weir_clock_ns() + WEIR_MAX(grace_ms, 0) * (int64_t)1000000;
  atomic_store(&server->is_stopping, true);
  weir_rpc_run_on(server->parts[0].thread, stop_listening, server);
  on_every_part(server, end_conns);
  if (wait_for_zero(server, &server->conn_count, deadline_ns)) return;
  on_every_part(server, close_conns);
  wait_for_zero(server, &server->conn_count, INT64_MAX);
}

void weir_rpc_server_destroy(weir_rpc_server_t* server) {
  if (!server) return;
  weir_rpc_server_shutdown(server, 0);
  wait_for_zero(server, &server->call_count, INT64_MAX);
  weir_map_free(&server->by_path);
  for (size_t i = 0; i < server->entry_count; ++i) weir_free(server->entries[i].path);
  weir_free(server->entries);
  weir_rpc_tls_context_destroy(server->tls);
  weir_cond_destroy(&server->cond);
  weir_mutex_destroy(&server->mu);
  weir_free(server);
}
