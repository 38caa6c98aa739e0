// graph_internal.h — What the files of graph/ share: making a node in the arena, registering it,
// linking it.
#ifndef WEIR_GRAPH_GRAPH_INTERNAL_H_
#define WEIR_GRAPH_GRAPH_INTERNAL_H_

#include "graph/graph.h"

bool weir_node_name_is_valid(const char* name);
// Makes |name| unique by "_1", "_2" …; the result is in the arena. NULL when out of memory.
const char* weir_graph_unique_name(weir_graph_t* graph, const char* name);
// The name that a node of |params| gets. NULL when out of memory.
const char* weir_node_params_name(weir_graph_t* graph, const weir_node_params_t* params);
// The op of that name: registered, or a function of the library. NULL when neither.
const weir_op_t* weir_graph_find_op(const weir_graph_t* graph, const char* name);
// A zeroed node in the arena with a copy of |name|, not yet in the graph. NULL when out of memory.
weir_node_t* weir_node_make(weir_graph_t* graph, weir_view_t name, weir_view_t device);
// Gives the node its id and name. INVALID_ARGUMENT when the name is taken.
WEIR_MUST_USE weir_status_t* weir_graph_register(weir_graph_t* graph, weir_node_t* node);
// Takes the nodes from |first| on out again, after a failed import.
void weir_graph_unregister_from(weir_graph_t* graph, size_t first);
// Sets op (from registry or library), attributes, and input and output types. |input_types| may be
// NULL when not known yet.
WEIR_MUST_USE weir_status_t* weir_node_define(weir_node_t* node, const char* op_name,
                                              weir_attrs_t attrs, const weir_dtype_t* input_types,
                                              int input_count);
// Copies attributes with all they hold into the graph.
WEIR_MUST_USE weir_status_t* weir_graph_clone_attrs(weir_graph_t* graph, weir_attrs_t attrs,
                                                    weir_attrs_t* out_attrs);
// Allocates the result arrays of inference, all unknown.
WEIR_MUST_USE weir_status_t* weir_node_alloc_shapes(weir_node_t* node);
// INVALID_ARGUMENT in TensorFlow's words when |edge| cannot be input |index| of |node|.
WEIR_MUST_USE weir_status_t* weir_node_check_input(const weir_node_t* node, int index,
                                                   weir_edge_t edge);

#endif  // WEIR_GRAPH_GRAPH_INTERNAL_H_
