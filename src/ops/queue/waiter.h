// waiter.h — Kernels that wait for a resource to change: queues, accumulators, barriers. A waiting
// kernel holds no thread.
//
// A waiter stands in a list that the resource's mutex guards. Whoever changes the resource looks
// through the list, takes out what can now be served, and completes it after letting go of the
// mutex. Cancellation of the waiter's step does the same with CANCELLED. Lock order: the resource's
// mutex before the cancellation manager's.
#ifndef WEIR_OPS_QUEUE_WAITER_H_
#define WEIR_OPS_QUEUE_WAITER_H_

#include "op/kernel.h"

typedef struct weir_waiter_t weir_waiter_t;
typedef struct weir_waiters_t weir_waiters_t;

struct weir_waiter_t {  // first member of the resource's own request struct, from weir_malloc
  weir_waiter_t* next;  // of the list it is in
  weir_waiter_t* prev;
  weir_waiters_t*
      list;          // the resource's list it waits in, guarded by |mu|; NULL: no longer waiting
  weir_mutex_t* mu;  // the resource's
  weir_resource_t* owner;  // retained
  weir_kernel_ctx_t* ctx;
  weir_done_t done;
  weir_cancel_token_t token;
  weir_status_t* status;  // the outcome, handed to |done|
  // Optional: sets the kernel's outputs from what was gathered, without the mutex; only when
  // |status| is NULL.
  weir_status_t* (*finish)(weir_waiter_t* waiter);
  void (*abandon)(
      weir_waiter_t* waiter);  // optional: cancelled; |mu| held: gives back what was taken already
  void (*destroy)(
      weir_waiter_t* waiter);  // optional: frees what the request holds; not the waiter itself
  const char* cancel_message;  // "Dequeue operation was cancelled"
};

// Waiters in order of arrival. A resource's list is guarded by the resource's mutex; lists of
// completed ones are thread-confined.
struct weir_waiters_t {
  weir_waiter_t* head;
  weir_waiter_t* tail;
  weir_mutex_t* mu;  // the resource's; NULL for lists of completed ones
  // Serves whoever can be served, moving them to |completed|. |mu| is held.
  void (*flush)(weir_resource_t* owner, weir_waiters_t* completed);
};
void weir_waiters_init(weir_waiters_t* list, weir_mutex_t* mu,
                       void (*flush)(weir_resource_t*, weir_waiters_t*));

// An asynchronous kernel's whole course: puts the request |take_waiter| of kernel |ctx| at the end
// of |list|, flushes, and either answers at once or leaves it waiting, registered with the step's
// cancellation. No mutex held.
void weir_waiter_submit(weir_waiters_t* list, weir_waiter_t* take_waiter, weir_resource_t* owner,
                        weir_kernel_ctx_t* ctx, weir_done_t done);
// Takes a waiter out of its list without an outcome: cancellation of its step leaves it alone from
// now on, until it is completed. |mu| held.
void weir_waiter_hold(weir_waiter_t* waiter);
// Moves a waiter from its list, or one that is held, to |completed|, with its outcome. |mu| held.
void weir_waiter_complete(weir_waiter_t* waiter, weir_status_t* take_status,
                          weir_waiters_t* completed);
// Finishes, answers and frees every waiter of |completed|. No mutex held. A completion that leads
// to others on the same thread leaves them to the outermost call: the stack does not grow with the
// number of waiters.
void weir_waiters_answer(weir_waiters_t* completed);

#endif  // WEIR_OPS_QUEUE_WAITER_H_
