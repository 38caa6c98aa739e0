// session.h — The local session from inside: signatures become plans, plans are cached, steps run.
#ifndef WEIR_SESSION_SESSION_H_
#define WEIR_SESSION_SESSION_H_

#include "base/cancel.h"
#include "base/live.h"
#include "base/lru.h"
#include "exec/plan.h"
#include "exec/run.h"
#include "pass/pass.h"
#include "session/functions.h"
#include "weir/session.h"

// The steps that one weir_session_cancel ends: those started since the one before.
typedef struct weir_session_generation_t {
  weir_cancel_t* cancel;  // parent of every step of it
  int running_count;      // guarded by the session's mu
} weir_session_generation_t;

// A session whose steps run on a master elsewhere: what the public functions hand over to it.
// Thread-safe.
typedef struct weir_remote_session_t weir_remote_session_t;
typedef struct weir_remote_session_vtable_t {
  void (*destroy)(weir_remote_session_t* self);
  // |out_metadata|: the RunMetadata of a traced step; may be NULL.
  weir_status_t* (*run)(weir_remote_session_t* self, const weir_step_spec_t* spec,
                        const weir_run_options_t* options, weir_tensor_t** results,
                        weir_strbuf_t* out_metadata);
  void (*cancel)(weir_remote_session_t* self);
  void (*reset)(weir_remote_session_t* self, const char* const* containers, int count);
} weir_remote_session_vtable_t;
struct weir_remote_session_t {
  const weir_remote_session_vtable_t* vtable;
};

// What a session runs on when a task of a cluster lends it: everything is borrowed.
typedef struct weir_session_env_t {
  weir_pool_t* pool;
  weir_device_t* device;
  weir_resources_t* resources;
  weir_kernel_cache_t* kernels;
} weir_session_env_t;

struct weir_session_t {
  weir_live_t live;
  weir_graph_t* graph;            // retained
  weir_callable_t* callables;     // guarded by |mu|
  weir_mutex_t mu;                // guards what says so, and all below |idle|
  weir_remote_session_t* remote;  // owned; NULL: steps run here. Else nothing below is in use
  bool owns_env;                  // pool and device are its own
  weir_pool_t* pool;              // intra-op work and nodes side by side
  weir_device_t* device;
  weir_resources_t* resources;  // the graph's, or our own
  bool owns_resources;
  bool allow_soft_placement;
  char* disabled_passes;  // NULL: none
  weir_session_functions_t* functions;
  weir_kernel_cache_t* kernels;  // of the graph's own nodes; functions keep theirs in their plans
  weir_kernel_cache_t own_kernels;        // what |kernels| points to unless it is lent
  weir_cond_t idle;                       // signalled when a running_count falls to zero
  weir_lru_t plans;                       // signature → weir_plan_t, retained
  weir_session_generation_t* generation;  // of steps started now; replaced when cancelled
  int running_count;
  int64_t next_step_id;
};

// A session that hands everything to |take_remote|.
WEIR_MUST_USE weir_status_t* weir_session_create_remote(weir_graph_t* graph,
                                                        weir_remote_session_t* take_remote,
                                                        weir_session_t** out_session);
// The steps of a cancellation of the public API.
weir_cancel_t* weir_cancellation_get(weir_cancellation_t* cancellation);
// A session on a lent environment. |options->threads| and isolate_state mean nothing then.
WEIR_MUST_USE weir_status_t* weir_session_create_in(weir_graph_t* graph,
                                                    const weir_session_env_t* env,
                                                    const weir_session_options_t* options,
                                                    weir_session_t** out_session);

// The plan for a signature, from the cache or made; the caller owns one reference.
WEIR_MUST_USE weir_status_t* weir_session_plan(weir_session_t* session,
                                               const weir_step_spec_t* spec,
                                               weir_plan_t** out_plan);
// Optimises |take_graph| and freezes it. |targets| are nodes of it. |kernels|: see
// weir_plan_params_t; NULL for the body of a function.
WEIR_MUST_USE weir_status_t* weir_session_compile(weir_session_t* session, weir_graph_t* take_graph,
                                                  weir_node_t** targets, int target_count,
                                                  int arg_count, int ret_count,
                                                  weir_kernel_cache_t* kernels,
                                                  weir_plan_t** out_plan);
// INVALID_ARGUMENT when a fed tensor does not fit its edge.
WEIR_MUST_USE weir_status_t* weir_session_check_feed(weir_edge_t edge, const weir_tensor_t* tensor);
// INVALID_ARGUMENT when an array that has a count is NULL.
WEIR_MUST_USE weir_status_t* weir_session_check_arrays(const weir_step_spec_t* spec);
// INVALID_ARGUMENT when a signature names what is not in the graph, or nothing at all.
WEIR_MUST_USE weir_status_t* weir_session_check_spec(const weir_session_t* session,
                                                     const weir_step_spec_t* spec);
// The pruned and flattened copy of the graph that a signature runs, and its targets there (in its
// arena).
WEIR_MUST_USE weir_status_t* weir_session_prune(weir_session_t* session,
                                                const weir_step_spec_t* spec,
                                                weir_connections_t connections,
                                                weir_graph_t** out_graph,
                                                weir_node_t*** out_targets);
// The same for a step that is fed and fetched piece by piece: in place of arguments and results it
// receives and sends, on |device| (NULL: none in particular), under weir_partial_run_key.
WEIR_MUST_USE weir_status_t* weir_session_prune_partial(
    weir_session_t* session, const weir_step_spec_t* spec, const char* device,
    weir_graph_t** out_graph, weir_node_t*** out_targets, int* out_target_count);
// The key under which feed or fetch |index| travels; |kind| is "feed" or "fetch".
#define WEIR_PARTIAL_KEY_SIZE 64
weir_view_t weir_partial_run_key(const char* kind, int index, char buffer[WEIR_PARTIAL_KEY_SIZE]);
// INVALID_ARGUMENT naming a fetch that needs one of |feeds| for which |is_fed| is not true yet. The
// caller holds the graph's lock.
WEIR_MUST_USE weir_status_t* weir_partial_run_check(const weir_graph_t* graph, weir_edges_t fetches,
                                                    weir_edges_t feeds, const bool* is_fed);
// Optimises |graph| in place.
WEIR_MUST_USE weir_status_t* weir_session_optimize(weir_session_t* session, weir_graph_t* graph,
                                                   weir_node_t** targets, int target_count);
// The signature as bytes.
void weir_session_append_signature(const weir_step_spec_t* spec, weir_strbuf_t* key);
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
// The same in pieces, for a step that another thread runs: from enter to leave the session is not
// destroyed, but cancels the step and waits for it.
typedef struct weir_running_t {
  weir_session_generation_t* generation;
  int64_t step_id;
} weir_running_t;
weir_running_t weir_session_enter(weir_session_t* session);
WEIR_MUST_USE weir_status_t* weir_session_execute_as(weir_session_t* session,
                                                     const weir_running_t* running,
                                                     const weir_session_run_params_t* params);
void weir_session_leave(weir_session_t* session, const weir_running_t* running);

#endif  // WEIR_SESSION_SESSION_H_
