// master.h — The master of a task: serves clients' sessions (tensorflow.MasterService).
// Thread-safe.
#ifndef WEIR_CLUSTER_MASTER_MASTER_H_
#define WEIR_CLUSTER_MASTER_MASTER_H_

#include "cluster/task/task.h"

typedef struct weir_master_t weir_master_t;

// |task| is borrowed.
WEIR_MUST_USE weir_status_t* weir_master_create(weir_task_t* task, weir_master_t** out_master);
// Closes every session, which cancels what runs in them.
void weir_master_stop(weir_master_t* master);
// Stops it and waits for what runs. No handler may run any more.
void weir_master_destroy(weir_master_t* master);
int weir_master_session_count(weir_master_t* master);

// Rows for a server whose handlers get the |weir_task_t|; ended by NULL.
extern const weir_rpc_method_t weir_master_methods[];

// Keeps the master, and what it calls peers by, from being destroyed: for steps, which may outlast
// the call that began them.
void weir_master_enter(weir_master_t* master);
void weir_master_leave(weir_master_t* master);

#endif  // WEIR_CLUSTER_MASTER_MASTER_H_
