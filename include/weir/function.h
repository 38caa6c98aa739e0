// function.h — Functions of a graph's library, built from C functions that add the nodes of their
// bodies: what datasets map with, and what ops take by name.
//
//   static void scaled(weir_scope_t* s, const weir_edge_t* args, weir_edge_t* results, void* user)
//   {
//     results[0] = weir_mul(s, args[0], *(weir_edge_t*)user);   // an edge from outside: captured
//   }
//   weir_spec_t args = {WEIR_TYPES(WEIR_DTYPE_FLOAT), WEIR_SHAPES(WEIR_SCALAR_SHAPE)};
//   weir_defined_t f = weir_define_function(s, "scaled", args, scaled, &factor, 1);
//   weir_edge_t values[] = {x, f.captured[0]};
//   weir_edge_t y = weir_partitioned_call(s, values, 2, f.results.types, f.name);
//
// The C function is called once, while the graph is built, with a scope of the body. Edges from
// outside may be used there freely: small constants are copied, all else is captured and given to
// every call behind its arguments, as what it was when the op that holds the function ran. Edges
// from inside must not be used outside. Variables are made outside, and their values captured.
#ifndef WEIR_FUNCTION_H_
#define WEIR_FUNCTION_H_

#include "weir/attrs.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

// What some values are: a type and a shape each. A shape that is not set, or that the list is too
// short for, is unknown.
typedef struct weir_spec_t {
  weir_types_t types;
  weir_shapes_t shapes;
} weir_spec_t;

// A function of the library. What it points to lives as long as the root scope.
typedef struct weir_defined_t {
  const char* name;             // NULL after an error
  const weir_edge_t* captured;  // edges of the scope's graph, to be given behind the arguments
  int captured_count;
  weir_spec_t results;
} weir_defined_t;

// Sets every entry of |results|, as many as were asked for.
typedef void (*weir_function_fn_t)(weir_scope_t* scope, const weir_edge_t* args,
                                   weir_edge_t* results, void* user);
// Adds the function that |fn| builds for arguments as |args| says, under |name| (NULL: "function"),
// made unique. INVALID_ARGUMENT sticks in the scope for a result that is none, or is from
// elsewhere.
WEIR_API weir_defined_t weir_define_function(weir_scope_t* scope, const char* name,
                                             weir_spec_t args, weir_function_fn_t fn, void* user,
                                             int result_count);
// The same of a function without arguments that computes |results| as the graph does, by a copy of
// all nodes they come from: it captures nothing. INVALID_ARGUMENT sticks when one of those must be
// fed, or holds state that others share (variables, tables, queues).
WEIR_API weir_defined_t weir_define_copy(weir_scope_t* scope, const char* name,
                                         const weir_edge_t* results, int result_count);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_FUNCTION_H_
