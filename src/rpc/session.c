// session.c — nghttp2's side of a connection: callbacks, settings, streams.
//
// nghttp2 knows HTTP/2's frames, header compression and flow control; it does no input or output.
// Bytes that arrive are fed to it and come back as callbacks here; what it wants to send is fetched
// from it while the output queue has room. Messages may be gigabytes, so their bytes must not pass
// through it: on the way out, DATA frames are made without copying (NO_COPY) and the queue refers
// to the tensors' own memory; on the way in, connection.c reads the body of a DATA frame straight
// into the message's buffer and tells nghttp2 of the same bytes afterwards. begin_frame notes where
// that body belongs; a padded frame takes the slow way.
//
// - Flow control is by message. A stream's window is small until the length of its message is known
//   and memory for it is reserved; then it is raised to the length (framing.c). What a connection
//   as a whole may have under way is not limited: its window is given back at once, or a message
//   that waits for memory would hold up all others.
// - Frames to peers that announce the largest frame size, as Weir does, are large; others get
//   smaller ones, whose buffers they fit.
// - A connection cannot be closed inside a callback, where nghttp2 is still at work on it. What is
//   wrong is noted (weir_rpc_conn_fault), and connection.c closes when control is back there.
// - A stream outlives its owner: once it is reset, |owner| is NULL, what still comes is dropped,
//   and stream_closed frees it.
// - A callback can report but one kind of failure to nghttp2, and there is but one: no memory.
#include <stdio.h>

#include "base/alloc.h"
#include "rpc/connection.h"

#define OWN_CHUNK ((size_t)4 << 20)      // largest DATA frame to a peer that takes any size
#define FOREIGN_CHUNK ((size_t)1 << 20)  // to others, whose buffers are smaller
#define ANY_FRAME_SIZE 16777215          // the largest SETTINGS_MAX_FRAME_SIZE there is

// ---- memory of nghttp2: the process allocator's, so that its failures can be tested ----
static void* mem_malloc(size_t size, void* arg) {
  (void)arg;
  return weir_malloc(size);
}
static void mem_free(void* pointer, void* arg) {
  (void)arg;
  weir_free(pointer);
}
static void* mem_calloc(size_t count, size_t size, void* arg) {
  (void)arg;
  return weir_calloc(count, size);
}
static void* mem_realloc(void* pointer, size_t size, void* arg) {
  (void)arg;
  return weir_realloc_array(pointer, size, 1);
}

// ---- streams ----
weir_rpc_stream_t* weir_rpc_stream_create(weir_rpc_conn_t* conn, int32_t id, void* owner) {
  weir_rpc_stream_t* stream = weir_calloc(1, sizeof(*stream));
  if (!stream) return NULL;
  stream->conn = conn;
  stream->id = id;
  stream->owner = owner;
  stream->next = conn->streams;
  if (conn->streams) conn->streams->prev = stream;
  conn->streams = stream;
  return stream;
}

void weir_rpc_stream_free(weir_rpc_stream_t* stream) {
  weir_rpc_conn_t* conn = stream->conn;
  if (conn->data_stream == stream) conn->data_stream = NULL;
  if (stream->next) stream->next->prev = stream->prev;
  if (stream->prev) stream->prev->next = stream->next;
  else conn->streams = stream->next;
  weir_rpc_receiver_free(stream);
  weir_rpc_message_destroy(stream->sender.message);
  weir_free(stream);
}

void weir_rpc_stream_reset(weir_rpc_stream_t* stream, uint32_t error) {
  stream->owner = NULL;
  weir_rpc_receiver_free(stream);
  int rc = nghttp2_submit_rst_stream(stream->conn->session, NGHTTP2_FLAG_NONE, stream->id, error);
  if (rc != 0) weir_rpc_conn_fault(stream->conn, weir_out_of_memory());
  weir_rpc_conn_flush_later(stream->conn);
}

// ---- sending ----
static int submit_ok_trailer(nghttp2_session* session, int32_t id) {
  static uint8_t name[] = "grpc-status", value[] = "0";
  nghttp2_nv trailer = {name, value, sizeof(name) - 1, sizeof(value) - 1,
                        NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
  return nghttp2_submit_trailer(session, id, &trailer, 1);
}

static ssize_t read_message(nghttp2_session* session, int32_t id, uint8_t* data, size_t size,
                            uint32_t* flags, nghttp2_data_source* source, void* arg) {
  (void)data;
  (void)arg;
  weir_rpc_stream_t* stream = source->ptr;
  size_t part = (size_t)WEIR_MIN((uint64_t)size, stream->sender.unscheduled);
  stream->sender.unscheduled -= part;
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (stream->sender.unscheduled > 0) return (ssize_t)part;
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (stream->conn->is_server) {
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    if (submit_ok_trailer(session, id) != 0) return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
  return (ssize_t)part;
}

nghttp2_data_provider weir_rpc_stream_provider(weir_rpc_stream_t* stream,
                                               weir_rpc_message_t* take_message) {
  stream->sender.message = take_message;
  stream->sender.unscheduled = (uint64_t)take_message->size + WEIR_RPC_PREFIX_SIZE;
  return (nghttp2_data_provider){.source.ptr = stream, .read_callback = read_message};
}

static int send_data(nghttp2_session* session, nghttp2_frame* frame, const uint8_t* header,
                     size_t size, nghttp2_data_source* source, void* arg) {
  (void)session;
  (void)frame;
  weir_rpc_conn_t* conn = arg;
  if (conn->output.queued >= WEIR_RPC_OUTPUT_LIMIT) return NGHTTP2_ERR_WOULDBLOCK;
  bool is_queued =
      weir_rpc_output_copy(&conn->output, header, 9) && weir_rpc_sender_queue(source->ptr, size);
  return is_queued ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static ssize_t chunk_size(nghttp2_session* session, uint8_t type, int32_t id,
                          int32_t session_window, int32_t stream_window, uint32_t max_frame_size,
                          void* arg) {
  (void)session;
  (void)type;
  (void)id;
  (void)session_window;  // nghttp2 itself cuts down to both windows
  (void)stream_window;
  weir_rpc_conn_t* conn = arg;
  return (ssize_t)WEIR_MIN(conn->chunk_limit, (size_t)max_frame_size);
}

weir_status_t* weir_rpc_session_fill(weir_rpc_conn_t* conn) {
  while (conn->output.queued < WEIR_RPC_OUTPUT_LIMIT) {
    const uint8_t* data = NULL;
    ssize_t size = nghttp2_session_mem_send(conn->session, &data);
    if (size == NGHTTP2_ERR_NOMEM || size == NGHTTP2_ERR_CALLBACK_FAILURE)
      return weir_out_of_memory();
    if (size < 0) return WEIR_STATUS(INTERNAL, "HTTP/2: %s", nghttp2_strerror((int)size));
    if (size == 0) break;
    if (!weir_rpc_output_copy(&conn->output, data, (size_t)size)) return weir_out_of_memory();
  }
  return NULL;
}

// ---- receiving ----
static weir_rpc_stream_t* find_stream(nghttp2_session* session, int32_t id) {
  return nghttp2_session_get_stream_user_data(session, id);
}

static int begin_headers(nghttp2_session* session, const nghttp2_frame* frame, void* arg) {
  weir_rpc_conn_t* conn = arg;
  if (!conn->is_server || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  weir_rpc_stream_t* stream = weir_rpc_stream_create(conn, frame->hd.stream_id, NULL);
  if (!stream) return NGHTTP2_ERR_CALLBACK_FAILURE;
  nghttp2_session_set_stream_user_data(session, stream->id, stream);
  if (!conn->role->opened(stream)) weir_rpc_stream_reset(stream, NGHTTP2_REFUSED_STREAM);
  return 0;
}

// Counts a header of |size| bytes. Whether there were too many.
static bool count_header(weir_rpc_stream_t* stream, size_t size) {
  stream->header_bytes += size + 32;
  bool is_too_much = stream->header_bytes > WEIR_RPC_MAX_HEADER_BYTES;
  weir_rpc_flood_header_came(stream, is_too_much);
  return is_too_much;
}

static int header(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name,
                  size_t name_size, const uint8_t* value, size_t value_size, uint8_t flags,
                  void* arg) {
  (void)flags;
  weir_rpc_conn_t* conn = arg;
  weir_rpc_stream_t* stream = find_stream(session, frame->hd.stream_id);
  if (!stream) return 0;
  bool is_too_much = count_header(stream, name_size + value_size);
  if (!stream->owner) return 0;
  if (is_too_much) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  conn->role->header(stream, weir_view(name, name_size), weir_view(value, value_size));
  return 0;
}

// A header with characters that HTTP does not know. nghttp2 passes over it; it counts like others.
static int invalid_header(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name,
                          size_t name_size, const uint8_t* value, size_t value_size, uint8_t flags,
                          void* arg) {
  (void)name, (void)value, (void)flags, (void)arg;
  weir_rpc_stream_t* stream = find_stream(session, frame->hd.stream_id);
  if (!stream) return 0;
  bool is_too_much = count_header(stream, name_size + value_size);
  return is_too_much && stream->owner ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
}

static int begin_frame(nghttp2_session* session, const nghttp2_frame_hd* hd, void* arg) {
  weir_rpc_conn_t* conn = arg;
  conn->data_stream = NULL;
  if (hd->type != NGHTTP2_DATA || (hd->flags & NGHTTP2_FLAG_PADDED)) return 0;
  conn->data_stream = find_stream(session, hd->stream_id);
  conn->data_left = hd->length;
  return 0;
}

static int data_chunk(nghttp2_session* session, uint8_t flags, int32_t id, const uint8_t* data,
                      size_t size, void* arg) {
  (void)flags;
  weir_rpc_conn_t* conn = arg;
  conn->data_left -= WEIR_MIN(size, conn->data_left);
  if (nghttp2_session_consume_connection(session, size) != 0) return NGHTTP2_ERR_CALLBACK_FAILURE;
  weir_rpc_stream_t* stream = find_stream(session, id);
  if (!stream || !stream->owner) return 0;
  stream->receiver.unconsumed += size;
  weir_status_t* status = weir_rpc_receiver_take(stream, data, size);
  if (status) conn->role->failed(stream, status);
  return 0;
}

static void settings_came(weir_rpc_conn_t* conn) {
  uint32_t size =
      nghttp2_session_get_remote_settings(conn->session, NGHTTP2_SETTINGS_MAX_FRAME_SIZE);
  conn->chunk_limit = size >= ANY_FRAME_SIZE ? OWN_CHUNK : WEIR_MIN((size_t)size, FOREIGN_CHUNK);
  if (conn->is_ready) return;
  conn->is_ready = true;
  weir_rpc_conn_greeted(conn);
  conn->role->ready(conn);
}

static int frame_came(nghttp2_session* session, const nghttp2_frame* frame, void* arg) {
  weir_rpc_conn_t* conn = arg;
  if (frame->hd.type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK)) {
    settings_came(conn);
  } else if (frame->hd.type == NGHTTP2_GOAWAY && !conn->is_going_away) {
    conn->is_going_away = true;
    conn->role->going_away(conn);
  }
  if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
  weir_rpc_stream_t* stream = find_stream(session, frame->hd.stream_id);
  if (!stream) return 0;
  stream->is_remote_ended = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  if (stream->owner && frame->hd.type == NGHTTP2_HEADERS) conn->role->headers_ended(stream);
  if (stream->owner && stream->is_remote_ended) conn->role->ended(stream);
  return 0;
}

// ---- what became of frames and streams ----
static int frame_sent(nghttp2_session* session, const nghttp2_frame* frame, void* arg) {
  weir_rpc_conn_t* conn = arg;
  weir_rpc_flood_frame_sent(conn, frame);
  if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
  if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) return 0;
  weir_rpc_stream_t* stream = find_stream(session, frame->hd.stream_id);
  if (!stream) return 0;
  stream->is_local_ended = true;
  // A server that has answered does not want the rest of the request.
  if (conn->is_server && !stream->is_remote_ended)
    return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR);
  return 0;
}

static int stream_closed(nghttp2_session* session, int32_t id, uint32_t error, void* arg) {
  weir_rpc_conn_t* conn = arg;
  weir_rpc_stream_t* stream = find_stream(session, id);
  if (!stream) return 0;
  if (stream->owner) conn->role->closed(stream, error, NULL);
  weir_rpc_stream_free(stream);
  return 0;
}

// A request that was never sent has no stream in nghttp2 that could close.
static int frame_not_sent(nghttp2_session* session, const nghttp2_frame* frame, int error,
                          void* arg) {
  (void)error;
  weir_rpc_conn_t* conn = arg;
  if (conn->is_server || frame->hd.type != NGHTTP2_HEADERS) return 0;
  if (nghttp2_session_find_stream(session, frame->hd.stream_id)) return 0;
  weir_rpc_stream_t* stream = conn->streams;
  while (stream && stream->id != frame->hd.stream_id) stream = stream->next;
  if (!stream) return 0;
  if (stream->owner) conn->role->closed(stream, NGHTTP2_REFUSED_STREAM, NULL);
  weir_rpc_stream_free(stream);
  return 0;
}

static int problem(nghttp2_session* session, int code, const char* text, size_t size, void* arg) {
  (void)session;
  (void)code;
  weir_rpc_conn_t* conn = arg;
  snprintf(conn->problem, sizeof(conn->problem), "%.*s", (int)WEIR_MIN(size, (size_t)128), text);
  return 0;
}

weir_status_t* weir_rpc_session_feed(weir_rpc_conn_t* conn, const uint8_t* data, size_t size) {
  weir_rpc_flood_look(conn, data, size);
  ssize_t taken = nghttp2_session_mem_recv(conn->session, data, size);
  if (taken == (ssize_t)size) return NULL;
  if (taken == NGHTTP2_ERR_NOMEM || taken == NGHTTP2_ERR_CALLBACK_FAILURE)
    return weir_out_of_memory();
  return WEIR_STATUS(UNAVAILABLE, "%s does not speak HTTP/2: %s", conn->peer,
                     taken < 0 ? nghttp2_strerror((int)taken) : "bytes left over");
}

// ---- start ----
static nghttp2_session_callbacks* create_callbacks(void) {
  nghttp2_session_callbacks* callbacks = NULL;
  if (nghttp2_session_callbacks_new(&callbacks) != 0) return NULL;
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, header);
  nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, invalid_header);
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, begin_frame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data_chunk);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame_came);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, frame_sent);
  nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, frame_not_sent);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_closed);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
  nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, chunk_size);
  nghttp2_session_callbacks_set_error_callback2(callbacks, problem);
  return callbacks;
}

static nghttp2_option* create_option(void) {
  nghttp2_option* option = NULL;
  if (nghttp2_option_new(&option) != 0) return NULL;
  nghttp2_option_set_no_auto_window_update(option, 1);
  // Else a server keeps as many ended streams as there may be open ones, for priorities we ignore.
  nghttp2_option_set_no_closed_streams(option, 1);
  // Cancelled steps are resets, many at a time; a flood of them is still bounded.
  nghttp2_option_set_stream_reset_rate_limit(option, 100000, 10000);
  return option;
}

static int submit_settings(weir_rpc_conn_t* conn, uint32_t max_concurrent_streams) {
  nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WEIR_RPC_STREAM_WINDOW},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, ANY_FRAME_SIZE},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)WEIR_RPC_MAX_HEADER_BYTES},
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
  if (conn->is_server) {
    settings[3].settings_id = NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS;
    settings[3].value = max_concurrent_streams;
  }
  int rc =
      nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings, WEIR_COUNT_OF(settings));
  if (rc != 0) return rc;
  // Memory is bounded by stream, so the connection's own window is as large as it can be.
  return nghttp2_session_set_local_window_size(conn->session, NGHTTP2_FLAG_NONE, 0, INT32_MAX);
}

weir_status_t* weir_rpc_session_start(weir_rpc_conn_t* conn, uint32_t max_concurrent_streams) {
  nghttp2_mem mem = {NULL, mem_malloc, mem_free, mem_calloc, mem_realloc};
  nghttp2_session_callbacks* callbacks = create_callbacks();
  nghttp2_option* option = create_option();
  int rc = NGHTTP2_ERR_NOMEM;
  weir_rpc_flood_init(conn);
  if (callbacks && option) {
    rc = conn->is_server
             ? nghttp2_session_server_new3(&conn->session, callbacks, conn, option, &mem)
             : nghttp2_session_client_new3(&conn->session, callbacks, conn, option, &mem);
  }
  if (rc == 0) rc = submit_settings(conn, max_concurrent_streams);
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_option_del(option);
  return rc == 0 ? NULL : weir_out_of_memory();
}
