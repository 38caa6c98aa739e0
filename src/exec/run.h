// run.h — Running a plan: one step, with its arguments, results, cancellation and trace.
//
// Lock order: a run's mutex is taken before a resource's own and never held while a kernel or a
// callback runs.
#ifndef WEIR_EXEC_RUN_H_
#define WEIR_EXEC_RUN_H_

#include "exec/plan.h"
#include "exec/trace.h"

typedef struct weir_run_params_t {
  weir_plan_t* plan;
  weir_tensor_t* const* args;  // plan->arg_count of them
  weir_tensor_t** rets;        // plan->ret_count of them, owned by the caller on success
  weir_cancel_t* cancel;       // parent of the step's own; may be NULL
  weir_resources_t* session_resources;
  weir_device_t* const* devices;  // of the process
  int device_count;
  weir_rendezvous_t* rendezvous;  // may be NULL
  weir_functions_t* functions;    // may be NULL
  weir_pool_t* inter_pool;        // threads for nodes that may run side by side
  struct weir_hub_t* hub;         // where collectives meet; may be NULL
  struct weir_gate_t* gate;       // to pass before it writes (op/gate.h), and the caller has it
                                  // leave; NULL: none
  uint64_t scope;                 // of whose steps |step_id| is one; 0: the only ones of |hub|
  int64_t step_id;
  int64_t deadline_ns;  // of weir_clock_ns; 0: none. DEADLINE_EXCEEDED when it passes
  weir_trace_t* trace;  // may be NULL
  bool is_plain;  // no device repeats the step by itself: for those who measure what nodes take
  bool is_brief;  // weir_run_start: the calling thread has other things to do, so what is not
                  // known to be short runs on |inter_pool|
} weir_run_params_t;

// Runs a step to its end on this thread, with help from |inter_pool|. On failure no result is set,
// and the first error comes back; nothing of the step is left.
WEIR_MUST_USE weir_status_t* weir_run(const weir_run_params_t* params);

// The same, but for what is launched: it is not waited for, and results are in the memory where
// they were computed.
WEIR_MUST_USE weir_status_t* weir_run_launch(const weir_run_params_t* params);

// Starts a step and returns; nothing blocks and no thread waits, but for one of the pool where a
// device repeats the step by itself (exec/recorded.h). |done| is called once, on any
// thread (on this one, before the return, when the step needed no other), when the step is through;
// |params->rets| are set on success. |params| is copied; what it points to must live until |done|.
// The deadline is watched only where the plan is linear: cancel the step instead.
void weir_run_start(const weir_run_params_t* params, weir_done_t done);

// Runs |plan| as the function |name| called by the kernel behind |ctx|, within its step. |args|
// must live until |done|, |rets| are owned by the caller once |done| reports success.
// RESOURCE_EXHAUSTED when the calls under way in this process take too much memory.
void weir_run_call(weir_plan_t* plan, const char* name, weir_kernel_ctx_t* ctx,
                   weir_tensor_t* const* args, weir_tensor_t** rets, weir_done_t done);
// How many bytes the calls under way in this process may take; 0: a share of the machine's memory.
void weir_run_limit_calls(int64_t size);

#endif  // WEIR_EXEC_RUN_H_
