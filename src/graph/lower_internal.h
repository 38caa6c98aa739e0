// lower_internal.h — What the files that lower calls, conditionals and loops share.
#ifndef WEIR_GRAPH_LOWER_INTERNAL_H_
#define WEIR_GRAPH_LOWER_INTERNAL_H_

#include "graph/function.h"
#include "graph/lower.h"

typedef struct lowering_t {
  weir_graph_t* graph;
  weir_node_t* node;             // being lowered
  weir_graph_builder_t builder;  // makes nodes named after |node|, on its device; errors stick
  weir_arena_t arena;            // scratch
  weir_edge_t* args;   // the node's inputs, after its control inputs; free constants as they are
  weir_node_t* pivot;  // orders what no argument orders; NULL: nothing to wait for
  // Result: runs when the side effects have happened; NULL: that is the node.
  weir_node_t* executed;
} lowering_t;

// One function body to be put into the graph.
typedef struct inlining_t {
  const weir_func_t* func;
  const char* name;  // put between the node's name and the body's names
  const weir_edge_t* args;
  const bool*
      is_anchored;  // by argument: the value is alive only when the body is to run; NULL: all are
  weir_node_t* pivot;  // runs when the body is to run: orders what no argument orders; NULL:
                       // nothing needs it
  // Results.
  weir_edge_t* rets;  // in the lowering's arena; alive only when the body runs, if there is a pivot
  int ret_count;
  weir_node_t** effects;  // nodes with side effects
  int effect_count;
} inlining_t;
WEIR_MUST_USE weir_status_t* weir_lower_inline(lowering_t* l, inlining_t* inlining);

// Adds a node with control inputs. WEIR_NO_EDGE after an error, which stays in the builder.
weir_edge_t weir_lower_add(lowering_t* l, const char* op, weir_edges_t inputs, weir_attrs_t attrs,
                           weir_node_t* const* controls, int control_count);
// |value| as a scalar bool, by the rules of If and While.
weir_edge_t weir_lower_truth(lowering_t* l, weir_edge_t value);
// Makes the node an IdentityN over |results|, after |controls|.
WEIR_MUST_USE weir_status_t* weir_lower_finish(lowering_t* l, const weir_edge_t* results,
                                               weir_node_t* const* controls, int control_count);

WEIR_MUST_USE weir_status_t* weir_lower_branches(lowering_t* l);  // If, Case
WEIR_MUST_USE weir_status_t* weir_lower_while(lowering_t* l);

#endif  // WEIR_GRAPH_LOWER_INTERNAL_H_
