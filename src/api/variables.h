// variables.h — The variables of a session in this process: where each is, what it holds, and new
// values for them. Thread-confined; the session may run steps meanwhile.
#ifndef WEIR_API_VARIABLES_H_
#define WEIR_API_VARIABLES_H_

#include "device/device.h"
#include "graph/graph.h"
#include "weir/session.h"

// Zero-initialise.
typedef struct weir_variables_t {
  weir_session_t* session;  // borrowed
  weir_node_t** nodes;      // in the order of the graph
  weir_device_t** homes;    // where the steps of the session have each
  size_t count;
} weir_variables_t;

// All variables of the session's graph. UNIMPLEMENTED for a session on a server.
WEIR_MUST_USE weir_status_t* weir_variables_list(weir_session_t* session,
                                                 weir_variables_t* out_variables);
void weir_variables_free(weir_variables_t* variables);
// The place of |name|; NOT_FOUND suggests one that is like it.
WEIR_MUST_USE weir_status_t* weir_variables_find(const weir_variables_t* variables,
                                                 const char* name, size_t* out_index);

// The value of a variable, the caller's, in host memory; NULL: it is not initialised.
WEIR_MUST_USE weir_status_t* weir_variables_read(const weir_variables_t* variables, size_t index,
                                                 weir_tensor_t** out_value);
// INVALID_ARGUMENT naming the variable and both types, or both shapes, unless it may hold |value|.
WEIR_MUST_USE weir_status_t* weir_variables_check(const weir_variables_t* variables, size_t index,
                                                  const weir_tensor_t* value);
// Gives each variable its of |values|, in host memory, each of which was checked; those of NULL
// stay as they are. Takes the tensors out of |values|, some of them also when this fails.
WEIR_MUST_USE weir_status_t* weir_variables_assign(const weir_variables_t* variables,
                                                   weir_tensor_t** values);

#endif  // WEIR_API_VARIABLES_H_
