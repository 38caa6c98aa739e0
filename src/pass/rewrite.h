// rewrite.h — What passes share: one walk over a graph that collects replacements and applies them
// as it goes.
//
// A pass visits the nodes of |order|, brings each one's inputs up to date, and says which edges
// stand for which. Nothing else needs to know who reads an edge. Nodes added during the walk are
// not visited by it. Thread-confined.
#ifndef WEIR_PASS_REWRITE_H_
#define WEIR_PASS_REWRITE_H_

#include "pass/pass.h"

typedef struct weir_rewrite_t {
  weir_graph_t* graph;
  weir_arena_t arena;   // scratch, freed by weir_rewrite_free
  weir_node_t** order;  // topological
  size_t count;         // of |order|: nodes when the walk began; new ones have larger ids
  weir_edge_t** edges;  // by node id: what stands for each output; NULL: nothing was replaced
  weir_node_t** nodes;  // by node id: what stands for it in control edges and targets; NULL: itself
  size_t replaced_count;  // edges and nodes replaced so far
} weir_rewrite_t;

WEIR_MUST_USE weir_status_t* weir_rewrite_init(weir_rewrite_t* rewrite, weir_graph_t* graph);
void weir_rewrite_free(weir_rewrite_t* rewrite);

// What stands for |edge| or |node| now: itself unless it was replaced.
weir_edge_t weir_rewrite_edge(const weir_rewrite_t* rewrite, weir_edge_t edge);
weir_node_t* weir_rewrite_node(const weir_rewrite_t* rewrite, weir_node_t* node);

// From now on |to| stands for |from|, a node of |order|. Edges must have the same type.
WEIR_MUST_USE weir_status_t* weir_rewrite_replace_edge(weir_rewrite_t* rewrite, weir_edge_t from,
                                                       weir_edge_t to);
void weir_rewrite_replace_node(weir_rewrite_t* rewrite, weir_node_t* from, weir_node_t* to);

// Applies replacements to the inputs of |node|, and to its control inputs, dropping repeated ones.
// |out_changed| (optional): whether a data input changed.
WEIR_MUST_USE weir_status_t* weir_rewrite_inputs(weir_rewrite_t* rewrite, weir_node_t* node,
                                                 bool* out_changed);
// Applies replacements to the whole graph, back edges of loops and nodes added since included, and
// to the targets.
WEIR_MUST_USE weir_status_t* weir_rewrite_finish(weir_rewrite_t* rewrite, weir_pass_ctx_t* ctx);

// ---- what a rewriting may not lose ----
// By node id, for nodes of |order|: the node may be dead or belongs to a loop, because a Switch,
// Enter or Recv is upstream. A value in its place needs an input, if only a control input, from the
// same branch or loop. The array is in |rewrite->arena|.
WEIR_MUST_USE weir_status_t* weir_rewrite_mark_conditional(weir_rewrite_t* rewrite,
                                                           const bool** out_mask);
// Whether a control edge from |node| tells the deadness and frame of its outputs: not so for Switch
// and the borders of loops.
bool weir_rewrite_is_anchor(const weir_node_t* node);
// Whether running |node| or not makes a difference beyond its outputs. Nodes that only hold state
// have none.
bool weir_rewrite_has_effect(const weir_node_t* node);
// Whether |node| may wait for more than its inputs, and so through another task or a queue for a
// node that no edge leads to it from: asynchronous kernels of the host, transfers, calls.
bool weir_rewrite_may_wait(const weir_node_t* node);
// Whether |node| reads a reference variable: it fails where that was never set, whatever shape the
// variable's node declares.
bool weir_rewrite_reads_reference(const weir_node_t* node);
// By node id, for all nodes of the graph: results, targets or sends need it. The array is in
// |arena|.
WEIR_MUST_USE weir_status_t* weir_rewrite_mark_live(const weir_pass_ctx_t* ctx, weir_arena_t* arena,
                                                    bool** out_live);
// Whether all inputs and outputs are plain values: no references, resources or variants.
bool weir_rewrite_is_plain(const weir_node_t* node);

#endif  // WEIR_PASS_REWRITE_H_
