// node_run.h — What both executors do around a kernel: bind constants, read references, wrap
// errors. Inline: the hot path.
#ifndef WEIR_EXEC_NODE_RUN_H_
#define WEIR_EXEC_NODE_RUN_H_

#include "base/interrupt.h"
#include "exec/plan.h"

// Gives the node its constant inputs; each is a reference of its own, which the kernel may take.
WEIR_INLINE void weir_node_bind_consts(const weir_plan_t* plan, const weir_plan_node_t* node,
                                       weir_value_t* inputs) {
  const weir_plan_const_t* consts = plan->consts + node->first_const;
  for (int32_t i = 0; i < node->const_count; ++i)
    inputs[consts[i].input].tensor = weir_tensor_retain_inline(consts[i].tensor);
}

// Does the node's |input_work|: replaces references by the values of their variables where the op
// wants values (FAILED_PRECONDITION when uninitialised), and values that were read of variables
// before by those of now.
weir_status_t* weir_node_prepare_inputs(const weir_plan_node_t* node, weir_value_t* inputs);

WEIR_INLINE void weir_node_release_inputs(weir_value_t* inputs, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    if (inputs[i].tensor) {
      weir_tensor_release(inputs[i].tensor);
      inputs[i].tensor = NULL;
    }
    if (inputs[i].ref) weir_value_release(&inputs[i]);
  }
}

// "Node 'x' (Op): message", once. NULL stays NULL.
weir_status_t* weir_node_error_(const weir_plan_node_t* node, weir_status_t* take_status);
WEIR_INLINE weir_status_t* weir_node_error(const weir_plan_node_t* node,
                                           weir_status_t* take_status) {
  return WEIR_LIKELY(!take_status) ? NULL : weir_node_error_(node, take_status);
}
int64_t weir_node_bytes(const weir_value_t* values, int32_t count);  // of the tensors
// Inputs this small take no kernel long, whatever they were when it was measured.
#define WEIR_FEW_BYTES INT64_C(4096)
// INVALID_ARGUMENT when the argument's type is not what the graph expects.
weir_status_t* weir_node_check_arg(const weir_plan_node_t* node, int32_t index,
                                   const weir_tensor_t* arg);

// What ends a kernel before it is through: its step's cancellation and deadline. A kernel that
// changes a variable or another resource is let finish: others would see the half of it.
typedef struct weir_node_interrupt_t {
  weir_interrupt_t base;
  const weir_kernel_ctx_t* ctx;
  int64_t deadline_ns;  // 0: none
} weir_node_interrupt_t;
bool weir_node_interrupt_is_due(weir_interrupt_t* base);
WEIR_INLINE weir_node_interrupt_t weir_node_interrupt(const weir_kernel_ctx_t* ctx,
                                                      int64_t deadline_ns) {
  return (weir_node_interrupt_t){
      .base = {.is_due = weir_node_interrupt_is_due}, .ctx = ctx, .deadline_ns = deadline_ns};
}
WEIR_INLINE bool weir_node_interrupt_is_hit(const weir_node_interrupt_t* interrupt) {
  // Relaxed: the kernel has returned, and with it all who helped.
  return atomic_load_explicit(&interrupt->base.is_hit, memory_order_relaxed);
}
// CANCELLED or DEADLINE_EXCEEDED when the step is to end, else NULL.
weir_status_t* weir_step_check(const weir_step_t* step, int64_t deadline_ns);

#endif  // WEIR_EXEC_NODE_RUN_H_
