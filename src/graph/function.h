// function.h — The function library: bodies by name, signatures usable as ops, bodies instantiated
// as graphs.
//
// Threading: the library is thread-safe; functions are immutable once added.
#ifndef WEIR_GRAPH_FUNCTION_H_
#define WEIR_GRAPH_FUNCTION_H_

#include "graph/graph.h"

struct weir_function_t {
  const char* name;
  weir_view_t def;       // the FunctionDef message; owned by the library
  weir_op_t* signature;  // arguments and attributes; def == NULL
  bool is_stateful;
  const char* gradient;  // name of the registered gradient function, or NULL
  size_t number;         // in order of addition
};

WEIR_MUST_USE weir_status_t* weir_function_library_create(weir_function_library_t** out_library);
weir_function_library_t* weir_function_library_retain(weir_function_library_t* library);
void weir_function_library_release(weir_function_library_t* library);
// Adds one FunctionDef (copied). The same definition again is fine; another under the same name is
// INVALID_ARGUMENT.
WEIR_MUST_USE weir_status_t* weir_function_library_add(weir_function_library_t* library,
                                                       weir_view_t function_def);
// Adds a FunctionDefLibrary message: functions and gradients.
WEIR_MUST_USE weir_status_t* weir_function_library_import(weir_function_library_t* library,
                                                          weir_view_t message);
// How many functions there are now, and: removes all added since. For a failed import; nobody may
// have used them yet.
size_t weir_function_library_mark(weir_function_library_t* library);
void weir_function_library_rollback(weir_function_library_t* library, size_t mark);
// Nobody finds it from now on; those who have found it keep it as long as the library.
// INVALID_ARGUMENT when there is none.
WEIR_MUST_USE weir_status_t* weir_function_library_remove(weir_function_library_t* library,
                                                          weir_view_t name);
const weir_function_t* weir_function_find(weir_function_library_t* library,
                                          weir_view_t name);  // NULL when absent
// Appends all of it as a FunctionDefLibrary message.
WEIR_MUST_USE weir_status_t* weir_function_library_write(weir_function_library_t* library,
                                                         weir_strbuf_t* out);

// Calls |fn| for function |name| and for all that it needs, each once: those that it calls, those
// that attributes of its nodes name, its gradient, and what these need (function_needs.c). Until
// the first that returns an error, which is returned. NOT_FOUND for an unknown name.
typedef weir_status_t* (*weir_function_needed_fn_t)(void* arg, const weir_function_t* function);
WEIR_MUST_USE weir_status_t* weir_function_visit_needed(weir_function_library_t* library,
                                                        weir_view_t name,
                                                        weir_function_needed_fn_t fn, void* arg);

// The body of |function| under |attrs| as a graph: _Arg nodes "arg0…" for inputs, _Retval nodes for
// outputs.
typedef struct weir_function_body_t {
  weir_graph_t* graph;  // owned
  weir_node_t** args;   // in the graph's arena
  int arg_count;
  weir_node_t** rets;
  int ret_count;
  // What runs even if nothing reads it: what control_ret names (|promised_count|), then all else
  // that has side effects.
  weir_node_t** controls;
  int control_count;
  int promised_count;
} weir_function_body_t;
WEIR_MUST_USE weir_status_t* weir_function_instantiate(weir_function_library_t* library,
                                                       const weir_registry_t* registry,
                                                       const weir_function_t* function,
                                                       weir_attrs_t attrs,
                                                       weir_function_body_t* out_body);
void weir_function_body_free(weir_function_body_t* body);

// Makes a FunctionDef of a body (its arguments and results, and all nodes of its graph) and adds it
// under |name|, which must be free (function_def.c).
WEIR_MUST_USE weir_status_t* weir_function_library_add_body(weir_function_library_t* library,
                                                            const char* name,
                                                            const weir_function_body_t* body);
// The same message by itself. |naming| (or NULL) says what results are called, "result0" … else,
// what runs though no result needs it, and what the function is about.
typedef struct weir_function_naming_t {
  const char* const* results;    // one a result
  weir_node_t* const* controls;  // nodes of the body
  const char* const* control_names;
  int control_count;
  const char* description;  // NULL: none
} weir_function_naming_t;
WEIR_MUST_USE weir_status_t* weir_function_write_body(const char* name,
                                                      const weir_function_body_t* body,
                                                      const weir_function_naming_t* naming,
                                                      weir_strbuf_t* out);

#endif  // WEIR_GRAPH_FUNCTION_H_
