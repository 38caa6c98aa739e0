// worker_internal.h — What the files of the worker share: sessions, registered graphs, decoding.
#ifndef WEIR_CLUSTER_WORKER_WORKER_INTERNAL_H_
#define WEIR_CLUSTER_WORKER_WORKER_INTERNAL_H_

#include "base/alloc.h"
#include "cluster/task/messages.h"
#include "cluster/task/tensor_message.h"
#include "cluster/worker/worker.h"
#include "runtime/program.h"
#include "wire/wire.h"

// What one master session has here. Graphs and running steps hold it.
typedef struct worker_session_t {
  weir_ref_t ref;
  weir_worker_t* worker;
  weir_resources_t* own_resources;  // isolated; NULL otherwise
  weir_kernel_cache_t kernels;      // random generators go on from graph to graph
  char* master;                     // the task whose master made it; NULL: it did not say
  int64_t incarnation;              // of that task
  uint64_t scope;                   // of its steps, in collectives
  weir_alias_t* alias;              // what this task is called in it; NULL: as everywhere
  // Guarded by the worker's mu:
  weir_map_t graphs;     // handle → worker_graph_t
  bool is_dropped;       // no longer in the table: takes no more graphs
  int64_t last_used_ns;  // of weir_clock_ns
} worker_session_t;

// A part of a graph, ready to run. Running steps hold it.
typedef struct worker_graph_t {
  weir_ref_t ref;
  worker_session_t* owner;  // retained
  weir_program_t* program;
  weir_plan_t* plan;
} worker_graph_t;

struct weir_worker_t {
  weir_task_t* task;
  weir_cancel_t* cancel;  // parent of every step's
  weir_mutex_t mu;
  weir_cond_t idle;
  weir_map_t sessions;  // handle → worker_session_t; guarded by mu
  weir_map_t partials;  // number of a step → its partial run; guarded by mu
  int running_count;    // guarded by mu
  int64_t next_graph;   // guarded by mu
};

// ---- worker.c ----
// Which graph a request is about. Views point into the request.
typedef struct worker_graph_key_t {
  weir_view_t session_handle, graph_handle;
  bool is_session_made;  // by CreateWorkerSession; otherwise the task's own session is meant
} worker_graph_key_t;
// Finds a registered graph and retains it. ABORTED for handles nobody has.
WEIR_MUST_USE weir_status_t* weir_worker_find_graph(weir_worker_t* worker,
                                                    const worker_graph_key_t* key,
                                                    worker_graph_t** out_graph);
void weir_worker_graph_release(worker_graph_t* graph);
// Ends a call without a result: with an empty message, or with the error.
void weir_worker_call_finish(weir_rpc_call_t* call, weir_status_t* take_status);
WEIR_INLINE weir_wire_reader_t weir_worker_call_reader(weir_rpc_call_t* call) {
  return weir_wire_reader(weir_rpc_buffer_view(weir_rpc_call_request(call)));
}

// ---- worker_run.c: handlers of steps ----
void weir_handle_run_graph(void* self, weir_rpc_call_t* call);
void weir_handle_cleanup_graph(void* self, weir_rpc_call_t* call);
// Forgets the partial run of a step, or all of them, and cancels what still runs.
void weir_worker_end_partial(weir_worker_t* worker, int64_t step_id);
void weir_worker_end_partials(weir_worker_t* worker);

// ---- worker_tensor.c: handlers of tensors that other workers fetch ----
void weir_handle_recv_tensor(void* self, weir_rpc_call_t* call);
void weir_handle_mark_recv_finished(void* self, weir_rpc_call_t* call);

// ---- worker_collective.c ----
void weir_handle_join_collective(void* self, weir_rpc_call_t* call);

#endif  // WEIR_CLUSTER_WORKER_WORKER_INTERNAL_H_
