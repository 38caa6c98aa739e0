// node_run.h — What both executors do around a kernel: bind constants, read references, wrap
// errors. Inline: the hot path.
#ifndef WEIR_EXEC_NODE_RUN_H_
#define WEIR_EXEC_NODE_RUN_H_

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

// "Node 'x' (Op): message", once.
weir_status_t* weir_node_error(const weir_plan_node_t* node, weir_status_t* take_status);
int64_t weir_node_output_bytes(const weir_value_t* outputs, int32_t count);
// INVALID_ARGUMENT when the argument's type is not what the graph expects.
weir_status_t* weir_node_check_arg(const weir_plan_node_t* node, int32_t index,
                                   const weir_tensor_t* arg);

#endif  // WEIR_EXEC_NODE_RUN_H_
