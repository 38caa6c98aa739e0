// rendezvous.h — Where a Send meets its Recv: by key, in either order, dead or alive. Thread-safe.
#ifndef WEIR_OP_RENDEZVOUS_H_
#define WEIR_OP_RENDEZVOUS_H_

#include "base/cancel.h"
#include "base/thread.h"
#include "tensor/tensor.h"

typedef struct weir_rendezvous_t weir_rendezvous_t;
// |take_status| NULL: |take_tensor| is the value (NULL when dead). Called once, on any thread.
typedef void (*weir_recv_done_fn_t)(void* arg, weir_status_t* take_status,
                                    weir_tensor_t* take_tensor, bool is_dead);

typedef struct weir_rendezvous_vtable_t {
  void (*destroy)(weir_rendezvous_t* self);
  // Never blocks. Retains |tensor|.
  weir_status_t* (*send)(weir_rendezvous_t* self, weir_view_t key, weir_tensor_t* tensor,
                         bool is_dead);
  // Calls |done| at once when the value is there, else when it is sent, the rendezvous aborts or
  // |cancel| fires.
  void (*recv_async)(weir_rendezvous_t* self, weir_view_t key, weir_cancel_t* cancel,
                     weir_recv_done_fn_t done, void* arg);
  // Fails all waiting and future calls with a copy of |status|.
  void (*abort)(weir_rendezvous_t* self, const weir_status_t* status);
} weir_rendezvous_vtable_t;
struct weir_rendezvous_t {
  const weir_rendezvous_vtable_t* vtable;
  weir_ref_t ref;
};
weir_rendezvous_t* weir_rendezvous_retain(weir_rendezvous_t* rendezvous);
void weir_rendezvous_release(weir_rendezvous_t* rendezvous);

// Receives and waits, until |cancel| (may be NULL) fires. INVALID_ARGUMENT for a dead value: who
// waits outside of the graph wants one.
WEIR_MUST_USE weir_status_t* weir_rendezvous_wait(weir_rendezvous_t* rendezvous, weir_view_t key,
                                                  weir_cancel_t* cancel,
                                                  weir_tensor_t** out_tensor);

// Within one process: a table of waiting values and waiting receivers.
WEIR_MUST_USE weir_status_t* weir_local_rendezvous_create(weir_rendezvous_t** out_rendezvous);

#endif  // WEIR_OP_RENDEZVOUS_H_
