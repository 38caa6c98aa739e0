// http.c — HTTP/1.1 for monitoring: a poll loop over a few connections.
#include "cluster/serve/http.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/thread.h"
#include "rpc/address.h"

enum { CONNECTION_LIMIT = 32, REQUEST_LIMIT = 8192, PATIENCE_MS = 5000, DRAIN_MS = 1000 };

typedef struct connection_t {
  int fd;               // -1: the place is free
  int64_t deadline_ns;  // for the request and again for the answer
  char request[REQUEST_LIMIT];
  size_t received;
  weir_strbuf_t answer;
  size_t sent;
  bool is_draining;  // all is sent: what still comes is dropped, for closing on it would reset
} connection_t;

struct weir_http_t {
  weir_http_handler_fn_t handler;
  void* arg;
  int listener;
  int wake;  // an eventfd: the thread shall end
  int port;
  pthread_t thread;
  bool is_started;
  connection_t connections[CONNECTION_LIMIT];  // thread-confined
};

static void close_connection(connection_t* connection) {
  close(connection->fd);
  weir_strbuf_free(&connection->answer);
  connection->fd = -1;
}

// ---- one request ----

static const char* reason_of(int code) {
  switch (code) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "Internal Server Error";
  }
}

static void answer(connection_t* connection, int code, const char* type, weir_view_t body,
                   bool has_body) {
  weir_strbuf_printf(&connection->answer,
                     "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                     "Cache-Control: no-store\r\nConnection: close\r\n%s\r\n",
                     code, reason_of(code), type, body.size,
                     code == 405 ? "Allow: GET, HEAD\r\n" : "");
  if (has_body) weir_strbuf_append(&connection->answer, body.data, body.size);
  connection->deadline_ns = weir_clock_ns() + PATIENCE_MS * INT64_C(1000000);
}

static void answer_code(connection_t* connection, int code) {
  const char* reason = reason_of(code);
  answer(connection, code, "text/plain; charset=utf-8", weir_view_of(reason), true);
}

// "GET /path?query HTTP/1.1"; the header fields behind it are of no interest.
static void answer_request(weir_http_t* http, connection_t* connection) {
  weir_view_t rest = weir_view(connection->request, connection->received), line, method, target;
  weir_view_next(&rest, '\n', &line);
  line = weir_view_trim(line);
  bool is_good = weir_view_next(&line, ' ', &method) && weir_view_next(&line, ' ', &target) &&
                 target.size > 0 && target.data[0] == '/' && weir_view_starts_with(line, "HTTP/1.");
  bool is_head = is_good && weir_view_is(method, "HEAD");
  if (!is_good) {
    answer_code(connection, 400);
    return;
  }
  if (!is_head && !weir_view_is(method, "GET")) {
    answer_code(connection, 405);
    return;
  }
  weir_view_t path;
  const char* type = "text/plain; charset=utf-8";
  weir_strbuf_t body = {0};
  weir_view_next(&target, '?', &path);
  int code = http->handler(http->arg, path, &body, &type);
  if (body.failed) answer_code(connection, 500);
  else answer(connection, code, type, weir_strbuf_view(&body), !is_head);
  weir_strbuf_free(&body);
}

static bool is_complete(const connection_t* connection) {
  const char* text = connection->request;
  size_t size = connection->received;
  return memmem(text, size, "\r\n\r\n", 4) || memmem(text, size, "\n\n", 2);
}

static void receive(weir_http_t* http, connection_t* connection) {
  if (connection->is_draining) connection->received = 0;
  size_t room = REQUEST_LIMIT - connection->received;
  ssize_t size = recv(connection->fd, connection->request + connection->received, room, 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    close_connection(connection);
    return;
  }
  connection->received += (size_t)size;
  if (connection->is_draining) return;
  if (is_complete(connection)) answer_request(http, connection);
  else if (connection->received == REQUEST_LIMIT) answer_code(connection, 431);
}

static void transmit(connection_t* connection) {
  weir_strbuf_t* text = &connection->answer;
  ssize_t size = text->failed ? -1
                              : send(connection->fd, text->data + connection->sent,
                                     text->size - connection->sent, MSG_NOSIGNAL);
  if (!text->failed && size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size > 0) connection->sent += (size_t)size;
  if (size > 0 && connection->sent < text->size) return;
  if (size < 0 || shutdown(connection->fd, SHUT_WR) != 0) {
    close_connection(connection);
    return;
  }
  weir_strbuf_free(text);
  connection->is_draining = true;
  connection->deadline_ns = weir_clock_ns() + DRAIN_MS * INT64_C(1000000);
}

static bool is_answered(const connection_t* connection) {
  return connection->answer.size > 0 || connection->answer.failed;
}

// ---- the loop ----

static void accept_one(weir_http_t* http) {
  int fd = accept4(http->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  for (int i = 0; i < CONNECTION_LIMIT; ++i) {
    connection_t* connection = &http->connections[i];
    if (connection->fd >= 0) continue;
    connection->fd = fd;
    connection->received = connection->sent = 0;
    connection->is_draining = false;
    connection->deadline_ns = weir_clock_ns() + PATIENCE_MS * INT64_C(1000000);
    return;
  }
  close(fd);
}

// Fills the list to poll: wake, listener, connections. Returns how long to wait.
static int prepare(weir_http_t* http, struct pollfd polls[CONNECTION_LIMIT + 2]) {
  int64_t now = weir_clock_ns(), next = INT64_MAX;
  bool has_room = false;
  for (int i = 0; i < CONNECTION_LIMIT; ++i) {
    connection_t* connection = &http->connections[i];
    if (connection->fd >= 0 && connection->deadline_ns <= now) close_connection(connection);
    has_room |= connection->fd < 0;
    if (connection->fd >= 0) next = WEIR_MIN(next, connection->deadline_ns);
    short events = is_answered(connection) ? POLLOUT : POLLIN;
    polls[2 + i] = (struct pollfd){.fd = connection->fd, .events = events};
  }
  polls[0] = (struct pollfd){.fd = http->wake, .events = POLLIN};
  polls[1] = (struct pollfd){.fd = has_room ? http->listener : -1, .events = POLLIN};
  return next == INT64_MAX ? -1 : (int)((next - now) / 1000000 + 1);
}

static void* run(void* arg) {
  weir_http_t* http = arg;
  struct pollfd polls[CONNECTION_LIMIT + 2];
  for (;;) {
    int timeout_ms = prepare(http, polls);
    if (poll(polls, CONNECTION_LIMIT + 2, timeout_ms) < 0 && errno != EINTR) {
      WEIR_LOG(ERROR, "monitoring pages end: poll: %s", strerror(errno));
      return NULL;
    }
    if (polls[0].revents) return NULL;
    if (polls[1].revents) accept_one(http);
    for (int i = 0; i < CONNECTION_LIMIT; ++i) {
      connection_t* connection = &http->connections[i];
      if (!polls[2 + i].revents || connection->fd != polls[2 + i].fd) continue;
      if (!is_answered(connection)) receive(http, connection);
      if (connection->fd >= 0 && is_answered(connection)) transmit(connection);
    }
  }
}

// ---- life ----

static weir_status_t* start(weir_http_t* http, const char* text) {
  weir_rpc_address_t address;
  struct sockaddr_storage name = {0};
  socklen_t size = sizeof(name);
  WEIR_TRY(weir_rpc_address_parse(text, &address));
  WEIR_TRY(weir_rpc_listen(&address, &http->listener));
  if (getsockname(http->listener, (struct sockaddr*)&name, &size) != 0)
    return WEIR_STATUS(INTERNAL, "getsockname: %s", strerror(errno));
  // The port is at the same place in both families.
  // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): getsockname has filled it
  if (!address.is_unix) http->port = ntohs(((const struct sockaddr_in*)&name)->sin_port);
  http->wake = eventfd(0, EFD_CLOEXEC);
  if (http->wake < 0) return WEIR_STATUS(RESOURCE_EXHAUSTED, "eventfd: %s", strerror(errno));
  int error = pthread_create(&http->thread, NULL, run, http);
  if (error) return WEIR_STATUS(RESOURCE_EXHAUSTED, "cannot start a thread: %s", strerror(error));
  http->is_started = true;
  return NULL;
}

weir_status_t* weir_http_create(const char* address, weir_http_handler_fn_t handler, void* arg,
                                weir_http_t** out_http) {
  weir_http_t* http = weir_calloc(1, sizeof(*http));
  if (!http) return weir_out_of_memory();
  http->handler = handler;
  http->arg = arg;
  http->listener = http->wake = -1;
  for (int i = 0; i < CONNECTION_LIMIT; ++i) http->connections[i].fd = -1;
  weir_status_t* status = start(http, address);
  if (status) weir_http_destroy(http);
  else *out_http = http;
  return status;
}

int weir_http_port(const weir_http_t* http) { return http->port; }

void weir_http_destroy(weir_http_t* http) {
  if (!http) return;
  if (http->is_started) {
    WEIR_CHECK(eventfd_write(http->wake, 1) == 0);
    pthread_join(http->thread, NULL);
  }
  for (int i = 0; i < CONNECTION_LIMIT; ++i) {
    if (http->connections[i].fd >= 0) close_connection(&http->connections[i]);
  }
  if (http->listener >= 0) close(http->listener);
  if (http->wake >= 0) close(http->wake);
  weir_free(http);
}
