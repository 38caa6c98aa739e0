// worker.h — The worker of a task: runs the parts of graphs that masters hand it, and serves
// tensors to other workers (tensorflow.WorkerService). Thread-safe.
#ifndef WEIR_CLUSTER_WORKER_WORKER_H_
#define WEIR_CLUSTER_WORKER_WORKER_H_

#include "cluster/task/task.h"

typedef struct weir_worker_t weir_worker_t;

// |task| is borrowed.
WEIR_MUST_USE weir_status_t* weir_worker_create(weir_task_t* task, weir_worker_t** out_worker);
// Cancels every step, and those that start later.
void weir_worker_stop(weir_worker_t* worker);
// Stops it and waits for its steps. No handler may run any more.
void weir_worker_destroy(weir_worker_t* worker);
// Sessions of masters, and parts of graphs that run, now.
void weir_worker_load(weir_worker_t* worker, int* out_sessions, int* out_running);

// The methods it serves: rows for a server whose handlers get the |weir_task_t|; ended by NULL.
extern const weir_rpc_method_t weir_worker_methods[];

#endif  // WEIR_CLUSTER_WORKER_WORKER_H_
