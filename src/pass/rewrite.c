// rewrite.c — Collecting replacements of edges and nodes and applying them.
#include "pass/rewrite.h"

#include "graph/analysis.h"

weir_status_t* weir_rewrite_init(weir_rewrite_t* rewrite, weir_graph_t* graph) {
  *rewrite = (weir_rewrite_t){.graph = graph, .count = graph->node_count};
  WEIR_TRY(weir_graph_order(graph, &rewrite->arena, &rewrite->order));
  rewrite->edges = weir_arena_array(&rewrite->arena, rewrite->count + 1, sizeof(*rewrite->edges));
  rewrite->nodes = weir_arena_array(&rewrite->arena, rewrite->count + 1, sizeof(*rewrite->nodes));
  return rewrite->edges && rewrite->nodes ? NULL : weir_out_of_memory();
}

void weir_rewrite_free(weir_rewrite_t* rewrite) { weir_arena_free(&rewrite->arena); }

static bool is_visited(const weir_rewrite_t* rewrite, const weir_node_t* node) {
  return (size_t)node->id < rewrite->count;
}

weir_edge_t weir_rewrite_edge(const weir_rewrite_t* rewrite, weir_edge_t edge) {
  while (is_visited(rewrite, edge.node)) {
    const weir_edge_t* outputs = rewrite->edges[edge.node->id];
    if (!outputs || !outputs[edge.index].node) break;
    edge = outputs[edge.index];
  }
  return edge;
}

weir_node_t* weir_rewrite_node(const weir_rewrite_t* rewrite, weir_node_t* node) {
  while (is_visited(rewrite, node) && rewrite->nodes[node->id]) node = rewrite->nodes[node->id];
  return node;
}

weir_status_t* weir_rewrite_replace_edge(weir_rewrite_t* rewrite, weir_edge_t from,
                                         weir_edge_t to) {
  WEIR_CHECK(is_visited(rewrite, from.node) && weir_edge_dtype(from) == weir_edge_dtype(to));
  to = weir_rewrite_edge(rewrite, to);
  WEIR_CHECK(!weir_edge_equal(from, to));
  weir_edge_t** outputs = &rewrite->edges[from.node->id];
  if (!*outputs)
    *outputs =
        weir_arena_array(&rewrite->arena, (size_t)from.node->def.output_count, sizeof(**outputs));
  if (!*outputs) return weir_out_of_memory();
  (*outputs)[from.index] = to;
  ++rewrite->replaced_count;
  return NULL;
}

void weir_rewrite_replace_node(weir_rewrite_t* rewrite, weir_node_t* from, weir_node_t* to) {
  WEIR_CHECK(is_visited(rewrite, from));
  to = weir_rewrite_node(rewrite, to);
  WEIR_CHECK(from != to);
  rewrite->nodes[from->id] = to;
  ++rewrite->replaced_count;
}

static bool has_control(weir_node_t* const* nodes, int count, const weir_node_t* node) {
  for (int i = 0; i < count; ++i) {
    if (nodes[i] == node) return true;
  }
  return false;
}

// Control inputs live in the node's own array of the graph's arena, so they may be rewritten where
// they are.
static void rewrite_controls(const weir_rewrite_t* rewrite, weir_node_t* node) {
  int count = 0;
  for (int i = 0; i < node->control_count; ++i) {
    weir_node_t* source = weir_rewrite_node(rewrite, node->control_inputs[i]);
    if (!has_control(node->control_inputs, count, source)) node->control_inputs[count++] = source;
  }
  node->control_count = count;
}

weir_status_t* weir_rewrite_inputs(weir_rewrite_t* rewrite, weir_node_t* node, bool* out_changed) {
  bool has_changed = false;
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_edge_t edge = weir_rewrite_edge(rewrite, node->inputs[i]);
    if (weir_edge_equal(edge, node->inputs[i])) continue;
    WEIR_TRY(weir_graph_set_input(node, i, edge));
    has_changed = true;
  }
  rewrite_controls(rewrite, node);
  if (out_changed) *out_changed = has_changed;
  return NULL;
}

weir_status_t* weir_rewrite_finish(weir_rewrite_t* rewrite, weir_pass_ctx_t* ctx) {
  if (!rewrite->replaced_count) return NULL;
  for (size_t i = 0; i < rewrite->graph->node_count; ++i) {
    WEIR_TRY(weir_rewrite_inputs(rewrite, rewrite->graph->nodes[i], NULL));
  }
  for (int i = 0; i < ctx->target_count; ++i)
    ctx->targets[i] = weir_rewrite_node(rewrite, ctx->targets[i]);
  return NULL;
}

static bool is_source_of_deadness(const weir_node_t* node) {
  weir_role_t role = weir_node_role(node);
  return role == WEIR_ROLE_SWITCH || role == WEIR_ROLE_ENTER || role == WEIR_ROLE_RECV;
}

weir_status_t* weir_rewrite_mark_conditional(weir_rewrite_t* rewrite, const bool** out_mask) {
  bool* mask = weir_arena_array(&rewrite->arena, rewrite->count + 1, sizeof(*mask));
  if (!mask) return weir_out_of_memory();
  // One sweep does: what a back edge brings into a Merge has come through that Merge's Enter.
  for (size_t i = 0; i < rewrite->count; ++i) {
    const weir_node_t* node = rewrite->order[i];
    bool is_marked = is_source_of_deadness(node);
    for (int k = 0; k < node->def.input_count && !is_marked; ++k)
      is_marked = mask[node->inputs[k].node->id];
    for (int k = 0; k < node->control_count && !is_marked; ++k)
      is_marked = mask[node->control_inputs[k]->id];
    mask[node->id] = is_marked;
  }
  *out_mask = mask;
  return NULL;
}

bool weir_rewrite_is_anchor(const weir_node_t* node) {
  switch (weir_node_role(node)) {
    case WEIR_ROLE_SWITCH:
    case WEIR_ROLE_ENTER:
    case WEIR_ROLE_EXIT:
    case WEIR_ROLE_NEXT_ITERATION:
    case WEIR_ROLE_RECV: return false;
    default: return true;
  }
}

// An op that asks for a reference writes through it, whatever it says of itself: TensorFlow does
// not call Assign stateful.
static bool takes_reference(const weir_node_t* node) {
  for (int i = 0; i < node->def.input_count; ++i) {
    if (weir_dtype_is_ref(node->def.input_types[i])) return true;
  }
  return false;
}

bool weir_rewrite_has_effect(const weir_node_t* node) {
  if (!node->def.op || !node->def.op->def) return true;  // nobody knows what it does
  weir_role_t role = node->def.op->role;
  if (role == WEIR_ROLE_VARIABLE || role == WEIR_ROLE_ARG || role == WEIR_ROLE_PLACEHOLDER)
    return false;
  return weir_node_has(node, WEIR_OP_STATEFUL) || takes_reference(node);
}

bool weir_rewrite_may_wait(const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  if (!op || !op->def || op->role == WEIR_ROLE_RECV) return true;
  for (size_t i = 0; i < node->def.attrs.count; ++i) {
    if (node->def.attrs.items[i].value.kind == WEIR_ATTR_FUNC) return true;
  }
  for (const weir_kernel_def_t* const* table = weir_op_kernels(op); *table; ++table) {
    for (const weir_kernel_def_t* kernel = *table; kernel->device; ++kernel) {
      bool is_host = !strcmp(kernel->device, WEIR_DEVICE_CPU);  // others wait for their device
      if (kernel->compute_async && is_host) return true;
    }
  }
  return false;
}

bool weir_rewrite_reads_reference(const weir_node_t* node) {
  for (int i = 0; i < node->def.input_count; ++i) {
    if (weir_dtype_is_ref(weir_edge_dtype(node->inputs[i]))) return true;
  }
  return false;
}

weir_status_t* weir_rewrite_mark_live(const weir_pass_ctx_t* ctx, weir_arena_t* arena,
                                      bool** out_live) {
  weir_reach_t reach;
  WEIR_TRY(weir_reach_init(&reach, ctx->graph, arena));
  weir_reach_add_results(&reach, ctx->graph, ctx->targets, ctx->target_count);
  weir_reach_sources(&reach);
  *out_live = reach.is_reached;
  return NULL;
}

static bool is_plain_type(weir_dtype_t dtype) {
  return !weir_dtype_is_ref(dtype) && dtype != WEIR_DTYPE_RESOURCE && dtype != WEIR_DTYPE_VARIANT;
}

bool weir_rewrite_is_plain(const weir_node_t* node) {
  for (int i = 0; i < node->def.input_count; ++i) {
    // Reading a reference is a read of state: its place in time matters.
    if (!is_plain_type(node->def.input_types[i]) ||
        !is_plain_type(weir_edge_dtype(node->inputs[i])))
      return false;
  }
  for (int i = 0; i < node->def.output_count; ++i) {
    if (!is_plain_type(node->def.output_types[i])) return false;
  }
  return true;
}
