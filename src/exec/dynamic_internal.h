// dynamic_internal.h — What the files of the general executor call of each other, with the run's
// lock held.
#ifndef WEIR_EXEC_DYNAMIC_INTERNAL_H_
#define WEIR_EXEC_DYNAMIC_INTERNAL_H_

#include "exec/dynamic_state.h"

// ---- dynamic_finish.c ----

// The end of a run's first activation: the step itself.
void weir_run_root_done(void* arg, weir_status_t* take_status);
// Aborts the run, unless it is, and ends what can end.
void weir_run_abort(run_t* run, weir_status_t* take_status) WEIR_REQUIRES(run->mu);
// Whoever aborted the run ends every activation that has no kernel in flight. The others end with
// their last kernel.
void weir_run_finish_aborted(run_t* run) WEIR_REQUIRES(run->mu);
// The node of |item| is through: propagate, then see whether that was the last one.
void weir_run_complete(run_t* run, const ready_t* item, weir_value_t* outputs, bool is_dead,
                       weir_status_t* take_status) WEIR_REQUIRES(run->mu);
void weir_run_end_ended(run_t* run, activation_t* activation) WEIR_REQUIRES(run->mu);
// Ends what ended with the last propagation into |activation|: mostly nothing.
WEIR_INLINE void weir_run_settle(run_t* run, activation_t* activation) WEIR_REQUIRES(run->mu) {
  if (WEIR_LIKELY(!run->is_aborted && activation->outstanding_ops > 0 && !run->through)) return;
  weir_run_end_ended(run, activation);
}

// ---- dynamic_async.c ----
void weir_run_start_async(run_t* run, const ready_t* item, weir_plan_node_t* node)
    WEIR_REQUIRES(run->mu);
void weir_run_start_queued(run_t* run, const ready_t* item, const weir_plan_node_t* node)
    WEIR_REQUIRES(run->mu);
// Whether the step may write. If not, |item| is ready again when it may.
bool weir_run_pass_gate(run_t* run, const ready_t* item) WEIR_REQUIRES(run->mu);

// ---- dynamic.c ----
// This thread, counted among the helpers, is through with the run for now. What became ready is for
// the thread that waits; where none does, for this one if it is brief, else for a pool thread. What
// is part of a cancellation does not end the run itself, since the end has to wait for it.
void weir_run_leave(run_t* run) WEIR_RELEASE(run->mu);

WEIR_INLINE void weir_run_fill_ctx(run_t* run, const ready_t* item, weir_value_t* outputs,
                                   weir_kernel_ctx_t* ctx) {
  const weir_plan_t* plan = item->activation->plan;
  const weir_plan_node_t* node = &plan->nodes[item->node];
  *ctx = (weir_kernel_ctx_t){.node = node->def,
                             .kernel = node->kernel,
                             .state = node->state,
                             .inputs = item->iteration->slots + node->first_slot,
                             .outputs = outputs,
                             .device = node->device,
                             .host_outputs = node->host_outputs,
                             .step = &run->step,
                             .input_count = node->input_count,
                             .output_count = node->output_count,
                             .frame_id = item->iteration->frame->id,
                             .iteration = item->iteration->number,
                             .is_input_dead = item->is_dead};
}

#endif  // WEIR_EXEC_DYNAMIC_INTERNAL_H_
