// server.h — The server's structs, for server.c (connections), call.c (calls) and health.c.
#ifndef WEIR_RPC_SERVER_H_
#define WEIR_RPC_SERVER_H_

#include "base/map.h"
#include "rpc/connection.h"

typedef struct weir_rpc_entry_t {
  char* path;
  weir_rpc_handler_fn_t handler;
  void* self;
  bool is_inline;
  bool is_step;
} weir_rpc_entry_t;

// A server's connections on one io thread; thread-confined to it.
typedef struct weir_rpc_server_part_t {
  weir_rpc_server_t* server;
  weir_rpc_thread_t* thread;
  weir_rpc_conn_t* conns;
} weir_rpc_server_part_t;

struct weir_rpc_server_t {
  // Immutable after create.
  weir_rpc_loop_t* loop;
  weir_rpc_tls_context_t* tls;  // NULL: plain
  weir_rpc_token_t* token;      // that calls must bear; NULL: none
  weir_pool_t* pool;
  int keepalive_ms;
  int greeting_ms;
  uint32_t max_concurrent_calls;
  int max_connections, max_calls, max_steps;
  uint64_t max_message_size;
  weir_rpc_observer_fn_t observer;  // NULL: none
  void* observer_arg;
  weir_rpc_disconnect_fn_t disconnected;  // NULL: none
  void* self;                             // given to |disconnected|
  weir_rpc_entry_t* entries;
  size_t entry_count;
  weir_map_t by_path;   // of |entries|
  char unix_path[108];  // to be removed at the end; "" for TCP
  char address[WEIR_RPC_NAME_SIZE];
  int port;

  atomic_bool is_stopping;  // shutdown has started
  atomic_uint next_part;    // the one that gets the next connection
  atomic_ullong last_conn;  // number of the newest connection

  // Confined to the first io thread.
  weir_rpc_watch_t listener;  // fd -1: none
  weir_rpc_timer_t accept_pause;

  weir_mutex_t mu;
  weir_cond_t cond;
  int conn_count;     // guarded by mu
  int surplus_count;  // guarded by mu: of them, those that are refused
  int call_count;     // guarded by mu: calls whose handler has not answered
  int step_count;     // guarded by mu: of them, steps

  int part_count;
  weir_rpc_server_part_t parts[];
};

struct weir_rpc_call_t {
  weir_rpc_task_t task;  // brings the answer to the io thread
  weir_rpc_server_t* server;
  weir_rpc_thread_t* thread;

  // Confined to the io thread.
  weir_rpc_stream_t* stream;  // NULL once it is answered or gone
  weir_rpc_timer_t timer;     // of the deadline
  bool is_dispatched;         // the handler has it: freed when the answer comes
  bool has_headers;
  bool is_post;
  bool is_grpc;  // by its content-type
  bool has_bad_timeout;

  // Immutable once dispatched.
  const weir_rpc_entry_t* entry;
  char* path;
  weir_strbuf_t metadata;  // name, 0, value, 0, …
  int64_t deadline_ns;
  int64_t started_ns;  // the request was complete; 0 without an observer
  weir_rpc_buffer_t* request;
  uint64_t connection;
  char peer[WEIR_RPC_NAME_SIZE];

  weir_mutex_t mu;
  weir_cond_t cond;
  bool is_cancelled;         // guarded by mu
  bool is_running;           // guarded by mu: |cancel_fn| runs on |runner|
  pthread_t runner;          // guarded by mu
  void (*cancel_fn)(void*);  // guarded by mu
  void* cancel_arg;          // guarded by mu

  // The answer, written by the handler before the task is posted.
  weir_rpc_message_t* response;
  weir_status_t* status;
};

extern const weir_rpc_role_t weir_rpc_server_role;  // owner of connections: a part; streams: a call
// call.c's share of the role; the rest of it is server.c's.
bool weir_rpc_call_opened(weir_rpc_stream_t* stream);
void weir_rpc_call_header(weir_rpc_stream_t* stream, weir_view_t name, weir_view_t value);
void weir_rpc_call_headers_ended(weir_rpc_stream_t* stream);
void weir_rpc_call_ended(weir_rpc_stream_t* stream);
void weir_rpc_call_failed(weir_rpc_stream_t* stream, weir_status_t* take_status);
void weir_rpc_call_closed(weir_rpc_stream_t* stream, uint32_t error, const weir_status_t* reason);

// answer.c: what is sent back. Both let go of the stream's owner.
void weir_rpc_answer_message(weir_rpc_stream_t* stream, weir_rpc_message_t* take_message);
void weir_rpc_answer_status(weir_rpc_stream_t* stream, const weir_status_t* status);
void weir_rpc_answer_http(weir_rpc_stream_t* stream, int http_status);

// Takes over a connected, non-blocking socket, on any thread.
void weir_rpc_server_adopt(weir_rpc_server_t* server, int take_fd);

// health.c: grpc.health.v1.Health/Check; |self| is the server.
#define WEIR_RPC_HEALTH_PATH "/grpc.health.v1.Health/Check"
void weir_rpc_health_check(void* self, weir_rpc_call_t* call);

#endif  // WEIR_RPC_SERVER_H_
