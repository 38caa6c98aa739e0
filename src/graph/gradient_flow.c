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

static bool is_back_edge(const weir_node_t* node, const weir_node_t* source) {
  return weir_node_role(node) == WEIR_ROLE_MERGE &&
         weir_node_role(source) == WEIR_ROLE_NEXT_ITERATION;
}

bool weir_flow_is_loop_merge(const weir_node_t* node) {
  if (weir_node_role(node) != WEIR_ROLE_MERGE) return false;
  for (int i = 0; i < node->def.input_count; ++i) {
    if (is_back_edge(node, node->inputs[i].node)) return true;
  }
  return false;
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
    case WEIR_ROLE_MERGE: return weir_flow_is_loop_merge(node);
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
  if (weir_flow_is_loop_merge(node)) return NULL;
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

static frame_t* find_child(gradient_t* g, frame_t* parent, const weir_node_t* enter) {
  weir_view_t name = weir_attrs_string(enter->def.attrs, "frame_name");
  frame_t** end = &g->frames;
  for (; *end; end = &(*end)->next) {
    if ((*end)->parent == parent && weir_view_equal((*end)->name, name)) return *end;
  }
  frame_t* frame = weir_arena_alloc(&g->arena, sizeof(*frame));
  if (!frame) return NULL;
  *frame = (frame_t){.parent = parent,
                     .name = name,
                     .parallel_iterations = weir_attrs_int(enter->def.attrs, "parallel_iterations"),
                     .depth = parent->depth + 1};
  *end = frame;
  return frame;
}

// The innermost of the loops that the inputs of |node| live in.
static frame_t* frame_of_inputs(const gradient_t* g, const weir_node_t* node) {
  frame_t* inside = g->frames;
  for (int i = 0; i < node->def.input_count + node->control_count; ++i) {
    bool is_data = i < node->def.input_count;
    const weir_node_t* source =
        is_data ? node->inputs[i].node : node->control_inputs[i - node->def.input_count];
    if (is_data && is_back_edge(node, source)) continue;
    frame_t* frame = weir_flow_of(g, source)->frame;
    if (frame->depth > inside->depth) inside = frame;
  }
  return inside;
}

static weir_status_t* place(gradient_t* g, weir_node_t* node) {
  node_flow_t flow = {.inside = frame_of_inputs(g, node)};
  flow.frame = flow.inside;
  flow.guard = guard_of_node(g, node);
  if (weir_node_role(node) == WEIR_ROLE_ENTER) {
    flow.frame = find_child(g, flow.inside, node);
    if (!flow.frame) return weir_out_of_memory();
    flow.frame->guard = guard_union(g, flow.frame->guard, flow.guard);
    flow.guard = NULL;
  } else if (weir_node_role(node) == WEIR_ROLE_EXIT && flow.inside->parent) {
    flow.frame = flow.inside->parent;
    flow.guard = flow.inside->guard;
  } else if (weir_node_role(node) == WEIR_ROLE_LOOP_COND) {
    flow.inside->cond = (weir_edge_t){.node = node, .index = 0};
  }
  weir_flow_note(g, node, flow);
  ++flow.inside->member_count;
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
  g->frames = weir_arena_alloc(&g->arena, sizeof(*g->frames));
  if (!g->frames) return weir_out_of_memory();
  for (size_t i = 0; i < g->node_count; ++i) WEIR_TRY(place(g, order[i]));
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
