// functions.h — Function calls of a session: bodies instantiated once per attribute set, as plans.
// Thread-safe.
#ifndef WEIR_SESSION_FUNCTIONS_H_
#define WEIR_SESSION_FUNCTIONS_H_

#include "op/kernel.h"
#include "weir/session.h"

typedef struct weir_session_functions_t weir_session_functions_t;

WEIR_MUST_USE weir_status_t* weir_session_functions_create(
    weir_session_t* session, weir_session_functions_t** out_functions);
void weir_session_functions_destroy(weir_session_functions_t* functions);
weir_functions_t* weir_session_functions_base(weir_session_functions_t* functions);

#endif  // WEIR_SESSION_FUNCTIONS_H_
