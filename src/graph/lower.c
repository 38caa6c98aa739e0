// lower.c — Lowering of calls: a function's body put in place of the node that calls it.
//
// Gradients, placement over several tasks and TensorFlow's own rules for conditionals want the body
// of a call, an If or a While to be nodes of the graph around it. The node is replaced by copies of
// the body's nodes between Switch and Merge, or in a loop (lower_branches.c, lower_while.c), and
// becomes an IdentityN of the results, so that whoever reads it or waits for it need not be found.
//
// The difficulty is when the copies run. A node that calls runs when all its inputs are there, and
// not at all when one is dead; its body's nodes know only what they read themselves. So the inputs
// pass through one IdentityN, the pivot, which lets all of them through or none. A node of the body
// that reads nothing alive only there (a constant's reader, a node without inputs) gets the pivot
// as a control input: it is anchored. So does one that will be lowered in its turn and has an input
// that is not anchored, since its inputs go separate ways then. Nothing else gets it: the pivot is
// outside the loops of the body, and an edge from there into a loop would be in the wrong frame.
// Constants stay free: plan.c gives them to their readers.
//
// Handles of resources go beside the pivot one by one: what takes several handles would bind their
// variables to one device. A conditional or loop that asks for it (_lower_using_switch_merge) does
// not hold its inputs together: there a dead input kills what needs it and nothing more, as in
// TensorFlow.
#include "graph/lower.h"

#include "graph/analysis.h"
#include "graph/graph_internal.h"
#include "graph/lower_internal.h"
#include "op/call.h"

// ---- what kind of node it is: by its attributes, so that no list of op names is kept here ----

static const weir_func_t* def_func_attr(const weir_node_def_t* def, const char* name) {
  const weir_attr_t* attr = weir_attrs_find(def->attrs, name);
  return attr && attr->kind == WEIR_ATTR_FUNC && !attr->is_list ? attr->u.func : NULL;
}
static const weir_func_t* func_attr(const weir_node_t* node, const char* name) {
  return def_func_attr(&node->def, name);
}

static bool is_function(const weir_node_t* node) { return node->def.op && !node->def.op->def; }

// PartitionedCall and its kin: all inputs are arguments of "f".
static bool def_is_call(const weir_node_def_t* def) {
  const weir_op_t* op = def->op;
  return op && def_func_attr(def, "f") && op->input_count == 1 && op->output_count == 1 &&
         !strcmp(op->inputs[0].name, "args");
}
static bool is_call(const weir_node_t* node) { return def_is_call(&node->def); }

bool weir_node_callee(const weir_node_def_t* node, weir_func_t* out_func) {
  if (node->op && !node->op->def) {
    *out_func = (weir_func_t){.name = weir_view_of(node->op_name), .attrs = node->attrs};
    return true;
  }
  if (!def_is_call(node)) return false;
  *out_func = *def_func_attr(node, "f");
  return true;
}

static bool is_if(const weir_node_t* node) {
  return func_attr(node, "then_branch") && func_attr(node, "else_branch");
}
static bool is_while(const weir_node_t* node) {
  return func_attr(node, "cond") && func_attr(node, "body");
}
static bool is_case(const weir_node_t* node) {
  const weir_attr_t* attr = weir_attrs_find(node->def.attrs, "branches");
  return attr && attr->kind == WEIR_ATTR_FUNC && attr->is_list;
}

bool weir_node_can_lower(const weir_node_t* node) {
  return node->def.op &&
         (is_function(node) || is_call(node) || is_if(node) || is_case(node) || is_while(node));
}

bool weir_node_asks_to_lower(const weir_node_t* node) {
  return weir_call_asks_to_lower(node->def.attrs) && node->def.op &&
         (is_if(node) || is_case(node) || is_while(node));
}

// ---- adding nodes ----

weir_edge_t weir_lower_add(lowering_t* l, const char* op, weir_edges_t inputs, weir_attrs_t attrs,
                           weir_node_t* const* controls, int control_count) {
  l->builder.controls = controls;
  l->builder.control_count = control_count;
  weir_edge_t edge = weir_build(&l->builder.base, op, inputs, attrs);
  l->builder.controls = NULL;
  l->builder.control_count = 0;
  return edge;
}

weir_edge_t weir_lower_truth(lowering_t* l, weir_edge_t value) {
  weir_builder_t* b = &l->builder.base;
  if (b->status || !value.node) return WEIR_NO_EDGE;
  const int rank = weir_build_shape(b, value)->rank;
  const bool is_bool = weir_build_dtype(b, value) == WEIR_DTYPE_BOOL;
  const bool is_marked = weir_node_asks_to_lower(l->node);
  // A Switch says when it runs that its condition is no scalar.
  if (is_bool && (rank == 0 || (is_marked && rank < 0))) return value;
  if (!is_bool || !is_marked || !is_if(l->node))
    return weir_build(b, "ToBool", WEIR_EDGES(value), WEIR_NO_ATTRS);
  b->status = WEIR_STATUS(INVALID_ARGUMENT, "'%s': its condition is no scalar", l->node->def.name);
  return WEIR_NO_EDGE;  // it is called instead, and says so then
}

// Functions may give other types than their caller says, whose readers rely on them.
static weir_status_t* check_types(const lowering_t* l, const weir_edge_t* results) {
  const weir_node_def_t* def = &l->node->def;
  for (int i = 0; i < def->output_count; ++i) {
    weir_dtype_t want = weir_dtype_base(def->output_types[i]);
    weir_dtype_t got = weir_dtype_base(weir_edge_dtype(results[i]));
    if (want != got)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "output %d of '%s' is of type %s, but its function's is %s", i, def->name,
                         weir_dtype_name(want), weir_dtype_name(got));
  }
  return NULL;
}

weir_status_t* weir_lower_finish(lowering_t* l, const weir_edge_t* results,
                                 weir_node_t* const* controls, int control_count) {
  weir_node_t* node = l->node;
  weir_arena_t* arena = &l->graph->arena;
  if (l->builder.base.status) return NULL;
  WEIR_TRY(check_types(l, results));
  size_t count = (size_t)node->def.output_count;
  weir_dtype_t* types = weir_arena_array(arena, count, sizeof(*types));
  weir_edge_t* inputs = weir_arena_array(arena, count, sizeof(*inputs));
  weir_named_attr_t* attrs = weir_arena_array(arena, 1, sizeof(*attrs));
  if (!types || !inputs || !attrs) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    types[i] = weir_dtype_base(weir_edge_dtype(results[i]));
    inputs[i] = results[i];
  }
  attrs[0] = weir_attr_types("T", types, count);
  weir_attrs_t given = {.items = attrs, .count = count ? 1 : 0};
  WEIR_TRY(weir_node_define(node, count ? "IdentityN" : "NoOp", given, types, (int)count));
  node->inputs = inputs;
  WEIR_TRY(weir_node_alloc_shapes(node));
  for (int i = 0; i < control_count; ++i) WEIR_TRY(weir_graph_add_control(node, controls[i]));
  ++l->graph->version;
  return weir_graph_infer(node);
}

// ---- a body in place ----

typedef struct body_map_t {
  lowering_t* l;
  inlining_t* inlining;
  weir_node_t** nodes;  // by id in the body: the copy
  bool* is_anchored;    // by id in the body
  weir_loops_t loops;   // of the body
} body_map_t;

static weir_edge_t map_edge(const body_map_t* map, weir_edge_t edge) {
  if (weir_node_role(edge.node) == WEIR_ROLE_ARG)
    return map->inlining->args[weir_attrs_int(edge.node->def.attrs, "index")];
  return (weir_edge_t){.node = map->nodes[edge.node->id], .index = edge.index};
}

static bool edge_is_anchored(const body_map_t* map, weir_edge_t edge) {
  if (weir_node_role(edge.node) != WEIR_ROLE_ARG) return map->is_anchored[edge.node->id];
  int64_t index = weir_attrs_int(edge.node->def.attrs, "index");
  if (map->inlining->is_anchored) return map->inlining->is_anchored[index];
  return !weir_node_is_free_const(map->inlining->args[index].node);
}

// Whether |node|, when it is lowered in its turn, must be told when to run: its inputs go their own
// ways then, and one that is there whether or not the body runs does not tell.
static bool needs_pivot(const body_map_t* map, const weir_node_t* node) {
  bool has_free = false;
  for (int i = 0; i < node->def.input_count; ++i)
    has_free |= !edge_is_anchored(map, node->inputs[i]);
  return has_free && weir_node_can_lower(node);
}

// The control inputs of the copy of |node|. What nothing alive only in the body orders is ordered
// by the pivot, but no more: the pivot is of the wrong frame for what is in a loop of the body.
// Constants stay free.
static weir_status_t* map_controls(body_map_t* map, const weir_node_t* node,
                                   weir_node_t*** out_controls, int* out_count) {
  weir_node_t** controls =
      weir_arena_array(&map->l->arena, (size_t)node->control_count + 1, sizeof(*controls));
  if (!controls) return weir_out_of_memory();
  int count = 0;
  bool is_anchored = false;
  for (int i = 0; i < node->control_count; ++i) {
    const weir_node_t* source = node->control_inputs[i];
    if (weir_node_role(source) == WEIR_ROLE_ARG || !map->nodes[source->id]) continue;
    is_anchored |= map->is_anchored[source->id];
    controls[count++] = map->nodes[source->id];
  }
  for (int i = 0; i < node->def.input_count; ++i)
    is_anchored |= edge_is_anchored(map, node->inputs[i]);
  bool is_const = weir_node_role(node) == WEIR_ROLE_CONST && count == 0;
  if (map->inlining->pivot && !is_const && (!is_anchored || needs_pivot(map, node)))
    controls[count++] = map->inlining->pivot;
  map->is_anchored[node->id] = is_anchored || count > 0;
  *out_controls = controls;
  *out_count = count;
  return NULL;
}

static weir_status_t* copy_node(body_map_t* map, const weir_node_t* node) {
  lowering_t* l = map->l;
  weir_edge_t* inputs = weir_arena_array(&l->arena, (size_t)node->def.input_count, sizeof(*inputs));
  if (!inputs) return weir_out_of_memory();
  weir_edge_t forward = WEIR_NO_EDGE;  // a back edge is set when its source exists
  for (int i = 0; i < node->def.input_count; ++i) {
    if (weir_node_is_back_edge(node, node->inputs[i].node)) continue;
    inputs[i] = map_edge(map, node->inputs[i]);
    forward = inputs[i];
  }
  for (int i = 0; i < node->def.input_count; ++i) {
    if (weir_node_is_back_edge(node, node->inputs[i].node)) inputs[i] = forward;
  }
  weir_node_params_t params = {.op = node->def.op_name,
                               .unique_name = true,
                               .device = *node->def.device ? node->def.device : l->node->def.device,
                               .inputs = {.items = inputs, .count = node->def.input_count},
                               .attrs = node->def.attrs};
  params.name = weir_arena_printf(&l->graph->arena, "%s/%s%s", l->node->def.name,
                                  map->inlining->name, node->def.name);
  if (!params.name) return weir_out_of_memory();
  weir_node_t** controls = NULL;
  WEIR_TRY(map_controls(map, node, &controls, &params.control_count));
  params.control_inputs = controls;
  return weir_graph_add(l->graph, &params, &map->nodes[node->id]);
}

static weir_status_t* copy_nodes(body_map_t* map, const weir_function_body_t* body) {
  weir_node_t** order = NULL;
  size_t count = body->graph->node_count;
  WEIR_TRY(weir_graph_order(body->graph, &map->l->arena, &order));
  WEIR_TRY(weir_loops_find(body->graph, order, count, &map->l->arena, &map->loops));
  for (size_t i = 0; i < body->graph->node_count; ++i) {
    weir_role_t role = weir_node_role(order[i]);
    if (role != WEIR_ROLE_ARG && role != WEIR_ROLE_RETVAL) WEIR_TRY(copy_node(map, order[i]));
  }
  for (size_t i = 0; i < body->graph->node_count; ++i) {
    const weir_node_t* node = body->graph->nodes[i];
    for (int k = 0; k < node->def.input_count; ++k) {
      if (weir_node_is_back_edge(node, node->inputs[k].node))
        WEIR_TRY(weir_graph_set_input(map->nodes[i], k, map_edge(map, node->inputs[k])));
    }
  }
  return NULL;
}

// What happens in a loop has happened when the loop is left.
static bool add_exits(body_map_t* map, const weir_function_body_t* body, int loop) {
  inlining_t* in = map->inlining;
  int before = in->effect_count;
  for (size_t i = 0; i < body->graph->node_count; ++i) {
    const weir_node_t* node = body->graph->nodes[i];
    if (weir_node_role(node) == WEIR_ROLE_EXIT && map->loops.inside[i] == loop)
      in->effects[in->effect_count++] = map->nodes[i];
  }
  return in->effect_count > before;
}

// Whether all that has side effects in loops of the body is on the way to where they are left. What
// is not runs in a function, all of whose nodes do, and would be forgotten here.
static weir_status_t* check_loops(body_map_t* map, const weir_function_body_t* body, int count) {
  weir_reach_t reach;
  WEIR_TRY(weir_reach_init(&reach, body->graph, &map->l->arena));
  for (size_t i = 0; i < body->graph->node_count; ++i) {
    if (weir_node_role(body->graph->nodes[i]) == WEIR_ROLE_EXIT)
      weir_reach_add(&reach, body->graph->nodes[i]);
  }
  weir_reach_sources(&reach);
  for (int i = 0; i < count; ++i) {
    const weir_node_t* node = body->controls[i];
    if (map->loops.outputs[node->id] > 0 && !reach.is_reached[node->id])
      return WEIR_STATUS(
          UNIMPLEMENTED,
          "the function of '%s' cannot be spread over devices: '%s' has side effects "
          "in a loop, and nothing that leaves the loop waits for it",
          map->l->node->def.name, node->def.name);
  }
  return NULL;
}

static weir_status_t* take_effects(body_map_t* map, const weir_function_body_t* body) {
  inlining_t* in = map->inlining;
  size_t most = (size_t)body->control_count + body->graph->node_count;
  bool* is_left = weir_arena_array(&map->l->arena, (size_t)map->loops.count, sizeof(*is_left));
  in->effects = weir_arena_array(&map->l->arena, most, sizeof(*in->effects));
  if (!in->effects || !is_left) return weir_out_of_memory();
  // In a node that asked to be lowered, side effects that control_ret leaves out run where a result
  // needs them.
  int count = weir_node_asks_to_lower(map->l->node) ? body->promised_count : body->control_count;
  WEIR_TRY(check_loops(map, body, count));
  for (int i = 0; i < count; ++i) {
    const weir_node_t* node = body->controls[i];
    int loop = map->loops.outputs[node->id];
    while (map->loops.items[loop].depth > 1) loop = map->loops.items[loop].parent;
    if (loop > 0 && !is_left[loop]) is_left[loop] = add_exits(map, body, loop);
    if (!is_left[loop]) in->effects[in->effect_count++] = map->nodes[node->id];
  }
  return NULL;
}

static weir_status_t* take_results(body_map_t* map, const weir_function_body_t* body) {
  inlining_t* in = map->inlining;
  in->ret_count = body->ret_count;
  in->rets = weir_arena_array(&map->l->arena, (size_t)body->ret_count, sizeof(*in->rets));
  if (!in->rets) return weir_out_of_memory();
  for (int i = 0; i < body->ret_count; ++i) {
    weir_edge_t source = body->rets[i]->inputs[0];
    weir_edge_t ret = map_edge(map, source);
    if (in->pivot && !edge_is_anchored(map, source)) {
      ret = weir_lower_add(map->l, "Identity", WEIR_EDGES(ret), WEIR_NO_ATTRS, &in->pivot, 1);
    }
    in->rets[i] = ret;
  }
  return take_effects(map, body);
}

static bool has_branches(const weir_graph_t* graph) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    const weir_node_t* node = graph->nodes[i];
    if (weir_node_role(node) == WEIR_ROLE_SWITCH &&
        weir_node_role(node->inputs[1].node) != WEIR_ROLE_LOOP_COND)
      return true;
  }
  return false;
}

// In a body with branches of its own, side effects may be dead when the body is not. Where it is to
// be as good as one node, a Merge waits for them, alive or dead; what asks to be lowered dies with
// them, as in TensorFlow.
static void outlive_effects(lowering_t* l, inlining_t* in) {
  weir_edge_t zero = weir_build_int32(&l->builder.base, 0);
  weir_edge_t alive =
      weir_lower_add(l, "Identity", WEIR_EDGES(zero), WEIR_NO_ATTRS, &in->pivot, in->pivot ? 1 : 0);
  weir_edge_t merged = weir_lower_add(l, "Merge", WEIR_EDGES(alive, alive), WEIR_NO_ATTRS,
                                      in->effects, in->effect_count);
  if (!merged.node) return;  // the error stays in the builder
  in->effects[0] = merged.node;
  in->effect_count = 1;
}

static weir_status_t* inline_body(lowering_t* l, inlining_t* inlining,
                                  const weir_function_body_t* body) {
  size_t count = body->graph->node_count + 1;
  body_map_t map = {.l = l,
                    .inlining = inlining,
                    .nodes = weir_arena_array(&l->arena, count, sizeof(weir_node_t*)),
                    .is_anchored = weir_arena_array(&l->arena, count, sizeof(bool))};
  if (!map.nodes || !map.is_anchored) return weir_out_of_memory();
  WEIR_TRY(copy_nodes(&map, body));
  WEIR_TRY(take_results(&map, body));
  if (inlining->effect_count > 0 && !weir_node_asks_to_lower(l->node) && has_branches(body->graph))
    outlive_effects(l, inlining);
  return NULL;
}

weir_status_t* weir_lower_inline(lowering_t* l, inlining_t* inlining) {
  if (l->builder.base.status) return NULL;
  const weir_function_t* function = weir_function_find(l->graph->library, inlining->func->name);
  if (!function) {
    return WEIR_STATUS(NOT_FOUND, "Function '%.*s', which '%s' calls, is not defined",
                       WEIR_VIEW_ARG(inlining->func->name), l->node->def.name);
  }
  weir_function_body_t body = {0};
  WEIR_TRY(weir_function_instantiate(l->graph->library, l->graph->registry, function,
                                     inlining->func->attrs, &body));
  weir_status_t* status = inline_body(l, inlining, &body);
  weir_function_body_free(&body);
  return status;
}

// ---- calls ----

static bool is_handle(weir_edge_t edge) {
  return weir_dtype_base(weir_edge_dtype(edge)) == WEIR_DTYPE_RESOURCE;
}

// A node that calls functions runs when all its inputs are alive. So do the lowered nodes: an
// IdentityN lets either all inputs through or none. Handles go beside it, one by one, where there
// is anything else: what takes several of them binds their resources to one device.
static weir_status_t* hold_inputs(lowering_t* l) {
  const weir_node_t* node = l->node;
  int count = node->def.input_count;
  weir_edge_t* held = weir_arena_array(&l->arena, (size_t)count, sizeof(*held));
  int* places = weir_arena_array(&l->arena, (size_t)count, sizeof(*places));
  l->args = weir_arena_array(&l->arena, (size_t)count, sizeof(*l->args));
  if (!held || !places || !l->args) return weir_out_of_memory();
  int held_count = 0, first_handle = -1;
  for (int i = count - 1; i >= 0; --i) {
    l->args[i] = node->inputs[i];
    if (is_handle(node->inputs[i])) first_handle = i;
  }
  for (int i = 0; i < count; ++i) {
    if (is_handle(node->inputs[i]) || weir_node_is_free_const(node->inputs[i].node)) continue;
    places[held_count] = i;
    held[held_count++] = node->inputs[i];
  }
  if (held_count == 0 && first_handle >= 0) {
    places[held_count] = first_handle;
    held[held_count++] = node->inputs[first_handle];
  }
  weir_edges_t inputs = {.items = held, .count = held_count};
  if (held_count == 0 && node->control_count == 0) return NULL;
  weir_edge_t all = weir_lower_add(l, held_count ? "IdentityN" : "NoOp", inputs, WEIR_NO_ATTRS,
                                   node->control_inputs, node->control_count);
  l->pivot = all.node;
  for (int k = 0; k < held_count && all.node; ++k) l->args[places[k]] = weir_build_output(all, k);
  for (int i = 0; i < count && all.node; ++i) {
    if (is_handle(node->inputs[i]) && l->args[i].node == node->inputs[i].node)
      l->args[i] =
          weir_lower_add(l, "Identity", WEIR_EDGES(node->inputs[i]), WEIR_NO_ATTRS, &l->pivot, 1);
  }
  return NULL;
}

// A conditional or loop that asked to be lowered was never meant to be one thing: what needs a
// dead input is dead, and nothing else. All wait for the node's control inputs.
static weir_status_t* hold_each_input(lowering_t* l) {
  const weir_node_t* node = l->node;
  l->args = weir_arena_array(&l->arena, (size_t)node->def.input_count, sizeof(*l->args));
  if (!l->args) return weir_out_of_memory();
  if (node->control_count > 0) {
    l->pivot = weir_lower_add(l, "NoOp", WEIR_NO_EDGES, WEIR_NO_ATTRS, node->control_inputs,
                              node->control_count)
                   .node;
  }
  for (int i = 0; i < node->def.input_count; ++i) {
    l->args[i] = node->inputs[i];
    if (l->pivot && !weir_node_is_free_const(node->inputs[i].node))
      l->args[i] =
          weir_lower_add(l, "Identity", WEIR_EDGES(node->inputs[i]), WEIR_NO_ATTRS, &l->pivot, 1);
  }
  return NULL;
}

static weir_status_t* lower_call(lowering_t* l, const weir_func_t* func) {
  inlining_t in = {.func = func, .name = "", .args = l->args, .pivot = l->pivot};
  WEIR_TRY(weir_lower_inline(l, &in));
  if (l->builder.base.status) return NULL;
  if (in.ret_count != l->node->def.output_count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "'%s' has %d outputs, but function '%.*s' returns %d",
                       l->node->def.name, l->node->def.output_count, WEIR_VIEW_ARG(func->name),
                       in.ret_count);
  }
  if (in.effect_count > 0) {
    l->executed =
        weir_lower_add(l, "NoOp", WEIR_NO_EDGES, WEIR_NO_ATTRS, in.effects, in.effect_count).node;
  }
  return weir_lower_finish(l, in.rets, &l->executed, l->executed ? 1 : 0);
}

static weir_status_t* lower(lowering_t* l) {
  const weir_node_t* node = l->node;
  WEIR_TRY(weir_node_asks_to_lower(node) ? hold_each_input(l) : hold_inputs(l));
  if (l->builder.base.status) return NULL;
  if (is_function(node)) {
    weir_func_t self = {.name = weir_view_of(node->def.op_name), .attrs = node->def.attrs};
    return lower_call(l, &self);
  }
  if (is_while(node)) return weir_lower_while(l);
  return is_call(node) ? lower_call(l, func_attr(node, "f")) : weir_lower_branches(l);
}

weir_status_t* weir_node_lower(weir_node_t* node, weir_node_t** out_executed) {
  lowering_t l = {.graph = node->graph, .node = node};
  weir_graph_builder_init(&l.builder, node->graph, node->def.name);
  l.builder.device = *node->def.device ? node->def.device : NULL;
  weir_status_t* status = lower(&l);
  if (!status) {
    status = l.builder.base.status;
  } else {
    weir_status_destroy(l.builder.base.status);
  }
  weir_arena_free(&l.arena);
  if (out_executed) *out_executed = l.executed;
  return status;
}
