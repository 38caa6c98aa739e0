// same_host.h — Tensors between tasks of one machine without the socket: the producer says where a
// large tensor is, and the receiver copies it out of the producer's memory (process_vm_readv).
//
// It happens within RecvTensor and is between tasks of Weir only; others neither ask nor are asked:
//   1. The request's transport_options name the receiver's host: a hash of the machine's boot, the
//      process namespace and the user.
//   2. A producer with the same host answers with process, address, type and shape instead of the
//      tensor (transport_options, require_ack), and holds the tensor.
//   3. The receiver copies, then reads a word beside the hold that proves that the tensor was held
//      to the end of the copy. MarkRecvFinished ends the hold. If the kernel refuses or the word is
//      wrong, it asks for the tensor again, by the number of its request, and gets the bytes; then
//      it asks that peer no more.
// A hold also ends with its step and with the receiver's connection, so that nobody's death leaks.
//
// What a peer that lies can do:
//   - To a receiver: nothing but fail. It copies only into a fresh tensor of the size that type and
//     shape give, and looks at it only if the process read from had in its memory a word made of
//     the request's number, which is random and which only the asked peer knows. So a peer cannot
//     have it read a third process.
//   - To a producer: learn an address, if it knows the host's hash, which is random enough that
//     only processes of the machine, and the peers they ask, know it. Reading there takes the
//     kernel's leave, as for a debugger (same user, no Yama or seccomp in between); so nothing is
//     open that was not. It can also not acknowledge: then a tensor stays that was sent to it in a
//     step that still runs, as if it did not fetch it.
// A process' own memory may be read so, too: two tasks of one process need no special case.
//
// Thread-safe. |mu| is the last lock of all: nothing is called with it held.
#ifndef WEIR_CLUSTER_SAME_HOST_H_
#define WEIR_CLUSTER_SAME_HOST_H_

#include "base/map.h"
#include "base/string.h"
#include "tensor/tensor.h"

// Bytes from which it pays: below, the acknowledgement costs more than the socket.
#define WEIR_SAME_HOST_MIN_SIZE ((size_t)256 << 10)

// What a task knows of its peers on this machine.
typedef struct weir_same_host_t {
  uint64_t host;  // hash of machine, process namespace and user; 0: off. Immutable after init
  weir_mutex_t mu;
  weir_map_t holds;                       // guarded by mu; request's number → hold_t
  weir_map_t refused;                     // guarded by mu; peers (8 bytes) not to be asked again
  atomic_llong tensors_read, bytes_read;  // for metrics
} weir_same_host_t;

// Off where WEIR_SAME_HOST is 0 in the environment, or the machine does not say which it is.
void weir_same_host_init(weir_same_host_t* same);
void weir_same_host_free(weir_same_host_t* same);  // ends all holds

// ---- the receiver ----
// Writes the offer to read from memory into RecvTensorRequest |request|. False, and nothing
// written, when it is off or |peer| (an identity, not followed) has refused.
bool weir_same_host_offer(weir_same_host_t* same, const void* peer, weir_strbuf_t* request);
// Writes the wish to get the bytes after all that request |request_id| was answered with.
void weir_same_host_ask_again(int64_t request_id, weir_strbuf_t* request);
// |peer| refused although its offer was good: no more offers to it.
void weir_same_host_refuse(weir_same_host_t* same, const void* peer);
// Whether a response's |transport_options| say where the tensor is. |out_place| is a view into it.
bool weir_same_host_find(weir_view_t transport_options, weir_view_t* out_place);
// Copies the tensor at |place| that request |request_id| was answered with, on threads of |pool|.
// RESOURCE_EXHAUSTED: there is no memory for it. Any other error means: ask again.
WEIR_MUST_USE weir_status_t* weir_same_host_read(weir_same_host_t* same, weir_pool_t* pool,
                                                 weir_view_t place, int64_t request_id,
                                                 weir_tensor_t** out_tensor);

// ---- the producer ----
// What a request says about memory.
typedef struct weir_same_host_wish_t {
  bool is_here;   // the receiver is on this host
  int64_t again;  // not 0: it wants the bytes of this request's answer
} weir_same_host_wish_t;
weir_same_host_wish_t weir_same_host_wish(const weir_same_host_t* same,
                                          weir_view_t transport_options);

// Who may read a tensor.
typedef struct weir_same_host_reader_t {
  int64_t request_id, step_id;
  uint64_t connection;
} weir_same_host_reader_t;
// Holds |tensor| and writes where it is into RecvTensorResponse |response|. False, and nothing
// written, for a tensor that had better go as bytes.
bool weir_same_host_hold(weir_same_host_t* same, const weir_same_host_reader_t* reader,
                         weir_tensor_t* tensor, weir_strbuf_t* response);
// Ends the hold of a request made over |connection|. The tensor, which the caller releases; NULL
// when there is none.
weir_tensor_t* weir_same_host_take(weir_same_host_t* same, int64_t request_id, uint64_t connection);
void weir_same_host_end_step(weir_same_host_t* same, int64_t step_id);
void weir_same_host_end_connection(weir_same_host_t* same, uint64_t connection);
int weir_same_host_count(weir_same_host_t* same);  // tensors held

#endif  // WEIR_CLUSTER_SAME_HOST_H_
