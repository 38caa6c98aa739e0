// checkpoint.h — Giving a session's variables the values of a file, whatever its format.
#ifndef WEIR_API_CHECKPOINT_H_
#define WEIR_API_CHECKPOINT_H_

#include "weir/session.h"
#include "weir/tensor.h"

// Creates the value of the variable |name|; NULL: it stays as it is. NOT_FOUND when the file has
// none.
typedef weir_status_t* (*weir_value_source_fn_t)(void* source, const char* name,
                                                 weir_tensor_t** out_value);
// Gives every variable of the session's graph what |read| has for it. All are read and checked
// before the first one changes.
WEIR_MUST_USE weir_status_t* weir_checkpoint_assign_all(weir_session_t* session,
                                                        weir_value_source_fn_t read, void* source);

#endif  // WEIR_API_CHECKPOINT_H_
