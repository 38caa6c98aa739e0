// op_call.h — A single op, prepared once and called without a graph, any number of times.
#ifndef WEIR_RUNTIME_OP_CALL_H_
#define WEIR_RUNTIME_OP_CALL_H_

#include "op/kernel.h"

typedef struct weir_op_call_t weir_op_call_t;

// Finds the kernel of |node| on |device| and initialises it. |node| and |device| must outlive the
// call.
WEIR_MUST_USE weir_status_t* weir_op_call_create(const weir_node_def_t* node, weir_device_t* device,
                                                 weir_op_call_t** out_call);
void weir_op_call_destroy(weir_op_call_t* call);  // NULL-safe
// Whether the kernel is asynchronous: it may wait for others.
bool weir_op_call_may_wait(const weir_op_call_t* call);
// Runs the kernel, in its device's stream where it has one, and waits. |inputs| are where the
// kernel expects them; it may take them out. |outputs|, empty before, are the caller's in every
// case. Thread-safe, as far as the kernel's state is.
WEIR_MUST_USE weir_status_t* weir_op_call_run(weir_op_call_t* call, weir_step_t* step,
                                              weir_value_t* inputs, weir_value_t* outputs);

#endif  // WEIR_RUNTIME_OP_CALL_H_
