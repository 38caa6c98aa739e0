// portable.c — GraphDefs for TensorFlow: constants that a loop uses are put into the loop.
//
// Weir lets a constant that nothing orders be used everywhere. TensorFlow wants all inputs of a
// node in one frame, and its own client ties the constants of a loop to the loop's pivot. So each
// such constant gets a copy for each loop that uses it, ordered by one of the loop's Merges, which
// is alive in every iteration.
#include "graph/graph.h"
#include "graph/graph_internal.h"

typedef struct loop_t {
  int parent;
  weir_view_t name;
  weir_node_t* pivot;  // a Merge; NULL: none seen yet
} loop_t;

typedef struct local_t {
  int loop;
  weir_node_t* node;
  struct local_t* next;
} local_t;

typedef struct portable_t {
  weir_graph_t* graph;  // a copy, which is changed
  size_t first;         // nodes before it are elsewhere already
  weir_arena_t arena;
  loop_t* loops;  // [0]: the graph itself
  int loop_count;
  int* inside;       // by node id: the loop it runs in
  int* outputs;      // the loop its outputs are in
  local_t** copies;  // of constants
} portable_t;

// Whether |node| begins the iterations of a loop, rather than ending a conditional.
static bool is_loop_merge(const weir_node_t* node) {
  if (weir_node_role(node) != WEIR_ROLE_MERGE) return false;
  for (int i = 0; i < node->def.input_count; ++i) {
    if (weir_node_role(node->inputs[i].node) == WEIR_ROLE_NEXT_ITERATION) return true;
  }
  return false;
}

static int find_loop(portable_t* p, int parent, const weir_node_t* enter) {
  weir_view_t name = weir_attrs_string(enter->def.attrs, "frame_name");
  for (int i = 1; i < p->loop_count; ++i) {
    if (p->loops[i].parent == parent && weir_view_equal(p->loops[i].name, name)) return i;
  }
  p->loops[p->loop_count] = (loop_t){.parent = parent, .name = name};
  return p->loop_count++;
}

// The loop that the inputs of |node| are in; constants that nothing orders do not count.
static int loop_of_inputs(const portable_t* p, const weir_node_t* node) {
  for (int i = 0; i < node->def.input_count; ++i) {
    const weir_node_t* source = node->inputs[i].node;
    if (!weir_node_is_free_const(source) && weir_node_role(source) != WEIR_ROLE_NEXT_ITERATION)
      return p->outputs[source->id];
  }
  return node->control_count ? p->outputs[node->control_inputs[0]->id] : 0;
}

static weir_status_t* find_loops(portable_t* p) {
  weir_node_t** order = NULL;
  WEIR_TRY(weir_graph_order(p->graph, &p->arena, &order));
  const size_t count = p->graph->node_count;
  p->loops = weir_arena_array(&p->arena, count + 1, sizeof(*p->loops));
  p->inside = weir_arena_array(&p->arena, count + 1, sizeof(*p->inside));
  p->outputs = weir_arena_array(&p->arena, count + 1, sizeof(*p->outputs));
  p->copies = weir_arena_array(&p->arena, count + 1, sizeof(*p->copies));
  if (!p->loops || !p->inside || !p->outputs || !p->copies) return weir_out_of_memory();
  p->loop_count = 1;
  for (size_t i = 0; i < count; ++i) {
    weir_node_t* node = order[i];
    const int loop = loop_of_inputs(p, node);
    const weir_role_t role = weir_node_role(node);
    p->inside[node->id] = p->outputs[node->id] = loop;
    if (role == WEIR_ROLE_ENTER) p->outputs[node->id] = find_loop(p, loop, node);
    if (role == WEIR_ROLE_EXIT && loop) p->outputs[node->id] = p->loops[loop].parent;
    if (is_loop_merge(node) && !p->loops[loop].pivot) p->loops[loop].pivot = node;
  }
  return NULL;
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
                               .control_inputs = &p->loops[loop].pivot,
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
    const int loop = p->inside[i];
    for (int k = 0; k < node->def.input_count && p->loops[loop].pivot && loop; ++k) {
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
