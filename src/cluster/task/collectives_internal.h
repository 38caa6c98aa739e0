// collectives_internal.h — What the files of a task's collectives share.
#ifndef WEIR_CLUSTER_TASK_COLLECTIVES_INTERNAL_H_
#define WEIR_CLUSTER_TASK_COLLECTIVES_INTERNAL_H_

#include "cluster/task/collectives.h"

typedef struct watch_t watch_t;

struct weir_collectives_t {
  weir_task_t* task;
  weir_hub_t* hub;  // the runtime's
  char* leader;     // "/job:worker/replica:0/task:0"; NULL: the cluster has one task
  weir_mutex_t mu;
  watch_t* watches;  // guarded by mu
};

// Joins at the hub of task |task|, this one or another.
void weir_collectives_join_at(weir_collectives_t* self, weir_view_t task,
                              const weir_collective_t* what, weir_tensor_t* tensor,
                              const weir_hub_caller_t* caller);
// "/job:worker/replica:0/task:0" of a device's name.
weir_view_t weir_task_of_device(weir_view_t device);

// ---- collective_shards.c ----
// A reduction of which each task of the group does a part.
void weir_collectives_join_shards(weir_collectives_t* self, const weir_collective_t* what,
                                  weir_tensor_t* tensor, const weir_hub_caller_t* caller);

// ---- collective_watch.c: a hub's watcher ----
void weir_collectives_watch(void* self, const char* device, uint64_t incarnation);

#endif  // WEIR_CLUSTER_TASK_COLLECTIVES_INTERNAL_H_
