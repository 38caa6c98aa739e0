// alive.h — Which nodes are alive and dead together, in every branch and every turn of a loop.
#ifndef WEIR_PASS_ALIVE_H_
#define WEIR_PASS_ALIVE_H_

#include "graph/graph.h"

// By node id: the condition under which a node runs, a number. Two nodes of one loop that have the
// same number run, or do not, in the same steps and turns. 0: always. Nodes with different numbers
// may still be alike: what cannot be told quickly counts as different.
//
// |order| are the |count| nodes of |graph| in topological order. The array is in |arena|.
WEIR_MUST_USE weir_status_t* weir_alive_find(const weir_graph_t* graph, weir_node_t* const* order,
                                             size_t count, weir_arena_t* arena,
                                             const int** out_condition);

#endif  // WEIR_PASS_ALIVE_H_
