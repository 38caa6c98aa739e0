// lower_while.c — Lowering of While: a frame with Enter, Merge, Switch, NextIteration and Exit
// around its two functions.
#include "graph/lower_internal.h"

typedef struct loop_t {
  lowering_t* l;
  const char* frame;
  int64_t parallel;
  int count;          // variables
  bool* is_constant;  // the body returns it as it came
  weir_edge_t* enters;
  weir_edge_t* merges;  // of constants: the Enter
  weir_edge_t* switches;
  weir_edge_t* in_body;
} loop_t;

static weir_edge_t behind_identities(weir_edge_t edge) {
  while (edge.index == 0 && weir_node_has(edge.node, WEIR_OP_PASS_THROUGH) &&
         edge.node->control_count == 0) {
    edge = edge.node->inputs[0];
  }
  return edge;
}

// Finds the variables the body hands on unchanged. At least one stays a variable: it carries the
// loop.
static weir_status_t* find_constants(loop_t* loop, const weir_func_t* func) {
  lowering_t* l = loop->l;
  const weir_function_t* function = weir_function_find(l->graph->library, func->name);
  if (!function) {
    return WEIR_STATUS(NOT_FOUND, "Function '%.*s', which '%s' calls, is not defined",
                       WEIR_VIEW_ARG(func->name), l->node->def.name);
  }
  weir_function_body_t body = {0};
  WEIR_TRY(weir_function_instantiate(l->graph->library, l->graph->registry, function, func->attrs,
                                     &body));
  bool has_variable = false;
  for (int i = 0; i < loop->count && i < body.ret_count; ++i) {
    weir_edge_t source = behind_identities(body.rets[i]->inputs[0]);
    loop->is_constant[i] = weir_node_role(source.node) == WEIR_ROLE_ARG &&
                           weir_attrs_int(source.node->def.attrs, "index") == i;
    has_variable |= !loop->is_constant[i];
  }
  int ret_count = body.ret_count;
  weir_function_body_free(&body);
  if (ret_count != loop->count || loop->count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "'%s' has %d loop variables, but its body returns %d values",
                       l->node->def.name, loop->count, ret_count);
  }
  if (!has_variable) loop->is_constant[0] = false;
  return NULL;
}

static weir_status_t* loop_init(loop_t* loop) {
  lowering_t* l = loop->l;
  size_t count = (size_t)l->node->def.input_count;
  loop->count = (int)count;
  loop->parallel = weir_attrs_int(l->node->def.attrs, "parallel_iterations");
  loop->frame = weir_arena_printf(&l->graph->arena, "%s/frame", l->node->def.name);
  loop->is_constant = weir_arena_array(&l->arena, count, sizeof(bool));
  loop->enters = weir_arena_array(&l->arena, count, sizeof(weir_edge_t));
  loop->merges = weir_arena_array(&l->arena, count, sizeof(weir_edge_t));
  loop->switches = weir_arena_array(&l->arena, count, sizeof(weir_edge_t));
  loop->in_body = weir_arena_array(&l->arena, count, sizeof(weir_edge_t));
  bool is_complete = loop->frame && loop->is_constant && loop->enters && loop->merges &&
                     loop->switches && loop->in_body;
  return is_complete ? NULL : weir_out_of_memory();
}

static void enter_all(loop_t* loop) {
  lowering_t* l = loop->l;
  for (int i = 0; i < loop->count; ++i) {
    bool is_free = weir_node_is_free_const(l->args[i].node);
    if (is_free && loop->is_constant[i]) {  // needs not enter
      loop->enters[i] = loop->merges[i] = l->args[i];
      continue;
    }
    loop->enters[i] =
        weir_lower_add(l, "Enter", WEIR_EDGES(l->args[i]),
                       WEIR_ATTRS(weir_attr_string("frame_name", loop->frame),
                                  weir_attr_bool("is_constant", loop->is_constant[i]),
                                  weir_attr_int("parallel_iterations", loop->parallel)),
                       &l->pivot, is_free && l->pivot ? 1 : 0);
    // The second input becomes the NextIteration once there is one.
    loop->merges[i] = loop->is_constant[i]
                          ? loop->enters[i]
                          : weir_build(&l->builder.base, "Merge",
                                       WEIR_EDGES(loop->enters[i], loop->enters[i]), WEIR_NO_ATTRS);
  }
}

static int first_variable(const loop_t* loop) {
  int i = 0;
  while (loop->is_constant[i]) ++i;
  return i;
}

static weir_status_t* add_cond(loop_t* loop, weir_edge_t* out_cond) {
  lowering_t* l = loop->l;
  weir_node_t* carrier = loop->merges[first_variable(loop)].node;
  const weir_func_t* func = weir_attrs_func(l->node->def.attrs, "cond");
  inlining_t in = {.func = func, .name = "cond/", .args = loop->merges, .pivot = carrier};
  if (!carrier) return NULL;
  WEIR_TRY(weir_lower_inline(l, &in));
  if (l->builder.base.status) return NULL;
  if (in.ret_count != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "'%s': its condition returns %d values", l->node->def.name,
                       in.ret_count);
  }
  weir_edge_t truth = weir_lower_truth(l, in.rets[0]);
  *out_cond =
      weir_lower_add(l, "LoopCond", WEIR_EDGES(truth), WEIR_NO_ATTRS, in.effects, in.effect_count);
  return NULL;
}

static void switch_all(loop_t* loop, weir_edge_t cond) {
  weir_builder_t* b = &loop->l->builder.base;
  for (int i = 0; i < loop->count; ++i) {
    if (loop->is_constant[i]) {
      loop->in_body[i] = loop->enters[i];
      continue;
    }
    loop->switches[i] = weir_build(b, "Switch", WEIR_EDGES(loop->merges[i], cond), WEIR_NO_ATTRS);
    loop->in_body[i] = weir_build_output(loop->switches[i], 1);
  }
}

static weir_status_t* add_body(loop_t* loop, inlining_t* in) {
  lowering_t* l = loop->l;
  bool* is_anchored = weir_arena_array(&l->arena, (size_t)loop->count, sizeof(bool));
  if (!is_anchored) return weir_out_of_memory();
  for (int i = 0; i < loop->count; ++i) is_anchored[i] = !loop->is_constant[i];
  weir_edge_t carrier = loop->in_body[first_variable(loop)];
  weir_edge_t pivot = weir_build(&l->builder.base, "Identity", WEIR_EDGES(carrier), WEIR_NO_ATTRS);
  *in = (inlining_t){.func = weir_attrs_func(l->node->def.attrs, "body"),
                     .name = "body/",
                     .args = loop->in_body,
                     .is_anchored = is_anchored,
                     .pivot = pivot.node};
  return weir_lower_inline(l, in);
}

// Side effects of an iteration happen before the next one begins, whichever of the variables
// anyone needs.
static weir_status_t* close_loop(loop_t* loop, const inlining_t* body) {
  lowering_t* l = loop->l;
  weir_node_t* done = NULL;
  if (body->effect_count > 0) {
    done =
        weir_lower_add(l, "NoOp", WEIR_NO_EDGES, WEIR_NO_ATTRS, body->effects, body->effect_count)
            .node;
  }
  for (int i = 0; i < loop->count && !l->builder.base.status; ++i) {
    if (loop->is_constant[i]) continue;
    weir_edge_t next = weir_lower_add(l, "NextIteration", WEIR_EDGES(body->rets[i]), WEIR_NO_ATTRS,
                                      &done, done ? 1 : 0);
    if (next.node) WEIR_TRY(weir_graph_set_input(loop->merges[i].node, 1, next));
  }
  return NULL;
}

// What leaves the loop. A constant goes around it, but not ahead of it: its reader wants the loop
// to have run.
static weir_status_t* exit_all(loop_t* loop, weir_edge_t** out_results) {
  lowering_t* l = loop->l;
  weir_edge_t* results = weir_arena_array(&l->arena, (size_t)loop->count, sizeof(*results));
  weir_node_t** exits = weir_arena_array(&l->arena, (size_t)loop->count, sizeof(*exits));
  if (!results || !exits) return weir_out_of_memory();
  int carrier = first_variable(loop);
  for (int k = 0; k < loop->count && !l->builder.base.status; ++k) {
    int i = (carrier + k) % loop->count;
    if (loop->is_constant[i]) {
      results[i] = weir_lower_add(l, "Identity", WEIR_EDGES(l->args[i]), WEIR_NO_ATTRS,
                                  &results[carrier].node, 1);
    } else {
      results[i] =
          weir_build(&l->builder.base, "Exit", WEIR_EDGES(loop->switches[i]), WEIR_NO_ATTRS);
    }
    exits[i] = results[i].node;
  }
  l->executed = weir_lower_add(l, "NoOp", WEIR_NO_EDGES, WEIR_NO_ATTRS, exits, loop->count).node;
  *out_results = results;
  return NULL;
}

weir_status_t* weir_lower_while(lowering_t* l) {
  loop_t loop = {.l = l};
  inlining_t body = {0};
  weir_edge_t cond = WEIR_NO_EDGE;
  WEIR_TRY(loop_init(&loop));
  WEIR_TRY(find_constants(&loop, weir_attrs_func(l->node->def.attrs, "body")));
  enter_all(&loop);
  WEIR_TRY(add_cond(&loop, &cond));
  switch_all(&loop, cond);
  WEIR_TRY(add_body(&loop, &body));
  if (l->builder.base.status) return NULL;
  WEIR_TRY(close_loop(&loop, &body));
  weir_edge_t* results = NULL;
  WEIR_TRY(exit_all(&loop, &results));
  return weir_lower_finish(l, results, NULL, 0);
}
