// gradient_flow.c — The control flow of a graph, as gradients need it: the loop each node is in,
// and the conditions under which it is alive there.
#include "graph/gradient_internal.h"

weir_edge_t weir_flow_behind_identities(weir_edge_t edge) {
  while (edge.index == 0 && weir_node_has(edge.node, WEIR_OP_PASS_THROUGH) &&
         edge.node->control_count == 0) {
    edge = edge.node->inputs[0];
  }
  return edge;
}

bool weir_flow_is_loop_switch(const weir_node_t* node) {
  if (weir_node_role(node) != WEIR_ROLE_SWITCH) return false;
  return weir_node_role(weir_flow_behind_identities(node->inputs[1]).node) == WEIR_ROLE_LOOP_COND;
}

bool weir_flow_is_structure(const weir_node_t* node) {
  switch (weir_node_role(node)) {
    case WEIR_ROLE_NEXT_ITERATION:
    case WEIR_ROLE_EXIT:
    case WEIR_ROLE_LOOP_COND: return true;
    case WEIR_ROLE_MERGE: return weir_node_is_loop_merge(node);
    case WEIR_ROLE_SWITCH: return weir_flow_is_loop_switch(node);
    default: return false;
  }
}

// ---- conditions ----

static bool guard_has(const guard_t* list, const guard_t* item) {
  for (; list; list = list->next) {
    if (weir_edge_equal(list->pred, item->pred) && list->branch == item->branch) return true;
  }
  return false;
}

static const guard_t* guard_with(gradient_t* g, const guard_t* list, const guard_t* item) {
  if (guard_has(list, item)) return list;
  guard_t* grown = weir_arena_alloc(&g->arena, sizeof(*grown));
  if (!grown) {
    if (!g->builder.base.status) g->builder.base.status = weir_out_of_memory();
    return list;
  }
  *grown = (guard_t){.pred = item->pred, .branch = item->branch, .next = list};
  return grown;
}

static const guard_t* guard_union(gradient_t* g, const guard_t* a, const guard_t* b) {
  if (!a || a == b) return b;
  for (; b; b = b->next) a = guard_with(g, a, b);
  return a;
}

static const guard_t* guard_common(gradient_t* g, const guard_t* a, const guard_t* b) {
  const guard_t* common = NULL;
  for (; a; a = a->next) {
    if (guard_has(b, a)) common = guard_with(g, common, a);
  }
  return common;
}

const guard_t* weir_flow_guard(gradient_t* g, weir_edge_t edge) {
  const guard_t* guard = weir_flow_of(g, edge.node)->guard;
  if (weir_node_role(edge.node) != WEIR_ROLE_SWITCH || weir_flow_is_loop_switch(edge.node))
    return guard;
  guard_t side = {.pred = weir_flow_behind_identities(edge.node->inputs[1]), .branch = edge.index};
  return guard_with(g, guard, &side);
}

// A Merge is alive when what all its inputs have in common holds; other nodes when all of it does.
static const guard_t* guard_of_node(gradient_t* g, const weir_node_t* node) {
  if (weir_node_is_loop_merge(node)) return NULL;
  const guard_t* guard = NULL;
  for (int i = 0; i < node->def.input_count; ++i) {
    if (weir_node_is_free_const(node->inputs[i].node)) continue;
    const guard_t* of_input = weir_flow_guard(g, node->inputs[i]);
    bool is_first = i == 0;
    if (weir_node_role(node) != WEIR_ROLE_MERGE) guard = guard_union(g, guard, of_input);
    else guard = is_first ? of_input : guard_common(g, guard, of_input);
  }
  for (int i = 0; i < node->control_count && weir_node_role(node) != WEIR_ROLE_CONTROL_TRIGGER;
       ++i) {
    guard = guard_union(g, guard, weir_flow_of(g, node->control_inputs[i])->guard);
  }
  return guard;
}

// ---- loops ----

static void place(gradient_t* g, weir_node_t* node, frame_t* inside, frame_t* after) {
  node_flow_t flow = {.inside = inside, .frame = after, .guard = guard_of_node(g, node)};
  if (weir_node_role(node) == WEIR_ROLE_ENTER) {
    after->guard = guard_union(g, after->guard, flow.guard);
    flow.guard = NULL;
  } else if (inside != after) {
    flow.guard = inside->guard;
  }
  weir_flow_note(g, node, flow);
  ++inside->member_count;
}

// Makes a list of the frames; the first is the graph itself.
static weir_status_t* make_frames(gradient_t* g, const weir_loops_t* loops) {
  g->frames = weir_arena_array(&g->arena, (size_t)loops->count, sizeof(*g->frames));
  if (!g->frames) return weir_out_of_memory();
  for (int i = 0; i < loops->count; ++i) {
    const weir_loop_t* loop = &loops->items[i];
    frame_t* frame = &g->frames[i];
    *frame = (frame_t){.name = loop->name,
                       .depth = loop->depth,
                       .cond = {.node = loop->condition},
                       .next = i + 1 < loops->count ? frame + 1 : NULL};
    if (i == 0) continue;
    frame->parent = &g->frames[loop->parent];
    frame->parallel_iterations = weir_attrs_int(loop->enter->def.attrs, "parallel_iterations");
  }
  return NULL;
}

void weir_flow_note(gradient_t* g, weir_node_t* node, node_flow_t flow) {
  size_t needed = (size_t)node->id + 1;
  if (needed > g->flow_capacity &&
      !WEIR_GROW(g->flows, g->flow_capacity, WEIR_MAX(needed, g->graph->node_count))) {
    if (!g->builder.base.status) g->builder.base.status = weir_out_of_memory();
    return;
  }
  g->flows[node->id] = flow;
}

weir_status_t* weir_flow_analyze(gradient_t* g, weir_node_t* const* order) {
  if (!WEIR_GROW(g->flows, g->flow_capacity, g->node_count + 1)) return weir_out_of_memory();
  weir_loops_t loops;
  WEIR_TRY(weir_loops_find(g->graph, order, g->node_count, &g->arena, &loops));
  WEIR_TRY(make_frames(g, &loops));
  for (size_t i = 0; i < g->node_count; ++i) {
    int id = order[i]->id;
    place(g, order[i], &g->frames[loops.inside[id]], &g->frames[loops.outputs[id]]);
  }
  for (frame_t* frame = g->frames; frame; frame = frame->next) {
    frame->members =
        weir_arena_array(&g->arena, (size_t)frame->member_count + 1, sizeof(*frame->members));
    if (!frame->members) return weir_out_of_memory();
    frame->member_count = 0;
  }
  for (size_t i = 0; i < g->node_count; ++i) {
    frame_t* frame = g->flows[i].inside;
    frame->members[frame->member_count++] = g->graph->nodes[i];
  }
  return NULL;
}
