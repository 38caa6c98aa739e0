// recorded.h — Steps that a device repeats by itself: once the same step has run a few times, what
// it launches is recorded, and later steps launch that as a whole.
#ifndef WEIR_EXEC_RECORDED_H_
#define WEIR_EXEC_RECORDED_H_

#include "exec/run.h"

typedef struct weir_recorded_t weir_recorded_t;  // of a plan; thread-safe

// NULL in |out_recorded|: steps of |plan| cannot be recorded. Called when the plan is otherwise
// made.
WEIR_MUST_USE weir_status_t* weir_recorded_create(weir_plan_t* plan,
                                                  weir_recorded_t** out_recorded);
void weir_recorded_destroy(weir_recorded_t* recorded);  // NULL-safe
// Runs the step of |params| as weir_run does, by a recording. False: it has none, and nothing was
// done; it is to be run as ever.
bool weir_recorded_run(const weir_run_params_t* params, weir_status_t** out_status);

#endif  // WEIR_EXEC_RECORDED_H_
