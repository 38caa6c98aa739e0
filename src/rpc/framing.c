// framing.c — gRPC's framing of a stream's one message: five bytes of prefix, then the content.
//
// When the prefix is complete, the message's memory is reserved and the stream's window raised to
// its length, so that the peer can send it in one go. While there is no memory, the window stays
// as it is and is not given back: that stops the peer.
#include "base/alloc.h"
#include "rpc/connection.h"

static void consume(weir_rpc_stream_t* stream) {
  weir_rpc_receiver_t* receiver = &stream->receiver;
  nghttp2_session* session = stream->conn->session;
  // Both fail only on streams that are closing, which need no window, and without memory, which
  // the next call into the session reports.
  if (receiver->unconsumed)
    (void)nghttp2_session_consume_stream(session, stream->id, receiver->unconsumed);
  receiver->unconsumed = 0;
}

static void raise_window(weir_rpc_stream_t* stream, size_t size) {
  if (size + WEIR_RPC_PREFIX_SIZE <= WEIR_RPC_STREAM_WINDOW) return;
  int32_t window = (int32_t)WEIR_MIN(size + WEIR_RPC_PREFIX_SIZE, (size_t)INT32_MAX);
  (void)nghttp2_session_set_local_window_size(stream->conn->session, NGHTTP2_FLAG_NONE, stream->id,
                                              window);
}

// A peer that announces much and sends nothing must not keep the memory from others.
static void stall_fired(weir_rpc_timer_t* timer) {
  weir_rpc_stream_t* stream =
      (weir_rpc_stream_t*)((char*)timer - offsetof(weir_rpc_stream_t, receiver.stall));
  weir_rpc_thread_t* thread = stream->conn->thread;
  weir_rpc_loop_t* loop = weir_rpc_thread_loop(thread);
  int64_t timeout_ns = weir_rpc_stall_timeout_ns(loop), now = weir_clock_ns();
  bool is_stalled = now - stream->receiver.progress_ns >= timeout_ns;
  if (is_stalled && weir_rpc_budget_is_short(loop)) {
    stream->conn->role->failed(
        stream, WEIR_STATUS(ABORTED, "the message stopped coming while others wait for memory"));
    return;
  }
  int64_t next = is_stalled ? now + timeout_ns : stream->receiver.progress_ns + timeout_ns;
  // Re-arming a timer that has just fired finds its place in the heap free.
  WEIR_CHECK(weir_rpc_timer_set(thread, timer, next));
}

static weir_status_t* keep_reserved(weir_rpc_stream_t* stream, uint64_t size) {
  weir_rpc_receiver_t* receiver = &stream->receiver;
  weir_rpc_thread_t* thread = stream->conn->thread;
  receiver->reserved = size;
  receiver->progress_ns = weir_clock_ns();
  receiver->stall.fire = stall_fired;
  int64_t timeout_ns = weir_rpc_stall_timeout_ns(weir_rpc_thread_loop(thread));
  if (!weir_rpc_timer_set(thread, &receiver->stall, receiver->progress_ns + timeout_ns))
    return weir_out_of_memory();
  return NULL;
}

static weir_status_t* start_body(weir_rpc_stream_t* stream, size_t size) {
  weir_rpc_receiver_t* receiver = &stream->receiver;
  receiver->buffer = weir_rpc_buffer_create(size);
  if (!receiver->buffer) return weir_out_of_memory();
  receiver->state = size ? WEIR_RPC_RECEIVE_BODY : WEIR_RPC_RECEIVE_COMPLETE;
  raise_window(stream, size);
  return NULL;
}

static size_t announced_size(const weir_rpc_receiver_t* receiver) {
  const uint8_t* p = receiver->prefix;
  return (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
}

static void budget_granted(weir_rpc_waiter_t* waiter) {
  weir_rpc_stream_t* stream =
      (weir_rpc_stream_t*)((char*)waiter - offsetof(weir_rpc_stream_t, receiver.waiter));
  weir_rpc_receiver_t* receiver = &stream->receiver;
  weir_strbuf_t stash = receiver->stash;
  receiver->stash = (weir_strbuf_t){0};
  weir_status_t* status = keep_reserved(stream, waiter->size);
  if (!status) status = weir_strbuf_finish(&stash);
  if (!status) status = start_body(stream, waiter->size);
  if (!status) status = weir_rpc_receiver_take(stream, (const uint8_t*)stash.data, stash.size);
  weir_strbuf_free(&stash);
  consume(stream);
  weir_rpc_conn_flush_later(stream->conn);
  if (!stream->owner) weir_status_destroy(status);
  else if (status) stream->conn->role->failed(stream, status);
}

static weir_status_t* reserve(weir_rpc_stream_t* stream, size_t size) {
  weir_rpc_receiver_t* receiver = &stream->receiver;
  uint64_t most = stream->conn->max_message_size;
  if (size > most)
    return WEIR_STATUS(RESOURCE_EXHAUSTED,
                       "a message of %zu bytes is larger than the %llu bytes that are received "
                       "here (--max-message-size)",
                       size, (unsigned long long)most);
  // What fits into the window a stream has anyway needs no leave: small calls never wait.
  if (size + WEIR_RPC_PREFIX_SIZE <= WEIR_RPC_STREAM_WINDOW) return start_body(stream, size);
  receiver->waiter.granted = budget_granted;
  switch (weir_rpc_budget_reserve(stream->conn->thread, &receiver->waiter, size)) {
    case WEIR_RPC_BUDGET_GRANTED:
      WEIR_TRY(keep_reserved(stream, size));
      return start_body(stream, size);
    case WEIR_RPC_BUDGET_WAITING: receiver->state = WEIR_RPC_RECEIVE_WAITING; return NULL;
    case WEIR_RPC_BUDGET_NEVER: break;
  }
  return WEIR_STATUS(
      RESOURCE_EXHAUSTED,
      "a message of %zu bytes is larger than the %llu bytes this peer may receive", size,
      (unsigned long long)weir_rpc_budget_limit(weir_rpc_thread_loop(stream->conn->thread)));
}

static weir_status_t* take_prefix(weir_rpc_stream_t* stream, const uint8_t** data, size_t* size) {
  weir_rpc_receiver_t* receiver = &stream->receiver;
  size_t taken = WEIR_MIN(*size, WEIR_RPC_PREFIX_SIZE - receiver->prefix_size);
  memcpy(receiver->prefix + receiver->prefix_size, *data, taken);
  receiver->prefix_size += taken;
  *data += taken;
  *size -= taken;
  if (receiver->prefix_size < WEIR_RPC_PREFIX_SIZE) return NULL;
  if (receiver->prefix[0] == 1) {
    return WEIR_STATUS(UNIMPLEMENTED,
                       "the message is compressed; only the identity encoding is supported");
  }
  if (receiver->prefix[0] != 0)
    return WEIR_STATUS(INTERNAL, "malformed gRPC message: flag byte %d", receiver->prefix[0]);
  return reserve(stream, announced_size(receiver));
}

static weir_status_t* take_bytes(weir_rpc_stream_t* stream, const uint8_t* data, size_t size) {
  weir_rpc_receiver_t* receiver = &stream->receiver;
  if (receiver->state == WEIR_RPC_RECEIVE_PREFIX) {
    weir_status_t* status = take_prefix(stream, &data, &size);
    if (status) return status;
  }
  if (size == 0) return NULL;
  if (receiver->state == WEIR_RPC_RECEIVE_WAITING) {
    weir_strbuf_append(&receiver->stash, data, size);  // its failure is seen when memory is granted
    return NULL;
  }
  size_t room =
      receiver->state == WEIR_RPC_RECEIVE_BODY ? receiver->buffer->size - receiver->received : 0;
  if (size > room)
    return WEIR_STATUS(UNIMPLEMENTED, "more than one message; only unary calls are supported");
  uint8_t* target = receiver->buffer->data + receiver->received;
  // The socket was read into the right place already, unless frames came otherwise than expected.
  if (target != data) memmove(target, data, size);
  receiver->received += size;
  if (receiver->reserved) receiver->progress_ns = weir_clock_ns();
  if (receiver->received == receiver->buffer->size) receiver->state = WEIR_RPC_RECEIVE_COMPLETE;
  return NULL;
}

weir_status_t* weir_rpc_receiver_take(weir_rpc_stream_t* stream, const uint8_t* data, size_t size) {
  weir_status_t* status = take_bytes(stream, data, size);
  if (stream->receiver.state != WEIR_RPC_RECEIVE_WAITING) consume(stream);
  return status;
}

static void return_reserved(weir_rpc_stream_t* stream) {
  uint64_t reserved = stream->receiver.reserved;
  stream->receiver.reserved = 0;
  weir_rpc_timer_clear(stream->conn->thread, &stream->receiver.stall);
  weir_rpc_budget_return(weir_rpc_thread_loop(stream->conn->thread), reserved);
}

weir_rpc_buffer_t* weir_rpc_receiver_finish(weir_rpc_stream_t* stream) {
  weir_rpc_receiver_t* receiver = &stream->receiver;
  if (receiver->state != WEIR_RPC_RECEIVE_COMPLETE) return NULL;
  weir_rpc_buffer_t* buffer = receiver->buffer;
  receiver->buffer = NULL;
  return_reserved(stream);
  return buffer;
}

void weir_rpc_receiver_free(weir_rpc_stream_t* stream) {
  weir_rpc_receiver_t* receiver = &stream->receiver;
  weir_rpc_budget_forget(stream->conn->thread, &receiver->waiter);
  return_reserved(stream);
  weir_strbuf_free(&receiver->stash);
  weir_rpc_buffer_release(receiver->buffer);
  receiver->buffer = NULL;
  receiver->state = WEIR_RPC_RECEIVE_COMPLETE;
}

bool weir_rpc_sender_queue(weir_rpc_stream_t* stream, size_t size) {
  weir_rpc_sender_t* sender = &stream->sender;
  while (size > 0) {
    const weir_rpc_segment_t* segment = &sender->message->segments[sender->segment];
    size_t part = WEIR_MIN(size, segment->size - sender->offset);
    const uint8_t* data = (const uint8_t*)segment->data + sender->offset;
    if (!weir_rpc_output_refer(&stream->conn->output, data, part, sender->message)) return false;
    size -= part;
    sender->offset += part;
    if (sender->offset < segment->size) continue;
    sender->offset = 0;
    ++sender->segment;
  }
  return true;
}
