// order.c — Topological order of a graph whose only cycles are loops.
#include "graph/analysis.h"

typedef struct order_t {
  int* pending;  // inputs not yet placed, by node id
  int* first;    // consumers of node i: consumers[first[i] .. first[i + 1])
  weir_node_t** consumers;
} order_t;

// Calls |visit| for each input of |node| that orders it.
#define FOR_EACH_SOURCE(node, source, body)                \
  do {                                                     \
    for (int k_ = 0; k_ < (node)->def.input_count; ++k_) { \
      weir_node_t* source = (node)->inputs[k_].node;       \
      if (!weir_node_is_back_edge((node), source)) body;   \
    }                                                      \
    for (int k_ = 0; k_ < (node)->control_count; ++k_) {   \
      weir_node_t* source = (node)->control_inputs[k_];    \
      body;                                                \
    }                                                      \
  } while (0)

static weir_status_t* order_init(const weir_graph_t* graph, weir_arena_t* arena, order_t* order) {
  size_t count = graph->node_count;
  order->pending = weir_arena_array(arena, count + 1, sizeof(int));
  order->first = weir_arena_array(arena, count + 2, sizeof(int));
  if (!order->pending || !order->first) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    weir_node_t* node = graph->nodes[i];
    FOR_EACH_SOURCE(node, source, {
      ++order->pending[i];
      ++order->first[source->id + 2];
    });
  }
  for (size_t i = 2; i <= count + 1; ++i) order->first[i] += order->first[i - 1];
  order->consumers =
      weir_arena_array(arena, (size_t)order->first[count + 1] + 1, sizeof(weir_node_t*));
  if (!order->consumers) return weir_out_of_memory();
  for (size_t i = 0; i < count;
       ++i) {  // first[id + 1] walks up to its final place, so that first[] is right at the end
    weir_node_t* node = graph->nodes[i];
    FOR_EACH_SOURCE(node, source, { order->consumers[order->first[source->id + 1]++] = node; });
  }
  return NULL;
}

weir_status_t* weir_graph_order(const weir_graph_t* graph, weir_arena_t* arena,
                                weir_node_t*** out_nodes) {
  order_t order = {0};
  WEIR_TRY(order_init(graph, arena, &order));
  weir_node_t** placed = weir_arena_array(arena, graph->node_count + 1, sizeof(*placed));
  if (!placed) return weir_out_of_memory();
  size_t end = 0;
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (order.pending[i] == 0) placed[end++] = graph->nodes[i];
  }
  for (size_t next = 0; next < end; ++next) {
    int id = placed[next]->id;
    for (int k = order.first[id]; k < order.first[id + 1]; ++k) {
      weir_node_t* consumer = order.consumers[k];
      if (--order.pending[consumer->id] == 0) placed[end++] = consumer;
    }
  }
  if (end == graph->node_count) {
    *out_nodes = placed;
    return NULL;
  }
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (order.pending[i] > 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Graph is invalid, contains a cycle through node '%s'",
                         graph->nodes[i]->def.name);
    }
  }
  return NULL;
}
