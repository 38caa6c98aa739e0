// flatten.h — Flattening: what calls functions on resources in different places becomes the nodes
// of those functions, so that each can be placed by itself.
#ifndef WEIR_GRAPH_FLATTEN_H_
#define WEIR_GRAPH_FLATTEN_H_

#include "graph/graph.h"

// Lowers calls, and the conditionals and loops that ask for it (_lower_using_switch_merge), where
// the resources they are given are wanted on different devices; those within their bodies too. What
// has no lowered form stays a call. Nobody reads a lowered node any more, but whoever fetches it
// may.
WEIR_MUST_USE weir_status_t* weir_flatten(weir_graph_t* graph);

#endif  // WEIR_GRAPH_FLATTEN_H_
