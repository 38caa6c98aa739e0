// message.h — Messages as the connection sees them: segments with the length prefix before them,
// and buffers to receive into.
#ifndef WEIR_RPC_MESSAGE_H_
#define WEIR_RPC_MESSAGE_H_

#include "rpc/rpc.h"

#define WEIR_RPC_PREFIX_SIZE 5  // flag, then the length in four bytes, big end first

struct weir_rpc_buffer_t {
  weir_ref_t ref;
  size_t size;
  uint8_t* data;
};
weir_rpc_buffer_t* weir_rpc_buffer_create(size_t size);  // NULL when memory is exhausted

typedef struct weir_rpc_segment_t {
  const void* data;
  size_t size;
  weir_rpc_release_fn_t release;  // may be NULL
  void* arg;
} weir_rpc_segment_t;

struct weir_rpc_message_t {
  weir_ref_t ref;  // bytes queued for a socket hold one, since their stream may close before
  bool is_failed;  // memory was exhausted
  uint8_t prefix[WEIR_RPC_PREFIX_SIZE];
  size_t size;                   // bytes without the prefix
  weir_rpc_segment_t* segments;  // the first is |prefix|
  size_t count, capacity;
  weir_rpc_segment_t own_segments[4];
};
weir_rpc_message_t* weir_rpc_message_retain(weir_rpc_message_t* message);
// Writes the prefix. RESOURCE_EXHAUSTED when an append failed or the message is too large.
WEIR_MUST_USE weir_status_t* weir_rpc_message_seal(weir_rpc_message_t* message);

#endif  // WEIR_RPC_MESSAGE_H_
