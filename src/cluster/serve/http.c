// http.c — HTTP/1.1 for monitoring: a poll loop over a few connections.
#include "cluster/serve/http.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/thread.h"
#include "rpc/address.h"
#include "rpc/tls.h"

enum { CONNECTION_LIMIT = 32, REQUEST_LIMIT = 8192, PATIENCE_MS = 5000, DRAIN_MS = 1000 };

typedef struct connection_t {
  int fd;                      // -1: the place is free
  weir_rpc_tls_stream_t* tls;  // NULL: plain text
  bool is_open;                // TLS has shaken hands, or there is none
  short awaited;               // what poll shall wait for
  int64_t deadline_ns;         // for the request and again for the answer
  char request[REQUEST_LIMIT];
  size_t received;
  weir_strbuf_t answer;
  size_t sent;
  bool is_draining;  // all is sent: what still comes is dropped, for closing on it would reset
} connection_t;

struct weir_http_t {
  weir_http_handler_fn_t handler;
  void* arg;
  weir_rpc_tls_context_t* tls;  // NULL: plain text
  int listener;
  int wake;  // an eventfd: the thread shall end
  int port;
  pthread_t thread;
  bool is_started;
  connection_t connections[CONNECTION_LIMIT];  // thread-confined
};

static void close_connection(connection_t* connection) {
  weir_rpc_tls_stream_destroy(connection->tls);
  connection->tls = NULL;
  close(connection->fd);
  weir_strbuf_free(&connection->answer);
  connection->fd = -1;
}

// ---- one request ----

static const char* reason_of(int code) {
  switch (code) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "Internal Server Error";
  }
}

static const char* extra_field(int code) {
  if (code == 401) return "WWW-Authenticate: Bearer\r\n";
  return code == 405 ? "Allow: GET, HEAD\r\n" : "";
}

static void answer(connection_t* connection, int code, const char* type, weir_view_t body,
                   bool has_body) {
  weir_strbuf_printf(&connection->answer,
                     "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                     "Cache-Control: no-store\r\nConnection: close\r\n%s\r\n",
                     code, reason_of(code), type, body.size, extra_field(code));
  if (has_body) weir_strbuf_append(&connection->answer, body.data, body.size);
  connection->deadline_ns = weir_clock_ns() + PATIENCE_MS * INT64_C(1000000);
}

static void answer_code(connection_t* connection, int code) {
  const char* reason = reason_of(code);
  answer(connection, code, "text/plain; charset=utf-8", weir_view_of(reason), true);
}

static weir_view_t find_authorization(weir_view_t fields) {
  weir_view_t line, name;
  while (weir_view_next(&fields, '\n', &line)) {
    if (!weir_view_next(&line, ':', &name)) continue;
    if (name.size == 13 && strncasecmp(name.data, "authorization", 13) == 0)
      return weir_view_trim(line);
  }
  return weir_view(NULL, 0);
}

// "GET /path?query HTTP/1.1"; of the header fields behind it one is of interest.
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
  weir_http_request_t request = {.authorization = find_authorization(rest)};
  const char* type = "text/plain; charset=utf-8";
  weir_strbuf_t body = {0};
  weir_view_next(&target, '?', &request.path);
  int code = http->handler(http->arg, &request, &body, &type);
  if (body.failed) answer_code(connection, 500);
  else answer(connection, code, type, weir_strbuf_view(&body), !is_head);
  weir_strbuf_free(&body);
}

static bool is_complete(const connection_t* connection) {
  const char* text = connection->request;
  size_t size = connection->received;
  return memmem(text, size, "\r\n\r\n", 4) || memmem(text, size, "\n\n", 2);
}

static bool is_answered(const connection_t* connection) {
  return connection->answer.size > 0 || connection->answer.failed;
}

// ---- bytes ----

typedef enum io_t { IO_OK, IO_BLOCKED, IO_OVER } io_t;

// Handshakes and new keys make TLS wait for the other direction, too.
static io_t tls_io(connection_t* connection, weir_rpc_tls_result_t result) {
  if (result == WEIR_RPC_TLS_WANT_READ) connection->awaited = POLLIN;
  else if (result == WEIR_RPC_TLS_WANT_WRITE) connection->awaited = POLLOUT;
  else return result == WEIR_RPC_TLS_OK ? IO_OK : IO_OVER;
  return IO_BLOCKED;
}

static io_t socket_io(ssize_t size, size_t* out_size) {
  if (size < 0) return errno == EAGAIN || errno == EINTR ? IO_BLOCKED : IO_OVER;
  *out_size = (size_t)size;
  return size > 0 ? IO_OK : IO_OVER;
}

static io_t get_bytes(connection_t* connection, char* data, size_t room, size_t* out_size) {
  connection->awaited = POLLIN;
  if (connection->tls)
    return tls_io(connection, weir_rpc_tls_read(connection->tls, data, room, out_size));
  return socket_io(recv(connection->fd, data, room, 0), out_size);
}

static io_t put_bytes(connection_t* connection, weir_view_t bytes, size_t* out_size) {
  connection->awaited = POLLOUT;
  if (connection->tls)
    return tls_io(connection,
                  weir_rpc_tls_write(connection->tls, bytes.data, bytes.size, out_size));
  return socket_io(send(connection->fd, bytes.data, bytes.size, MSG_NOSIGNAL), out_size);
}

static void shake_hands(connection_t* connection) {
  io_t result = tls_io(connection, weir_rpc_tls_handshake(connection->tls));
  if (result == IO_OVER) {
    WEIR_LOG(INFO, "monitoring pages: TLS: %s", weir_rpc_tls_error(connection->tls));
    close_connection(connection);
  }
  connection->is_open = result == IO_OK;
  if (connection->is_open) connection->awaited = POLLIN;
}

static void receive(weir_http_t* http, connection_t* connection) {
  size_t size = 0;
  do {  // poll knows nothing of bytes that TLS has taken from the socket
    if (connection->is_draining) connection->received = 0;
    size_t room = REQUEST_LIMIT - connection->received;
    io_t result = get_bytes(connection, connection->request + connection->received, room, &size);
    if (result == IO_OVER) close_connection(connection);
    if (result != IO_OK) return;
    connection->received += size;
    if (connection->is_draining) continue;
    if (is_complete(connection)) answer_request(http, connection);
    else if (connection->received == REQUEST_LIMIT) answer_code(connection, 431);
  } while (!is_answered(connection) && connection->tls &&
           weir_rpc_tls_has_pending(connection->tls));
}

// TLS says that nothing follows; what is under it ends its own way.
static bool end_output(connection_t* connection) {
  weir_rpc_tls_stream_destroy(connection->tls);
  connection->tls = NULL;
  return shutdown(connection->fd, SHUT_WR) == 0;
}

static void transmit(connection_t* connection) {
  weir_strbuf_t* text = &connection->answer;
  size_t size = 0;
  while (!text->failed && connection->sent < text->size) {
    weir_view_t rest = weir_view(text->data + connection->sent, text->size - connection->sent);
    io_t result = put_bytes(connection, rest, &size);
    if (result == IO_BLOCKED) return;
    if (result == IO_OVER) break;
    connection->sent += size;
  }
  bool is_sent = !text->failed && connection->sent == text->size;
  if (!is_sent || !end_output(connection)) {
    close_connection(connection);
    return;
  }
  weir_strbuf_free(text);
  connection->is_draining = true;
  connection->awaited = POLLIN;
  connection->deadline_ns = weir_clock_ns() + DRAIN_MS * INT64_C(1000000);
}

// ---- the loop ----

static void open_connection(weir_http_t* http, connection_t* connection, int fd) {
  connection->fd = fd;
  connection->received = connection->sent = 0;
  connection->is_open = !http->tls;
  connection->is_draining = false;
  connection->awaited = POLLIN;
  connection->deadline_ns = weir_clock_ns() + PATIENCE_MS * INT64_C(1000000);
  if (!http->tls) return;
  weir_status_t* status = weir_rpc_tls_stream_create(http->tls, fd, NULL, &connection->tls);
  if (status) close_connection(connection);
  weir_status_destroy(status);
}

static void accept_one(weir_http_t* http) {
  int fd = accept4(http->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  for (int i = 0; i < CONNECTION_LIMIT; ++i) {
    if (http->connections[i].fd >= 0) continue;
    open_connection(http, &http->connections[i], fd);
    return;
  }
  close(fd);
}

static void serve(weir_http_t* http, connection_t* connection) {
  if (!connection->is_open) shake_hands(connection);
  if (connection->fd < 0 || !connection->is_open) return;
  if (!is_answered(connection)) receive(http, connection);
  if (connection->fd >= 0 && is_answered(connection)) transmit(connection);
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
    polls[2 + i] = (struct pollfd){.fd = connection->fd, .events = connection->awaited};
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
      serve(http, connection);
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
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);  // TLS writes raise SIGPIPE when the peer is gone
  int error = pthread_create(&http->thread, NULL, run, http);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (error) return WEIR_STATUS(RESOURCE_EXHAUSTED, "cannot start a thread: %s", strerror(error));
  http->is_started = true;
  return NULL;
}

weir_status_t* weir_http_create(const weir_http_options_t* options, weir_http_t** out_http) {
  weir_http_t* http = weir_calloc(1, sizeof(*http));
  if (!http) return weir_out_of_memory();
  http->handler = options->handler;
  http->arg = options->arg;
  http->listener = http->wake = -1;
  for (int i = 0; i < CONNECTION_LIMIT; ++i) http->connections[i].fd = -1;
  weir_rpc_tls_t tls = options->tls;
  tls.is_http1 = true;
  weir_status_t* status =
      tls.is_enabled ? weir_rpc_tls_context_create(&tls, true, &http->tls) : NULL;
  if (!status) status = start(http, options->address);
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
  weir_rpc_tls_context_destroy(http->tls);
  weir_free(http);
}
