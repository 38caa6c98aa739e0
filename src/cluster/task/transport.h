// transport.h — Ways for large tensors to get from task to task beside the RPC that asks for them.
//
// It happens within RecvTensor and is between tasks of Weir only; others neither ask nor are asked.
// The receiver's request has an offer of each of its transports in transport_options, under the
// URL of the transport. The producer passes the tensor by the first of its own transports whose
// offer it can accept, and answers with nothing but the news that it did so; or it ignores them
// all, and the answer has the bytes. What goes wrong before the answer makes it one with bytes;
// after it the receiver asks again, where the transport has the producer hold the tensor.
//
// Implementations: same_host.h, by the memory of a task on the same machine; ucx.h, by UCX.
// Thread-safe.
#ifndef WEIR_CLUSTER_TASK_TRANSPORT_H_
#define WEIR_CLUSTER_TASK_TRANSPORT_H_

#include "base/cancel.h"
#include "base/string.h"
#include "tensor/tensor.h"

// Bytes of a tensor from which it pays: below, what it costs to agree is more than the socket's.
#define WEIR_TRANSPORT_MIN_SIZE ((size_t)256 << 10)
enum { WEIR_TRANSPORT_LIMIT = 2 };  // that a task has

// A tensor that a request asks for, which a transport may pass to the receiver.
typedef struct weir_passing_t {
  weir_view_t offer;  // what the request has under the transport's URL; empty: nothing
  int64_t request_id, step_id;
  uint64_t connection;
  weir_cancel_t* cancel;  // the receiver does not wait any more
  weir_tensor_t* tensor;
  // The tensor was passed, or could not be. Called once, on any thread, also from within pass.
  void (*done)(void* arg, weir_status_t* take_status);
  void* arg;
} weir_passing_t;

typedef void (*weir_collected_fn_t)(void* arg, weir_status_t* take_status,
                                    weir_tensor_t* take_tensor);

typedef struct weir_transport_t weir_transport_t;
typedef struct weir_transport_vtable_t {
  const char* url;  // of the google.protobuf.Any in transport_options; required

  // ---- the receiver; required where nothing else is said ----
  // Makes an offer to |peer| (an identity, not followed) and writes it into RecvTensorRequest
  // |request|. NULL: none is made.
  void* (*offer)(weir_transport_t* transport, const void* peer, weir_strbuf_t* request);
  // The request is over. Not before |done| of collect is called.
  void (*withdraw)(weir_transport_t* transport, void* take_offer);
  // Gets the tensor that a producer says it passed. |done| is called once, on any thread.
  // RESOURCE_EXHAUSTED: there is no memory for it, nor would there be for the bytes.
  void (*collect)(weir_transport_t* transport, void* offer, weir_collected_fn_t done, void* arg);
  // Has collect end soon. Optional, default: it does anyway.
  void (*cancel)(weir_transport_t* transport, void* offer);
  // Writes the wish to get the bytes after all of what request |request_id| was answered with: the
  // producer holds what it passed until then, or until MarkRecvFinished. Optional, default: it does
  // not, and what cannot be collected fails the step.
  void (*ask_again)(int64_t request_id, weir_strbuf_t* request);
  // |peer| was asked again, and the bytes came. Optional, default: the next offer is made all the
  // same.
  void (*refuse)(weir_transport_t* transport, const void* peer);

  // ---- the producer ----
  // Passes a tensor. False, and |done| is not called: it had better go as bytes. Required.
  bool (*pass)(weir_transport_t* transport, const weir_passing_t* passing);
} weir_transport_vtable_t;

struct weir_transport_t {
  const weir_transport_vtable_t* vtable;
};

// ---- what requests and responses say ----
// Appends |value| to RecvTensorRequest |request|, under |url|.
void weir_transport_put_offer(weir_strbuf_t* request, const char* url, const weir_strbuf_t* value);
// The value in |any|, one of the transport_options of a request or response, if it is under |url|;
// empty otherwise.
weir_view_t weir_transport_value(weir_view_t any, const char* url);
// Appends the news that the tensor was passed to RecvTensorResponse |response|.
void weir_transport_put_passed(weir_strbuf_t* response, const weir_transport_t* transport);

// ---- which there are ----
typedef enum weir_transport_choice_t {
  WEIR_TRANSPORT_AUTO,  // same_host
  WEIR_TRANSPORT_UCX,   // UCX, then same_host
} weir_transport_choice_t;
// Reads "auto", "ucx" or "ucx:plain"; NULL or "": auto. INVALID_ARGUMENT for others, and for "ucx"
// |with_tls|, since UCX does not encrypt: "ucx:plain" says that this is known.
WEIR_MUST_USE weir_status_t* weir_transport_parse(const char* text, bool with_tls,
                                                  weir_transport_choice_t* out_choice);

#endif  // WEIR_CLUSTER_TASK_TRANSPORT_H_
