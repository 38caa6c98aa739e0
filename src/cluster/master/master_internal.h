// master_internal.h — What the files of the master share: sessions by handle, calls being served.
#ifndef WEIR_CLUSTER_MASTER_MASTER_INTERNAL_H_
#define WEIR_CLUSTER_MASTER_MASTER_INTERNAL_H_

#include "cluster/master/master.h"
#include "cluster/master/master_session.h"
#include "cluster/master/master_step.h"
#include "cluster/task/tensor_message.h"
#include "wire/wire.h"

struct weir_master_t {
  weir_task_t* task;
  weir_mutex_t mu;
  weir_cond_t idle;
  weir_map_t sessions;         // handle → weir_master_session_t; guarded by mu
  int call_count;              // guarded by mu; calls being served, and steps
  weir_cancel_t* cancel;       // fires when the master goes
  struct weir_homes_t* homes;  // by cost: of state that sessions share
  weir_mutex_t rates_mu;       // held while they are measured
  weir_rates_t cpu_rates;      // of this process, for placement by cost; flops 0: not measured yet
};

// What a request asked for, and the call to answer. Views point into the request.
typedef struct master_call_t {
  weir_master_t* master;
  weir_rpc_call_t* call;
  weir_arena_t arena;
  weir_master_session_t* session;  // retained
  weir_master_signature_t signature;
  weir_tensor_t** tensors;  // fed; owned
  int tensor_count;
  weir_view_t session_handle, partial_handle;
  weir_view_t graph_def, config, target;
  const weir_view_t* names;  // containers of Reset
  int name_count;
  const weir_view_t* filters;  // which tasks Reset is for; none: all
  int filter_count;
  int64_t request_id, version, callable, timeout_ms;
  bool errors_in_body, is_traced, wants_partitions;
  bool is_callable;  // answer with tensors by position
  weir_master_step_t* step;
  weir_master_run_t* run;
} master_call_t;

// Finds and retains. ABORTED for a handle nobody has.
WEIR_MUST_USE weir_status_t* weir_master_find(weir_master_t* master, weir_view_t handle,
                                              weir_master_session_t** out_session);
// ---- master_requests.c: decoders. Everything is in |call|'s arena or points into the request.
// ----
WEIR_MUST_USE weir_status_t* weir_parse_run_step(master_call_t* call);
WEIR_MUST_USE weir_status_t* weir_parse_partial_setup(master_call_t* call);
WEIR_MUST_USE weir_status_t* weir_parse_make_callable(master_call_t* call);
WEIR_MUST_USE weir_status_t* weir_parse_run_callable(master_call_t* call);
WEIR_MUST_USE weir_status_t* weir_parse_create_session(master_call_t* call);
WEIR_MUST_USE weir_status_t* weir_parse_extend_session(master_call_t* call);
WEIR_MUST_USE weir_status_t* weir_parse_handle(master_call_t* call, const char* what);
WEIR_MUST_USE weir_status_t* weir_parse_reset(master_call_t* call);
WEIR_MUST_USE weir_status_t* weir_parse_config(weir_view_t message, weir_arena_t* arena,
                                               weir_master_config_t* out_config);

// ---- master.c ----
master_call_t* weir_master_call_create(weir_master_t* master, weir_rpc_call_t* rpc);
// Answers and frees. |take_status| NULL: |builder|'s content, else the error.
void weir_master_call_finish(master_call_t* call, weir_status_t* take_status,
                             weir_message_builder_t* builder);

// ---- master_run.c: handlers of steps ----
void weir_handle_run_step(void* self, weir_rpc_call_t* rpc);
void weir_handle_make_callable(void* self, weir_rpc_call_t* rpc);
void weir_handle_run_callable(void* self, weir_rpc_call_t* rpc);
void weir_handle_release_callable(void* self, weir_rpc_call_t* rpc);
// Answers a run that failed: in the body where the client asked for that.
void weir_master_call_fail_run(master_call_t* call, weir_status_t* take_status);

// ---- master_partial.c: partial runs ----
void weir_handle_partial_setup(void* self, weir_rpc_call_t* rpc);
void weir_handle_snapshot_setup(void* self, weir_rpc_call_t* rpc);
void weir_master_continue_partial(master_call_t* call);  // blocks; answers the call
void weir_master_drop_partials(weir_master_session_t* session);

#endif  // WEIR_CLUSTER_MASTER_MASTER_INTERNAL_H_
