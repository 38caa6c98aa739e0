// portable.c — GraphDefs for TensorFlow: constants that a loop uses are put into the loop.
//
// Weir lets a constant that nothing orders be used everywhere. TensorFlow wants all inputs of a
// node in one frame, and its own client ties the constants of a loop to the loop's pivot. So each
// such constant gets a copy for each loop that uses it, ordered by one of the loop's Merges, which
// is alive in every iteration.
#include "graph/analysis.h"
#include "graph/graph_internal.h"

typedef struct local_t {
  int loop;
  weir_node_t* node;
  struct local_t* next;
} local_t;

typedef struct portable_t {
  weir_graph_t* graph;  // a copy, which is changed
  size_t first;         // nodes before it are elsewhere already
  weir_arena_t arena;
  weir_loops_t loops;
  local_t** copies;  // of constants
} portable_t;

static weir_status_t* find_loops(portable_t* p) {
  weir_node_t** order = NULL;
  const size_t count = p->graph->node_count;
  WEIR_TRY(weir_graph_order(p->graph, &p->arena, &order));
  WEIR_TRY(weir_loops_find(p->graph, order, count, &p->arena, &p->loops));
  p->copies = weir_arena_array(&p->arena, count + 1, sizeof(*p->copies));
  return p->copies ? NULL : weir_out_of_memory();
}

static weir_status_t* local_const(portable_t* p, const weir_node_t* node, int loop,
                                  weir_node_t** out_node) {
  for (const local_t* local = p->copies[node->id]; local; local = local->next) {
    if (local->loop != loop) continue;
    *out_node = local->node;
    return NULL;
  }
  local_t* local = weir_arena_alloc(&p->arena, sizeof(*local));
  // What is written later must not take the names of copies that were written before.
  const char* name =
      p->first ? weir_arena_printf(&p->arena, "%s/in_loop_from_%zu", node->def.name, p->first)
               : weir_arena_printf(&p->arena, "%s/in_loop", node->def.name);
  if (!local || !name) return weir_out_of_memory();
  weir_node_params_t params = {.op = node->def.op_name,
                               .name = name,
                               .unique_name = true,
                               .device = node->def.device,
                               .control_inputs = &p->loops.items[loop].merge,
                               .control_count = 1,
                               .attrs = node->def.attrs};
  *local = (local_t){.loop = loop, .next = p->copies[node->id]};
  WEIR_TRY(weir_graph_add(p->graph, &params, &local->node));
  p->copies[node->id] = local;
  *out_node = local->node;
  return NULL;
}

static weir_status_t* place_constants(portable_t* p) {
  const size_t count = p->graph->node_count;  // of those before constants are added
  for (size_t i = p->first; i < count; ++i) {
    weir_node_t* node = p->graph->nodes[i];
    const int loop = p->loops.inside[i];
    for (int k = 0; k < node->def.input_count && p->loops.items[loop].merge && loop; ++k) {
      weir_edge_t edge = node->inputs[k];
      if (!weir_node_is_free_const(edge.node)) continue;
      WEIR_TRY(local_const(p, edge.node, loop, &edge.node));
      WEIR_TRY(weir_graph_set_input(node, k, edge));
    }
  }
  return NULL;
}

static bool has_loops(const weir_graph_t* graph) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (weir_node_role(graph->nodes[i]) == WEIR_ROLE_ENTER) return true;
  }
  return false;
}

weir_status_t* weir_graph_write_portable(const weir_graph_t* graph, size_t first,
                                         weir_strbuf_t* out) {
  if (!has_loops(graph)) return weir_graph_write_from(graph, first, out);
  portable_t p = {.first = first};
  weir_status_t* status = weir_graph_copy(graph, NULL, &p.arena, &p.graph, NULL);
  if (status) goto done;
  p.graph->producer = graph->producer;
  p.graph->min_consumer = graph->min_consumer;
  weir_strbuf_append(&p.graph->unknown_fields, graph->unknown_fields.data,
                     graph->unknown_fields.size);
  status = find_loops(&p);
  if (!status) status = place_constants(&p);
  if (!status) status = weir_graph_write_from(p.graph, first, out);
done:
  weir_graph_unref(p.graph);
  weir_arena_free(&p.arena);
  return status;
}
