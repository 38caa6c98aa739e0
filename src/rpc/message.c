// message.c — Messages to send (lists of segments) and received ones (pooled buffers).
#include "rpc/message.h"

#include "base/alloc.h"

#define BUFFER_ALIGNMENT ((size_t)64)
// The header of a buffer has a cache line of its own, so that the content keeps the alignment.
#define BUFFER_HEADER BUFFER_ALIGNMENT

// ---- received ----
weir_rpc_buffer_t* weir_rpc_buffer_create(size_t size) {
  _Static_assert(sizeof(weir_rpc_buffer_t) <= BUFFER_HEADER, "the header has to fit");
  // Empty messages are common (responses of control calls), hence one byte at least.
  size_t total = BUFFER_HEADER + WEIR_MAX(size, (size_t)1);
  weir_allocator_t* allocator = weir_host_allocator();
  weir_rpc_buffer_t* buffer = allocator->vtable->alloc(allocator, total, BUFFER_ALIGNMENT);
  if (!buffer) return NULL;
  weir_ref_init(&buffer->ref);
  buffer->size = size;
  buffer->data = (uint8_t*)buffer + BUFFER_HEADER;
  return buffer;
}

weir_view_t weir_rpc_buffer_view(const weir_rpc_buffer_t* buffer) {
  return buffer ? weir_view(buffer->data, buffer->size) : weir_view(NULL, 0);
}

weir_rpc_buffer_t* weir_rpc_buffer_retain(weir_rpc_buffer_t* buffer) {
  if (buffer) weir_ref_inc(&buffer->ref, 1);
  return buffer;
}

void weir_rpc_buffer_release(weir_rpc_buffer_t* buffer) {
  if (!buffer || !weir_ref_dec(&buffer->ref)) return;
  weir_allocator_t* allocator = weir_host_allocator();
  size_t total = BUFFER_HEADER + WEIR_MAX(buffer->size, (size_t)1);
  allocator->vtable->free(allocator, buffer, total);
}

// ---- to send ----
weir_rpc_message_t* weir_rpc_message_create(void) {
  weir_rpc_message_t* message = weir_calloc(1, sizeof(*message));
  if (!message) return NULL;
  weir_ref_init(&message->ref);
  message->segments = message->own_segments;
  message->capacity = WEIR_COUNT_OF(message->own_segments);
  message->segments[0] =
      (weir_rpc_segment_t){.data = message->prefix, .size = WEIR_RPC_PREFIX_SIZE};
  message->count = 1;
  return message;
}

weir_rpc_message_t* weir_rpc_message_retain(weir_rpc_message_t* message) {
  if (message) weir_ref_inc(&message->ref, 1);
  return message;
}

void weir_rpc_message_destroy(weir_rpc_message_t* message) {
  if (!message || !weir_ref_dec(&message->ref)) return;
  for (size_t i = 0; i < message->count; ++i) {
    const weir_rpc_segment_t* segment = &message->segments[i];
    if (segment->release) segment->release(segment->arg);
  }
  if (message->segments != message->own_segments) weir_free(message->segments);
  weir_free(message);
}

static bool grow_segments(weir_rpc_message_t* message) {
  if (message->count < message->capacity) return true;
  size_t capacity = message->capacity * 2;
  weir_rpc_segment_t* segments = weir_alloc_array(capacity, sizeof(*segments));
  if (!segments) return false;
  memcpy(segments, message->segments, message->count * sizeof(*segments));
  if (message->segments != message->own_segments) weir_free(message->segments);
  message->segments = segments;
  message->capacity = capacity;
  return true;
}

void weir_rpc_message_append_ref(weir_rpc_message_t* message, const void* data, size_t size,
                                 weir_rpc_release_fn_t release, void* arg) {
  bool is_kept = message && !message->is_failed && size > 0 && grow_segments(message);
  if (is_kept) {
    message->segments[message->count++] =
        (weir_rpc_segment_t){.data = data, .size = size, .release = release, .arg = arg};
    message->size += size;
    return;
  }
  if (message && size > 0) message->is_failed = true;
  if (release) release(arg);
}

void weir_rpc_message_append(weir_rpc_message_t* message, const void* data, size_t size) {
  if (!message || !size) return;
  char* copy = weir_malloc(size);
  if (!copy) {
    message->is_failed = true;
    return;
  }
  memcpy(copy, data, size);
  weir_rpc_message_append_ref(message, copy, size, weir_free, copy);
}

void weir_rpc_message_append_strbuf(weir_rpc_message_t* message, weir_strbuf_t* buffer) {
  weir_strbuf_t taken = *buffer;
  *buffer = (weir_strbuf_t){0};
  if (taken.failed && message) message->is_failed = true;
  weir_rpc_message_append_ref(message, taken.data, taken.size, weir_free, taken.data);
}

size_t weir_rpc_message_size(const weir_rpc_message_t* message) {
  return message ? message->size : 0;
}

weir_status_t* weir_rpc_message_seal(weir_rpc_message_t* message) {
  if (!message || message->is_failed) return weir_out_of_memory();
  if (message->size > WEIR_RPC_MAX_MESSAGE_SIZE) {
    return WEIR_STATUS(RESOURCE_EXHAUSTED,
                       "a message of %zu bytes is too large: gRPC allows %zu bytes", message->size,
                       WEIR_RPC_MAX_MESSAGE_SIZE);
  }
  message->prefix[0] = 0;  // not compressed
  for (int i = 0; i < 4; ++i) message->prefix[1 + i] = (uint8_t)(message->size >> (24 - 8 * i));
  return NULL;
}
