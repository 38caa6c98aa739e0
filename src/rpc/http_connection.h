// http_connection.h — The structs behind http.h, and the bytes of a connection.
#ifndef WEIR_RPC_HTTP_CONNECTION_H_
#define WEIR_RPC_HTTP_CONNECTION_H_

#include <stdatomic.h>

#include "base/thread.h"
#include "rpc/http.h"
#include "rpc/loop.h"
#include "rpc/tls.h"

enum {
  WEIR_HTTP_DRAIN_MS = 1000,
  WEIR_HTTP_READS_A_TURN = 16,  // then other connections have their turn
  WEIR_HTTP_ACCEPTS_A_TURN = 64,
  WEIR_HTTP_KEPT_SIZE = 1 << 16,       // larger buffers are freed between requests
  WEIR_HTTP_LEAST_PROGRESS = 1 << 14,  // bytes of a body that buy further patience
};

typedef enum weir_http_call_state_t {
  WEIR_HTTP_CALL_HANDSHAKE,
  WEIR_HTTP_CALL_READING,
  WEIR_HTTP_CALL_BUSY,  // the handler has it
  WEIR_HTTP_CALL_WRITING,
  WEIR_HTTP_CALL_DRAINING,  // all is sent: what still comes is dropped
} weir_http_call_state_t;

// A connection, and the call that it is on. Confined to its io thread, but for what the handler
// reads and sets while it is busy.
struct weir_http_call_t {
  weir_http_t* http;
  weir_http_call_t *next, *prev;  // of the server's list; guarded by its mu
  weir_rpc_thread_t* thread;
  weir_rpc_watch_t watch;
  weir_rpc_timer_t timer;
  weir_rpc_task_t task;  // the start; later, the answer
  int fd;                // -1: closed, while the handler is busy
  weir_rpc_tls_stream_t* tls;
  weir_http_call_state_t state;
  bool is_watched, is_over, closes;
  weir_http_parser_t parser;
  weir_strbuf_t rest;  // came behind the request
  size_t progress;     // bytes since the timer was set
  int code;            // of the answer
  const char* content_type;
  weir_strbuf_t head, body;
  size_t sent;  // bytes of both
};

struct weir_http_t {
  weir_http_handler_fn_t handler;
  void* arg;
  weir_rpc_tls_context_t* tls;  // NULL: plain text
  weir_rpc_loop_t *loop, *own_loop;
  weir_rpc_watch_t listener;
  weir_rpc_timer_t accept_pause;
  bool is_listening;
  weir_status_t* start_status;
  int port, max_connections, patience_ms, idle_ms;
  size_t max_body_size;
  atomic_bool is_stopping;
  weir_mutex_t mu;
  weir_cond_t cond;         // a call has ended
  weir_http_call_t* calls;  // guarded by mu
  int call_count;           // guarded by mu
};

typedef enum weir_http_io_t {
  WEIR_HTTP_IO_OK,
  WEIR_HTTP_IO_BLOCKED,  // the watch is set to what is awaited
  WEIR_HTTP_IO_OVER,     // the peer has ended, or the connection has failed
} weir_http_io_t;

weir_http_io_t weir_http_get(weir_http_call_t* call, char* data, size_t room, size_t* out_size);
weir_http_io_t weir_http_put(weir_http_call_t* call, size_t* out_size);  // of the answer
weir_http_io_t weir_http_shake_hands(weir_http_call_t* call);

#endif  // WEIR_RPC_HTTP_CONNECTION_H_
