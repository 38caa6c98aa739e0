// flatten.c — Lowers functional nodes before anything is optimised or placed.
#include "graph/flatten.h"

#include "graph/graph_internal.h"
#include "graph/lower.h"

// A function that calls itself would never end, and the names of its nodes grow with every turn.
enum {
  MAX_DEPTH = 64,        // of calls within calls
  MAX_GROWTH = 1 << 15,  // nodes
};

typedef struct lowered_t {
  bool is_lowered;
  weir_node_t* executed;  // what those who wait for the node wait for; NULL: for the node
} lowered_t;

typedef struct flatten_t {
  weir_graph_t* graph;
  weir_flatten_t what;
  lowered_t* lowered;  // by node id
  size_t count;        // of the nodes looked at
  size_t capacity;
  bool has_any;
} flatten_t;

static bool is_wanted(const flatten_t* f, const weir_node_t* node) {
  if (weir_node_asks_to_lower(node)) return true;
  weir_func_t callee;
  return f->what == WEIR_FLATTEN_AND_CALLS && weir_node_can_lower(node) &&
         !weir_attrs_find(node->def.attrs, "_lower_using_switch_merge") &&
         weir_node_callee(&node->def, &callee);
}

// A body that cannot be (a string as condition, shapes that do not go together) stays in its
// function: it fails there, if it is run.
static bool is_reason_to_stay(const weir_status_t* status) {
  weir_code_t code = weir_status_code(status);
  return code == WEIR_UNIMPLEMENTED || code == WEIR_INVALID_ARGUMENT;
}

static weir_status_t* lower(flatten_t* f, weir_node_t* node) {
  if (!WEIR_GROW(f->lowered, f->capacity, f->count + 1)) return weir_out_of_memory();
  lowered_t* out = &f->lowered[f->count++];
  *out = (lowered_t){.is_lowered = false};
  if (!is_wanted(f, node)) return NULL;
  weir_status_t* status = weir_node_lower(node, &out->executed);
  if (is_reason_to_stay(status)) {
    weir_status_destroy(status);
    out->executed = NULL;
    return NULL;
  }
  out->is_lowered = !status;
  f->has_any = f->has_any || !status;
  return status;
}

static const lowered_t* find_lowered(const flatten_t* f, const weir_node_t* node) {
  size_t id = (size_t)node->id;
  return id < f->count && f->lowered[id].is_lowered ? &f->lowered[id] : NULL;
}

// Readers of a lowered node read what it stands for instead: as an IdentityN it would have to be in
// one place, however far apart the resources that pass through it are, and would need all that only
// some of its readers do. A fetch alone asks for all of the node.
static weir_status_t* bypass(const flatten_t* f, weir_node_t* node) {
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_edge_t edge = node->inputs[i];
    if (find_lowered(f, edge.node) && weir_node_role(node) == WEIR_ROLE_RETVAL)
      WEIR_TRY(weir_graph_add_control(node, edge.node));
    while (find_lowered(f, edge.node)) edge = edge.node->inputs[edge.index];
    node->inputs[i] = edge;
  }
  return NULL;
}

static void wait_for_effects(const flatten_t* f, weir_node_t* node) {
  if (weir_node_role(node) == WEIR_ROLE_RETVAL) return;
  for (int i = 0; i < node->control_count; ++i) {
    const lowered_t* source = find_lowered(f, node->control_inputs[i]);
    if (source && source->executed) node->control_inputs[i] = source->executed;
  }
}

// What is left of a lowered node: something to wait for.
static weir_status_t* make_signal(weir_node_t* node) {
  for (int i = 0; i < node->def.input_count; ++i)
    WEIR_TRY(weir_graph_add_control(node, node->inputs[i].node));
  return weir_node_define(node, "NoOp", WEIR_NO_ATTRS, NULL, 0);
}

static weir_status_t* lower_all(flatten_t* f) {
  const size_t limit = f->graph->node_count + MAX_GROWTH;
  for (int depth = 0; depth < MAX_DEPTH; ++depth) {
    // What the bodies of this depth call comes behind them.
    const size_t end = WEIR_MIN(f->graph->node_count, limit);
    while (f->count < end) WEIR_TRY(lower(f, f->graph->nodes[f->count]));
  }
  return NULL;
}

static weir_status_t* flatten(flatten_t* f) {
  WEIR_TRY(lower_all(f));
  if (!f->has_any) return NULL;
  ++f->graph->version;
  for (size_t i = 0; i < f->graph->node_count; ++i) {
    wait_for_effects(f, f->graph->nodes[i]);
    WEIR_TRY(bypass(f, f->graph->nodes[i]));
  }
  for (size_t i = 0; i < f->count; ++i) {
    if (f->lowered[i].is_lowered) WEIR_TRY(make_signal(f->graph->nodes[i]));
  }
  return NULL;
}

weir_status_t* weir_flatten(weir_graph_t* graph, weir_flatten_t what) {
  flatten_t f = {.graph = graph, .what = what};
  weir_status_t* status = flatten(&f);
  weir_free(f.lowered);
  return status;
}
