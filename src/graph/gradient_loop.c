// gradient_loop.c — The gradient of a loop: a loop that goes backward through its iterations.
//
// A counter goes down from the trip count. The variables of the backward loop are the gradients of
// the forward loop's variables, which enter as gradients of its results; values that are the same
// in all iterations get sums instead. The body is the gradient of the forward body, built by the
// same sweep as everything else.
#include "graph/gradient_internal.h"

typedef struct variable_t {
  weir_node_t* enter;  // forward nodes
  weir_node_t* next;
  weir_node_t* split;      // the Switch
  weir_node_t* exit;       // the first one; NULL: its last value is not used
  weir_edge_t back_merge;  // backward
  weir_edge_t back_value;  // in the body: the gradient of what |next| takes
  weir_edge_t back_exit;   // the gradient of what |enter| takes
} variable_t;

typedef struct loop_t {
  gradient_t* g;
  frame_t* frame;
  backward_t* outer;
  backward_t* inner;
  variable_t* variables;
  int count;
} loop_t;

static void fail(gradient_t* g, weir_status_t* take_status) {
  if (g->builder.base.status) weir_status_destroy(take_status);
  else g->builder.base.status = take_status;
}

// ---- the forward loop ----

static variable_t* find_variable(const loop_t* loop, const weir_node_t* merge) {
  for (int i = 0; i < loop->count; ++i) {
    const weir_node_t* next = loop->variables[i].next;
    for (int k = 0; k < merge->def.input_count; ++k) {
      if (merge->inputs[k].node == next) return &loop->variables[i];
    }
  }
  return NULL;
}

static variable_t* variable_of_exit(const loop_t* loop, const weir_node_t* exit) {
  for (int i = 0; i < loop->count; ++i) {
    if (loop->variables[i].split == exit->inputs[0].node && exit->inputs[0].index == 0)
      return &loop->variables[i];
  }
  return NULL;
}

static weir_status_t* unsupported(const weir_node_t* node, const char* why) {
  return WEIR_STATUS(UNIMPLEMENTED, "Gradient of '%s' (%s) in a loop is not supported: %s",
                     node->def.name, node->def.op_name, why);
}

static weir_status_t* add_variable(loop_t* loop, weir_node_t* merge) {
  variable_t variable = {0};
  for (int k = 0; k < merge->def.input_count; ++k) {
    weir_node_t* source = merge->inputs[k].node;
    if (weir_node_role(source) == WEIR_ROLE_NEXT_ITERATION) variable.next = source;
    if (weir_node_role(source) == WEIR_ROLE_ENTER) variable.enter = source;
  }
  if (merge->def.input_count != 2 || !variable.next || !variable.enter)
    return unsupported(merge, "it is no loop variable");
  loop->variables[loop->count++] = variable;
  return NULL;
}

static weir_status_t* find_switches(loop_t* loop) {
  for (int i = 0; i < loop->frame->member_count; ++i) {
    weir_node_t* node = loop->frame->members[i];
    if (!loop->g->is_between[node->id] || !weir_flow_is_loop_switch(node)) continue;
    weir_node_t* merge = node->inputs[0].node;
    variable_t* variable = weir_node_is_loop_merge(merge) ? find_variable(loop, merge) : NULL;
    if (!variable || variable->split)
      return unsupported(node, "it does not switch a loop variable");
    variable->split = node;
  }
  return NULL;
}

// Finds the variables gradients flow through, and brings the gradients of several exits of one
// together.
static weir_status_t* find_variables(loop_t* loop) {
  gradient_t* g = loop->g;
  frame_t* frame = loop->frame;
  loop->variables =
      weir_arena_array(&g->arena, (size_t)frame->member_count, sizeof(*loop->variables));
  if (!loop->variables) return weir_out_of_memory();
  for (int i = 0; i < frame->member_count; ++i) {
    weir_node_t* node = frame->members[i];
    if (g->is_between[node->id] && weir_node_is_loop_merge(node))
      WEIR_TRY(add_variable(loop, node));
  }
  WEIR_TRY(find_switches(loop));
  for (int i = 0; i < frame->member_count; ++i) {
    weir_node_t* node = frame->members[i];
    if (!g->is_between[node->id] || weir_node_role(node) != WEIR_ROLE_EXIT) continue;
    variable_t* variable = variable_of_exit(loop, node);
    if (!variable) return unsupported(node, "its input is not the end of a loop variable");
    if (variable->exit) {
      weir_grad_value_t more = weir_gradient_take(g, (weir_edge_t){.node = node, .index = 0});
      WEIR_TRY(weir_gradient_add(g, (weir_edge_t){.node = variable->exit, .index = 0}, more));
    } else {
      variable->exit = node;
    }
  }
  return NULL;
}

static bool has_gradient(const loop_t* loop) {
  for (int i = 0; i < loop->count; ++i) {
    const weir_node_t* exit = loop->variables[i].exit;
    const collected_t* places = exit ? loop->g->collected[exit->id] : NULL;
    if (places && places[0].count > 0) return true;
  }
  return weir_stacks_hold_gradients(loop->g, loop->frame, NULL);
}

// ---- the backward loop ----

static weir_edge_t put_in(loop_t* loop, const char* op, weir_edges_t inputs) {
  return weir_gradient_put(loop->g, (node_flow_t){.made_in = loop->inner}, op, inputs,
                           WEIR_NO_ATTRS, NULL);
}

static weir_edge_t put_exit(loop_t* loop, weir_edge_t split) {
  return weir_gradient_put(loop->g, (node_flow_t){.made_in = loop->outer}, "Exit",
                           WEIR_EDGES(split), WEIR_NO_ATTRS, NULL);
}

// A variable begun, of the shape of |like| in every iteration; weir_graph_set_input closes its
// cycle.
static weir_edge_t begin_cycle(loop_t* loop, weir_edge_t initial, weir_edge_t like,
                               weir_edge_t* out_merge, weir_edge_t* out_exit) {
  weir_edge_t enter = weir_backward_enter(loop->g, loop->inner, initial, false);
  weir_edge_t merge = put_in(loop, "Merge", WEIR_EDGES(enter, enter));
  bool has_shape = !loop->g->builder.base.status && weir_dtype_is_plain(weir_edge_dtype(like));
  if (has_shape) merge.node->shapes[0] = weir_edge_shape(like);
  weir_edge_t split = put_in(loop, "Switch", WEIR_EDGES(merge, loop->inner->cond));
  *out_merge = merge;
  *out_exit = put_exit(loop, split);
  return weir_build_output(split, 1);
}

static void end_cycle(loop_t* loop, weir_edge_t merge, weir_edge_t value) {
  gradient_t* g = loop->g;
  weir_node_t* control =
      value.node && weir_node_is_free_const(value.node) ? loop->inner->pivot.node : NULL;
  weir_edge_t next = weir_gradient_put(g, (node_flow_t){.made_in = loop->inner}, "NextIteration",
                                       WEIR_EDGES(value), WEIR_NO_ATTRS, control);
  if (g->builder.base.status) return;
  weir_status_t* status = weir_graph_set_input(merge.node, 1, next);
  if (status) fail(g, status);
}

static void begin_counter(loop_t* loop) {
  gradient_t* g = loop->g;
  backward_t* inner = loop->inner;
  g->context = loop->outer;
  weir_edge_t zero = weir_build_int32(&g->builder.base, 0);
  weir_edge_t one = weir_build_int32(&g->builder.base, 1);
  weir_edge_t enter =
      weir_backward_enter(g, inner, weir_backward_value(g, loop->outer, loop->frame->count), false);
  if (enter.node) weir_stacks_hold_gradients(g, loop->frame, enter.node);
  weir_edge_t merge = put_in(loop, "Merge", WEIR_EDGES(enter, enter));
  weir_edge_t goes_on = put_in(loop, "Greater", WEIR_EDGES(merge, zero));
  inner->cond = put_in(loop, "LoopCond", WEIR_EDGES(goes_on));
  weir_edge_t split = put_in(loop, "Switch", WEIR_EDGES(merge, inner->cond));
  inner->pivot = put_in(loop, "Identity", WEIR_EDGES(weir_build_output(split, 1)));
  inner->done = put_exit(loop, split);
  weir_edge_t down = put_in(loop, "Sub", WEIR_EDGES(inner->pivot, one));
  inner->decrement = down.node;
  end_cycle(loop, merge, down);
}

static weir_edge_t final_gradient(loop_t* loop, variable_t* variable) {
  gradient_t* g = loop->g;
  weir_edge_t exit = {.node = variable->exit, .index = 0};
  if (!exit.node) {
    node_flow_t flow = {.frame = loop->frame->parent, .guard = loop->frame->guard};
    weir_edge_t last = {.node = variable->split, .index = 0};
    exit = weir_gradient_put(g, flow, "Exit", WEIR_EDGES(last), WEIR_NO_ATTRS, NULL);
    return weir_gradient_zeros(&g->builder.base, exit);
  }
  weir_grad_value_t dy = weir_gradient_take(g, exit);
  if (weir_edge_is_none(dy.values)) return weir_gradient_zeros(&g->builder.base, exit);
  return weir_backward_value(g, loop->outer, weir_gradient_densify(&g->builder.base, dy));
}

static bool is_resource(const variable_t* variable) {
  return weir_dtype_base(variable->enter->def.output_types[0]) == WEIR_DTYPE_RESOURCE;
}

static weir_status_t* begin_variables(loop_t* loop) {
  gradient_t* g = loop->g;
  for (int i = 0; i < loop->count && !g->builder.base.status; ++i) {
    variable_t* variable = &loop->variables[i];
    if (!variable->split) continue;
    weir_edge_t next = weir_flow_behind_identities(variable->next->inputs[0]);
    if (is_resource(variable)) {  // the variable it refers to gets a sum
      if (next.node == variable->split && next.index == 1) continue;
      return unsupported(variable->next, "a resource that changes from one iteration to the next");
    }
    g->context = loop->outer;
    weir_edge_t initial = final_gradient(loop, variable);
    weir_edge_t like = {.node = variable->split, .index = 1};
    variable->back_value =
        begin_cycle(loop, initial, like, &variable->back_merge, &variable->back_exit);
    WEIR_TRY(weir_gradient_add(g, variable->next->inputs[0],
                               (weir_grad_value_t){.values = variable->back_value}));
  }
  return NULL;
}

static weir_status_t* end_variables(loop_t* loop) {
  gradient_t* g = loop->g;
  for (int i = 0; i < loop->count && !g->builder.base.status; ++i) {
    variable_t* variable = &loop->variables[i];
    if (!variable->back_merge.node) continue;
    g->context = loop->inner;
    weir_edge_t start = {.node = variable->split, .index = 1};
    weir_grad_value_t dx = weir_gradient_take(g, start);
    weir_edge_t value = weir_edge_is_none(dx.values) ? weir_gradient_zeros(&g->builder.base, start)
                                                     : weir_gradient_densify(&g->builder.base, dx);
    end_cycle(loop, variable->back_merge, weir_backward_value(g, loop->inner, value));
    if (!g->is_between[variable->enter->inputs[0].node->id]) continue;
    WEIR_TRY(weir_gradient_add(g, variable->enter->inputs[0],
                               (weir_grad_value_t){.values = variable->back_exit}));
  }
  return NULL;
}

// ---- sums for what is the same in all iterations ----

static weir_edge_t zeros_of_resource(gradient_t* g, weir_edge_t handle, weir_dtype_t dtype) {
  weir_builder_t* b = &g->builder.base;
  const weir_handle_info_t* info = handle.node->handles[handle.index];
  weir_edge_t dims;
  if (info && info->shape && weir_shape_is_full(info->shape)) {
    dims = weir_build_int64s(b, info->shape->dims, info->shape->rank);
  } else {
    dims = weir_build(b, "VariableShape", WEIR_EDGES(handle), WEIR_NO_ATTRS);
  }
  return weir_build(b, "Fill", WEIR_EDGES(dims, weir_build_scalar(b, dtype, 0)), WEIR_NO_ATTRS);
}

// Sums what reached |inside|, a value that entered as |outside|, over all iterations.
static weir_status_t* sum_over_iterations(loop_t* loop, weir_edge_t inside, weir_edge_t outside) {
  gradient_t* g = loop->g;
  weir_builder_t* b = &g->builder.base;
  g->context = loop->inner;
  weir_grad_value_t found = weir_gradient_take(g, inside);
  if (weir_edge_is_none(found.values) || !g->is_between[outside.node->id]) return NULL;
  weir_edge_t share = weir_backward_value(g, loop->inner, weir_gradient_densify(b, found));
  if (b->status) return NULL;
  bool is_of_resource = weir_dtype_base(weir_edge_dtype(outside)) == WEIR_DTYPE_RESOURCE;
  g->context = loop->outer;
  weir_edge_t zeros = is_of_resource ? zeros_of_resource(g, outside, weir_build_dtype(b, share))
                                     : weir_gradient_zeros(b, outside);
  weir_edge_t merge = WEIR_NO_EDGE;
  weir_edge_t sum = WEIR_NO_EDGE;
  weir_edge_t so_far = begin_cycle(loop, zeros, outside, &merge, &sum);
  end_cycle(loop, merge, put_in(loop, "AddN", WEIR_EDGES(so_far, share)));
  return b->status ? NULL : weir_gradient_add(g, outside, (weir_grad_value_t){.values = sum});
}

static weir_status_t* sum_constants(loop_t* loop) {
  gradient_t* g = loop->g;
  frame_t* parent = loop->frame->parent;
  for (int i = 0; i < parent->member_count && !g->builder.base.status; ++i) {
    weir_node_t* node = parent->members[i];
    bool is_enter =
        weir_node_role(node) == WEIR_ROLE_ENTER && weir_flow_of(g, node)->frame == loop->frame;
    if (!is_enter || !g->is_between[node->id] || !weir_attrs_bool(node->def.attrs, "is_constant"))
      continue;
    WEIR_TRY(sum_over_iterations(loop, (weir_edge_t){.node = node, .index = 0}, node->inputs[0]));
  }
  for (int i = 0; i < loop->count && !g->builder.base.status; ++i) {
    variable_t* variable = &loop->variables[i];
    if (!variable->split || !is_resource(variable)) continue;
    WEIR_TRY(sum_over_iterations(loop, (weir_edge_t){.node = variable->split, .index = 1},
                                 variable->enter->inputs[0]));
  }
  return NULL;
}

// ---- the whole ----

static weir_status_t* build_backward(loop_t* loop) {
  gradient_t* g = loop->g;
  weir_frame_count(g, loop->frame);
  begin_counter(loop);
  WEIR_TRY(begin_variables(loop));
  g->context = loop->inner;
  WEIR_TRY(weir_gradient_sweep(g, loop->frame));
  WEIR_TRY(end_variables(loop));
  return sum_constants(loop);
}

weir_status_t* weir_gradient_of_loop(gradient_t* g, frame_t* frame) {
  loop_t loop = {.g = g, .frame = frame, .outer = g->context};
  WEIR_TRY(find_variables(&loop));
  if (!has_gradient(&loop)) return NULL;
  loop.inner = weir_arena_alloc(&g->arena, sizeof(*loop.inner));
  if (!loop.inner) return weir_out_of_memory();
  const char* name = weir_arena_printf(&g->arena, "%s/%.*s_grad_%zu", g->prefix,
                                       WEIR_VIEW_ARG(frame->name), g->graph->node_count);
  const char* prefix =
      weir_arena_printf(&g->arena, "%s/loop%zu_grad", g->prefix, g->graph->node_count);
  if (!name || !prefix) return weir_out_of_memory();
  *loop.inner = (backward_t){.parent = loop.outer, .frame = frame, .name = name};
  g->builder.prefix = prefix;
  g->builder.device = NULL;
  weir_status_t* status = build_backward(&loop);
  g->context = loop.outer;
  weir_backward_free(loop.inner);
  return status;
}
