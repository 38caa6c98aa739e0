// flatten.c — Lowers functional nodes before placement.
#include "graph/flatten.h"

#include "graph/graph_internal.h"
#include "graph/lower.h"

// A function that calls itself would never end, and the names of its nodes grow with every turn.
enum {
  MAX_DEPTH = 64,        // of calls within calls
  MAX_GROWTH = 1 << 15,  // nodes
};

static bool is_wanted(const weir_node_t* node) {
  if (!weir_node_can_lower(node)) return false;
  weir_func_t callee;
  const weir_attr_t* asked = weir_attrs_find(node->def.attrs, "_lower_using_switch_merge");
  if (asked) return asked->kind == WEIR_ATTR_BOOL && !asked->is_list && asked->u.b;
  return weir_node_callee(&node->def, &callee);
}

// Readers of a lowered node read what it stands for instead: as an IdentityN it would have to be in
// one place, however far apart the resources that pass through it are.
static void bypass(weir_node_t* node, const bool* is_lowered, size_t count) {
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_edge_t edge = node->inputs[i];
    while ((size_t)edge.node->id < count && is_lowered[edge.node->id])
      edge = edge.node->inputs[edge.index];
    node->inputs[i] = edge;
  }
}

// What is left of a lowered node: something to wait for.
static weir_status_t* make_signal(weir_node_t* node) {
  for (int i = 0; i < node->def.input_count; ++i)
    WEIR_TRY(weir_graph_add_control(node, node->inputs[i].node));
  return weir_node_define(node, "NoOp", WEIR_NO_ATTRS, NULL, 0);
}

// Lowers |node| where that is wanted and possible.
static weir_status_t* lower(weir_node_t* node, bool* out_is_lowered) {
  *out_is_lowered = false;
  if (!is_wanted(node)) return NULL;
  weir_status_t* status = weir_node_lower(node);
  *out_is_lowered = !status && node->def.input_count > 0;
  if (weir_status_code(status) != WEIR_UNIMPLEMENTED) return status;
  weir_status_destroy(status);
  return NULL;
}

weir_status_t* weir_flatten(weir_graph_t* graph) {
  weir_status_t* status = NULL;
  bool* is_lowered = NULL;
  size_t capacity = 0, count = 0;  // of the nodes looked at
  bool has_any = false;
  const size_t limit = graph->node_count + MAX_GROWTH;
  for (int depth = 0; depth < MAX_DEPTH && !status; ++depth) {
    // What the bodies of this depth call comes behind them.
    const size_t end = WEIR_MIN(graph->node_count, limit);
    for (; count < end && !status; ++count) {
      if (!WEIR_GROW(is_lowered, capacity, count + 1)) status = weir_out_of_memory();
      if (!status) status = lower(graph->nodes[count], &is_lowered[count]);
      has_any = has_any || (!status && is_lowered[count]);
    }
  }
  for (size_t i = 0; i < graph->node_count && has_any && !status; ++i)
    bypass(graph->nodes[i], is_lowered, count);
  for (size_t i = 0; i < count && has_any && !status; ++i) {
    if (is_lowered[i]) status = make_signal(graph->nodes[i]);
  }
  if (has_any) ++graph->version;
  weir_free(is_lowered);
  return status;
}
