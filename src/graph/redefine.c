// redefine.c — Nodes that become other ops in place, so that nothing that reads them must change.
#include "graph/graph.h"
#include "graph/graph_internal.h"

weir_status_t* weir_graph_redefine(weir_node_t* node, const char* op, weir_edges_t inputs,
                                   weir_attrs_t attrs) {
  weir_graph_t* graph = node->graph;
  weir_attrs_t cloned;
  weir_edge_t* edges = weir_arena_array(&graph->arena, (size_t)inputs.count, sizeof(*edges));
  if (!edges) return weir_out_of_memory();
  for (int i = 0; i < inputs.count; ++i) edges[i] = inputs.items[i];
  WEIR_TRY(weir_graph_clone_attrs(graph, attrs, &cloned));
  WEIR_TRY(weir_node_define(node, op, cloned, NULL, 0));
  if (node->def.input_count != inputs.count) {
    return WEIR_STATUS(INTERNAL, "'%s' as a %s has %d inputs, not %d", node->def.name, op,
                       node->def.input_count, inputs.count);
  }
  node->inputs = edges;
  ++graph->version;
  return weir_node_alloc_shapes(node);
}

weir_status_t* weir_graph_infer_all(weir_graph_t* graph) {
  weir_arena_t arena = {0};
  weir_node_t** order = NULL;
  weir_status_t* status = weir_graph_order(graph, &arena, &order);
  for (size_t i = 0; !status && i < graph->node_count; ++i) {
    const weir_node_t* node = graph->nodes[i];
    for (int k = 0; !status && k < node->def.input_count; ++k)
      status = weir_node_check_input(node, k, node->inputs[k]);
  }
  for (size_t i = 0; !status && i < graph->node_count; ++i) status = weir_graph_infer(order[i]);
  weir_arena_free(&arena);
  return status;
}
