// function.h — Scopes of function bodies: a graph of their own, into which edges from outside are
// captured as nodes are added. Threading: as the scope.
#ifndef WEIR_API_FUNCTION_H_
#define WEIR_API_FUNCTION_H_

#include "api/scope.h"

// Part of the root of a body's scopes.
typedef struct weir_function_scope_t {
  weir_scope_t* outer;  // where the function is defined
  weir_node_t** args;   // declared ones, then one for each captured edge; on the heap
  size_t arg_count, arg_capacity;
  size_t declared;
  weir_edge_t* captured;  // of the outer scope's graph; on the heap
  size_t captured_count, captured_capacity;
} weir_function_scope_t;

// What stands for each of |io| in the body that |scope| adds to. The array is in its arena. Edges
// that cannot be captured stay, and the graph refuses them. Returns false when an error stuck.
bool weir_function_capture(weir_scope_t* scope, weir_edges_t* io);

#endif  // WEIR_API_FUNCTION_H_
