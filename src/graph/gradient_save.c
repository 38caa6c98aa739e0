// gradient_save.c — Forward values within backward loops.
//
// A value of one iteration is pushed on a stack in the forward loop and popped in the backward
// loop. The forward counter waits for the pushes of its iteration, so the trip count that starts
// the backward loop comes out after all of them; pushes wait for the counter, so they happen in the
// order of iterations. The backward counter does the same for pops. A value that is alive under
// conditions only is pushed, and popped, under the same conditions.
#include "graph/gradient_internal.h"
#include "graph/graph_internal.h"

typedef struct edge_key_t {
  int node;
  int index;
  int branch;
} edge_key_t;

static void fail(gradient_t* g, weir_status_t* take_status) {
  if (g->builder.base.status) weir_status_destroy(take_status);
  else g->builder.base.status = take_status;
}

static void remember(gradient_t* g, weir_map_t* map, edge_key_t key, weir_edge_t edge) {
  edge_key_t* kept = weir_arena_alloc(&g->arena, sizeof(*kept));
  weir_edge_t* value = weir_arena_alloc(&g->arena, sizeof(*value));
  if (!kept || !value) {
    fail(g, weir_out_of_memory());
    return;
  }
  *kept = key;
  *value = edge;
  weir_status_t* status = weir_map_put(map, weir_view((const char*)kept, sizeof(*kept)), value);
  if (status) fail(g, status);
}

static const weir_edge_t* recall(const weir_map_t* map, edge_key_t key) {
  return weir_map_find(map, weir_view((const char*)&key, sizeof(key)));
}

void weir_backward_free(backward_t* context) {
  weir_map_free(&context->known);
  weir_map_free(&context->gates);
  weir_map_free(&context->shapes);
}

// ---- adding nodes as they are ----

weir_edge_t weir_gradient_put(gradient_t* g, node_flow_t flow, const char* op, weir_edges_t inputs,
                              weir_attrs_t attrs, weir_node_t* control) {
  weir_edge_t first = WEIR_NO_EDGE;
  if (g->builder.base.status) return WEIR_NO_EDGE;
  g->builder.controls = &control;
  g->builder.control_count = control ? 1 : 0;
  weir_status_t* status =
      weir_graph_builder_vtable.add(&g->builder.base, op, inputs, attrs, op, &first);
  g->builder.controls = NULL;
  g->builder.control_count = 0;
  if (status) {
    fail(g, status);
    return WEIR_NO_EDGE;
  }
  if (!flow.frame) flow.frame = g->frames;
  weir_flow_note(g, first.node, flow);
  return first;
}

static void order(gradient_t* g, weir_node_t* node, weir_node_t* after) {
  if (g->builder.base.status) return;
  weir_status_t* status = weir_graph_add_control(node, after);
  if (status) fail(g, status);
}

void weir_gradient_sync(gradient_t* g, node_flow_t flow, weir_node_t** sync, weir_node_t* waiter,
                        weir_node_t* node) {
  if (g->builder.base.status) return;
  if (!*sync) {
    *sync = weir_gradient_put(g, flow, "ControlTrigger", WEIR_NO_EDGES, WEIR_NO_ATTRS, node).node;
    if (*sync) order(g, waiter, *sync);
    return;
  }
  order(g, *sync, node);
}

// ---- the forward counter ----

static weir_edge_t enter_frame(gradient_t* g, const frame_t* frame, weir_edge_t value,
                               bool is_constant) {
  weir_named_attr_t attrs[] = {weir_attr_view("frame_name", frame->name),
                               weir_attr_bool("is_constant", is_constant),
                               weir_attr_int("parallel_iterations", frame->parallel_iterations)};
  return weir_gradient_put(g, (node_flow_t){.frame = (frame_t*)frame}, "Enter", WEIR_EDGES(value),
                           (weir_attrs_t){.items = attrs, .count = WEIR_COUNT_OF(attrs)},
                           frame->parent->pivot.node);
}

void weir_frame_count(gradient_t* g, frame_t* frame) {
  weir_builder_t* b = &g->builder.base;
  if (!frame->parent || frame->count.node || b->status) return;
  weir_frame_count(g, frame->parent);
  if (!frame->cond.node) {
    fail(g,
         WEIR_STATUS(INVALID_ARGUMENT, "loop '%.*s' has no LoopCond", WEIR_VIEW_ARG(frame->name)));
    return;
  }
  node_flow_t in = {.frame = frame};
  node_flow_t out = {.frame = frame->parent, .guard = frame->guard};
  node_flow_t free = {.frame = g->frames, .made_in = &g->root};
  weir_named_attr_t dtype = weir_attr_type("dtype", WEIR_DTYPE_INT32);
  weir_edge_t constants[2];
  for (int32_t i = 0; i < 2 && !b->status; ++i) {
    weir_tensor_t* value = NULL;
    weir_status_t* status = weir_tensor_create_from(WEIR_DTYPE_INT32, 0, NULL, &i, &value);
    if (status) {
      fail(g, status);
      return;
    }
    weir_attrs_t attrs = WEIR_ATTRS(dtype, weir_attr_tensor("value", value));
    constants[i] = weir_gradient_put(g, free, "Const", WEIR_NO_EDGES, attrs, NULL);
    weir_tensor_release(value);
  }
  weir_edge_t enter = enter_frame(g, frame, constants[0], false);
  weir_edge_t merge =
      weir_gradient_put(g, in, "Merge", WEIR_EDGES(enter, enter), WEIR_NO_ATTRS, NULL);
  weir_edge_t split =
      weir_gradient_put(g, in, "Switch", WEIR_EDGES(merge, frame->cond), WEIR_NO_ATTRS, NULL);
  frame->pivot = weir_gradient_put(g, in, "Identity", WEIR_EDGES(weir_build_output(split, 1)),
                                   WEIR_NO_ATTRS, NULL);
  weir_edge_t next = weir_gradient_put(g, in, "AddV2", WEIR_EDGES(frame->pivot, constants[1]),
                                       WEIR_NO_ATTRS, NULL);
  frame->increment = next.node;
  next = weir_gradient_put(g, in, "NextIteration", WEIR_EDGES(next), WEIR_NO_ATTRS, NULL);
  frame->count = weir_gradient_put(g, out, "Exit", WEIR_EDGES(split), WEIR_NO_ATTRS, NULL);
  if (b->status) return;
  weir_status_t* status = weir_graph_set_input(merge.node, 1, next);
  if (status) fail(g, status);
}

// ---- values in a backward loop ----

weir_edge_t weir_backward_enter(gradient_t* g, backward_t* context, weir_edge_t value,
                                bool is_constant) {
  if (g->builder.base.status) return WEIR_NO_EDGE;
  weir_node_t* control = weir_node_is_free_const(value.node) ? context->parent->pivot.node : NULL;
  return weir_gradient_put(
      g, (node_flow_t){.made_in = context}, "Enter", WEIR_EDGES(value),
      WEIR_ATTRS(weir_attr_string("frame_name", context->name),
                 weir_attr_bool("is_constant", is_constant),
                 weir_attr_int("parallel_iterations", context->frame->parallel_iterations)),
      control);
}

static weir_edge_t enter_constant(gradient_t* g, backward_t* context, weir_edge_t outside) {
  weir_edge_t value = weir_backward_value(g, context->parent, outside);
  if (g->builder.base.status || weir_node_is_free_const(value.node)) return value;
  return weir_backward_enter(g, context, value, true);
}

weir_node_t* weir_backward_gate(gradient_t* g, backward_t* context, const guard_t* guard) {
  edge_key_t key = {
      .node = guard->pred.node->id, .index = guard->pred.index, .branch = guard->branch};
  const weir_edge_t* known = recall(&context->gates, key);
  if (known) return known->node;
  if (weir_dtype_base(weir_edge_dtype(guard->pred)) != WEIR_DTYPE_BOOL) {
    fail(g, WEIR_STATUS(UNIMPLEMENTED,
                        "Gradients of a loop with a switch by number, on '%s', are not supported",
                        guard->pred.node->def.name));
    return NULL;
  }
  node_flow_t flow = {.made_in = context};
  weir_edge_t pred = weir_backward_value(g, context, guard->pred);
  if (g->builder.base.status) return NULL;
  weir_node_t* control = weir_node_is_free_const(pred.node) ? context->pivot.node : NULL;
  weir_edge_t split =
      weir_gradient_put(g, flow, "Switch", WEIR_EDGES(pred, pred), WEIR_NO_ATTRS, control);
  weir_edge_t alive =
      weir_gradient_put(g, flow, "Identity", WEIR_EDGES(weir_build_output(split, guard->branch)),
                        WEIR_NO_ATTRS, NULL);
  if (alive.node) remember(g, &context->gates, key, alive);
  return alive.node;
}

weir_edge_t weir_gradient_stack(gradient_t* g, frame_t* frame, weir_dtype_t dtype) {
  weir_tensor_t* size = NULL;
  const int32_t unlimited = -1;
  weir_status_t* status = weir_tensor_create_from(WEIR_DTYPE_INT32, 0, NULL, &unlimited, &size);
  if (status) {
    fail(g, status);
    return WEIR_NO_EDGE;
  }
  weir_edge_t max_size = weir_gradient_put(
      g, (node_flow_t){.made_in = &g->root}, "Const", WEIR_NO_EDGES,
      WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_INT32), weir_attr_tensor("value", size)), NULL);
  weir_tensor_release(size);
  return weir_gradient_put(g, (node_flow_t){.frame = frame}, "StackV2", WEIR_EDGES(max_size),
                           WEIR_ATTRS(weir_attr_type("elem_type", dtype)), frame->pivot.node);
}

static weir_edge_t pop(gradient_t* g, backward_t* context, weir_edge_t stack, weir_edge_t saved) {
  node_flow_t flow = {.made_in = context};
  weir_edge_t handle = enter_constant(g, context, stack);
  weir_dtype_t dtype = weir_dtype_base(weir_edge_dtype(saved));
  weir_edge_t popped =
      weir_gradient_put(g, flow, "StackPopV2", WEIR_EDGES(handle),
                        WEIR_ATTRS(weir_attr_type("elem_type", dtype)), context->pivot.node);
  for (const guard_t* guard = weir_flow_guard(g, saved); guard && !g->builder.base.status;
       guard = guard->next) {
    weir_node_t* alive = weir_backward_gate(g, context, guard);
    if (alive) order(g, popped.node, alive);
  }
  weir_gradient_sync(g, flow, &context->sync, context->decrement, popped.node);
  if (g->builder.base.status) return WEIR_NO_EDGE;
  popped.node->shapes[0] = saved.node->shapes[saved.index];
  popped.node->handles[0] = saved.node->handles[saved.index];
  return popped;
}

static weir_edge_t save(gradient_t* g, backward_t* context, weir_edge_t edge) {
  frame_t* frame = context->frame;
  weir_edge_t stack = weir_gradient_stack(g, frame->parent, weir_dtype_base(weir_edge_dtype(edge)));
  if (g->builder.base.status) return WEIR_NO_EDGE;
  weir_edge_t handle = enter_frame(g, frame, stack, true);
  node_flow_t flow = {.frame = frame, .guard = weir_flow_guard(g, edge)};
  weir_edge_t push = weir_gradient_put(g, flow, "StackPushV2", WEIR_EDGES(handle, edge),
                                       WEIR_NO_ATTRS, frame->pivot.node);
  weir_gradient_sync(g, (node_flow_t){.frame = frame}, &frame->sync, frame->increment, push.node);
  return pop(g, context, stack, edge);
}

static weir_edge_t forward_value(gradient_t* g, backward_t* context, weir_edge_t edge) {
  const node_flow_t* flow = weir_flow_of(g, edge.node);
  if (weir_node_role(edge.node) == WEIR_ROLE_CONST) {  // one that something orders: a copy is free
    return weir_gradient_put(g, (node_flow_t){.made_in = &g->root}, "Const", WEIR_NO_EDGES,
                             edge.node->def.attrs, NULL);
  }
  if (flow->frame->depth < context->frame->depth) return enter_constant(g, context, edge);
  if (flow->frame != context->frame) {
    fail(g, WEIR_STATUS(INTERNAL, "'%s' is not in loop '%.*s'", edge.node->def.name,
                        WEIR_VIEW_ARG(context->frame->name)));
    return WEIR_NO_EDGE;
  }
  weir_edge_t source = weir_flow_behind_identities(edge);
  if (!weir_edge_equal(source, edge)) return weir_backward_value(g, context, source);
  bool is_constant = weir_node_role(edge.node) == WEIR_ROLE_ENTER &&
                     weir_attrs_bool(edge.node->def.attrs, "is_constant");
  return is_constant ? enter_constant(g, context, edge.node->inputs[0]) : save(g, context, edge);
}

weir_edge_t weir_backward_value(gradient_t* g, backward_t* context, weir_edge_t edge) {
  if (g->builder.base.status || !edge.node || !context->parent ||
      weir_node_is_free_const(edge.node))
    return edge;
  backward_t* made_in = weir_flow_of(g, edge.node)->made_in;
  if (made_in == context) return edge;
  edge_key_t key = {.node = edge.node->id, .index = edge.index};
  const weir_edge_t* known = recall(&context->known, key);
  if (known) return *known;
  weir_edge_t value = made_in ? enter_constant(g, context, edge) : forward_value(g, context, edge);
  if (value.node) remember(g, &context->known, key, value);
  return value;
}

// ---- the builder that gradient functions see ----

static gradient_t* gradient_of(weir_builder_t* builder) {
  return (gradient_t*)((char*)builder - offsetof(gradient_t, builder));
}

// Whether |op| makes small integers of the shape of |input|, a value to be saved: then those are
// saved instead.
static bool is_shape_of_saved(const gradient_t* g, const weir_op_t* op, weir_edges_t inputs) {
  if (!(op->flags & WEIR_OP_SHAPE_ONLY) || inputs.count != 1) return false;
  bool is_alike = op->outputs[0].type_attr && op->inputs[0].type_attr &&
                  !strcmp(op->outputs[0].type_attr, op->inputs[0].type_attr);
  const node_flow_t* flow = weir_flow_of(g, inputs.items[0].node);
  return !is_alike && !flow->made_in && flow->frame == g->context->frame;
}

static weir_edge_t shape_of_saved(gradient_t* g, const char* op, weir_edge_t input,
                                  weir_attrs_t attrs) {
  char* key = weir_arena_printf(&g->arena, "%s/%d/%d", op, input.node->id, input.index);
  if (!key) {
    fail(g, weir_out_of_memory());
    return WEIR_NO_EDGE;
  }
  weir_edge_t* known =
      attrs.count == 0 ? weir_map_find(&g->context->shapes, weir_view_of(key)) : NULL;
  if (known) return *known;
  node_flow_t flow = {.frame = g->context->frame, .guard = weir_flow_guard(g, input)};
  weir_edge_t shape = weir_gradient_put(g, flow, op, WEIR_EDGES(input), attrs, NULL);
  weir_edge_t* value = weir_arena_alloc(&g->arena, sizeof(*value));
  if (!value) {
    fail(g, weir_out_of_memory());
    return WEIR_NO_EDGE;
  }
  *value = weir_backward_value(g, g->context, shape);
  weir_status_t* status =
      attrs.count == 0 ? weir_map_put(&g->context->shapes, weir_view_of(key), value) : NULL;
  if (status) fail(g, status);
  return *value;
}

// An attribute "source" tells apart the gradient arrays of one TensorArray: each construction has
// its own.
static weir_status_t* name_source(gradient_t* g, weir_attrs_t* attrs) {
  for (size_t i = 0; i < attrs->count; ++i) {
    if (strcmp(attrs->items[i].name, "source")) continue;
    weir_named_attr_t* items = weir_arena_array(&g->arena, attrs->count, sizeof(*items));
    if (!items) return weir_out_of_memory();
    memcpy(items, attrs->items, sizeof(*items) * attrs->count);
    items[i] = weir_attr_string("source", g->source);
    *attrs = (weir_attrs_t){.items = items, .count = attrs->count};
    break;
  }
  return NULL;
}

static weir_status_t* builder_add(weir_builder_t* self, const char* op, weir_edges_t inputs,
                                  weir_attrs_t attrs, const char* name_hint,
                                  weir_edge_t* out_first) {
  (void)name_hint;
  gradient_t* g = gradient_of(self);
  backward_t* context = g->context;
  const weir_op_t* found = weir_registry_find(g->graph->registry, weir_view_of(op));
  weir_node_t* control = NULL;
  WEIR_TRY(name_source(g, &attrs));
  if (context->parent && found && is_shape_of_saved(g, found, inputs)) {
    *out_first = shape_of_saved(g, op, inputs.items[0], attrs);
  } else {
    weir_edge_t* values = weir_arena_array(&g->arena, (size_t)inputs.count, sizeof(*values));
    if (!values) return weir_out_of_memory();
    bool is_free = true;
    for (int i = 0; i < inputs.count && !self->status; ++i) {
      values[i] = weir_backward_value(g, context, inputs.items[i]);
      is_free &= self->status || weir_node_is_free_const(values[i].node);
    }
    if (is_free && !(found && found->role == WEIR_ROLE_CONST)) control = context->pivot.node;
    *out_first =
        weir_gradient_put(g, (node_flow_t){.made_in = context}, op,
                          (weir_edges_t){.items = values, .count = inputs.count}, attrs, control);
  }
  weir_status_t* status = self->status;  // the caller makes it stick
  self->status = NULL;
  return status;
}

// An order after a forward node of a loop is kept by the backward loop as a whole, which starts
// after it.
static weir_status_t* builder_add_control(weir_builder_t* self, weir_edge_t node, weir_edge_t on) {
  gradient_t* g = gradient_of(self);
  if (g->context->parent && weir_flow_of(g, on.node)->made_in != g->context) return NULL;
  return weir_graph_add_control(node.node, on.node);
}

void weir_gradient_builder_init(gradient_t* g) {
  weir_graph_builder_init(&g->builder, g->graph, g->prefix);
  g->vtable = weir_graph_builder_vtable;
  g->vtable.add = builder_add;
  g->vtable.add_control = builder_add_control;
  g->builder.base.vtable = &g->vtable;
}
