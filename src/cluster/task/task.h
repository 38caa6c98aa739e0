// task.h — One task of a cluster from inside: its devices and state, its peers, and the rendezvous
// of every step that runs here. Master and worker of the process share it.
//
// Thread-safe. Lock order: a master's or worker's own locks before |mu|; no lock is held across a
// call to a peer or a callback.
#ifndef WEIR_CLUSTER_TASK_TASK_H_
#define WEIR_CLUSTER_TASK_TASK_H_

#include "base/map.h"
#include "cluster/config/alias.h"
#include "cluster/config/spec.h"
#include "cluster/task/members.h"
#include "cluster/task/request_ids.h"
#include "cluster/task/same_host.h"
#include "cluster/task/transfer_log.h"
#include "op/gate.h"
#include "op/rendezvous.h"
#include "op/resource.h"
#include "rpc/rpc.h"
#include "runtime/runtime.h"

typedef struct weir_task_t {
  struct weir_master_t* master;  // set and owned by the server, which gives the task to handlers
  struct weir_worker_t* worker;
  char* name;  // "/job:worker/replica:0/task:0"
  const char* job;
  int index;
  weir_cluster_spec_t spec;
  weir_pool_t* pool;          // kernels, and requests that take longer than a glance
  weir_pool_t* waiting_pool;  // see weir_task_wait
  weir_runtime_t* runtime;
  weir_rpc_loop_t* loop;
  weir_rpc_tls_t tls;         // towards peers; owns its strings
  weir_rpc_token_t* token;    // that calls from and to peers bear; NULL: none
  const char *place, *rates;  // weir_task_options_t's
  uint64_t max_message_size, max_graph_size;
  weir_request_ids_t request_ids;  // of what changes something: steps, what prepares them
  weir_request_ids_t receive_ids;  // of RecvTensor, of which a step may have thousands
  weir_same_host_t same_host;
  struct weir_ucx_t* ucx;                              // NULL: not asked for, or not there
  weir_transport_t* transports[WEIR_TRANSPORT_LIMIT];  // those above, the preferred first
  int transport_count;
  weir_transfer_log_t transfers;
  struct weir_collectives_t* collectives;
  weir_members_t* members;         // NULL: the spec has all addresses
  weir_gate_t* gate;               // that steps pass before they write to variables here
  void (*shutdown_fn)(void* arg);  // a client asks the process to end; NULL: refused. Immutable
  void* shutdown_arg;
  weir_mutex_t mu;         // guards all below
  weir_map_t channels;     // address → weir_rpc_channel_t
  weir_map_t steps;        // step number (8 bytes) → step_t
  int waiting_count;       // weir_task_wait: functions that run
  weir_cond_t waited;      // one of them has ended
  int unknown_step_count;  // of them, how many only receivers know of
  atomic_llong bytes_received, bytes_sent, steps_run, receives_open;  // for metrics
} weir_task_t;

typedef struct weir_task_options_t {
  weir_cluster_spec_t spec;  // moved from
  const char* job;
  int index;
  const char* devices;  // as weir_devices_create reads it; NULL: one CPU
  // Where masters put nodes that ask for no device, as weir_place_policy_parse reads it; by cost,
  // a file with the rates of the tasks, NULL: they are measured. Both outlive the task.
  const char *place, *rates;
  int threads;  // of |pool|; 0: one a CPU
  int io_threads;
  weir_rpc_tls_t tls;         // towards peers
  uint64_t max_message_size;  // bytes of what peers send; 0: what gRPC has room for
  uint64_t max_graph_size;    // bytes of a session's graph; 0: 2 GiB, as protobuf has it
  weir_rpc_token_t* token;  // that calls to this task, and to its peers, bear; retained; NULL: none
  weir_members_options_t members;  // who tells the addresses that the spec has not
  weir_transport_choice_t transport;
  bool is_local;  // other machines are not to reach it
} weir_task_options_t;

WEIR_MUST_USE weir_status_t* weir_task_create(weir_task_options_t* options, weir_task_t** out_task);
// Nothing of the task may run any more.
void weir_task_destroy(weir_task_t* task);

// For numbers of sessions, steps and requests, which nobody may foresee: the kernel's. Never 0.
uint64_t weir_task_random(void);
// Runs |fn| on a thread that it may block: requests that wait for peers or for other requests. They
// share some threads; when all of those wait, each gets one of its own, since one may wait for what
// the next one brings.
void weir_task_wait(weir_task_t* task, weir_task_fn_t fn, void* arg);
// The channel to a peer, by its name "/job:ps/replica:0/task:1" (a longer device name will do), in
// the cluster of |alias| or, where that is NULL, the task's own. NOT_FOUND for a task that is not
// in it.
WEIR_MUST_USE weir_status_t* weir_task_channel(weir_task_t* task, const weir_alias_t* alias,
                                               weir_view_t peer, weir_rpc_channel_t** out_channel);
// The channel to an address that a client's own cluster definition gave.
WEIR_MUST_USE weir_status_t* weir_task_channel_to(weir_task_t* task, const char* address,
                                                  weir_rpc_channel_t** out_channel);

// RESOURCE_EXHAUSTED for a graph of |size| bytes that is too large.
WEIR_MUST_USE weir_status_t* weir_task_check_graph(const weir_task_t* task, uint64_t size);

// ---- steps (step.c) ----
// The rendezvous of step |id|, made when it is new. Retained for the caller. It meets receives of
// other tasks' tensors by asking their workers. The step lasts until weir_task_end_step.
WEIR_MUST_USE weir_status_t* weir_task_step(weir_task_t* task, int64_t id,
                                            weir_rendezvous_t** out_rendezvous);
// The same of a session in which the task goes by |alias|; NULL: by its own name.
WEIR_MUST_USE weir_status_t* weir_task_step_as(weir_task_t* task, int64_t id, weir_alias_t* alias,
                                               weir_rendezvous_t** out_rendezvous);
// Forgets step |id| and fails what still waits in it; it leaves the gate.
void weir_task_end_step(weir_task_t* task, int64_t id);
void weir_task_end_all_steps(weir_task_t* task);
// Whether step |id| has not ended. Only where it is known that it has begun.
bool weir_task_has_step(weir_task_t* task, int64_t id);
// For RecvTensor: hands over the tensor that this task sends, or will send, under |key|. A step
// that only receivers know of is forgotten when the last of them is gone; RESOURCE_EXHAUSTED when
// there are too many such steps.
void weir_task_receive(weir_task_t* task, int64_t id, weir_view_t key, weir_cancel_t* cancel,
                       weir_recv_done_fn_t done, void* arg);

#endif  // WEIR_CLUSTER_TASK_TASK_H_
