// collective_message.h — A member of a collective as a message: what it wants, and its tensor. It
// is Weir's own: TensorFlow's tasks exchange parts of buffers by RecvBuf instead, by the rules of
// its rings and trees.
#ifndef WEIR_CLUSTER_TASK_COLLECTIVE_MESSAGE_H_
#define WEIR_CLUSTER_TASK_COLLECTIVE_MESSAGE_H_

#include "cluster/task/tensor_message.h"
#include "ops/collective/hub.h"

#define WEIR_JOIN_COLLECTIVE_PATH "/weir.WorkerService/JoinCollective"

// What was read of a request. Free it by weir_collective_request_free, also after a failure.
typedef struct weir_collective_request_t {
  weir_collective_t what;
  weir_tensor_t* tensor;  // NULL: none
  char* device;
  int64_t dims[WEIR_MAX_RANK];
} weir_collective_request_t;

// |tensor| may be NULL.
WEIR_MUST_USE weir_status_t* weir_collective_write(const weir_collective_t* what,
                                                   weir_tensor_t* tensor,
                                                   weir_rpc_message_t** out_message);
// INVALID_ARGUMENT for anything that no task of Weir says.
WEIR_MUST_USE weir_status_t* weir_collective_read(weir_rpc_buffer_t* buffer,
                                                  weir_collective_request_t* request);
void weir_collective_request_free(weir_collective_request_t* request);

// The answer: the tensor, or none.
WEIR_MUST_USE weir_status_t* weir_collective_write_answer(weir_tensor_t* tensor,
                                                          weir_rpc_message_t** out_message);
WEIR_MUST_USE weir_status_t* weir_collective_read_answer(weir_rpc_buffer_t* buffer,
                                                         weir_tensor_t** out_tensor);

#endif  // WEIR_CLUSTER_TASK_COLLECTIVE_MESSAGE_H_
