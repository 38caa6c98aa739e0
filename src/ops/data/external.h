// external.h — Whether what a function makes depends on state that no iterator holds: variables,
// queues, random numbers.
#ifndef WEIR_OPS_DATA_EXTERNAL_H_
#define WEIR_OPS_DATA_EXTERNAL_H_

#include "ops/data/state.h"

// What |policy| makes of the state that function |name|, or one that it needs, depends on: it is
// ignored, or a warning that |what| is saved without it, or FAILED_PRECONDITION "RandomUniform is
// stateful."
WEIR_MUST_USE weir_status_t* weir_external_check(weir_functions_t* functions, weir_view_t name,
                                                 weir_state_policy_t policy, const char* what);

#endif  // WEIR_OPS_DATA_EXTERNAL_H_
