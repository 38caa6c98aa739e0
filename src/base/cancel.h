// cancel.h — Cancellation: one manager a session, a child a call, a child a step. Thread-safe.
#ifndef WEIR_BASE_CANCEL_H_
#define WEIR_BASE_CANCEL_H_

#include "base/base.h"

typedef struct weir_cancel_t weir_cancel_t;
typedef uint64_t weir_cancel_token_t;  // 0 is never handed out
typedef void (*weir_cancel_fn_t)(void* arg);

// |parent| may be NULL; it must outlive the child. A child of a cancelled parent starts cancelled.
WEIR_MUST_USE weir_status_t* weir_cancel_create(weir_cancel_t* parent, weir_cancel_t** out_cancel);
void weir_cancel_destroy(weir_cancel_t* cancel);

// Runs every registered callback once, on this thread, and cancels the children. Idempotent.
void weir_cancel_start(weir_cancel_t* cancel);
bool weir_cancel_is_cancelled(const weir_cancel_t* cancel);  // NULL is never cancelled

// Registers |fn|. Returns 0, without registering, when already cancelled or |cancel| is NULL or
// memory is exhausted: the caller then must not block if weir_cancel_is_cancelled.
weir_cancel_token_t weir_cancel_register(weir_cancel_t* cancel, weir_cancel_fn_t fn, void* arg);
// Returns true when the callback had not run and never will. When it is running on another thread,
// waits for it to end.
bool weir_cancel_deregister(weir_cancel_t* cancel, weir_cancel_token_t token);
// As deregister, but never waits: false means that the callback ran or is running. For callers that
// hold a lock it takes.
bool weir_cancel_try_deregister(weir_cancel_t* cancel, weir_cancel_token_t token);

#endif  // WEIR_BASE_CANCEL_H_
