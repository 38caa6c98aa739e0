// tensor_message.h — Tensors in RPC messages, without copying the large ones.
#ifndef WEIR_CLUSTER_TASK_TENSOR_MESSAGE_H_
#define WEIR_CLUSTER_TASK_TENSOR_MESSAGE_H_

#include "rpc/rpc.h"
#include "tensor/tensor.h"

// A message under construction: |head| collects fields, large tensors are sent from their own
// memory. Zero-initialise; thread-confined. Failures are sticky.
typedef struct weir_message_builder_t {
  weir_strbuf_t head;  // fields since the last large tensor; append with weir_wire_put_*
  weir_rpc_message_t* message;
  weir_status_t* status;
} weir_message_builder_t;

// Appends field |field|, a TensorProto of |tensor|.
void weir_message_put_tensor(weir_message_builder_t* builder, uint32_t field,
                             weir_tensor_t* tensor);
// Appends field |field|, a NamedTensorProto.
void weir_message_put_named_tensor(weir_message_builder_t* builder, uint32_t field,
                                   weir_view_t name, weir_tensor_t* tensor);
// The whole as a message, or the first error. Nothing is left in |builder|.
WEIR_MUST_USE weir_status_t* weir_message_finish(weir_message_builder_t* builder,
                                                 weir_rpc_message_t** out_message);
void weir_message_abandon(weir_message_builder_t* builder);
// Bytes the message has so far.
size_t weir_message_size(const weir_message_builder_t* builder);

// Reads a TensorProto that lies within |buffer|. The tensor refers to the buffer's memory where its
// elements are large and aligned, and copies them otherwise.
WEIR_MUST_USE weir_status_t* weir_message_get_tensor(weir_rpc_buffer_t* buffer, weir_view_t proto,
                                                     weir_tensor_t** out_tensor);

#endif  // WEIR_CLUSTER_TASK_TENSOR_MESSAGE_H_
