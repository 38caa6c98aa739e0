// session.h — The local session from inside: signatures become plans, plans are cached, steps run.
#ifndef WEIR_SESSION_SESSION_H_
#define WEIR_SESSION_SESSION_H_

#include "base/cancel.h"
#include "base/map.h"
#include "exec/plan.h"
#include "exec/run.h"
#include "session/functions.h"
#include "weir/session.h"

// The steps that one weir_session_cancel ends: those started since the one before.
typedef struct weir_session_generation_t {
  weir_cancel_t* cancel;  // parent of every step of it
  int running_count;      // guarded by the session's mu
} weir_session_generation_t;

struct weir_session_t {
  weir_graph_t* graph;  // retained
  weir_pool_t* pool;    // intra-op work and nodes side by side
  weir_device_t* device;
  weir_resources_t* resources;  // the graph's, or our own
  bool owns_resources;
  bool allow_soft_placement;
  char* disabled_passes;  // NULL: none
  weir_session_functions_t* functions;
  weir_kernel_cache_t kernels;  // of the graph's own nodes; functions keep theirs in their plans
  weir_mutex_t mu;              // guards all below
  weir_cond_t idle;             // signalled when a running_count falls to zero
  weir_map_t plans;             // signature → weir_plan_t, owned
  weir_session_generation_t* generation;  // of steps started now; replaced when cancelled
  int running_count;
  int64_t next_step_id;
};

// The plan for a signature, from the cache or made. Borrowed: lives as long as the session.
WEIR_MUST_USE weir_status_t* weir_session_plan(weir_session_t* session,
                                               const weir_step_spec_t* spec,
                                               weir_plan_t** out_plan);
// Optimises |take_graph| and freezes it. |targets| are nodes of it. |kernels|: see
// weir_plan_params_t.
WEIR_MUST_USE weir_status_t* weir_session_compile(weir_session_t* session, weir_graph_t* take_graph,
                                                  weir_node_t** targets, int target_count,
                                                  int arg_count, int ret_count,
                                                  weir_kernel_cache_t* kernels,
                                                  weir_plan_t** out_plan);
// INVALID_ARGUMENT when a fed tensor does not fit its edge.
WEIR_MUST_USE weir_status_t* weir_session_check_feed(weir_edge_t edge, const weir_tensor_t* tensor);
// Runs a plan. |rendezvous| may be NULL.
typedef struct weir_session_run_params_t {
  weir_plan_t* plan;
  weir_tensor_t* const* args;
  weir_tensor_t** rets;
  weir_cancel_t* cancel;  // of the call; NULL: none
  weir_rendezvous_t* rendezvous;
  int64_t timeout_ms;
  weir_trace_t* trace;
} weir_session_run_params_t;
WEIR_MUST_USE weir_status_t* weir_session_execute(weir_session_t* session,
                                                  const weir_session_run_params_t* params);

#endif  // WEIR_SESSION_SESSION_H_
