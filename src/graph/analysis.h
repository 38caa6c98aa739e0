// analysis.h — What passes, plans, gradients and partial runs ask of a graph: what some nodes need,
// and which loop each node is in.
//
// Results are in the caller's arena and hold as long as the graph is not changed.
// Thread-compatible.
#ifndef WEIR_GRAPH_ANALYSIS_H_
#define WEIR_GRAPH_ANALYSIS_H_

#include "graph/graph.h"

// ---- edges of loops ----

// Whether |source| leads into the next iteration of the loop that |node|, which reads it, begins.
WEIR_INLINE bool weir_node_is_back_edge(const weir_node_t* node, const weir_node_t* source) {
  return weir_node_role(node) == WEIR_ROLE_MERGE &&
         weir_node_role(source) == WEIR_ROLE_NEXT_ITERATION;
}
// Whether |node| begins the iterations of a loop, rather than ending a conditional.
bool weir_node_is_loop_merge(const weir_node_t* node);

// ---- what nodes need ----

// A walk against the edges. Each node is visited once, so that loops end.
typedef struct weir_reach_t {
  bool* is_reached;     // by node id
  weir_node_t** stack;  // reached, sources not looked at yet
  size_t depth;
} weir_reach_t;

WEIR_MUST_USE weir_status_t* weir_reach_init(weir_reach_t* reach, const weir_graph_t* graph,
                                             weir_arena_t* arena);
WEIR_INLINE void weir_reach_add(weir_reach_t* reach, weir_node_t* node) {
  if (reach->is_reached[node->id]) return;
  reach->is_reached[node->id] = true;
  reach->stack[reach->depth++] = node;
}
// Adds what a run is for: results (RETVAL nodes), what goes to other parts (SEND), and |targets|.
void weir_reach_add_results(weir_reach_t* reach, const weir_graph_t* graph,
                            weir_node_t* const* targets, int target_count);
// Reaches all that what was added needs.
void weir_reach_sources(weir_reach_t* reach);
// Sees an edge into a reached node, index -1 where it is a control edge, and adds its node where
// the walk should go on.
typedef void (*weir_reach_fn_t)(void* arg, weir_reach_t* reach, weir_edge_t edge);
// The same along the edges that |visit| chooses.
void weir_reach_walk(weir_reach_t* reach, weir_reach_fn_t visit, void* arg);

// ---- which loop a node is in ----

// A loop by its Enter nodes: one is known by its name and by the loop around it.
typedef struct weir_loop_t {
  int parent;  // number; -1: this is the graph itself
  int depth;   // 0: the graph itself
  weir_view_t name;
  weir_node_t* enter;  // the first one; NULL: the graph itself
  int enter_count;
  weir_node_t* condition;  // the LoopCond; NULL: none
  weir_node_t* merge;      // the first that begins iterations; NULL: none
} weir_loop_t;

typedef struct weir_loops_t {
  weir_loop_t* items;  // [0]: the graph itself
  int count;
  int* inside;   // by node id: the loop that it runs in
  int* outputs;  // by node id: the loop that its outputs are in; another one for Enter and Exit
} weir_loops_t;

// Finds the loop of each of the |count| |nodes|, which are in topological order: the innermost that
// one of its sources is in. What is not among |nodes| (constants that nothing orders) is in none.
WEIR_MUST_USE weir_status_t* weir_loops_find(const weir_graph_t* graph, weir_node_t* const* nodes,
                                             size_t count, weir_arena_t* arena,
                                             weir_loops_t* out_loops);
// INVALID_ARGUMENT naming |node| when its inputs come from different loops, or when it is an Exit
// out of none. Constants that nothing orders are everywhere, but for a Merge, which takes what
// comes first.
WEIR_MUST_USE weir_status_t* weir_loops_check(const weir_loops_t* loops, const weir_node_t* node);

#endif  // WEIR_GRAPH_ANALYSIS_H_
