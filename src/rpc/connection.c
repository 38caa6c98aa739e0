// connection.c — The life of a connection: connecting, TLS, reading, writing, keepalive, the end.
#include "rpc/connection.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alloc.h"

#define MAX_VECTORS 64
#define READS_A_TURN 16                       // then other connections have their turn
#define GREETING_MS 30000                     // a client has so long to say its settings
#define SURPLUS_NS ((int64_t)5 * 1000000000)  // one that is to be refused has so long to ask
#define MAX_DIRECT ((size_t)16 << 20)         // bytes read into a message at once

typedef enum io_result_t { IO_OK, IO_BLOCKED, IO_END, IO_FAILED } io_result_t;

static void conn_ready(weir_rpc_watch_t* watch, uint32_t events);
static void flush(weir_rpc_deferred_t* deferred);

// ---- is the peer there? ----
// A client must greet in time, and where a token is asked for show it in as much: strangers must
// not keep the places of others. A channel has a timer of its own for that. After it, a peer that
// is silent for the keepalive time is asked to answer. Arms the timer for whatever is next.
static bool watch_peer(weir_rpc_conn_t* conn) {
  int64_t next = conn->last_read_ns + conn->keepalive_ns;
  if (conn->is_ping_sent) next += conn->keepalive_ns;
  if (conn->is_surplus) next = conn->opened_ns + SURPLUS_NS;
  else if (conn->is_server && (!conn->is_ready || conn->is_stranger))
    next = conn->opened_ns + conn->greeting_ns;
  else if (!conn->is_ready || !conn->keepalive_ns) return true;
  return weir_rpc_timer_set(conn->thread, &conn->keepalive, next);
}

static void keepalive_fired(weir_rpc_timer_t* timer) {
  weir_rpc_conn_t* conn = (weir_rpc_conn_t*)((char*)timer - offsetof(weir_rpc_conn_t, keepalive));
  int64_t silence_ns = weir_clock_ns() - conn->last_read_ns;
  if (conn->is_ready && conn->is_stranger) {
    weir_rpc_conn_end(conn);
    weir_rpc_conn_fault(conn, WEIR_STATUS(UNAVAILABLE, "%s has not shown the token", conn->peer));
    return;
  }
  if (!conn->is_ready || conn->is_surplus ||
      (conn->is_ping_sent && silence_ns >= 2 * conn->keepalive_ns)) {
    weir_rpc_conn_close(conn, WEIR_STATUS(UNAVAILABLE, "%s does not answer", conn->peer));
    return;
  }
  if (!conn->is_ping_sent && silence_ns >= conn->keepalive_ns) {
    conn->is_ping_sent = true;
    if (nghttp2_submit_ping(conn->session, NGHTTP2_FLAG_NONE, NULL) != 0)
      weir_rpc_conn_fault(conn, weir_out_of_memory());
    weir_rpc_conn_flush_later(conn);
  }
  if (!watch_peer(conn)) weir_rpc_conn_fault(conn, weir_out_of_memory());
}

void weir_rpc_conn_greeted(weir_rpc_conn_t* conn) {
  weir_rpc_timer_clear(conn->thread, &conn->keepalive);
  if (!watch_peer(conn)) weir_rpc_conn_fault(conn, weir_out_of_memory());
}

// ---- birth ----
static weir_status_t* conn_init(weir_rpc_conn_t* conn, const weir_rpc_conn_options_t* options) {
  struct sockaddr_storage name = {0};
  socklen_t size = sizeof(name);
  if (getpeername(conn->watch.fd, (struct sockaddr*)&name, &size) == 0)
    weir_rpc_socket_text(&name, conn->peer);
  else snprintf(conn->peer, sizeof(conn->peer), "the peer");
  weir_rpc_socket_tune(conn->watch.fd);
  if (options->tls) {
    WEIR_TRY(
        weir_rpc_tls_stream_create(options->tls, conn->watch.fd, options->server_name, &conn->tls));
  }
  uint32_t streams = options->max_concurrent_streams;
  WEIR_TRY(weir_rpc_session_start(conn, streams ? streams : 10000));
  conn->opened_ns = conn->last_read_ns = weir_clock_ns();
  if (!watch_peer(conn)) return weir_out_of_memory();
  weir_status_t* status = weir_rpc_watch_add(conn->thread, &conn->watch);
  if (status) weir_rpc_timer_clear(conn->thread, &conn->keepalive);
  return status;
}

static void conn_free(weir_rpc_conn_t* conn) {
  weir_rpc_tls_stream_destroy(conn->tls);
  close(conn->watch.fd);
  nghttp2_session_del(conn->session);
  weir_rpc_output_free(&conn->output);
  weir_status_destroy(conn->fault);
  weir_free(conn);
}

weir_status_t* weir_rpc_conn_create(const weir_rpc_conn_options_t* options, int take_fd,
                                    weir_rpc_conn_t** out_conn) {
  weir_rpc_conn_t* conn = weir_calloc(1, sizeof(*conn));
  if (!conn) {
    close(take_fd);
    return weir_out_of_memory();
  }
  conn->watch = (weir_rpc_watch_t){.fd = take_fd, .events = EPOLLIN, .ready = conn_ready};
  conn->flush.run = flush;
  conn->thread = options->thread;
  conn->role = options->role;
  conn->owner = options->owner;
  conn->is_server = options->is_server;
  conn->is_surplus = options->is_surplus;
  conn->is_stranger = options->is_stranger;
  conn->greeting_ns =
      (options->greeting_ms ? options->greeting_ms : GREETING_MS) * (int64_t)1000000;
  conn->max_message_size =
      options->max_message_size ? options->max_message_size : WEIR_RPC_MAX_MESSAGE_SIZE;
  conn->state = options->tls ? WEIR_RPC_CONN_HANDSHAKE : WEIR_RPC_CONN_OPEN;
  if (options->is_connecting) {
    conn->state = WEIR_RPC_CONN_CONNECTING;
    conn->watch.events = EPOLLOUT;
  }
  conn->chunk_limit = 16384;  // until the peer's settings are known
  conn->keepalive.fire = keepalive_fired;
  conn->keepalive_ns = options->keepalive_ms * (int64_t)1000000;
  weir_status_t* status = conn_init(conn, options);
  if (status) {
    conn_free(conn);
    return status;
  }
  weir_rpc_conn_flush_later(conn);
  *out_conn = conn;
  return NULL;
}

// ---- end ----
void weir_rpc_conn_close(weir_rpc_conn_t* conn, weir_status_t* take_reason) {
  weir_status_t* reason = take_reason;
  if (conn->fault) {  // the first reason counts
    weir_status_destroy(reason);
    reason = conn->fault;
    conn->fault = NULL;
  }
  weir_rpc_watch_remove(conn->thread, &conn->watch);
  weir_rpc_timer_clear(conn->thread, &conn->keepalive);
  while (conn->streams) {
    weir_rpc_stream_t* stream = conn->streams;
    if (stream->owner) conn->role->closed(stream, NGHTTP2_NO_ERROR, reason);
    weir_rpc_stream_free(stream);
  }
  conn->role->lost(conn, reason);
  weir_rpc_defer_remove(conn->thread, &conn->flush);
  weir_status_destroy(reason);
  conn_free(conn);
}

void weir_rpc_conn_fault(weir_rpc_conn_t* conn, weir_status_t* take_reason) {
  if (conn->fault) weir_status_destroy(take_reason);
  else conn->fault = take_reason;
  weir_rpc_conn_flush_later(conn);
}

void weir_rpc_conn_flush_later(weir_rpc_conn_t* conn) {
  weir_rpc_defer(conn->thread, &conn->flush);
}

void weir_rpc_conn_end(weir_rpc_conn_t* conn) {
  if (conn->is_ending) return;
  conn->is_ending = true;
  int32_t last = nghttp2_session_get_last_proc_stream_id(conn->session);
  if (nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL, 0) != 0)
    weir_rpc_conn_fault(conn, weir_out_of_memory());
  weir_rpc_conn_flush_later(conn);
}

// ---- reading ----
static weir_status_t* lost_status(weir_rpc_conn_t* conn, io_result_t result, const char* verb) {
  if (conn->problem[0])
    return WEIR_STATUS(UNAVAILABLE, "connection to %s ended: %s", conn->peer, conn->problem);
  if (result == IO_END) return WEIR_STATUS(UNAVAILABLE, "connection closed by %s", conn->peer);
  return WEIR_STATUS(UNAVAILABLE, "connection to %s lost: %s: %s", conn->peer, verb,
                     conn->tls ? weir_rpc_tls_error(conn->tls) : strerror(errno));
}

static io_result_t tls_result(weir_rpc_tls_result_t result) {
  switch (result) {
    case WEIR_RPC_TLS_OK: return IO_OK;
    case WEIR_RPC_TLS_WANT_READ:
    case WEIR_RPC_TLS_WANT_WRITE: return IO_BLOCKED;  // without renegotiation: the obvious one
    case WEIR_RPC_TLS_END: return IO_END;
    case WEIR_RPC_TLS_FAILED: break;
  }
  return IO_FAILED;
}

// Reads into the first vector, then the second, as far as the socket has bytes.
static io_result_t conn_read(weir_rpc_conn_t* conn, struct iovec* vectors, int count,
                             size_t* out_size) {
  if (conn->tls) {
    weir_rpc_tls_result_t result =
        weir_rpc_tls_read(conn->tls, vectors[0].iov_base, vectors[0].iov_len, out_size);
    return tls_result(result);
  }
  ssize_t size;
  do {
    size = readv(conn->watch.fd, vectors, count);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? IO_BLOCKED : IO_FAILED;
  *out_size = (size_t)size;
  return size == 0 ? IO_END : IO_OK;
}

// Where the next bytes from the socket belong: into the message of the DATA frame that is being
// read, and only what follows it into scratch memory.
static int read_vectors(weir_rpc_conn_t* conn, struct iovec vectors[2],
                        weir_rpc_buffer_t** out_direct) {
  int count = 0;
  weir_rpc_stream_t* stream = conn->data_stream;
  if (stream && stream->owner && stream->receiver.state == WEIR_RPC_RECEIVE_BODY &&
      conn->data_left > 0) {
    weir_rpc_receiver_t* receiver = &stream->receiver;
    size_t room = WEIR_MIN(receiver->buffer->size - receiver->received, conn->data_left);
    vectors[count].iov_base = receiver->buffer->data + receiver->received;
    vectors[count++].iov_len = WEIR_MIN(room, MAX_DIRECT);
    // Held, since parsing the bytes may end the stream they were read for.
    *out_direct = weir_rpc_buffer_retain(receiver->buffer);
  }
  vectors[count].iov_base = weir_rpc_thread_spill(conn->thread);
  vectors[count++].iov_len = WEIR_RPC_SPILL_SIZE;
  return count;
}

static io_result_t read_once(weir_rpc_conn_t* conn, bool* out_is_drained,
                             weir_status_t** out_status) {
  struct iovec vectors[2];
  weir_rpc_buffer_t* direct = NULL;
  int count = read_vectors(conn, vectors, &direct);
  size_t room =
      conn->tls ? vectors[0].iov_len : vectors[0].iov_len + (count > 1 ? vectors[1].iov_len : 0);
  size_t size = 0;
  io_result_t result = conn_read(conn, vectors, count, &size);
  // A short read from a socket is its end; TLS returns one record at a time.
  *out_is_drained = !conn->tls && size < room;
  for (int i = 0; result == IO_OK && i < count && size > 0 && !*out_status; ++i) {
    size_t part = WEIR_MIN(size, vectors[i].iov_len);
    *out_status = weir_rpc_session_feed(conn, vectors[i].iov_base, part);
    size -= part;
  }
  weir_rpc_buffer_release(direct);
  return result;
}

static void read_socket(weir_rpc_conn_t* conn) {
  weir_status_t* status = NULL;
  bool is_drained = false;
  // epoll knows nothing of bytes that TLS has taken from the socket, so these are read to the end.
  for (int i = 0; !is_drained && !conn->fault &&
                  (i < READS_A_TURN || (conn->tls && weir_rpc_tls_has_pending(conn->tls)));
       ++i) {
    io_result_t result = read_once(conn, &is_drained, &status);
    if (result == IO_BLOCKED) break;
    if (result != IO_OK) status = lost_status(conn, result, "read");
    if (status) {
      weir_rpc_conn_close(conn, status);
      return;
    }
  }
  if (conn->keepalive_ns) {
    conn->last_read_ns = weir_clock_ns();
    conn->is_ping_sent = false;
  }
  weir_rpc_conn_flush_later(conn);
}

// ---- writing ----
static io_result_t conn_write(weir_rpc_conn_t* conn, size_t* out_size) {
  struct iovec vectors[MAX_VECTORS];
  int count = weir_rpc_output_vectors(&conn->output, vectors, conn->tls ? 1 : MAX_VECTORS);
  if (conn->tls) {
    return tls_result(
        weir_rpc_tls_write(conn->tls, vectors[0].iov_base, vectors[0].iov_len, out_size));
  }
  struct msghdr message = {.msg_iov = vectors, .msg_iovlen = (size_t)count};
  ssize_t size;
  do {
    size = sendmsg(conn->watch.fd, &message, MSG_NOSIGNAL);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? IO_BLOCKED : IO_FAILED;
  *out_size = (size_t)size;
  return IO_OK;
}

// Writes what there is. Returns why the connection must be closed, or NULL.
static weir_status_t* write_socket(weir_rpc_conn_t* conn) {
  for (;;) {
    if (conn->output.queued == 0) WEIR_TRY(weir_rpc_session_fill(conn));
    if (conn->output.queued == 0) {
      weir_rpc_watch_change(conn->thread, &conn->watch, EPOLLIN);
      return NULL;
    }
    size_t size = 0;
    io_result_t result = conn_write(conn, &size);
    if (result == IO_BLOCKED) {
      weir_rpc_watch_change(conn->thread, &conn->watch, EPOLLIN | EPOLLOUT);
      return NULL;
    }
    if (result != IO_OK) return lost_status(conn, result, "write");
    weir_rpc_output_advance(&conn->output, size);
  }
}

static void flush(weir_rpc_deferred_t* deferred) {
  weir_rpc_conn_t* conn = (weir_rpc_conn_t*)((char*)deferred - offsetof(weir_rpc_conn_t, flush));
  weir_status_t* status = NULL;
  if (conn->state == WEIR_RPC_CONN_OPEN) status = write_socket(conn);
  if (!status && conn->fault) {
    status = conn->fault;
    conn->fault = NULL;
  }
  bool is_done = conn->state == WEIR_RPC_CONN_OPEN && conn->output.queued == 0 &&
                 !nghttp2_session_want_read(conn->session) &&
                 !nghttp2_session_want_write(conn->session);
  if (!status && is_done) status = lost_status(conn, IO_END, "");
  if (!status && conn->is_ending && conn->state != WEIR_RPC_CONN_OPEN)
    status = WEIR_STATUS(UNAVAILABLE, "shutting down");
  if (status) weir_rpc_conn_close(conn, status);
}

// ---- events ----
static weir_status_t* finish_connect(weir_rpc_conn_t* conn) {
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(conn->watch.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error) return WEIR_STATUS(UNAVAILABLE, "cannot connect: %s", strerror(error));
  struct sockaddr_storage name = {0};
  size = sizeof(name);
  if (getpeername(conn->watch.fd, (struct sockaddr*)&name, &size) == 0)
    weir_rpc_socket_text(&name, conn->peer);
  conn->state = conn->tls ? WEIR_RPC_CONN_HANDSHAKE : WEIR_RPC_CONN_OPEN;
  return NULL;
}

static weir_status_t* shake_hands(weir_rpc_conn_t* conn) {
  switch (weir_rpc_tls_handshake(conn->tls)) {
    case WEIR_RPC_TLS_OK:
      conn->state = WEIR_RPC_CONN_OPEN;
      weir_rpc_watch_change(conn->thread, &conn->watch, EPOLLIN);
      return NULL;
    case WEIR_RPC_TLS_WANT_READ:
      weir_rpc_watch_change(conn->thread, &conn->watch, EPOLLIN);
      return NULL;
    case WEIR_RPC_TLS_WANT_WRITE:
      weir_rpc_watch_change(conn->thread, &conn->watch, EPOLLIN | EPOLLOUT);
      return NULL;
    case WEIR_RPC_TLS_END:
    case WEIR_RPC_TLS_FAILED: break;
  }
  return WEIR_STATUS(UNAVAILABLE, "TLS handshake with %s failed: %s", conn->peer,
                     weir_rpc_tls_error(conn->tls));
}

static void conn_ready(weir_rpc_watch_t* watch, uint32_t events) {
  weir_rpc_conn_t* conn = (weir_rpc_conn_t*)((char*)watch - offsetof(weir_rpc_conn_t, watch));
  weir_status_t* status = NULL;
  if (conn->state == WEIR_RPC_CONN_CONNECTING) {
    status = finish_connect(conn);
    events |= EPOLLOUT;
    if (!status) weir_rpc_watch_change(conn->thread, &conn->watch, EPOLLIN);
  }
  if (!status && conn->state == WEIR_RPC_CONN_HANDSHAKE) status = shake_hands(conn);
  if (status) {
    weir_rpc_conn_close(conn, status);
    return;
  }
  if (conn->state != WEIR_RPC_CONN_OPEN) return;
  if (events & EPOLLOUT) weir_rpc_conn_flush_later(conn);
  // Errors and hang-ups show in the read. TLS may hold bytes that came with the handshake.
  if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) || conn->tls) read_socket(conn);
  else weir_rpc_conn_flush_later(conn);
}
