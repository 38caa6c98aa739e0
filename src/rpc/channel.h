// channel.h — The channel's structs, for channel.c (connecting) and request.c (calls).
#ifndef WEIR_RPC_CHANNEL_H_
#define WEIR_RPC_CHANNEL_H_

#include "rpc/connection.h"

typedef enum weir_rpc_channel_state_t {
  WEIR_RPC_CHANNEL_IDLE,        // the next call connects
  WEIR_RPC_CHANNEL_CONNECTING,  // from resolving the name to the peer's SETTINGS
  WEIR_RPC_CHANNEL_READY,
  WEIR_RPC_CHANNEL_BACKOFF,  // an attempt has failed, the next has to wait
} weir_rpc_channel_state_t;

typedef struct weir_rpc_resolver_t weir_rpc_resolver_t;

struct weir_rpc_channel_t {
  // Immutable after create.
  weir_rpc_thread_t* thread;
  weir_rpc_server_t* server;    // in-process; NULL: |address|
  weir_rpc_tls_context_t* tls;  // NULL: plain
  bool is_named;                // |server_name| was given: it stays when the peer moves
  weir_rpc_token_t* token;      // that calls bear; NULL: none
  int keepalive_ms;
  uint64_t max_message_size;
  int64_t connect_timeout_ns, backoff_min_ns, backoff_max_ns;

  // Confined to |thread|.
  weir_rpc_address_t address;
  bool has_address;       // it is known
  char server_name[256];  // for TLS
  char text[300];         // the address, for messages and :authority
  int moves;              // how often |address| has changed
  weir_rpc_channel_state_t state;
  bool is_closing;
  weir_rpc_conn_t* conn;   // CONNECTING (may be NULL), READY
  weir_rpc_conn_t* conns;  // all, those that only finish their streams too
  weir_rpc_target_t targets[WEIR_RPC_MAX_TARGETS];
  int target_count, target_next;
  weir_rpc_timer_t connect_timer, backoff_timer;
  int64_t backoff_ns;         // of the next failure
  weir_status_t* last_error;  // BACKOFF: why
  weir_rpc_request_t* queue;  // waiting for a connection
  weir_rpc_request_t* last_queued;

  weir_mutex_t mu;
  weir_cond_t cond;
  int pending;  // guarded by mu: requests whose done has not returned, and resolvers
};

struct weir_rpc_request_t {
  weir_rpc_task_t task;         // starts it on the io thread
  weir_rpc_task_t cancel_task;  // holds a reference while posted
  weir_ref_t ref;
  atomic_bool is_cancel_posted;
  weir_rpc_thread_t* thread;  // the channel's, which may be gone before the last reference
  weir_rpc_channel_t* channel;

  // Immutable once posted.
  char* path;
  weir_strbuf_t metadata;  // name, 0, value, 0, …
  size_t metadata_count;
  int64_t deadline_ns;  // INT64_MAX: none
  bool wait_for_ready;
  weir_pool_t* pool;
  weir_rpc_done_fn_t done;
  void* self;

  // Confined to the io thread.
  weir_rpc_message_t* message;
  weir_status_t* early;      // why it cannot even start
  weir_rpc_timer_t timer;    // of the deadline
  weir_rpc_request_t* next;  // in the channel's queue
  weir_rpc_request_t* prev;
  bool is_queued;
  weir_rpc_stream_t* stream;
  int attempts;
  bool is_finished;
  int http_status;
  int grpc_status;  // -1: has not come
  weir_strbuf_t grpc_message;
  weir_strbuf_t details;
  weir_status_t* result;  // written before done, wherever it runs
  weir_rpc_buffer_t* response;
};

// ---- channel.c ----
void weir_rpc_channel_start(weir_rpc_channel_t* channel);              // IDLE: connects
void weir_rpc_channel_count(weir_rpc_channel_t* channel, int change);  // of pending

// ---- request.c ----
// Sends, queues or fails |request| as the channel's state has it.
void weir_rpc_request_route(weir_rpc_request_t* request);
void weir_rpc_request_send(weir_rpc_request_t* request);  // READY
void weir_rpc_request_finish(weir_rpc_request_t* request, weir_status_t* take_status,
                             weir_rpc_buffer_t* take_response);
void weir_rpc_request_header(weir_rpc_stream_t* stream, weir_view_t name, weir_view_t value);
void weir_rpc_request_ended(weir_rpc_stream_t* stream);
void weir_rpc_request_failed(weir_rpc_stream_t* stream, weir_status_t* take_status);
void weir_rpc_request_closed(weir_rpc_stream_t* stream, uint32_t error,
                             const weir_status_t* reason);

#endif  // WEIR_RPC_CHANNEL_H_
