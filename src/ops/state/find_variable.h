// find_variable.h — For ops that give a variable its first value.
#ifndef WEIR_OPS_STATE_FIND_VARIABLE_H_
#define WEIR_OPS_STATE_FIND_VARIABLE_H_

#include "op/kernel.h"

// The variable that input 0, a handle, names, made now when there is none. The caller's.
WEIR_MUST_USE weir_status_t* weir_state_find_or_create(weir_kernel_ctx_t* ctx, weir_dtype_t dtype,
                                                       weir_variable_t** out_variable);

#endif  // WEIR_OPS_STATE_FIND_VARIABLE_H_
