// flatten.h — Flattening: what calls functions becomes the nodes of those functions, so that each
// is run, pruned and placed by itself.
#ifndef WEIR_GRAPH_FLATTEN_H_
#define WEIR_GRAPH_FLATTEN_H_

#include "graph/graph.h"

typedef enum weir_flatten_t {
  WEIR_FLATTEN_MARKED,     // conditionals and loops that ask for it (_lower_using_switch_merge)
  WEIR_FLATTEN_AND_CALLS,  // calls as well, unless they ask to stay what they are
  WEIR_FLATTEN_ALL,        // those that do not ask for it as well, but for recursions
} weir_flatten_t;

// Lowers what |what| says; those within their bodies too, but no endless recursion. What has no
// lowered form stays a call. Readers of a lowered node read what it stands for instead: of a
// result, just what makes it; of a control edge, just the side effects. The node itself becomes a
// NoOp behind all of it, for those who fetch it or run it as a target. What did not ask stays as
// good as one node: whoever reads or awaits it waits for all of it. NOT_FOUND for an unknown
// function.
WEIR_MUST_USE weir_status_t* weir_flatten(weir_graph_t* graph, weir_flatten_t what);

#endif  // WEIR_GRAPH_FLATTEN_H_
