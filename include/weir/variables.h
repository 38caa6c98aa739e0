// variables.h — The variables of a session by their names, from memory and into it, without a step.
//
//   check(weir_session_read_variable(session, "dense/kernel", &kernel));
//   check(weir_session_set_variables(session, (const char*[]){"dense/kernel"}, &other, 1));
//
// Not of a session on a server ("target"): UNIMPLEMENTED. Thread-safe, while steps run, too.
#ifndef WEIR_VARIABLES_H_
#define WEIR_VARIABLES_H_

#include "weir/session.h"

#ifdef __cplusplus
extern "C" {
#endif

// The value that the variable |name| has now: the caller's to release, but not to change, for it
// may be the variable's own memory. NOT_FOUND suggests a name; FAILED_PRECONDITION: not
// initialised.
WEIR_API WEIR_MUST_USE weir_status_t* weir_session_read_variable(weir_session_t* session,
                                                                 const char* name,
                                                                 weir_tensor_t** out_tensor);
// Gives |count| variables values, whether they had one or not. Tensors are retained and must not be
// changed afterwards. All are looked at before the first variable changes: NOT_FOUND suggests a
// name, INVALID_ARGUMENT names a variable with its type and the tensor's, or both shapes.
WEIR_API WEIR_MUST_USE weir_status_t* weir_session_set_variables(weir_session_t* session,
                                                                 const char* const* names,
                                                                 weir_tensor_t* const* tensors,
                                                                 int count);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_VARIABLES_H_
