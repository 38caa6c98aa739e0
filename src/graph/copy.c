// copy.c — Copies of a graph, whole or in part: what passes work on.
#include "graph/analysis.h"
#include "graph/function.h"
#include "graph/graph_internal.h"

static weir_status_t* copy_node(const weir_node_t* node, weir_graph_t* copy,
                                weir_node_t** out_node) {
  weir_node_t* twin = weir_arena_alloc(&copy->arena, sizeof(*twin));
  if (!twin) return weir_out_of_memory();
  *twin =
      *node;  // attributes, names and types stay in the source's arena, which the copy keeps alive
  twin->graph = copy;
  WEIR_TRY(weir_node_alloc_shapes(twin));
  for (int i = 0; i < node->def.output_count && node->shapes; ++i) {
    twin->shapes[i] = node->shapes[i];
    twin->values_as_shape[i] = node->values_as_shape[i];
    twin->handles[i] = node->handles[i];
  }
  *out_node = twin;
  return weir_graph_register(copy, twin);
}

static weir_status_t* link_node(const weir_node_t* node, weir_node_t* twin, weir_node_t** map) {
  weir_arena_t* arena = &twin->graph->arena;
  twin->inputs = weir_arena_array(arena, (size_t)node->def.input_count, sizeof(*twin->inputs));
  twin->control_inputs =
      weir_arena_array(arena, (size_t)node->control_count, sizeof(*twin->control_inputs));
  if (!twin->inputs || !twin->control_inputs) return weir_out_of_memory();
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_edge_t edge = node->inputs[i];
    weir_node_t* source = map[edge.node->id];
    twin->inputs[i] = source ? (weir_edge_t){.node = source, .index = edge.index} : WEIR_NO_EDGE;
  }
  int controls = 0;
  for (int i = 0; i < node->control_count; ++i) {
    weir_node_t* source = map[node->control_inputs[i]->id];
    if (source) twin->control_inputs[controls++] = source;
  }
  twin->control_count = controls;
  return NULL;
}

weir_status_t* weir_graph_copy(const weir_graph_t* graph, const bool* keep, weir_arena_t* arena,
                               weir_graph_t** out_copy, weir_node_t*** out_map) {
  weir_graph_t* copy = NULL;
  weir_status_t* status = weir_graph_new(graph->registry, &copy);
  if (status) return status;
  weir_function_library_release(copy->library);
  copy->library = weir_function_library_retain(graph->library);
  copy->source = weir_graph_ref((weir_graph_t*)graph);
  weir_node_t** map = weir_arena_array(arena, graph->node_count + 1, sizeof(*map));
  if (!map) status = weir_out_of_memory();
  for (size_t i = 0; i < graph->node_count && !status; ++i) {
    if (!keep || keep[i]) status = copy_node(graph->nodes[i], copy, &map[i]);
  }
  for (size_t i = 0; i < graph->node_count && !status; ++i) {
    if (map[i]) status = link_node(graph->nodes[i], map[i], map);
  }
  if (status) {
    weir_graph_unref(copy);
    return status;
  }
  *out_copy = copy;
  if (out_map) *out_map = map;
  return NULL;
}

weir_status_t* weir_graph_copy_reachable(const weir_graph_t* graph, weir_node_t* const* targets,
                                         int target_count, weir_arena_t* arena,
                                         weir_graph_t** out_copy) {
  weir_reach_t reach;
  WEIR_TRY(weir_reach_init(&reach, graph, arena));
  weir_reach_add_results(&reach, graph, targets, target_count);
  weir_reach_sources(&reach);
  return weir_graph_copy(graph, reach.is_reached, arena, out_copy, NULL);
}
