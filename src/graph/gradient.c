// gradient.c — Reverse-mode differentiation of a graph: a backward sweep over the nodes between xs
// and ys.
//
// Only nodes that the xs lead to and that lead to the ys, along edges of types that have gradients,
// take part. Each waits until all its readers among them have been done; then what they gave to its
// outputs is summed, and the op's own function adds nodes that say what flows to its inputs. Sums
// are made late, once an output is taken: dense ones by AddN, slices by concatenation.
//
// Calls are lowered first, over and over while that brings new calls, so that the sweep meets no
// functions but those that have a gradient function of their own.
//
// Control flow is the hard half, and lives next door. A loop counts as one unit of the frame around
// it: it is done when all that reads its Exits is. Its gradient (gradient_loop.c) is a loop that
// runs as many turns backward, whose body is made by this same sweep over the loop's frame; Enter,
// Merge, Switch, NextIteration and Exit of the loop are its structure there and no units. What the
// backward body reads of the forward one must be kept for every turn, on stacks (gradient_save.c).
// A conditional needs no unit: the gradient of a Switch is a Merge and that of a Merge a Switch, by
// the ops' own functions. Gradients of gradients meet those stacks again (gradient_stack.c), which
// is why loops wait for each other by |weir_stacks_pushed_in| too.
//
// Errors stick in the builder, so that gradient functions read like formulas; what had been added
// by then is reached by nothing.
#include "graph/gradient.h"

#include "graph/function_gradient.h"
#include "graph/gradient_internal.h"
#include "graph/lower.h"

// ---- which nodes gradients flow through ----

bool weir_gradient_flows(weir_edge_t edge) {
  weir_dtype_t base = weir_dtype_base(weir_edge_dtype(edge));
  return weir_dtype_is_floating(base) || weir_dtype_is_complex(base) ||
         base == WEIR_DTYPE_RESOURCE || base == WEIR_DTYPE_VARIANT;
}

// A gradient array of an earlier construction: it says so by its source. What reaches it must not
// be lost.
static bool is_gradient_array(const weir_node_t* node) {
  return weir_attrs_find(node->def.attrs, "source") != NULL;
}

// Marks what depends on the xs. Against the order only along the back edges of loops, so a few
// rounds see it all.
static void mark_after_xs(gradient_t* g, weir_node_t* const* order) {
  for (int i = 0; i < g->params->xs.count; ++i) g->depends[g->params->xs.items[i].node->id] = true;
  bool has_changed = true;
  while (has_changed) {
    has_changed = false;
    for (size_t i = 0; i < g->node_count; ++i) {
      weir_node_t* node = order[i];
      if (weir_node_has(node, WEIR_OP_NO_GRADIENT) && !is_gradient_array(node)) continue;
      for (int k = 0; k < node->def.input_count && !g->depends[node->id]; ++k) {
        weir_edge_t input = node->inputs[k];
        if (!g->depends[input.node->id] || !weir_gradient_flows(input)) continue;
        g->depends[node->id] = true;
        has_changed = true;
      }
    }
    has_changed |= weir_stacks_mark_after(g);
  }
}

// Of those, keeps what the ys depend on, against the order.
static void mark_before_ys(gradient_t* g, weir_node_t* const* order) {
  for (int i = 0; i < g->params->ys.count; ++i) {
    int id = g->params->ys.items[i].node->id;
    g->is_between[id] = g->depends[id];
  }
  bool has_changed = true;
  while (has_changed) {
    has_changed = false;
    for (size_t i = g->node_count; i-- > 0;) {
      weir_node_t* node = order[i];
      if (!g->is_between[node->id]) continue;
      for (int k = 0; k < node->def.input_count; ++k) {
        weir_edge_t input = node->inputs[k];
        bool is_new = g->depends[input.node->id] && !g->is_between[input.node->id] &&
                      weir_gradient_flows(input);
        if (!is_new) continue;
        g->is_between[input.node->id] = true;
        has_changed = true;
      }
    }
    has_changed |= weir_stacks_mark_before(g);
  }
}

// ---- collecting gradients of edges ----

weir_status_t* weir_gradient_add(gradient_t* g, weir_edge_t edge, weir_grad_value_t value) {
  if (weir_edge_is_none(value.values)) return NULL;
  collected_t** places = &g->collected[edge.node->id];
  if (!*places) {
    *places = weir_arena_array(&g->arena, (size_t)edge.node->def.output_count, sizeof(collected_t));
    if (!*places) return weir_out_of_memory();
  }
  collected_t* place = &(*places)[edge.index];
  if (place->count == place->capacity) {
    size_t capacity = place->capacity ? 2 * place->capacity : 2;
    weir_grad_value_t* grown = weir_arena_array(&g->arena, capacity, sizeof(*grown));
    if (!grown) return weir_out_of_memory();
    if (place->count) memcpy(grown, place->items, sizeof(*grown) * place->count);
    place->items = grown;
    place->capacity = capacity;
  }
  place->items[place->count++] = value;
  return NULL;
}

// Sums up slices: concatenated values and indices are the sum.
static weir_grad_value_t concat_slices(gradient_t* g, const weir_grad_value_t* items,
                                       size_t count) {
  weir_builder_t* b = &g->builder.base;
  weir_edge_t* edges = weir_arena_array(&g->arena, count + 1, sizeof(*edges));
  if (!edges) {
    b->status = weir_out_of_memory();
    return items[0];
  }
  weir_grad_value_t sum = items[0];
  edges[count] = weir_build_int32(b, 0);
  weir_edges_t inputs = {.items = edges, .count = (int)count + 1};
  for (size_t i = 0; i < count; ++i) edges[i] = items[i].values;
  sum.values = weir_build(b, "ConcatV2", inputs, WEIR_NO_ATTRS);
  for (size_t i = 0; i < count; ++i) {
    bool is_same = weir_build_dtype(b, items[i].indices) == weir_build_dtype(b, items[0].indices);
    edges[i] =
        is_same
            ? items[i].indices
            : weir_build(b, "Cast", WEIR_EDGES(items[i].indices),
                         WEIR_ATTRS(weir_attr_type("DstT", weir_build_dtype(b, items[0].indices))));
  }
  sum.indices = weir_build(b, "ConcatV2", inputs, WEIR_NO_ATTRS);
  return sum;
}

static weir_grad_value_t sum_dense(gradient_t* g, const weir_grad_value_t* items, size_t count) {
  weir_builder_t* b = &g->builder.base;
  weir_edge_t* edges = weir_arena_array(&g->arena, count, sizeof(*edges));
  if (!edges) {
    b->status = weir_out_of_memory();
    return items[0];
  }
  for (size_t i = 0; i < count; ++i) edges[i] = weir_gradient_densify(b, items[i]);
  weir_edge_t sum =
      weir_build(b, "AddN", (weir_edges_t){.items = edges, .count = (int)count}, WEIR_NO_ATTRS);
  return (weir_grad_value_t){.values = sum};
}

weir_edge_t weir_gradient_densify(weir_builder_t* b, weir_grad_value_t value) {
  if (weir_edge_is_none(value.indices)) return value.values;
  const weir_grad_value_t dys[] = {value};
  weir_grad_ctx_t ctx = {.builder = b, .dys = dys};
  return weir_grad_dy(&ctx, 0);
}

weir_edge_t weir_gradient_zeros(weir_builder_t* b, weir_edge_t like) {
  if (b->status || !like.node) return WEIR_NO_EDGE;
  weir_dtype_t dtype = weir_build_dtype(b, like);
  weir_grad_ctx_t ctx = {.builder = b};
  if (!weir_dtype_is_plain(dtype))
    return weir_build(b, "ZerosLike", WEIR_EDGES(like), WEIR_NO_ATTRS);
  weir_edge_t zero = weir_build_scalar(b, dtype, 0);
  if (weir_build_shape(b, like)->rank == 0) return zero;
  return weir_build(b, "Fill", WEIR_EDGES(weir_grad_shape_of(&ctx, like), zero), WEIR_NO_ATTRS);
}

weir_grad_value_t weir_gradient_take(gradient_t* g, weir_edge_t edge) {
  collected_t* places = g->collected[edge.node->id];
  collected_t* place = places ? &places[edge.index] : NULL;
  if (!place || place->count == 0) return (weir_grad_value_t){0};
  if (place->count > 1) {
    bool is_all_slices = true;
    for (size_t i = 0; i < place->count; ++i)
      is_all_slices &= !weir_edge_is_none(place->items[i].indices);
    place->items[0] = is_all_slices ? concat_slices(g, place->items, place->count)
                                    : sum_dense(g, place->items, place->count);
    place->count = 1;
  }
  return place->items[0];
}

// ---- one node ----

static weir_status_t* no_gradient(const weir_node_t* node) {
  return WEIR_STATUS(INVALID_ARGUMENT, "No gradient defined for operation '%s' (op type: %s)",
                     node->def.name, node->def.op_name);
}

typedef weir_status_t* (*build_grad_fn_t)(weir_grad_ctx_t* ctx);

// The node's own gradient function, or that of the op it names as the one whose gradient it has.
static weir_status_t* find_build_grad(const gradient_t* g, const weir_node_t* node,
                                      build_grad_fn_t* out_fn) {
  const weir_op_t* op = node->def.op;
  if (g->graph->adder && weir_node_can_lower(node)) {
    *out_fn = g->graph->adder->vtable->build_call_grad;
    return NULL;
  }
  if (weir_node_has_function_gradient(node)) {
    *out_fn = weir_function_build_grad;
    return NULL;
  }
  const weir_attr_t* other = weir_attrs_find(node->def.attrs, "_gradient_op_type");
  if (other && other->kind == WEIR_ATTR_STRING && !other->is_list) {
    op = weir_registry_find(g->graph->registry, other->u.s);
    if (!op || !op->def || !op->def->build_grad) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "No gradient defined for operation '%s' (op type: %s, gradient: %.*s)",
                         node->def.name, node->def.op_name, WEIR_VIEW_ARG(other->u.s));
    }
  }
  if (!op || !op->def || !op->def->build_grad) return no_gradient(node);
  *out_fn = op->def->build_grad;
  return NULL;
}

static weir_status_t* call_build_grad(gradient_t* g, weir_node_t* node,
                                      const weir_grad_value_t* dys, weir_grad_value_t* dxs) {
  build_grad_fn_t build_grad = NULL;
  WEIR_TRY(find_build_grad(g, node, &build_grad));
  const char* prefix = weir_arena_printf(&g->arena, "%s/%s_grad", g->prefix, node->def.name);
  if (!prefix) return weir_out_of_memory();
  g->builder.prefix = prefix;
  g->builder.device = *node->def.device ? node->def.device : NULL;
  weir_grad_ctx_t ctx = {.builder = &g->builder.base,
                         .node = &node->def,
                         .self = {.node = node, .index = 0},
                         .inputs = node->inputs,
                         .dys = dys,
                         .dxs = dxs,
                         .library = g->graph->library};
  return weir_status_prefix(build_grad(&ctx), "gradient of '%s' (%s): ", node->def.name,
                            node->def.op_name);
}

// TensorFlow loses the gradient here, and so has a wrong one.
static weir_status_t* gradient_array_gradient(gradient_t* g, const weir_node_t* node) {
  for (int i = 0; i < node->def.output_count; ++i) {
    const collected_t* places = g->collected[node->id];
    if (!places || places[i].count == 0) continue;
    return WEIR_STATUS(
        UNIMPLEMENTED,
        "Second derivative of '%s' (%s), a gradient that a TensorArray holds, is not supported",
        node->def.name, node->def.op_name);
  }
  return NULL;
}

weir_status_t* weir_gradient_of_node(gradient_t* g, weir_node_t* node) {
  bool has_source = false;  // an x itself may have any op: nothing is asked of its inputs
  for (int i = 0; i < node->def.input_count; ++i) {
    has_source |= g->is_between[node->inputs[i].node->id] && weir_gradient_flows(node->inputs[i]);
  }
  if (weir_stack_is_link(g, node)) return weir_stack_gradient(g, node);
  if (!has_source) return NULL;
  if (is_gradient_array(node)) return gradient_array_gradient(g, node);
  if (weir_node_has(node, WEIR_OP_NO_GRADIENT)) return NULL;
  size_t outputs = (size_t)node->def.output_count;
  weir_grad_value_t* dys = weir_arena_array(&g->arena, outputs, sizeof(*dys));
  weir_grad_value_t* dxs = weir_arena_array(&g->arena, (size_t)node->def.input_count, sizeof(*dxs));
  if (!dys || !dxs) return weir_out_of_memory();
  bool has_any = false;
  for (size_t i = 0; i < outputs; ++i) {
    dys[i] = weir_gradient_take(g, (weir_edge_t){.node = node, .index = (int)i});
    has_any |= !weir_edge_is_none(dys[i].values);
  }
  if (!has_any || g->builder.base.status) return NULL;
  WEIR_TRY(call_build_grad(g, node, dys, dxs));
  for (int i = 0; i < node->def.input_count; ++i) {
    if (g->is_between[node->inputs[i].node->id])
      WEIR_TRY(weir_gradient_add(g, node->inputs[i], dxs[i]));
  }
  return NULL;
}

// ---- the sweep ----

// What is done as one in a sweep of a frame: a node, or a loop within.
typedef struct unit_t {
  weir_node_t* node;
  frame_t* loop;
} unit_t;

typedef struct sweep_t {
  gradient_t* g;
  frame_t* frame;
  unit_t* ready;
  int ready_count;
} sweep_t;

static unit_t no_unit(void) { return (unit_t){.node = NULL, .loop = NULL}; }

// The unit a node's inputs belong to.
static unit_t unit_of(const sweep_t* s, weir_node_t* node) {
  if (weir_node_role(node) == WEIR_ROLE_ENTER)
    return (unit_t){.loop = weir_flow_of(s->g, node)->frame};
  if (s->frame->parent && weir_flow_is_structure(node)) return no_unit();
  return (unit_t){.node = node};
}

// The unit whose output |edge| is; none when it comes into the frame from outside or at the
// beginning of an iteration.
static unit_t unit_from(const sweep_t* s, weir_edge_t edge) {
  const node_flow_t* flow = weir_flow_of(s->g, edge.node);
  if (!s->g->is_between[edge.node->id] || !weir_gradient_flows(edge)) return no_unit();
  if (flow->inside == s->frame) return unit_of(s, edge.node);
  if (flow->inside->parent == s->frame) return (unit_t){.loop = flow->inside};
  return no_unit();
}

static int* pending_of(const sweep_t* s, unit_t unit) {
  return unit.loop ? &unit.loop->pending : &s->g->pending[unit.node->id];
}

static bool is_same(unit_t a, unit_t b) { return a.node == b.node && a.loop == b.loop; }

static weir_status_t* check_in_body(const sweep_t* s, const weir_node_t* node, weir_edge_t input) {
  bool is_inside = s->frame->parent && weir_flow_of(s->g, input.node)->inside == s->frame;
  if (!is_inside || !s->g->is_between[input.node->id]) return NULL;
  bool is_after = weir_flow_is_loop_switch(input.node) && input.index == 0;
  if (!weir_node_is_loop_merge(input.node) && !is_after) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED,
                     "Gradient of '%s' (%s) is not supported: it is in a loop, but not in its body",
                     node->def.name, node->def.op_name);
}

// Adds |change| to the consumers that the sources of |unit| wait for; those that reach zero are
// ready.
static void count_sources(sweep_t* s, unit_t unit, weir_node_t* node, int change) {
  for (int k = 0; k < node->def.input_count; ++k) {
    unit_t source = unit_from(s, node->inputs[k]);
    if ((!source.node && !source.loop) || is_same(source, unit)) continue;
    int* pending = pending_of(s, source);
    *pending += change;
    if (change < 0 && *pending == 0) s->ready[s->ready_count++] = source;
  }
}

static void count_unit(sweep_t* s, unit_t unit, int change) {
  if (unit.node) {
    count_sources(s, unit, unit.node, change);
    return;
  }
  for (int i = 0; i < s->frame->member_count; ++i) {
    weir_node_t* node = s->frame->members[i];
    bool is_enter = s->g->is_between[node->id] && weir_node_role(node) == WEIR_ROLE_ENTER;
    if (is_enter && weir_flow_of(s->g, node)->frame == unit.loop)
      count_sources(s, unit, node, change);
  }
  const struct stack_link_t* cursor = NULL;
  for (frame_t* before; (before = weir_stacks_pushed_in(s->g, unit.loop, &cursor));) {
    before->pending += change;
    if (change < 0 && before->pending == 0) s->ready[s->ready_count++] = (unit_t){.loop = before};
  }
}

static weir_status_t* start_sweep(sweep_t* s) {
  gradient_t* g = s->g;
  size_t loops = 0;
  for (frame_t* loop = g->frames; loop; loop = loop->next) ++loops;
  s->ready =
      weir_arena_array(&g->arena, (size_t)s->frame->member_count + loops + 1, sizeof(*s->ready));
  if (!s->ready) return weir_out_of_memory();
  for (int i = 0; i < s->frame->member_count; ++i) {
    weir_node_t* node = s->frame->members[i];
    unit_t unit = unit_of(s, node);
    if (!g->is_between[node->id] || !unit.node) continue;
    for (int k = 0; k < node->def.input_count; ++k)
      WEIR_TRY(check_in_body(s, node, node->inputs[k]));
    count_unit(s, unit, 1);
  }
  for (frame_t* loop = g->frames; loop; loop = loop->next) {
    if (loop->parent == s->frame) count_unit(s, (unit_t){.loop = loop}, 1);
  }
  for (frame_t* loop = g->frames; loop; loop = loop->next) {
    if (loop->parent == s->frame && loop->pending == 0)
      s->ready[s->ready_count++] = (unit_t){.loop = loop};
  }
  for (int i = 0; i < s->frame->member_count; ++i) {
    weir_node_t* node = s->frame->members[i];
    bool is_unit = g->is_between[node->id] && unit_of(s, node).node;
    if (is_unit && g->pending[node->id] == 0) s->ready[s->ready_count++] = (unit_t){.node = node};
  }
  return NULL;
}

weir_status_t* weir_gradient_sweep(gradient_t* g, frame_t* frame) {
  sweep_t s = {.g = g, .frame = frame};
  WEIR_TRY(start_sweep(&s));
  while (s.ready_count > 0 && !g->builder.base.status) {
    unit_t unit = s.ready[--s.ready_count];
    if (unit.loop) {
      WEIR_TRY(weir_gradient_of_loop(g, unit.loop));
    } else {
      WEIR_TRY(weir_gradient_of_node(g, unit.node));
    }
    count_unit(&s, unit, -1);
  }
  return NULL;
}

// ---- the whole ----

static weir_status_t* seed(gradient_t* g) {
  for (int i = 0; i < g->params->ys.count; ++i) {
    weir_edge_t y = g->params->ys.items[i];
    if (!g->is_between[y.node->id]) continue;
    if (!weir_gradient_flows(y)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Gradients of '%s:%d' are not defined: its type is %s",
                         y.node->def.name, y.index, weir_dtype_name(weir_edge_dtype(y)));
    }
    weir_grad_value_t dy = {0};
    if (g->params->grad_ys) dy.values = g->params->grad_ys[i];
    if (weir_edge_is_none(dy.values)) {
      dy.values = weir_build(&g->builder.base, "OnesLike", WEIR_EDGES(y), WEIR_NO_ATTRS);
    }
    WEIR_TRY(weir_gradient_add(g, y, dy));
  }
  return NULL;
}

static weir_status_t* alloc_marks(gradient_t* g) {
  size_t count = g->node_count + 1;
  g->depends = weir_arena_array(&g->arena, count, sizeof(bool));
  g->is_between = weir_arena_array(&g->arena, count, sizeof(bool));
  return g->depends && g->is_between ? NULL : weir_out_of_memory();
}

enum { MAX_CALL_DEPTH = 64 };  // deeper is taken for a recursion, which has no lowered form

// Lowers the calls that gradients flow through, which may bring new ones, and marks what is between
// the xs and the ys.
static weir_status_t* lower_and_mark(gradient_t* g, weir_node_t*** out_order) {
  for (int depth = 0; depth <= MAX_CALL_DEPTH; ++depth) {
    g->node_count = g->graph->node_count;
    WEIR_TRY(weir_graph_order(g->graph, &g->arena, out_order));
    WEIR_TRY(alloc_marks(g));
    WEIR_TRY(weir_stacks_find(g));
    mark_after_xs(g, *out_order);
    mark_before_ys(g, *out_order);
    bool has_lowered = false;
    for (size_t i = 0; i < g->node_count; ++i) {
      weir_node_t* node = g->graph->nodes[i];
      if (g->graph->adder || !g->is_between[i] || !weir_node_can_lower(node)) continue;
      if (weir_node_has_function_gradient(node)) continue;  // stands for the body's own
      WEIR_TRY(weir_node_lower(node, NULL));
      has_lowered = true;
    }
    if (!has_lowered) return NULL;
  }
  return WEIR_STATUS(UNIMPLEMENTED,
                     "Gradients of functions nested more than %d deep are not supported",
                     MAX_CALL_DEPTH);
}

static weir_status_t* check_outside_loops(const gradient_t* g, weir_edges_t edges,
                                          const char* what) {
  for (int i = 0; i < edges.count; ++i) {
    const weir_node_t* node = edges.items[i].node;
    if (!weir_flow_of(g, node)->frame->parent) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Gradients %s '%s' are not defined: it is inside a loop",
                       what, node->def.name);
  }
  return NULL;
}

static weir_status_t* differentiate(gradient_t* g, weir_grad_value_t* out_grads) {
  weir_node_t** order = NULL;
  WEIR_TRY(lower_and_mark(g, &order));
  g->collected = weir_arena_array(&g->arena, g->node_count + 1, sizeof(*g->collected));
  g->pending = weir_arena_array(&g->arena, g->node_count + 1, sizeof(*g->pending));
  if (!g->collected || !g->pending) return weir_out_of_memory();
  WEIR_TRY(weir_flow_analyze(g, order));
  WEIR_TRY(weir_gradient_infer_loops(g, order));
  WEIR_TRY(check_outside_loops(g, g->params->xs, "with respect to"));
  WEIR_TRY(check_outside_loops(g, g->params->ys, "of"));
  g->source = weir_arena_printf(&g->arena, "%s_%zu", g->prefix, g->node_count);
  if (!g->source) return weir_out_of_memory();
  g->root.frame = g->frames;
  g->context = &g->root;
  WEIR_TRY(seed(g));
  WEIR_TRY(weir_gradient_sweep(g, g->frames));
  for (int i = 0; i < g->params->xs.count && !g->builder.base.status; ++i) {
    out_grads[i] = weir_gradient_take(g, g->params->xs.items[i]);
  }
  weir_status_t* status = g->builder.base.status;
  g->builder.base.status = NULL;
  return status;
}

static weir_status_t* check_params(const weir_graph_t* graph,
                                   const weir_gradient_params_t* params) {
  for (int i = 0; i < params->ys.count; ++i) {
    WEIR_TRY(weir_graph_check_edge(graph, params->ys.items[i], "gradients: y", i));
    bool is_ones = !params->grad_ys || !params->grad_ys[i].node;
    if (is_ones) continue;
    WEIR_TRY(weir_graph_check_edge(graph, params->grad_ys[i], "gradients: grad_y", i));
  }
  for (int i = 0; i < params->xs.count; ++i)
    WEIR_TRY(weir_graph_check_edge(graph, params->xs.items[i], "gradients: x", i));
  return NULL;
}

weir_status_t* weir_graph_gradients(weir_graph_t* graph, const weir_gradient_params_t* params,
                                    weir_grad_value_t* out_grads) {
  WEIR_TRY(check_params(graph, params));
  gradient_t g = {
      .graph = graph, .params = params, .prefix = params->prefix ? params->prefix : "gradients"};
  weir_gradient_builder_init(&g);
  memset(out_grads, 0, sizeof(*out_grads) * (size_t)params->xs.count);
  weir_status_t* status = differentiate(&g, out_grads);
  weir_status_destroy(g.builder.base.status);  // a gradient function has returned a copy of it
  weir_backward_free(&g.root);
  weir_free(g.flows);
  weir_arena_free(&g.arena);
  return status;
}
