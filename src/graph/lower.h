// lower.h — Lowering: nodes that call functions become the nodes of those functions, with Switch,
// Merge and loops around them.
//
// A lowered node stays where it is as an IdentityN over the results, so that edges to it stay valid
// and nothing is computed twice. Gradients lower what they must differentiate through.
#ifndef WEIR_GRAPH_LOWER_H_
#define WEIR_GRAPH_LOWER_H_

#include "graph/graph.h"

// Whether |node| calls functions in a way that can be lowered: a call, a conditional, a loop, or a
// library function as an op.
bool weir_node_can_lower(const weir_node_t* node);
// The function that |node| calls with all its inputs; false when it is no such call.
bool weir_node_callee(const weir_node_def_t* node, weir_func_t* out_func);
// Whether |node| is a conditional or loop that is marked to be lowered (_lower_using_switch_merge):
// its results then are as good as values of their own, each alive or dead by itself.
bool weir_node_asks_to_lower(const weir_node_t* node);
// REQUIRES: weir_node_can_lower(node). NOT_FOUND for an unknown function; UNIMPLEMENTED naming the
// node for what has no lowered form. The graph may have gained unused nodes when it fails.
// |out_executed|, unless NULL, gets the node that runs when the side effects have happened, whether
// or not anyone needs the results; NULL for a call that has none.
WEIR_MUST_USE weir_status_t* weir_node_lower(weir_node_t* node, weir_node_t** out_executed);

#endif  // WEIR_GRAPH_LOWER_H_
