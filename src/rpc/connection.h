// connection.h — One HTTP/2 connection, of a server or a client, and its streams.
//
// A connection and all below it is thread-confined to its io thread. It knows HTTP/2 and gRPC's
// framing of one message each way; what a stream means (a call to serve, a request made) is the
// role's business.
//
// Files: connection.c (life, reading, writing), session.c (nghttp2's callbacks), framing.c (the
// message of a stream), output.c (bytes on their way to the socket), flood.c (peers that waste
// time).
#ifndef WEIR_RPC_CONNECTION_H_
#define WEIR_RPC_CONNECTION_H_

#include <nghttp2/nghttp2.h>
#include <sys/uio.h>

#include "rpc/address.h"
#include "rpc/loop.h"
#include "rpc/message.h"
#include "rpc/tls.h"

// Bytes of a stream that the peer may send before we know how long its message is. They are kept
// aside while the message waits for memory.
#define WEIR_RPC_STREAM_WINDOW (256 << 10)
#define WEIR_RPC_MAX_HEADER_BYTES ((size_t)64 << 10)  // of one stream

typedef struct weir_rpc_conn_t weir_rpc_conn_t;
typedef struct weir_rpc_stream_t weir_rpc_stream_t;

// ---- the message that a stream receives ----
typedef enum weir_rpc_receive_state_t {
  WEIR_RPC_RECEIVE_PREFIX,    // the five bytes before a message are not complete
  WEIR_RPC_RECEIVE_WAITING,   // for memory; what comes goes to |stash|
  WEIR_RPC_RECEIVE_BODY,      // into |buffer|
  WEIR_RPC_RECEIVE_COMPLETE,  // nothing more may come
} weir_rpc_receive_state_t;

typedef struct weir_rpc_receiver_t {
  weir_rpc_receive_state_t state;
  uint8_t prefix[WEIR_RPC_PREFIX_SIZE];
  size_t prefix_size;         // bytes of it that have come
  weir_rpc_buffer_t* buffer;  // BODY, COMPLETE
  size_t received;            // bytes in |buffer|
  uint64_t reserved;          // bytes of the memory budget that this message holds
  weir_strbuf_t stash;        // WAITING
  size_t unconsumed;          // bytes whose window has not been given back
  weir_rpc_waiter_t waiter;
  weir_rpc_timer_t stall;  // armed while memory is reserved
  int64_t progress_ns;     // when the last bytes came
} weir_rpc_receiver_t;

// ---- the message that a stream sends ----
typedef struct weir_rpc_sender_t {
  weir_rpc_message_t* message;  // NULL: nothing to send
  uint64_t unscheduled;         // bytes that no DATA frame was made for yet, prefix included
  size_t segment, offset;       // of the first byte that is not in the output queue yet
} weir_rpc_sender_t;

struct weir_rpc_stream_t {
  weir_rpc_conn_t* conn;
  weir_rpc_stream_t* next;  // in the connection's list
  weir_rpc_stream_t* prev;
  int32_t id;
  void* owner;  // the role's; NULL once the role is done with the stream
  size_t header_bytes;
  int header_count;
  bool is_remote_ended;  // the peer said END_STREAM
  bool is_local_ended;   // we did
  weir_rpc_receiver_t receiver;
  weir_rpc_sender_t sender;
};

// What server and channel do about events of their connections. All required.
typedef struct weir_rpc_role_t {
  // The peer opened |stream|, or for clients: never. False refuses it.
  bool (*opened)(weir_rpc_stream_t* stream);
  // A header or trailer of a stream with an owner.
  void (*header)(weir_rpc_stream_t* stream, weir_view_t name, weir_view_t value);
  // A block of headers is complete.
  void (*headers_ended)(weir_rpc_stream_t* stream);
  // The peer has sent all; the message, if there was one, is in |stream->receiver|.
  void (*ended)(weir_rpc_stream_t* stream);
  // What the peer sent is no gRPC message, or too large. The role ends the stream.
  void (*failed)(weir_rpc_stream_t* stream, weir_status_t* take_status);
  // The stream is gone; |error| is HTTP/2's code. Only called while |stream->owner| is set.
  // |reason| is set when the whole connection is lost.
  void (*closed)(weir_rpc_stream_t* stream, uint32_t error, const weir_status_t* reason);
  // The peer's SETTINGS have come: calls can be made.
  void (*ready)(weir_rpc_conn_t* conn);
  // The peer will take no new streams (GOAWAY).
  void (*going_away)(weir_rpc_conn_t* conn);
  // The connection has ended and is freed after this. |reason| is borrowed, never NULL.
  void (*lost)(weir_rpc_conn_t* conn, const weir_status_t* reason);
} weir_rpc_role_t;

// ---- bytes on their way to the socket ----
typedef struct weir_rpc_piece_t {
  const uint8_t* data;  // of |message|; NULL: at |offset| of the queue's own bytes
  size_t offset;
  size_t size;
  weir_rpc_message_t* owner;  // holds a reference; NULL for the queue's own bytes
} weir_rpc_piece_t;

// Filled until it holds enough, then written out whole before it is filled again.
typedef struct weir_rpc_output_t {
  weir_strbuf_t bytes;  // frame headers and whatever is too small to be worth a reference
  weir_rpc_piece_t* pieces;
  size_t count, capacity;
  size_t first;   // first piece that is not written
  size_t queued;  // bytes not written
} weir_rpc_output_t;
#define WEIR_RPC_OUTPUT_LIMIT ((size_t)4 << 20)

bool weir_rpc_output_copy(weir_rpc_output_t* output, const void* data, size_t size);
bool weir_rpc_output_refer(weir_rpc_output_t* output, const void* data, size_t size,
                           weir_rpc_message_t* message);
int weir_rpc_output_vectors(const weir_rpc_output_t* output, struct iovec* out_vectors, int count);
void weir_rpc_output_advance(weir_rpc_output_t* output, size_t size);
void weir_rpc_output_free(weir_rpc_output_t* output);

// ---- peers that waste time (flood.c) ----
// Frames and headers that cost the peer next to nothing use up patience. Who uses it up faster than
// time and work give it back is told to calm down (GOAWAY) and loses the connection.
typedef struct weir_rpc_flood_t {
  int64_t patience;
  int64_t since_ns;  // time up to which it was given back
  uint8_t head[9];   // of the frame that is coming
  size_t head_size;
  size_t payload_left;  // of the frame before it, or of the client's preface
} weir_rpc_flood_t;

void weir_rpc_flood_init(weir_rpc_conn_t* conn);
// Looks at the frames that come, before nghttp2 does: it is silent about those that it ignores.
void weir_rpc_flood_look(weir_rpc_conn_t* conn, const uint8_t* data, size_t size);
void weir_rpc_flood_frame_sent(weir_rpc_conn_t* conn, const nghttp2_frame* frame);
// A header of |stream|; |is_too_much|: the rest of the block is not looked at.
void weir_rpc_flood_header_came(weir_rpc_stream_t* stream, bool is_too_much);

// ---- connection ----
typedef enum weir_rpc_conn_state_t {
  WEIR_RPC_CONN_CONNECTING,  // of the socket
  WEIR_RPC_CONN_HANDSHAKE,   // of TLS
  WEIR_RPC_CONN_OPEN,
} weir_rpc_conn_state_t;

struct weir_rpc_conn_t {
  weir_rpc_watch_t watch;
  weir_rpc_deferred_t flush;
  weir_rpc_thread_t* thread;
  const weir_rpc_role_t* role;
  void* owner;            // the role's: server part or channel
  uint64_t number;        // the server's, to tell its connections apart; 0 for channels
  weir_rpc_conn_t* next;  // in the owner's list
  weir_rpc_conn_t* prev;
  bool is_server;
  bool is_surplus;   // more than a server may have: it lasts until it is told so
  bool is_stranger;  // to a server that asks for a token: no call has borne it
  int64_t greeting_ns;
  uint64_t max_message_size;
  weir_rpc_conn_state_t state;
  nghttp2_session* session;
  weir_rpc_tls_stream_t* tls;  // NULL: plain
  weir_rpc_stream_t* streams;
  weir_rpc_output_t output;
  size_t chunk_limit;              // largest DATA frame to send
  weir_rpc_stream_t* data_stream;  // whose DATA frame is being read; NULL: none, or padded
  size_t data_left;                // bytes of it
  bool is_ready;                   // SETTINGS have come
  bool is_going_away;              // GOAWAY came
  bool is_ending;                  // ours: no new streams, close when the last is done
  weir_status_t* fault;            // why it must be closed at the end of the turn
  weir_rpc_flood_t flood;
  weir_rpc_timer_t keepalive;  // until the peer's settings have come: of a server's patience
  int64_t opened_ns;
  int64_t keepalive_ns;  // 0: off
  int64_t last_read_ns;
  bool is_ping_sent;
  char peer[WEIR_RPC_NAME_SIZE];
  char problem[160];  // nghttp2's words about the last protocol error
};

typedef struct weir_rpc_conn_options_t {
  weir_rpc_thread_t* thread;
  const weir_rpc_role_t* role;
  void* owner;
  bool is_server;
  bool is_connecting;           // the socket's connect is under way
  weir_rpc_tls_context_t* tls;  // NULL: plain
  const char* server_name;      // for TLS clients
  int keepalive_ms;
  uint32_t max_concurrent_streams;  // servers
  uint64_t max_message_size;        // of those that come; 0: what gRPC has room for
  bool is_surplus;                  // servers
  bool is_stranger;                 // servers: until it has shown who it is
  int greeting_ms;                  // servers: how long it may take for that; 0: 30 s
} weir_rpc_conn_options_t;

// Takes |take_fd| in any case. Events start with the next turn of the thread.
WEIR_MUST_USE weir_status_t* weir_rpc_conn_create(const weir_rpc_conn_options_t* options,
                                                  int take_fd, weir_rpc_conn_t** out_conn);
// Closes at once: streams are closed, then lost is called. Not within nghttp2's callbacks and thus
// not within functions of the role; see weir_rpc_conn_fault.
void weir_rpc_conn_close(weir_rpc_conn_t* conn, weir_status_t* take_reason);
// Closes at the end of the turn; the first reason counts.
void weir_rpc_conn_fault(weir_rpc_conn_t* conn, weir_status_t* take_reason);
// Has what was submitted written at the end of the turn.
void weir_rpc_conn_flush_later(weir_rpc_conn_t* conn);
// Tells that the peer's settings have come.
void weir_rpc_conn_greeted(weir_rpc_conn_t* conn);
// Sends GOAWAY; the connection closes when its streams are done.
void weir_rpc_conn_end(weir_rpc_conn_t* conn);

// ---- session.c ----
WEIR_MUST_USE weir_status_t* weir_rpc_session_start(weir_rpc_conn_t* conn,
                                                    uint32_t max_concurrent_streams);
weir_rpc_stream_t* weir_rpc_stream_create(weir_rpc_conn_t* conn, int32_t id, void* owner);
void weir_rpc_stream_free(weir_rpc_stream_t* stream);
// Sends RST_STREAM and lets go of the stream's owner.
void weir_rpc_stream_reset(weir_rpc_stream_t* stream, uint32_t error);
nghttp2_data_provider weir_rpc_stream_provider(weir_rpc_stream_t* stream,
                                               weir_rpc_message_t* take_message);
// Puts what fits of nghttp2's frames into the output queue.
WEIR_MUST_USE weir_status_t* weir_rpc_session_fill(weir_rpc_conn_t* conn);
WEIR_MUST_USE weir_status_t* weir_rpc_session_feed(weir_rpc_conn_t* conn, const uint8_t* data,
                                                   size_t size);

// ---- framing.c ----
// Takes bytes of a DATA frame. The error says what the peer did wrong.
WEIR_MUST_USE weir_status_t* weir_rpc_receiver_take(weir_rpc_stream_t* stream, const uint8_t* data,
                                                    size_t size);
// Moves the complete message out; NULL when none has come or it is incomplete (see state).
weir_rpc_buffer_t* weir_rpc_receiver_finish(weir_rpc_stream_t* stream);
void weir_rpc_receiver_free(weir_rpc_stream_t* stream);
// Queues |size| bytes of the stream's message. False when memory is exhausted.
bool weir_rpc_sender_queue(weir_rpc_stream_t* stream, size_t size);

#endif  // WEIR_RPC_CONNECTION_H_
