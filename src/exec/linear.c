// linear.c — The static schedule: nodes run in array order, values move from slot to slot.
#include "exec/linear.h"

#include "base/subnormal.h"
#include "exec/node_run.h"

// Memory of one step, recycled by the plan: a warm step allocates nothing but tensors.
typedef struct linear_state_t {
  struct linear_state_t* next;
  weir_value_t* outputs;
  weir_value_t slots[];
} linear_state_t;

static linear_state_t* state_take(weir_plan_t* plan) {
  weir_mutex_lock(&plan->mu);
  linear_state_t* state = plan->free_states;
  if (state) plan->free_states = state->next;
  weir_mutex_unlock(&plan->mu);
  if (state) return state;
  size_t count = (size_t)plan->frames[0].slot_count + (size_t)plan->max_outputs;
  state = weir_calloc(1, sizeof(*state) + count * sizeof(weir_value_t));
  if (state) state->outputs = state->slots + plan->frames[0].slot_count;
  return state;
}

static void state_give(weir_plan_t* plan, linear_state_t* state) {
  weir_mutex_lock(&plan->mu);
  state->next = plan->free_states;
  plan->free_states = state;
  weir_mutex_unlock(&plan->mu);
}

void weir_linear_free_states(weir_plan_t* plan) {
  for (linear_state_t* state = plan->free_states; state;) {
    linear_state_t* next = state->next;
    weir_free(state);
    state = next;
  }
  plan->free_states = NULL;
}

// Moves outputs to the slots of their consumers; the last consumer of each gets the producer's own
// reference.
WEIR_INLINE void hand_out(const weir_plan_t* plan, const weir_plan_node_t* node,
                          weir_value_t* slots, weir_value_t* outputs) {
  const weir_plan_edge_t* edge = plan->edges + node->first_edge;
  const weir_plan_edge_t* end = edge + node->data_edge_count;
  if (node->output_count == 1 && node->data_edge_count == 1) {
    slots[edge->slot] = outputs[0];
    outputs[0] = (weir_value_t){.tensor = NULL, .ref = NULL};
    return;
  }
  while (edge < end) {
    int32_t output = edge->output;
    const weir_plan_edge_t* last = edge;
    while (last + 1 < end && last[1].output == output) ++last;
    weir_value_t value = outputs[output];
    int more = (int)(last - edge);
    if (more > 0 && value.tensor) weir_ref_inc(&value.tensor->ref, more);
    if (more > 0 && value.ref) weir_ref_inc(&value.ref->base.ref, more);
    for (; edge <= last; ++edge) slots[edge->slot] = value;
    outputs[output] = (weir_value_t){.tensor = NULL, .ref = NULL};
  }
  for (int32_t i = 0; i < node->output_count; ++i) weir_value_release(&outputs[i]);
}

static weir_status_t* set_args(const weir_plan_t* plan, weir_value_t* slots,
                               weir_tensor_t* const* args) {
  for (int32_t i = 0; i < plan->arg_count; ++i) {
    if (plan->args[i] < 0) continue;
    const weir_plan_node_t* node = &plan->nodes[plan->args[i]];
    WEIR_TRY(weir_node_check_arg(node, i, args[i]));
    weir_value_t value = {.tensor = weir_tensor_retain_inline(args[i])};
    hand_out(plan, node, slots, &value);
    weir_value_release(&value);
  }
  return NULL;
}

static weir_status_t* take_ret(const weir_plan_node_t* node, weir_value_t* inputs,
                               weir_tensor_t** rets) {
  if (!inputs[0].tensor) return WEIR_STATUS(INTERNAL, "the value to fetch was not computed");
  rets[node->ret] = inputs[0].tensor;
  inputs[0].tensor = NULL;
  return NULL;
}

WEIR_INLINE weir_status_t* run_node(const weir_plan_t* plan, const weir_plan_node_t* node,
                                    weir_kernel_ctx_t* ctx, weir_value_t* slots,
                                    weir_tensor_t** rets) {
  weir_value_t* inputs = slots + node->first_slot;
  if (node->const_count) weir_node_bind_consts(plan, node, inputs);
  if (WEIR_UNLIKELY(node->input_work)) WEIR_TRY(weir_node_prepare_inputs(node, inputs));
  if (WEIR_UNLIKELY(!node->compute)) return node->ret >= 0 ? take_ret(node, inputs, rets) : NULL;
  ctx->node = node->def;
  ctx->kernel = node->kernel;
  ctx->state = node->state;
  ctx->inputs = inputs;
  ctx->input_count = node->input_count;
  ctx->output_count = node->output_count;
  ctx->host_outputs = node->host_outputs;
  return node->compute(ctx);
}

static weir_status_t* run_traced(const weir_plan_t* plan, const weir_plan_node_t* node,
                                 weir_kernel_ctx_t* ctx, weir_value_t* slots, weir_tensor_t** rets,
                                 weir_trace_t* trace) {
  if (!node->compute) return run_node(plan, node, ctx, slots, rets);
  weir_trace_event_t event;
  weir_trace_begin(&event, node->def, ctx->device, weir_clock_ns());  // ready when its turn comes
  weir_status_t* status = run_node(plan, node, ctx, slots, rets);
  weir_trace_end(trace, &event, ctx->outputs, node->output_count);
  return status;
}

// A kernel was left undone: whatever it says, what it made is of no use.
static __attribute__((noinline)) weir_status_t* drop_undone(weir_step_t* step, int64_t deadline_ns,
                                                            weir_status_t* take_status) {
  weir_status_destroy(take_status);
  return weir_step_check(step, deadline_ns);
}

static weir_status_t* run_all(weir_plan_t* plan, weir_kernel_ctx_t* ctx, linear_state_t* state,
                              weir_tensor_t** rets, weir_trace_t* trace,
                              const weir_node_interrupt_t* interrupt) {
  weir_step_t* step = ctx->step;
  int64_t deadline_ns = interrupt->deadline_ns;
  WEIR_TRY(weir_step_check(step, deadline_ns));
  for (int32_t i = 0; i < plan->node_count; ++i) {
    const weir_plan_node_t* node = &plan->nodes[i];
    if (node->role == WEIR_ROLE_ARG) continue;
    if ((i & 15) == 15 || deadline_ns) WEIR_TRY(weir_step_check(step, deadline_ns));
    weir_status_t* status = trace ? run_traced(plan, node, ctx, state->slots, rets, trace)
                                  : run_node(plan, node, ctx, state->slots, rets);
    if (WEIR_UNLIKELY(weir_node_interrupt_is_hit(interrupt)))
      return drop_undone(step, deadline_ns, status);
    if (WEIR_UNLIKELY(status)) return weir_node_error(node, status);
    weir_node_release_inputs(state->slots + node->first_slot, node->input_count);
    hand_out(plan, node, state->slots, state->outputs);
  }
  return NULL;
}

static weir_status_t* run_nodes(weir_plan_t* plan, weir_step_t* step, linear_state_t* state,
                                weir_tensor_t** rets, weir_trace_t* trace, int64_t deadline_ns) {
  weir_kernel_ctx_t ctx = {.outputs = state->outputs, .device = plan->device, .step = step};
  weir_node_interrupt_t interrupt = weir_node_interrupt(&ctx, deadline_ns);
  weir_interrupt_t* before = weir_interrupt_set(&interrupt.base);
  weir_status_t* status = run_all(plan, &ctx, state, rets, trace, &interrupt);
  weir_interrupt_set(before);
  return status;
}

static void clear(weir_value_t* values, int32_t count) {
  for (int32_t i = 0; i < count; ++i) weir_value_release(&values[i]);
}

weir_status_t* weir_linear_run(weir_plan_t* plan, weir_step_t* step, weir_tensor_t* const* args,
                               weir_tensor_t** rets, weir_trace_t* trace, int64_t deadline_ns) {
  linear_state_t* state = state_take(plan);
  if (!state) return weir_out_of_memory();
  for (int32_t i = 0; i < plan->ret_count; ++i) rets[i] = NULL;  // there may be none at all
  weir_status_t* status = set_args(plan, state->slots, args);
  const weir_float_mode_t before = weir_flush_subnormals();
  if (!status) status = run_nodes(plan, step, state, rets, trace, deadline_ns);
  weir_float_mode_restore(before);
  if (status) {
    clear(state->slots, plan->frames[0].slot_count);
    clear(state->outputs, plan->max_outputs);
    for (int32_t i = 0; i < plan->ret_count; ++i) {
      weir_tensor_release(rets[i]);
      rets[i] = NULL;
    }
  }
  state_give(plan, state);
  return status;
}
