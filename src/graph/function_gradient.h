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

// Whether |node| calls a function for which its graph's library registers a gradient.
bool weir_node_has_function_gradient(const weir_node_t* node);
// The gradient of such a node: a SymbolicGradient node.
WEIR_MUST_USE weir_status_t* weir_function_build_grad(weir_grad_ctx_t* g);

#endif  // WEIR_GRAPH_FUNCTION_GRADIENT_H_
