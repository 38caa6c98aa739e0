// session.h — The local session from inside: signatures become plans, plans are cached, steps run.
#ifndef WEIR_SESSION_SESSION_H_
#define WEIR_SESSION_SESSION_H_

#include "base/cancel.h"
#include "base/live.h"
#include "base/lru.h"
#include "runtime/program.h"
#include "session/signature.h"
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
  // A step of two fetches, which reads variables as whole steps leave them: begin returns with the
  // first, end with the second and when all is done. UNIMPLEMENTED, NOT_FOUND: the master, or a
  // task, knows no such steps. |*out_step| is gone after end, which must be called.
  weir_status_t* (*begin_snapshot)(weir_remote_session_t* self, const weir_step_spec_t* spec,
                                   void** out_step);
  weir_status_t* (*end_snapshot)(weir_remote_session_t* self, void* take_step);
  void (*cancel)(weir_remote_session_t* self);
  void (*reset)(weir_remote_session_t* self, const char* const* containers, int count);
} weir_remote_session_vtable_t;
struct weir_remote_session_t {
  const weir_remote_session_vtable_t* vtable;
};

struct weir_session_t {
  weir_live_t live;
  weir_graph_t* graph;            // retained
  weir_callable_t* callables;     // guarded by |mu|
  weir_mutex_t mu;                // guards what says so, and all below |idle|
  weir_remote_session_t* remote;  // owned; NULL: steps run here. Else nothing below is in use
  weir_program_t* program;        // compiles and runs
  weir_cond_t idle;               // signalled when a running_count falls to zero
  weir_lru_t plans;               // signature → weir_plan_t, retained
  weir_session_generation_t* generation;  // of steps started now; replaced when cancelled
  int running_count;
  int64_t next_step_id;
  bool shares_state;  // with the graph's other sessions; constant
};

// A session that hands everything to |take_remote|.
WEIR_MUST_USE weir_status_t* weir_session_create_remote(weir_graph_t* graph,
                                                        weir_remote_session_t* take_remote,
                                                        weir_session_t** out_session);
// The steps of a cancellation of the public API.
weir_cancel_t* weir_cancellation_get(weir_cancellation_t* cancellation);
WEIR_MUST_USE weir_status_t* weir_session_create_local(weir_graph_t* graph,
                                                       const weir_session_options_t* options,
                                                       weir_session_t** out_session);

// The plan for a signature, from the cache or made; the caller owns one reference.
WEIR_MUST_USE weir_status_t* weir_session_plan(weir_session_t* session,
                                               const weir_step_spec_t* spec,
                                               weir_plan_t** out_plan);
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
