// rpc.h — Unary gRPC calls over HTTP/2: loops, servers, channels, messages.
//
// A weir_rpc_loop_t owns one or two epoll threads ("io threads"). Servers and channels are created
// on a loop; each connection belongs to one io thread, which alone touches it. The functions here
// are thread-safe unless they say otherwise; they hand their work to the owning io thread.
//
// Callbacks (handlers, done, on_cancel) run on an io thread unless a pool is asked for. An io
// thread serves every connection of its loop: what takes more than some 20 µs, or blocks, belongs
// on a pool. No lock of this folder is held while a callback runs.
//
// Order of destruction: channels and servers, then their loop. destroy and shutdown wait for io
// threads and must not be called on one (nor inside a callback).
#ifndef WEIR_RPC_RPC_H_
#define WEIR_RPC_RPC_H_

#include "base/base.h"
#include "base/cancel.h"
#include "base/string.h"
#include "base/thread.h"
#include "rpc/token.h"

typedef struct weir_rpc_loop_t weir_rpc_loop_t;
typedef struct weir_rpc_server_t weir_rpc_server_t;
typedef struct weir_rpc_channel_t weir_rpc_channel_t;
typedef struct weir_rpc_call_t weir_rpc_call_t;        // a call that a server received
typedef struct weir_rpc_request_t weir_rpc_request_t;  // a call that a channel made
typedef struct weir_rpc_message_t weir_rpc_message_t;  // bytes to send
typedef struct weir_rpc_buffer_t weir_rpc_buffer_t;    // bytes received

// The length prefix of gRPC has 32 bits. Larger messages must be split by the protocol above.
#define WEIR_RPC_MAX_MESSAGE_SIZE ((size_t)UINT32_MAX)

// ---- buffer: one received message, contiguous, aligned to 64 bytes. Reference-counted and
// immutable once handed out, so that a tensor may alias its memory for as long as it likes. ----
weir_view_t weir_rpc_buffer_view(const weir_rpc_buffer_t* buffer);  // empty for NULL
weir_rpc_buffer_t* weir_rpc_buffer_retain(weir_rpc_buffer_t* buffer);
void weir_rpc_buffer_release(weir_rpc_buffer_t* buffer);

// ---- message: a list of segments, sent one after another as one gRPC message without being
// copied together. Thread-compatible; single owner until a call takes it. Failed allocations are
// sticky: the call that takes the message then ends with RESOURCE_EXHAUSTED. ----
typedef void (*weir_rpc_release_fn_t)(void* arg);

// Never fails visibly: NULL stands for a message whose creation ran out of memory, and every
// function accepts it.
weir_rpc_message_t* weir_rpc_message_create(void);
void weir_rpc_message_destroy(weir_rpc_message_t* message);  // releases all segments
// Copies |size| bytes.
void weir_rpc_message_append(weir_rpc_message_t* message, const void* data, size_t size);
// Moves the content out of |buffer|, which is left empty. A failed buffer makes the message failed.
void weir_rpc_message_append_strbuf(weir_rpc_message_t* message, weir_strbuf_t* buffer);
// Refers to |data|, which must stay as it is until |release|(|arg|) is called: exactly once, on any
// thread, after the bytes were written or the message was dropped (at once when memory is
// exhausted). |release| may be NULL for static memory.
void weir_rpc_message_append_ref(weir_rpc_message_t* message, const void* data, size_t size,
                                 weir_rpc_release_fn_t release, void* arg);
size_t weir_rpc_message_size(const weir_rpc_message_t* message);  // bytes; 0 for NULL

// ---- loop ----
typedef struct weir_rpc_loop_options_t {
  int thread_count;        // 0: one
  uint64_t memory_budget;  // bytes of messages being received at a time; 0: as much as the
                           // machine has. A message
                           // that does not fit waits (its sender sees a closed window); one that
                           // never will is refused with RESOURCE_EXHAUSTED. A message counts from
                           // its length prefix until it is complete and handed over.
  int stall_timeout_ms;    // while others wait for memory, a message of which no byte came for so
                           // long is given up; 0: a minute
  int spin_us;             // busy-polls so long before sleeping; 0: not at all
} weir_rpc_loop_options_t;

// |options| may be NULL. Starts the threads.
WEIR_MUST_USE weir_status_t* weir_rpc_loop_create(const weir_rpc_loop_options_t* options,
                                                  weir_rpc_loop_t** out_loop);
void weir_rpc_loop_destroy(weir_rpc_loop_t* loop);  // all its servers and channels are gone

// ---- TLS. All files are PEM. Zero-initialised: plain text. ----
typedef struct weir_rpc_tls_t {
  bool is_enabled;
  const char* cert_file;  // own certificate chain. Servers: required. Clients: for mutual TLS
  const char* key_file;   // key of cert_file
  const char* ca_file;    // whom to trust. Clients: NULL means the system's. Servers: see is_mutual
  bool is_mutual;         // servers: refuse clients without a certificate signed by ca_file
  bool is_http1;          // servers: of HTTP/1.1, not of HTTP/2; clients need not ask for it
  const char* server_name;  // clients: the name to expect; NULL: the host of the address
} weir_rpc_tls_t;

// ---- server. Thread-safe. ----
// Called once for each call whose request is complete. Must sooner or later, on any thread, call
// exactly one of weir_rpc_call_respond and weir_rpc_call_fail, also after a cancellation.
typedef void (*weir_rpc_handler_fn_t)(void* self, weir_rpc_call_t* call);

typedef struct weir_rpc_method_t {
  const char* path;  // "/tensorflow.MasterService/RunStep"; NULL ends a table
  weir_rpc_handler_fn_t handler;
  bool is_inline;  // fast: run it on the io thread. Otherwise on options.pool, if there is one
  bool is_step;    // counts against options.max_steps
} weir_rpc_method_t;

// A call that has ended, for statistics.
typedef struct weir_rpc_record_t {
  int method;           // its place in the table of methods, health checking last; -1: unknown
  weir_code_t code;     // of the answer
  int64_t duration_ns;  // from the complete request to the handler's answer
  size_t request_size, response_size;  // bytes of the messages
} weir_rpc_record_t;
// Called on the thread that answers, before the answer goes out. Must be quick and not block.
typedef void (*weir_rpc_observer_fn_t)(void* arg, const weir_rpc_record_t* record);

// Called on an io thread when a connection has ended, after all its calls were cancelled. Must be
// quick and not block.
typedef void (*weir_rpc_disconnect_fn_t)(void* self, uint64_t connection);

typedef struct weir_rpc_server_options_t {
  const char* address;  // "host:port", "[v6]:port", ":port" (loopback), "unix:/path"; port 0: any
                        // free one; host 0.0.0.0 or [::]: all interfaces. NULL: none, in-process
                        // channels only
  weir_rpc_tls_t tls;
  weir_rpc_token_t* token;  // not NULL: calls that do not bear one of it are UNAUTHENTICATED,
                            // health checking apart, and connections without one that does are
                            // closed in time. Borrowed until the server is destroyed
  int greeting_ms;          // so long clients have for their settings and the token; 0: 30 s
  weir_pool_t* pool;        // borrowed, for methods that are not inline; NULL: all on io threads
  void* self;               // given to every handler
  int keepalive_ms;  // HTTP/2 PING after so long without a frame, twice that closes; 0: off. TCP's
                     // own keepalive is always on
  uint32_t max_concurrent_calls;  // of one connection; 0: 10,000
  // Of all connections together; beyond, calls are RESOURCE_EXHAUSTED.
  int max_connections;              // 0: 10,000, or half of the files that the process may open
  int max_calls;                    // whose handler has not answered; 0: 100,000
  int max_steps;                    // such calls of methods that are steps; 0: 10,000
  uint64_t max_message_size;        // bytes of a request; 0: what gRPC has room for
  weir_rpc_observer_fn_t observer;  // optional
  void* observer_arg;
  weir_rpc_disconnect_fn_t disconnected;  // optional; called with |self|
} weir_rpc_server_options_t;

// Binds and serves. |methods| is copied, the paths too. grpc.health.v1.Health/Check is built in:
// service "" and the services of |methods| are SERVING until shutdown starts. Calls to unknown
// paths end with UNIMPLEMENTED, compressed requests too.
WEIR_MUST_USE weir_status_t* weir_rpc_server_create(weir_rpc_loop_t* loop,
                                                    const weir_rpc_server_options_t* options,
                                                    const weir_rpc_method_t* methods,
                                                    weir_rpc_server_t** out_server);
int weir_rpc_server_port(const weir_rpc_server_t* server);  // bound TCP port; 0 for Unix sockets
// What clients connect to: "127.0.0.1:43211", "unix:/path"; "" without an address. Borrowed.
const char* weir_rpc_server_address(const weir_rpc_server_t* server);
// Open connections and calls whose handler has not answered, now.
void weir_rpc_server_load(weir_rpc_server_t* server, int* out_connections, int* out_calls);
// Accepts no more connections and no more calls on the open ones (GOAWAY), lets running calls end
// for up to |grace_ms|, then cancels them and closes. Idempotent.
void weir_rpc_server_shutdown(weir_rpc_server_t* server, int grace_ms);
// Shuts down without grace if that has not happened, and waits until handlers have answered all
// their calls.
void weir_rpc_server_destroy(weir_rpc_server_t* server);

// ---- a call on the server. Belongs to the handler until it responds; not to be touched after.
// The getters' results live as long. ----
weir_rpc_buffer_t* weir_rpc_call_request(weir_rpc_call_t* call);  // borrowed; retain to keep
const char* weir_rpc_call_path(const weir_rpc_call_t* call);
const char* weir_rpc_call_peer(const weir_rpc_call_t* call);  // "127.0.0.1:51234", "unix"
// The number of the connection it came by: no other connection to the server has it, before or
// after.
uint64_t weir_rpc_call_connection(const weir_rpc_call_t* call);
int64_t weir_rpc_call_deadline(const weir_rpc_call_t* call);  // of weir_clock_ns; INT64_MAX: none
// The value of request header |name| (lower case), as sent (-bin values in base64). False: absent.
bool weir_rpc_call_metadata(const weir_rpc_call_t* call, const char* name, weir_view_t* out_value);
// Ends the call with a message.
void weir_rpc_call_respond(weir_rpc_call_t* call, weir_rpc_message_t* take_message);
// Ends the call with an error; its details (base/details.h) go into grpc-status-details-bin.
// Messages of more than 2,048 bytes are cut. A NULL status responds with an empty message.
void weir_rpc_call_fail(weir_rpc_call_t* call, weir_status_t* take_status);
// Has |fn|(|arg|) called, at most once, when the client cancels, the deadline passes, the
// connection is lost or the server shuts down; at once, on this thread, when that has happened
// already. One callback a call; NULL takes it back. After respond, fail, or a replacement returned,
// the old one neither runs nor will run (unless they were called from within it).
void weir_rpc_call_on_cancel(weir_rpc_call_t* call, void (*fn)(void* arg), void* arg);
bool weir_rpc_call_is_cancelled(weir_rpc_call_t* call);

// ---- channel: calls to one peer, over one connection at a time. Thread-safe. ----
typedef struct weir_rpc_channel_options_t {
  const char* address;  // as for servers; "grpc://" and "grpc+tls://" (enables TLS) may precede.
                        // NULL: not known until weir_rpc_channel_move
  weir_rpc_server_t* server;  // not NULL: in-process, a socket pair to |server|; no address
  weir_rpc_tls_t tls;
  weir_rpc_token_t* token;    // sent with every call; retained; NULL: none
  uint64_t max_message_size;  // bytes of an answer; 0: what gRPC has room for
  int keepalive_ms;        // as for servers. gRPC's own servers close on more than one in 5 minutes
  int connect_timeout_ms;  // of one attempt; 0: 20 s
  int backoff_min_ms;      // wait after the first failed attempt, growing by 1.6; 0: 20 ms
  int backoff_max_ms;      // 0: 5 s
} weir_rpc_channel_options_t;

// Connects at the first call. Fails on a malformed address or unreadable TLS files only.
WEIR_MUST_USE weir_status_t* weir_rpc_channel_create(weir_rpc_loop_t* loop,
                                                     const weir_rpc_channel_options_t* options,
                                                     weir_rpc_channel_t** out_channel);
// The peer is at another |address|, to which the next call connects, as those do that wait for a
// connection; what the one before has not answered ends with UNAVAILABLE. INVALID_ARGUMENT: it is
// malformed, or asks for TLS where the channel was made without.
WEIR_MUST_USE weir_status_t* weir_rpc_channel_move(weir_rpc_channel_t* channel,
                                                   const char* address);
// Fails what is pending with CANCELLED and waits until every done has returned.
void weir_rpc_channel_destroy(weir_rpc_channel_t* channel);

typedef struct weir_rpc_metadata_t {
  const char* name;  // lower case; NULL ends a list
  const char* value;
} weir_rpc_metadata_t;

typedef struct weir_rpc_call_options_t {
  int64_t deadline_ns;    // of weir_clock_ns; 0: none. Sent to the server as grpc-timeout
  bool wait_for_ready;    // waits while the peer cannot be reached, up to the deadline. Otherwise
                          // UNAVAILABLE as soon as a connection attempt fails or has just failed
  weir_pool_t* pool;      // done runs there; NULL: on an io thread
  weir_cancel_t* cancel;  // weir_rpc_channel_call: ends the call with CANCELLED when it fires; may
                          // be NULL. Others have weir_rpc_request_cancel
  const weir_rpc_metadata_t* metadata;  // copied
} weir_rpc_call_options_t;

// Called exactly once, never inside the call that made the request (but when there is no memory to
// note the request at all). |take_status| NULL:
// |take_message| is the response, never NULL. Otherwise |take_message| is NULL. The peer's code and
// message are passed on unchanged, its grpc-status-details-bin as the status's details.
// UNAVAILABLE: the peer is gone; it may or may not have run the call.
typedef void (*weir_rpc_done_fn_t)(void* self, weir_status_t* take_status,
                                   weir_rpc_buffer_t* take_message);

// |options| may be NULL. |out_request| may be NULL; otherwise the caller releases it.
void weir_rpc_channel_call_async(weir_rpc_channel_t* channel, const char* path,
                                 weir_rpc_message_t* take_message,
                                 const weir_rpc_call_options_t* options, weir_rpc_done_fn_t done,
                                 void* self, weir_rpc_request_t** out_request);
// Ends the request with CANCELLED, unless it has ended: done is (still) called, later, elsewhere.
void weir_rpc_request_cancel(weir_rpc_request_t* request);
void weir_rpc_request_release(weir_rpc_request_t* request);

// Calls and waits. Not on an io thread. |out_message|: one reference for the caller.
WEIR_MUST_USE weir_status_t* weir_rpc_channel_call(weir_rpc_channel_t* channel, const char* path,
                                                   weir_rpc_message_t* take_message,
                                                   const weir_rpc_call_options_t* options,
                                                   weir_rpc_buffer_t** out_message);

#endif  // WEIR_RPC_RPC_H_
