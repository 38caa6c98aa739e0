// ucx.h — Large tensors between tasks by UCX: TCP here, RDMA where there is hardware, shared memory
// where UCX_TLS asks for it. A transport (transport.h), for tasks whose user asks for it.
//
//   1. A receiver's offer names its task, its instance (a random number of this process), and a
//      token: random bytes for this one request.
//   2. A producer that has an endpoint to that instance sends the tensor there as an active message
//      with the token, type and shape before the elements. UCX announces it first; the receiver
//      looks for the token, makes a tensor of the type and shape and has the elements come there.
//      A message that nobody waits for is refused, and none of its elements are sent.
//   3. Once UCX says that all is sent, the producer answers the RPC. If UCX cannot send it, or the
//      receiver refused it, the answer has the bytes.
// A producer that has no endpoint yet asks the task that the offer names for UCX's address, at the
// address that the cluster's description has, and sends this one tensor as bytes. It never takes an
// address from a request: UCX reads it without bounds, so it must come from a task of the cluster.
//
// All of UCX runs on one thread of the transport, which sleeps while nothing happens. Messages by
// tags would be the simpler choice, but a send that its receiver does not want any more cannot be
// cancelled there.
//
// Whoever gives up waiting is told at once; the tensor stays until UCX is through with it, or the
// transport ends. UCX notices who has died, but not where it goes by shared memory alone: there
// what was on its way to a process that was killed stays until the end.
//
// Thread-safe. |mu| is one of the last locks: nothing is called with it held.
#ifndef WEIR_CLUSTER_TASK_UCX_H_
#define WEIR_CLUSTER_TASK_UCX_H_

#include "cluster/task/transport.h"

// Answers with what weir_ucx_put_address writes; an empty request. Not TensorFlow's.
#define WEIR_UCX_ADDRESS_PATH "/weir.TaskService/UcxAddress"

typedef struct weir_ucx_t weir_ucx_t;
struct weir_task_t;

// |is_local|: no other machine is to reach the task: unless UCX_NET_DEVICES says otherwise, UCX
// listens on the loopback interface only. UNAVAILABLE: UCX is not there, or does not work here.
WEIR_MUST_USE weir_status_t* weir_ucx_create(struct weir_task_t* task, bool is_local,
                                             weir_ucx_t** out_ucx);
// The task's servers and channels have ended. NULL is fine.
void weir_ucx_destroy(weir_ucx_t* ucx);
weir_transport_t* weir_ucx_transport(weir_ucx_t* ucx);

void weir_ucx_put_address(const weir_ucx_t* ucx, weir_strbuf_t* response);
// A peer's connection is lost, and so perhaps the peer.
void weir_ucx_end_connection(weir_ucx_t* ucx, uint64_t connection);

// For metrics.
typedef struct weir_ucx_counts_t {
  long long tensors_received, bytes_received;
  long long tensors_sent, bytes_sent;
  int sends_open;  // tensors that UCX has and has not sent
} weir_ucx_counts_t;
weir_ucx_counts_t weir_ucx_count(weir_ucx_t* ucx);  // NULL: all 0

#endif  // WEIR_CLUSTER_TASK_UCX_H_
