// function_gradient.h — Gradients of functions as functions: what SymbolicGradient calls, and what
// differentiating a call uses where the library registers a gradient.
#ifndef WEIR_GRAPH_FUNCTION_GRADIENT_H_
#define WEIR_GRAPH_FUNCTION_GRADIENT_H_

#include "graph/function.h"
#include "op/grad_ctx.h"

// The gradient of |func|, a function of the library or an op, as a body: its arguments are those of
// |func| and a gradient for each result; its results are a gradient for each argument of |func|,
// zeros where there is none. A gradient function that the library registers for |func| is taken as
// it is.
WEIR_MUST_USE weir_status_t* weir_function_instantiate_gradient(weir_function_library_t* library,
                                                                const weir_registry_t* registry,
                                                                const weir_func_t* func,
                                                                weir_function_body_t* out_body);

// The gradients of |func| as they are: results for those arguments only that have one, a sparse one
// as what it is made of. Arguments are as above. For handles of variables these are the gradients
// of what they hold.
typedef enum weir_grad_part_kind_t {
  WEIR_GRAD_VALUES,
  WEIR_GRAD_INDICES,  // of a sparse one, as the next
  WEIR_GRAD_DENSE_SHAPE,
} weir_grad_part_kind_t;
typedef struct weir_grad_part_t {
  int arg;  // of |func|
  weir_grad_part_kind_t kind;
  weir_dtype_t type;
} weir_grad_part_t;
typedef struct weir_partial_gradient_t {
  weir_function_body_t body;  // owned
  weir_grad_part_t* parts;    // one a result, in the body's arena
  int count;
} weir_partial_gradient_t;
// UNIMPLEMENTED where the body has side effects, as it is computed once more.
WEIR_MUST_USE weir_status_t* weir_function_instantiate_partial(
    weir_function_library_t* library, const weir_registry_t* registry, const weir_func_t* func,
    weir_partial_gradient_t* out_gradient);

// Whether |node| calls a function for which its graph's library registers a gradient.
bool weir_node_has_function_gradient(const weir_node_t* node);
// The gradient of such a node: a SymbolicGradient node.
WEIR_MUST_USE weir_status_t* weir_function_build_grad(weir_grad_ctx_t* g);

#endif  // WEIR_GRAPH_FUNCTION_GRADIENT_H_
