// gradient_internal.h — The state of one gradient construction, shared by the files that extend it to loops and functions.
#ifndef WEIR_GRAPH_GRADIENT_INTERNAL_H_
#define WEIR_GRAPH_GRADIENT_INTERNAL_H_

#include "graph/gradient.h"

// Gradients that reached one edge, to be summed.
typedef struct collected_t {
  weir_grad_value_t* items;
  size_t count;
  size_t capacity;
} collected_t;

typedef struct gradient_t {
  weir_graph_t* graph;
  const weir_gradient_params_t* params;
  const char* prefix;
  weir_graph_builder_t builder;
  weir_arena_t arena;
  size_t node_count;        // of the forward graph: nodes added since are gradients
  bool* depends;            // by node id: depends on an x
  bool* is_between;         // and a y depends on it
  collected_t** collected;  // by node id, one an output; NULL: nothing yet
} gradient_t;

WEIR_MUST_USE weir_status_t* weir_gradient_add(gradient_t* g, weir_edge_t edge, weir_grad_value_t value);
weir_grad_value_t weir_gradient_take(gradient_t* g, weir_edge_t edge);  // summed; values.node NULL: none
weir_edge_t weir_gradient_densify(weir_builder_t* b, weir_grad_value_t value);
// Calls the op's gradient function and collects what it gives for the inputs.
WEIR_MUST_USE weir_status_t* weir_gradient_of_node(gradient_t* g, weir_node_t* node);

#endif  // WEIR_GRAPH_GRADIENT_INTERNAL_H_
