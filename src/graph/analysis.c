// analysis.c — Walks over a graph that more than one part of Weir needs.
#include "graph/analysis.h"

#include "base/details.h"

static int source_count(const weir_node_t* node) {
  return node->def.input_count + node->control_count;
}

// Data inputs, then control inputs.
static weir_node_t* source_at(const weir_node_t* node, int i) {
  int data = node->def.input_count;
  return i < data ? node->inputs[i].node : node->control_inputs[i - data];
}

bool weir_node_is_loop_merge(const weir_node_t* node) {
  if (weir_node_role(node) != WEIR_ROLE_MERGE) return false;
  for (int i = 0; i < node->def.input_count; ++i) {
    if (weir_node_is_back_edge(node, node->inputs[i].node)) return true;
  }
  return false;
}

// ---- what nodes need ----

weir_status_t* weir_reach_init(weir_reach_t* reach, const weir_graph_t* graph,
                               weir_arena_t* arena) {
  size_t count = graph->node_count + 1;
  *reach = (weir_reach_t){.is_reached = weir_arena_array(arena, count, sizeof(bool)),
                          .stack = weir_arena_array(arena, count, sizeof(weir_node_t*))};
  return reach->is_reached && reach->stack ? NULL : weir_out_of_memory();
}

void weir_reach_add_results(weir_reach_t* reach, const weir_graph_t* graph,
                            weir_node_t* const* targets, int target_count) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    weir_role_t role = weir_node_role(graph->nodes[i]);
    if (role == WEIR_ROLE_RETVAL || role == WEIR_ROLE_SEND) weir_reach_add(reach, graph->nodes[i]);
  }
  for (int i = 0; i < target_count; ++i) weir_reach_add(reach, targets[i]);
}

void weir_reach_sources(weir_reach_t* reach) {
  while (reach->depth > 0) {
    const weir_node_t* node = reach->stack[--reach->depth];
    for (int i = 0; i < node->def.input_count; ++i) weir_reach_add(reach, node->inputs[i].node);
    for (int i = 0; i < node->control_count; ++i) weir_reach_add(reach, node->control_inputs[i]);
  }
}

void weir_reach_walk(weir_reach_t* reach, weir_reach_fn_t visit, void* arg) {
  while (reach->depth > 0) {
    const weir_node_t* node = reach->stack[--reach->depth];
    for (int i = 0; i < node->def.input_count; ++i) visit(arg, reach, node->inputs[i]);
    for (int i = 0; i < node->control_count; ++i)
      visit(arg, reach, (weir_edge_t){.node = node->control_inputs[i], .index = -1});
  }
}

// ---- which loop a node is in ----

static int innermost(const weir_loops_t* loops, const weir_node_t* node) {
  int inside = 0;
  for (int i = 0; i < source_count(node); ++i) {
    const weir_node_t* source = source_at(node, i);
    int loop = weir_node_is_back_edge(node, source) ? 0 : loops->outputs[source->id];
    if (loops->items[loop].depth > loops->items[inside].depth) inside = loop;
  }
  return inside;
}

// The loop that |enter| leads into from |parent|. There is room for a loop an Enter.
static int entered(weir_loops_t* loops, int parent, weir_node_t* enter) {
  weir_view_t name = weir_attrs_string(enter->def.attrs, "frame_name");
  int at = 1;
  while (at < loops->count &&
         !(loops->items[at].parent == parent && weir_view_equal(loops->items[at].name, name)))
    ++at;
  if (at == loops->count) {
    int depth = loops->items[parent].depth + 1;
    loops->items[loops->count++] =
        (weir_loop_t){.parent = parent, .depth = depth, .name = name, .enter = enter};
  }
  ++loops->items[at].enter_count;
  return at;
}

static void place(weir_loops_t* loops, weir_node_t* node) {
  int inside = innermost(loops, node);
  weir_loop_t* loop = &loops->items[inside];
  int outputs = inside;
  switch (weir_node_role(node)) {
    case WEIR_ROLE_ENTER: outputs = entered(loops, inside, node); break;
    case WEIR_ROLE_EXIT: outputs = WEIR_MAX(loop->parent, 0); break;
    case WEIR_ROLE_LOOP_COND: loop->condition = node; break;
    case WEIR_ROLE_MERGE:
      if (!loop->merge && weir_node_is_loop_merge(node)) loop->merge = node;
      break;
    default: break;
  }
  loops->inside[node->id] = inside;
  loops->outputs[node->id] = outputs;
}

weir_status_t* weir_loops_find(const weir_graph_t* graph, weir_node_t* const* nodes, size_t count,
                               weir_arena_t* arena, weir_loops_t* out_loops) {
  size_t enters = 0;
  for (size_t i = 0; i < count; ++i) enters += weir_node_role(nodes[i]) == WEIR_ROLE_ENTER;
  weir_loops_t loops = {
      .count = 1,
      .items = weir_arena_array(arena, enters + 1, sizeof(*loops.items)),
      .inside = weir_arena_array(arena, graph->node_count + 1, sizeof(*loops.inside)),
      .outputs = weir_arena_array(arena, graph->node_count + 1, sizeof(*loops.outputs))};
  if (!loops.items || !loops.inside || !loops.outputs) return weir_out_of_memory();
  loops.items[0] = (weir_loop_t){.parent = -1, .name = weir_view("", 0)};
  for (size_t i = 0; i < count && enters; ++i) place(&loops, nodes[i]);  // else: all are in [0]
  *out_loops = loops;
  return NULL;
}

weir_status_t* weir_loops_check(const weir_loops_t* loops, const weir_node_t* node) {
  bool is_merge = weir_node_role(node) == WEIR_ROLE_MERGE;
  int first = -1;
  for (int i = 0; i < source_count(node) && loops->count > 1; ++i) {
    const weir_node_t* source = source_at(node, i);
    bool may_be_anywhere = !(is_merge && i < node->def.input_count);
    if (weir_node_is_back_edge(node, source)) continue;
    if (may_be_anywhere && weir_node_is_free_const(source)) continue;
    int loop = loops->outputs[source->id];
    if (first < 0) first = loop;
    if (loop == first) continue;
    return weir_status_about_node(
        WEIR_STATUS(INVALID_ARGUMENT,
                    "Node '%s' has inputs from different frames: '%.*s' and, by '%s', '%.*s'",
                    node->def.name, WEIR_VIEW_ARG(loops->items[first].name), source->def.name,
                    WEIR_VIEW_ARG(loops->items[loop].name)),
        weir_view_of(node->def.name));
  }
  if (weir_node_role(node) == WEIR_ROLE_EXIT && loops->inside[node->id] == 0)
    return weir_status_about_node(
        WEIR_STATUS(INVALID_ARGUMENT, "Node '%s' (Exit) is in no loop", node->def.name),
        weir_view_of(node->def.name));
  return NULL;
}
