// values.h — The values of variables, as a session has them.
#ifndef WEIR_MODEL_VALUES_H_
#define WEIR_MODEL_VALUES_H_

#include "graph/graph.h"
#include "weir/session.h"

// An edge whose value is that of |variable|, whose graph may gain a node for it.
WEIR_MUST_USE weir_status_t* weir_model_value_edge(weir_node_t* variable, weir_edge_t* out_edge);
// The values of |variables|, nodes of |graph|; the caller's to release. None is set on failure.
WEIR_MUST_USE weir_status_t* weir_model_read_values(weir_session_t* session, weir_graph_t* graph,
                                                    weir_node_t* const* variables, int count,
                                                    weir_tensor_t** out_values);

#endif  // WEIR_MODEL_VALUES_H_
