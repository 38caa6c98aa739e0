// flatten.h — Flattening: what calls functions becomes their nodes, so that each can be placed by
// itself.
#ifndef WEIR_PASS_FLATTEN_H_
#define WEIR_PASS_FLATTEN_H_

#include "graph/graph.h"

// Lowers calls, and the conditionals and loops that ask for it (_lower_using_switch_merge), those
// within their bodies too. What has no lowered form stays a call. Nobody reads a lowered node any
// more, but whoever fetches it may.
WEIR_MUST_USE weir_status_t* weir_flatten(weir_graph_t* graph);

#endif  // WEIR_PASS_FLATTEN_H_
