// gradient.h — Gradient construction: adds nodes that compute d(sum ys)/dx from each op's own
// gradient function.
#ifndef WEIR_GRAPH_GRADIENT_H_
#define WEIR_GRAPH_GRADIENT_H_

#include "graph/graph.h"
#include "op/grad_ctx.h"

typedef struct weir_gradient_params_t {
  weir_edges_t ys;
  weir_edges_t xs;
  const weir_edge_t* grad_ys;  // one a y, entries may be WEIR_NO_EDGE; NULL: ones
  const char* prefix;          // of the new nodes' names; NULL: "gradients"
} weir_gradient_params_t;

// |out_grads|: one an x; values.node is NULL where the ys do not depend on it. INVALID_ARGUMENT
// naming the node when an op on the way has no gradient.
WEIR_MUST_USE weir_status_t* weir_graph_gradients(weir_graph_t* graph,
                                                  const weir_gradient_params_t* params,
                                                  weir_grad_value_t* out_grads);

#endif  // WEIR_GRAPH_GRADIENT_H_
