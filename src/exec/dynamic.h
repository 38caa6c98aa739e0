// dynamic.h — The general executor: loops, conditionals, asynchronous kernels, function calls,
// several threads.
//
// All bookkeeping of a step is under one mutex; kernels run outside it. A step and the functions it
// calls share one stack of ready nodes, so a call costs no thread and no C recursion. Whoever has a
// thread takes ready nodes from the stack: the thread that called weir_run always, pool threads
// while there is more to do than one can.
#ifndef WEIR_EXEC_DYNAMIC_H_
#define WEIR_EXEC_DYNAMIC_H_

#include "exec/run.h"

// Runs the plan of |params| to its end on this thread. |step| is filled but for its place in the
// run.
WEIR_MUST_USE weir_status_t* weir_dynamic_run(const weir_run_params_t* params,
                                              const weir_step_t* step_template);
// Starts the same and returns. |finished| is called once, on any thread, when the run has ended and
// its memory is gone but for |step_template|'s cancellation and resources. |params| is copied; what
// it points to must live until then. Its deadline is not watched.
void weir_dynamic_start(const weir_run_params_t* params, const weir_step_t* step_template,
                        weir_done_t finished);

#endif  // WEIR_EXEC_DYNAMIC_H_
