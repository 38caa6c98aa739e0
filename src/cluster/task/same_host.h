// same_host.h — Tensors between tasks of one machine without the socket: the producer says where a
// large tensor is, and the receiver copies it out of the producer's memory (process_vm_readv).
//
// A transport (transport.h):
//   1. The receiver listens on a Unix socket of its own. To a task of its own cluster, the
//      request's offer names the receiver's host (a hash of the machine's boot, the namespaces and
//      the user), that socket, and a token: random bytes for this one request.
//   2. A producer with the same host connects to the socket, makes sure that a process of its own
//      user listens there, and sends the token, address, type and shape. It holds the tensor, and
//      answers with nothing but the news that it did so.
//   3. The receiver takes the process from the connection: the kernel says who made it. It copies
//      the tensor, then reads a word beside the hold that proves that the tensor was held to the
//      end of the copy. MarkRecvFinished ends the hold. If anything is not as it should be, it asks
//      for the tensor again, by the number of its request, and gets the bytes; then it asks that
//      peer no more.
// A hold also ends with its step and with the receiver's connection, so that nobody's death leaks.
//
// What holds whoever lies:
//   - A receiver reads only the memory of a process that knows the token, is of the same user, is
//     another one than itself, and gave the address itself. So a liar can have it read the liar's
//     own memory, which it could have sent, and nobody else's. The bytes go into a fresh tensor of
//     the size that type and shape give. A process whose number was given anew does not have the
//     word.
//   - A producer tells its addresses to processes of its own user only, which the kernel lets look
//     anyway, and never over the network. A receiver can fail to acknowledge: then a tensor stays
//     that was sent to it in a step that still runs, as if it did not fetch it.
//   - Who connects to the socket without a token that is waited for, or as another user, is not
//     listened to. If many do, tensors come as bytes.
//
// Thread-safe. |mu| is the last lock of all: nothing is called with it held.
#ifndef WEIR_CLUSTER_TASK_SAME_HOST_H_
#define WEIR_CLUSTER_TASK_SAME_HOST_H_

#include "base/map.h"
#include "cluster/task/transport.h"

#define WEIR_SAME_HOST_URL "weir/same_host"
#define WEIR_SAME_HOST_KEY_SIZE 16  // of names and tokens, which nobody can guess

// What a task knows of its peers on this machine. Immutable after init but for what |mu| guards.
typedef struct weir_same_host_t {
  weir_transport_t base;
  weir_pool_t* pool;                   // that copies; set by the task
  uint64_t host;                       // hash of machine, namespaces and user; 0: off
  char name[WEIR_SAME_HOST_KEY_SIZE];  // of |socket|, in the abstract namespace
  int socket;                          // where producers say where tensors are; -1: off
  int self;                            // the process, which is never read
  weir_mutex_t mu;
  weir_map_t holds;                       // guarded by mu; request's number → hold_t
  weir_map_t offers;                      // guarded by mu; token → weir_same_host_offer_t
  weir_map_t refused;                     // guarded by mu; peers (8 bytes) not to be asked again
  atomic_llong tensors_read, bytes_read;  // for metrics
} weir_same_host_t;

// Off where WEIR_SAME_HOST is 0 in the environment, or the machine does not say which it is.
void weir_same_host_init(weir_same_host_t* same);
void weir_same_host_free(weir_same_host_t* same);  // ends all holds

// ---- the receiver ----
// Where a tensor is.
typedef struct weir_same_host_place_t {
  int process;
  uint64_t address;
  uint64_t word;  // address of the word that proves the hold
  int64_t dtype;
  int rank;
  int64_t dims[WEIR_MAX_RANK];
} weir_same_host_place_t;

// The offer, made with one request, to read from memory. Its owner keeps it in place.
typedef struct weir_same_host_offer_t {
  char token[WEIR_SAME_HOST_KEY_SIZE];
  bool is_made;
  weir_same_host_place_t* place;  // guarded by mu; NULL: no producer has told it
  weir_same_host_t* same;         // of the transport's offers, like the rest
  weir_collected_fn_t done;
  void* arg;
} weir_same_host_offer_t;

// Makes an offer and writes it into RecvTensorRequest |request|. Nothing happens when it is off or
// |peer| (an identity, not followed) has refused.
void weir_same_host_offer(weir_same_host_t* same, const void* peer, weir_same_host_offer_t* offer,
                          weir_strbuf_t* request);
// The request is over. Offers that were not made will do.
void weir_same_host_withdraw(weir_same_host_t* same, weir_same_host_offer_t* offer);
// Writes the wish to get the bytes after all that request |request_id| was answered with.
void weir_same_host_ask_again(int64_t request_id, weir_strbuf_t* request);
// |peer| refused although its offer was good: no more offers to it.
void weir_same_host_refuse(weir_same_host_t* same, const void* peer);
// Copies the tensor that |offer| was answered with, on threads of |pool|.
// RESOURCE_EXHAUSTED: there is no memory for it. Any other error means: ask again.
WEIR_MUST_USE weir_status_t* weir_same_host_read(weir_same_host_t* same, weir_pool_t* pool,
                                                 weir_same_host_offer_t* offer,
                                                 weir_tensor_t** out_tensor);

// ---- the producer ----
// What a request's offer says about memory.
typedef struct weir_same_host_wish_t {
  bool is_here;        // the receiver is on this host, and offers to read
  weir_view_t socket;  // the name of its socket; a view, like |token|, into the request
  weir_view_t token;
  int64_t again;  // not 0: it wants the bytes of this request's answer
} weir_same_host_wish_t;
weir_same_host_wish_t weir_same_host_wish(const weir_same_host_t* same, weir_view_t offer);

// Who may read a tensor.
typedef struct weir_same_host_reader_t {
  int64_t request_id, step_id;
  uint64_t connection;
  char socket[WEIR_SAME_HOST_KEY_SIZE];
  char token[WEIR_SAME_HOST_KEY_SIZE];
} weir_same_host_reader_t;
// Holds |tensor| and tells the reader where it is. False for a tensor that had better go as bytes.
bool weir_same_host_hold(weir_same_host_t* same, const weir_same_host_reader_t* reader,
                         weir_tensor_t* tensor);
// Ends the hold of a request made over |connection|. The tensor, which the caller releases; NULL
// when there is none.
weir_tensor_t* weir_same_host_take(weir_same_host_t* same, int64_t request_id, uint64_t connection);
void weir_same_host_end_step(weir_same_host_t* same, int64_t step_id);
void weir_same_host_end_connection(weir_same_host_t* same, uint64_t connection);
int weir_same_host_count(weir_same_host_t* same);  // tensors held

#endif  // WEIR_CLUSTER_TASK_SAME_HOST_H_
