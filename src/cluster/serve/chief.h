// chief.h — Watches the task whose end is the end of the training, from a thread of its own.
#ifndef WEIR_CLUSTER_SERVE_CHIEF_H_
#define WEIR_CLUSTER_SERVE_CHIEF_H_

#include "cluster/task/task.h"

typedef struct weir_chief_watch_t weir_chief_watch_t;

// Asks the chief's worker for its status every second or so. Calls |fn|, once, when a chief that
// has answered before has not for |patience_s| seconds: one that is still to come is waited for.
// INVALID_ARGUMENT when the cluster of |task| has no chief; a task that is the chief itself is
// given none to watch (|out_watch| NULL).
WEIR_MUST_USE weir_status_t* weir_chief_watch_create(weir_task_t* task, int patience_s,
                                                     void (*fn)(void* arg), void* arg,
                                                     weir_chief_watch_t** out_watch);
void weir_chief_watch_destroy(weir_chief_watch_t* watch);  // |fn| does not run any more after this

#endif  // WEIR_CLUSTER_SERVE_CHIEF_H_
