// flatten.h — Flattening: what calls functions on resources in different places becomes the nodes
// of those functions, so that each can be placed by itself.
#ifndef WEIR_GRAPH_FLATTEN_H_
#define WEIR_GRAPH_FLATTEN_H_

#include "graph/graph.h"

// Lowers calls, and the conditionals and loops that ask for it (_lower_using_switch_merge); those
// within their bodies too, but no endless recursion. What has no lowered form stays a call. Readers
// of a lowered node read what it stands for instead; it becomes a NoOp behind that. NOT_FOUND for
// an unknown function.
WEIR_MUST_USE weir_status_t* weir_flatten(weir_graph_t* graph);

#endif  // WEIR_GRAPH_FLATTEN_H_
