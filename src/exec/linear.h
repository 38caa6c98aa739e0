// linear.h — Running a plan without loops, conditionals and asynchronous kernels: one pass over the
// array, no atomics.
#ifndef WEIR_EXEC_LINEAR_H_
#define WEIR_EXEC_LINEAR_H_

#include "exec/run.h"

// Runs |plan| on this thread. |trace| may be NULL; |deadline_ns| 0 for none.
WEIR_MUST_USE weir_status_t* weir_linear_run(weir_plan_t* plan, weir_step_t* step,
                                             weir_tensor_t* const* args, weir_tensor_t** rets,
                                             weir_trace_t* trace, int64_t deadline_ns);
void weir_linear_free_states(weir_plan_t* plan);

#endif  // WEIR_EXEC_LINEAR_H_
