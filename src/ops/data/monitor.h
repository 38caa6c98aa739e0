// monitor.h — A mutex with a condition on which threads wait until they are cancelled.
//
//   weir_cancel_token_t token = weir_monitor_enter(&monitor, cancel);
//   while (!is_ready && weir_monitor_wait(&monitor, cancel)) continue;
//   …
//   weir_monitor_leave(&monitor, cancel, token);
#ifndef WEIR_OPS_DATA_MONITOR_H_
#define WEIR_OPS_DATA_MONITOR_H_

#include "base/cancel.h"
#include "base/thread.h"

typedef struct weir_monitor_t {
  weir_mutex_t mu;
  weir_cond_t changed;  // broadcast at every change of what |mu| guards
} weir_monitor_t;

void weir_monitor_init(weir_monitor_t* monitor);
void weir_monitor_destroy(weir_monitor_t* monitor);
// Locks. |cancel|, which may be NULL, wakes this thread from then on until it leaves.
weir_cancel_token_t weir_monitor_enter(weir_monitor_t* monitor, weir_cancel_t* cancel)
    WEIR_ACQUIRE(monitor->mu);
void weir_monitor_leave(weir_monitor_t* monitor, weir_cancel_t* cancel, weir_cancel_token_t token)
    WEIR_RELEASE(monitor->mu);
// Waits for a change; false at once when |cancel| was cancelled.
bool weir_monitor_wait(weir_monitor_t* monitor, weir_cancel_t* cancel) WEIR_REQUIRES(monitor->mu);

#endif  // WEIR_OPS_DATA_MONITOR_H_
