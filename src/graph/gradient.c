// gradient.c — Reverse-mode differentiation of a graph: a backward sweep over the nodes between xs and ys.
#include "graph/gradient.h"

#include "graph/gradient_internal.h"

// ---- which nodes gradients flow through ----

static bool is_differentiable(weir_dtype_t dtype) {
  weir_dtype_t base = weir_dtype_base(dtype);
  return weir_dtype_is_floating(base) || weir_dtype_is_complex(base) || base == WEIR_DTYPE_RESOURCE ||
         base == WEIR_DTYPE_VARIANT;
}

// Marks what depends on the xs, in topological order.
static void mark_after_xs(gradient_t* g, weir_node_t* const* order) {
  for (int i = 0; i < g->params->xs.count; ++i) g->depends[g->params->xs.items[i].node->id] = true;
  for (size_t i = 0; i < g->node_count; ++i) {
    weir_node_t* node = order[i];
    for (int k = 0; k < node->def.input_count && !g->depends[node->id]; ++k) {
      weir_edge_t input = node->inputs[k];
      bool flows = is_differentiable(weir_edge_dtype(input)) && !weir_node_has(node, WEIR_OP_NO_GRADIENT);
      if (flows && g->depends[input.node->id]) g->depends[node->id] = true;
    }
  }
}

// Of those, keeps what the ys depend on, against the order.
static void mark_before_ys(gradient_t* g, weir_node_t* const* order) {
  for (int i = 0; i < g->params->ys.count; ++i) {
    int id = g->params->ys.items[i].node->id;
    g->is_between[id] = g->depends[id];
  }
  for (size_t i = g->node_count; i-- > 0;) {
    weir_node_t* node = order[i];
    if (!g->is_between[node->id]) continue;
    for (int k = 0; k < node->def.input_count; ++k) {
      weir_edge_t input = node->inputs[k];
      if (g->depends[input.node->id] && is_differentiable(weir_edge_dtype(input))) g->is_between[input.node->id] = true;
    }
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
static weir_grad_value_t concat_slices(gradient_t* g, const weir_grad_value_t* items, size_t count) {
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
    edges[i] = is_same ? items[i].indices
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
  weir_edge_t sum = weir_build(b, "AddN", (weir_edges_t){.items = edges, .count = (int)count}, WEIR_NO_ATTRS);
  return (weir_grad_value_t){.values = sum};
}

weir_edge_t weir_gradient_densify(weir_builder_t* b, weir_grad_value_t value) {
  if (weir_edge_is_none(value.indices)) return value.values;
  const weir_grad_value_t dys[] = {value};
  weir_grad_ctx_t ctx = {.builder = b, .dys = dys};
  return weir_grad_dy(&ctx, 0);
}

weir_grad_value_t weir_gradient_take(gradient_t* g, weir_edge_t edge) {
  collected_t* places = g->collected[edge.node->id];
  collected_t* place = places ? &places[edge.index] : NULL;
  if (!place || place->count == 0) return (weir_grad_value_t){0};
  if (place->count > 1) {
    bool is_all_slices = true;
    for (size_t i = 0; i < place->count; ++i) is_all_slices &= !weir_edge_is_none(place->items[i].indices);
    place->items[0] = is_all_slices ? concat_slices(g, place->items, place->count)
                                    : sum_dense(g, place->items, place->count);
    place->count = 1;
  }
  return place->items[0];
}

// ---- one node ----

static weir_status_t* no_gradient(const weir_node_t* node) {
  return WEIR_STATUS(INVALID_ARGUMENT, "No gradient defined for operation '%s' (op type: %s)", node->def.name,
                     node->def.op_name);
}

weir_status_t* weir_gradient_of_node(gradient_t* g, weir_node_t* node) {
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
  if (!node->def.op || !node->def.op->def || !node->def.op->def->build_grad) return no_gradient(node);
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
  weir_status_t* status = node->def.op->def->build_grad(&ctx);
  if (status) return weir_status_prefix(status, "gradient of '%s' (%s): ", node->def.name, node->def.op_name);
  for (int i = 0; i < node->def.input_count; ++i) {
    if (g->is_between[node->inputs[i].node->id]) WEIR_TRY(weir_gradient_add(g, node->inputs[i], dxs[i]));
  }
  return NULL;
}

// ---- the whole ----

static weir_status_t* seed(gradient_t* g) {
  for (int i = 0; i < g->params->ys.count; ++i) {
    weir_edge_t y = g->params->ys.items[i];
    if (!g->is_between[y.node->id]) continue;
    if (!is_differentiable(weir_edge_dtype(y))) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Gradients of '%s:%d' are not defined: its type is %s", y.node->def.name, y.index,
                         weir_dtype_name(weir_edge_dtype(y)));
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

static weir_status_t* sweep(gradient_t* g, weir_node_t* const* order) {
  for (size_t i = g->node_count; i-- > 0;) {
    weir_node_t* node = order[i];
    if (!g->is_between[node->id]) continue;
    WEIR_TRY(weir_gradient_of_node(g, node));
    if (g->builder.base.status) return NULL;
  }
  return NULL;
}

static weir_status_t* alloc(gradient_t* g) {
  size_t count = g->node_count + 1;
  g->depends = weir_arena_array(&g->arena, count, sizeof(bool));
  g->is_between = weir_arena_array(&g->arena, count, sizeof(bool));
  g->collected = weir_arena_array(&g->arena, count, sizeof(*g->collected));
  return g->depends && g->is_between && g->collected ? NULL : weir_out_of_memory();
}

static weir_status_t* differentiate(gradient_t* g, weir_grad_value_t* out_grads) {
  weir_node_t** order = NULL;
  WEIR_TRY(weir_graph_order(g->graph, &g->arena, &order));
  WEIR_TRY(alloc(g));
  mark_after_xs(g, order);
  mark_before_ys(g, order);
  WEIR_TRY(seed(g));
  WEIR_TRY(sweep(g, order));
  for (int i = 0; i < g->params->xs.count && !g->builder.base.status; ++i) {
    out_grads[i] = weir_gradient_take(g, g->params->xs.items[i]);
  }
  weir_status_t* status = g->builder.base.status;
  g->builder.base.status = NULL;
  return status;
}

weir_status_t* weir_graph_gradients(weir_graph_t* graph, const weir_gradient_params_t* params,
                                    weir_grad_value_t* out_grads) {
  gradient_t g = {.graph = graph,
                  .params = params,
                  .node_count = graph->node_count,
                  .prefix = params->prefix ? params->prefix : "gradients"};
  weir_graph_builder_init(&g.builder, graph, g.prefix);
  memset(out_grads, 0, sizeof(*out_grads) * (size_t)params->xs.count);
  weir_status_t* status = differentiate(&g, out_grads);
  weir_status_destroy(g.builder.base.status);  // a gradient function has returned a copy of it
  weir_arena_free(&g.arena);
  return status;
}
