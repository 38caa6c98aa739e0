// gradient_stack.c — Gradients of values that an earlier gradient saved on stacks: derivatives of
// derivatives of loops.
//
// The earlier gradient pushes in a loop and pops in its backward loop. The backward loop's own
// backward loop meets the pops in the order of the pushes: it pushes the gradients of popped values
// on a second stack, and the backward loop of the first one, which meets the pushes last to first,
// pops them there.
#include "graph/gradient_internal.h"

typedef struct stack_link_t {
  weir_node_t* push;
  weir_node_t* pop;
  weir_edge_t gradients;  // the second stack; none: no gradient reached the popped value
  weir_node_t* ready;     // runs when all gradients are on it
  struct stack_link_t* next;
} stack_link_t;

static bool is_op(const weir_node_t* node, const char* name) {
  return !strcmp(node->def.op_name, name);
}

// ---- which push belongs to which pop ----

typedef struct finder_t {
  weir_node_t** pushes;
  size_t push_count;
  int depth;  // of handles that were saved on stacks themselves
} finder_t;

enum { MAX_DEPTH = 16 };

static const weir_node_t* stack_of(finder_t* finder, weir_edge_t handle);

// The stack behind a handle that was itself popped: what the matching push took.
static const weir_node_t* saved_stack(finder_t* finder, const weir_node_t* pop) {
  if (finder->depth == MAX_DEPTH) return NULL;
  const weir_node_t* found = NULL;
  ++finder->depth;
  const weir_node_t* outer = stack_of(finder, pop->inputs[0]);
  for (size_t i = 0; outer && !found && i < finder->push_count; ++i) {
    const weir_node_t* push = finder->pushes[i];
    bool is_handle = weir_dtype_base(weir_edge_dtype(push->inputs[1])) == WEIR_DTYPE_RESOURCE;
    if (is_handle && stack_of(finder, push->inputs[0]) == outer)
      found = stack_of(finder, push->inputs[1]);
  }
  --finder->depth;
  return found;
}

static const weir_node_t* stack_of(finder_t* finder, weir_edge_t handle) {
  for (;;) {
    const weir_node_t* node = handle.node;
    weir_role_t role = weir_node_role(node);
    bool passes = role == WEIR_ROLE_ENTER || role == WEIR_ROLE_SWITCH ||
                  weir_node_has(node, WEIR_OP_PASS_THROUGH);
    if (is_op(node, "StackPopV2")) return saved_stack(finder, node);
    if (!passes) return node;
    handle = node->inputs[0];
  }
}

static weir_status_t* link_pop(gradient_t* g, finder_t* finder, weir_node_t* pop) {
  const weir_node_t* stack = stack_of(finder, pop->inputs[0]);
  for (size_t i = 0; stack && i < finder->push_count; ++i) {
    if (stack_of(finder, finder->pushes[i]->inputs[0]) != stack) continue;
    stack_link_t* link = weir_arena_alloc(&g->arena, sizeof(*link));
    if (!link) return weir_out_of_memory();
    *link = (stack_link_t){.push = finder->pushes[i], .pop = pop, .next = g->links};
    g->links = link;
  }
  return NULL;
}

weir_status_t* weir_stacks_find(gradient_t* g) {
  finder_t finder = {0};
  g->links = NULL;
  for (size_t i = 0; i < g->node_count; ++i)
    finder.push_count += is_op(g->graph->nodes[i], "StackPushV2");
  if (finder.push_count == 0) return NULL;
  finder.pushes = weir_arena_array(&g->arena, finder.push_count, sizeof(*finder.pushes));
  if (!finder.pushes) return weir_out_of_memory();
  finder.push_count = 0;
  for (size_t i = 0; i < g->node_count; ++i) {
    if (is_op(g->graph->nodes[i], "StackPushV2"))
      finder.pushes[finder.push_count++] = g->graph->nodes[i];
  }
  for (size_t i = 0; i < g->node_count; ++i) {
    weir_node_t* pop = g->graph->nodes[i];
    bool is_pop =
        is_op(pop, "StackPopV2") && weir_gradient_flows((weir_edge_t){.node = pop, .index = 0});
    if (is_pop) WEIR_TRY(link_pop(g, &finder, pop));
  }
  return NULL;
}

// ---- marks ----

bool weir_stacks_mark_after(gradient_t* g) {
  bool has_changed = false;
  for (stack_link_t* link = g->links; link; link = link->next) {
    if (g->depends[link->pop->id] || !g->depends[link->push->inputs[1].node->id]) continue;
    g->depends[link->push->id] = g->depends[link->pop->id] = true;
    has_changed = true;
  }
  return has_changed;
}

bool weir_stacks_mark_before(gradient_t* g) {
  bool has_changed = false;
  for (stack_link_t* link = g->links; link; link = link->next) {
    if (!g->is_between[link->pop->id] || g->is_between[link->push->id]) continue;
    g->is_between[link->push->id] = true;
    has_changed = true;
  }
  return has_changed;
}

frame_t* weir_stacks_pushed_in(const gradient_t* g, const frame_t* loop,
                               const stack_link_t** cursor) {
  for (const stack_link_t* link = *cursor ? (*cursor)->next : g->links; link; link = link->next) {
    if (!g->is_between[link->pop->id] || weir_flow_of(g, link->pop)->inside != loop) continue;
    frame_t* frame = weir_flow_of(g, link->push)->inside;
    if (frame == loop || frame->parent != loop->parent) continue;
    *cursor = link;
    return frame;
  }
  return NULL;
}

bool weir_stack_is_link(const gradient_t* g, const weir_node_t* node) {
  for (const stack_link_t* link = g->links; link; link = link->next) {
    if (link->pop == node || link->push == node) return true;
  }
  return false;
}

// ---- gradients ----

static weir_status_t* check_not_nested(const gradient_t* g, const weir_node_t* node) {
  if (g->context->parent == &g->root) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED,
                     "Second derivative of '%s', a value of a loop within a loop, is not supported",
                     node->def.name);
}

// Has |node| run in the iterations in which |saved| was alive, and the counter wait for it.
static void order_in_loop(gradient_t* g, weir_node_t* node, weir_edge_t saved) {
  for (const guard_t* guard = weir_flow_guard(g, saved); guard && !g->builder.base.status;
       guard = guard->next) {
    weir_node_t* alive = weir_backward_gate(g, g->context, guard);
    if (!g->builder.base.status) g->builder.base.status = weir_graph_add_control(node, alive);
  }
  weir_gradient_sync(g, (node_flow_t){.made_in = g->context}, &g->context->sync,
                     g->context->decrement, node);
}

static weir_status_t* pop_gradient(gradient_t* g, stack_link_t* link) {
  weir_builder_t* b = &g->builder.base;
  weir_edge_t popped = {.node = link->pop, .index = 0};
  weir_grad_value_t found = weir_gradient_take(g, popped);
  if (weir_edge_is_none(found.values) || b->status) return NULL;
  WEIR_TRY(check_not_nested(g, link->pop));
  backward_t* context = g->context;
  weir_edge_t dy = weir_backward_value(g, context, weir_gradient_densify(b, found));
  weir_edge_t stack = weir_gradient_stack(g, g->frames, weir_build_dtype(b, dy));
  weir_edge_t handle = weir_backward_enter(g, context, stack, true);
  weir_edge_t push = weir_gradient_put(g, (node_flow_t){.made_in = context}, "StackPushV2",
                                       WEIR_EDGES(handle, dy), WEIR_NO_ATTRS, context->pivot.node);
  if (b->status) return NULL;
  order_in_loop(g, push.node, popped);
  link->gradients = stack;
  link->ready = context->done.node;
  return NULL;
}

static weir_status_t* push_gradient(gradient_t* g, stack_link_t* link) {
  weir_builder_t* b = &g->builder.base;
  if (!link->gradients.node || b->status) return NULL;
  WEIR_TRY(check_not_nested(g, link->push));
  backward_t* context = g->context;
  weir_edge_t saved = link->push->inputs[1];
  weir_edge_t handle = weir_backward_enter(g, context, link->gradients, true);
  weir_dtype_t dtype = weir_dtype_base(weir_edge_dtype(saved));
  weir_edge_t dx =
      weir_gradient_put(g, (node_flow_t){.made_in = context}, "StackPopV2", WEIR_EDGES(handle),
                        WEIR_ATTRS(weir_attr_type("elem_type", dtype)), context->pivot.node);
  if (b->status) return NULL;
  order_in_loop(g, dx.node, saved);
  if (b->status) return NULL;
  dx.node->shapes[0] = weir_edge_shape(saved);
  return weir_gradient_add(g, saved, (weir_grad_value_t){.values = dx});
}

weir_status_t* weir_stack_gradient(gradient_t* g, weir_node_t* node) {
  for (stack_link_t* link = g->links; link; link = link->next) {
    if (!g->is_between[link->pop->id]) continue;
    if (link->pop == node) WEIR_TRY(pop_gradient(g, link));
    if (link->push == node) WEIR_TRY(push_gradient(g, link));
  }
  return NULL;
}

bool weir_stacks_hold_gradients(const gradient_t* g, const frame_t* loop, weir_node_t* waiter) {
  bool has_any = false;
  for (const stack_link_t* link = g->links; link; link = link->next) {
    if (!link->gradients.node || weir_flow_of(g, link->push)->inside != loop) continue;
    has_any = true;
    weir_builder_t* b = (weir_builder_t*)&g->builder.base;
    if (waiter && !b->status) b->status = weir_graph_add_control(waiter, link->ready);
  }
  return has_any;
}
