// http_bytes.c — Bytes of an HTTP connection, in plain text or over TLS.
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "rpc/http_connection.h"

static weir_http_io_t blocked(weir_http_call_t* call, uint32_t events) {
  weir_rpc_watch_change(call->thread, &call->watch, events);
  return WEIR_HTTP_IO_BLOCKED;
}

// Handshakes and new keys make TLS wait for the other direction, too.
static weir_http_io_t tls_io(weir_http_call_t* call, weir_rpc_tls_result_t result) {
  if (result == WEIR_RPC_TLS_WANT_READ) return blocked(call, EPOLLIN);
  if (result == WEIR_RPC_TLS_WANT_WRITE) return blocked(call, EPOLLOUT);
  return result == WEIR_RPC_TLS_OK ? WEIR_HTTP_IO_OK : WEIR_HTTP_IO_OVER;
}

static weir_http_io_t socket_io(weir_http_call_t* call, ssize_t size, uint32_t events,
                                size_t* out_size) {
  if (size < 0 && errno == EAGAIN) return blocked(call, events);
  if (size <= 0) return WEIR_HTTP_IO_OVER;
  *out_size = (size_t)size;
  return WEIR_HTTP_IO_OK;
}

weir_http_io_t weir_http_shake_hands(weir_http_call_t* call) {
  return tls_io(call, weir_rpc_tls_handshake(call->tls));
}

weir_http_io_t weir_http_get(weir_http_call_t* call, char* data, size_t room, size_t* out_size) {
  if (call->tls) return tls_io(call, weir_rpc_tls_read(call->tls, data, room, out_size));
  ssize_t size;
  do {
    size = recv(call->fd, data, room, 0);
  } while (size < 0 && errno == EINTR);
  return socket_io(call, size, EPOLLIN, out_size);
}

weir_http_io_t weir_http_put(weir_http_call_t* call, size_t* out_size) {
  size_t in_head = WEIR_MIN(call->sent, call->head.size), in_body = call->sent - in_head;
  struct iovec parts[2] = {
      {call->head.data + in_head, call->head.size - in_head},
      {call->body.data ? call->body.data + in_body : NULL, call->body.size - in_body}};
  int first = parts[0].iov_len == 0;
  if (call->tls) {
    return tls_io(
        call, weir_rpc_tls_write(call->tls, parts[first].iov_base, parts[first].iov_len, out_size));
  }
  struct msghdr message = {.msg_iov = parts + first, .msg_iovlen = (size_t)(2 - first)};
  ssize_t size;
  do {
    size = sendmsg(call->fd, &message, MSG_NOSIGNAL);
  } while (size < 0 && errno == EINTR);
  return socket_io(call, size, EPOLLOUT, out_size);
}
