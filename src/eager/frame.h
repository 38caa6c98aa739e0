// frame.h — A graph whose nodes are run as they are added: what an eager scope adds to.
//
// Each node keeps what it made, so the graph is also the tape: gradients are built on it as on any
// other graph, and as the nodes that they add are run as well, building them is computing them.
// Values go with the graph.
//
// Edges of other frames of the same context may be inputs: they become leaves here, with the value
// that they have then; gradients do not go beyond. What a variable's value stands for is read when
// it is used, and again when the variable has changed since: such nodes are live.
//
// Thread-confined, as scopes are. Other threads may use edges of a frame that nobody adds to.
#ifndef WEIR_EAGER_FRAME_H_
#define WEIR_EAGER_FRAME_H_

#include "eager/execute.h"

WEIR_MUST_USE weir_status_t* weir_eager_frame_create(weir_eager_t* eager, weir_graph_t** out_graph);
// NULL where |graph| is none.
weir_eager_t* weir_eager_of(const weir_graph_t* graph);

// What stands for |edge| as an input in |graph|, a frame: itself, a leaf, the newest read of a
// variable. INVALID_ARGUMENT for an edge that is none, or of a graph that is no frame of this
// context.
WEIR_MUST_USE weir_status_t* weir_eager_local(weir_graph_t* graph, weir_edge_t edge,
                                              weir_edge_t* out_edge);
// The same, but the handle of a variable in place of its value: what gradients are taken with
// respect to.
WEIR_MUST_USE weir_status_t* weir_eager_source(weir_graph_t* graph, weir_edge_t edge,
                                               weir_edge_t* out_edge);
// The handle behind a variable's value that is live; none: it is no such value.
weir_edge_t weir_eager_live_handle(weir_edge_t edge);

// The value of the variable that |handle| names: it starts with |initial|, unless the context has
// it already. |out_initializer| is what assigned it, NULL where nothing was assigned.
// INVALID_ARGUMENT when it has another type or shape.
WEIR_MUST_USE weir_status_t* weir_eager_variable(weir_graph_t* graph, weir_edge_t handle,
                                                 weir_edge_t initial, weir_edge_t* out_value,
                                                 weir_node_t** out_initializer);

// The tensor of |edge|, in the memory of the host; the caller's to release.
WEIR_MUST_USE weir_status_t* weir_eager_read(weir_graph_t* graph, weir_edge_t edge,
                                             weir_tensor_t** out_tensor);

// What runs in it ends, and nothing runs any more: CANCELLED. From any thread.
void weir_eager_cancel_frame(weir_graph_t* graph);

// The gradient of a node that calls functions (call_gradient.c).
weir_status_t* weir_eager_build_call_grad(weir_grad_ctx_t* ctx);
// The op that a node of a frame was run as.
weir_eager_op_t* weir_eager_node_op(const weir_node_t* node);

#endif  // WEIR_EAGER_FRAME_H_
