// collectives.h — Collectives between the tasks of a cluster.
//
// One task leads: the first one of job "chief", or else of "worker", or else of the first job, as
// in TensorFlow's strategies. Members of all tasks join at its hub (ops/collective/hub.h), by
// JoinCollective, whose answer comes when all have met and brings the result. So whoever dies is
// noticed: the leader loses its call, they lose the leader, and whom a group has waited for too
// long the leader holds a call to. Large reductions only agree there. Then each task reduces a
// part, to which all members join in the same way: every task sends and receives twice the size of
// the tensor at most, however many there are (collective_shards.c).
//
// Thread-safe. No lock is held across a call to a peer or a callback.
#ifndef WEIR_CLUSTER_TASK_COLLECTIVES_H_
#define WEIR_CLUSTER_TASK_COLLECTIVES_H_

#include "cluster/task/task.h"
#include "ops/collective/hub.h"

typedef struct weir_collectives_t weir_collectives_t;

// Puts itself before the hub of the task's runtime.
WEIR_MUST_USE weir_status_t* weir_collectives_create(weir_task_t* task,
                                                     weir_collectives_t** out_collectives);
// NULL-safe. No member is under way, and no channel of the task is left.
void weir_collectives_destroy(weir_collectives_t* collectives);

// A number for a session's handle, the same on all tasks: the scope of its steps.
uint64_t weir_collectives_scope(weir_view_t session_handle);

#endif  // WEIR_CLUSTER_TASK_COLLECTIVES_H_
