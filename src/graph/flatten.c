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
  bool is_whole;  // it did not ask for it
  bool is_call;
  weir_node_t* executed;  // runs when the side effects have happened; NULL: that is the node
  weir_attrs_t attrs;     // as they were
} lowered_t;

typedef struct flatten_t {
  weir_graph_t* graph;
  weir_flatten_t what;
  lowered_t* lowered;  // by node id
  size_t count;        // of the nodes looked at
  size_t capacity;
  size_t* from;  // by node id: whose body it is of, as its id and 1; 0: nobody's
  size_t from_count, from_capacity;
  bool has_any;
} flatten_t;

// ---- what is lowered ----

static bool names_function(const weir_attr_t* attr, weir_view_t name) {
  if (attr->kind != WEIR_ATTR_FUNC) return false;
  if (!attr->is_list) return weir_view_equal(attr->u.func->name, name);
  for (size_t i = 0; i < attr->count; ++i) {
    if (weir_view_equal(attr->u.funcs[i].name, name)) return true;
  }
  return false;
}

// Whether one of its own functions is among those of |attrs|.
static bool shares_function(const weir_node_t* node, weir_attrs_t attrs) {
  for (size_t i = 0; i < node->def.attrs.count; ++i) {
    const weir_attr_t* own = &node->def.attrs.items[i].value;
    if (own->kind != WEIR_ATTR_FUNC) continue;
    const weir_func_t* funcs = own->is_list ? own->u.funcs : own->u.func;
    for (size_t k = 0; k < (own->is_list ? own->count : 1); ++k) {
      for (size_t j = 0; j < attrs.count; ++j) {
        if (names_function(&attrs.items[j].value, funcs[k].name)) return true;
      }
    }
  }
  return false;
}

// Whether it is within what it calls itself: a conditional in a recursion, which goes on as long as
// values say, not as long as there are nodes.
static bool recurs(const flatten_t* f, const weir_node_t* node) {
  size_t id = (size_t)node->id;
  while (id < f->from_count && f->from[id]) {
    id = f->from[id] - 1;
    if (shares_function(node, f->lowered[id].attrs)) return true;
  }
  return false;
}

// Whether it is as good as one node: a conditional or loop that did not ask to be lowered, or a
// call that asked not to be.
static bool is_whole(const weir_node_t* node) {
  weir_func_t callee;
  bool is_call = weir_node_callee(&node->def, &callee);
  return is_call ? weir_attrs_find(node->def.attrs, "_lower_using_switch_merge") != NULL
                 : !weir_node_asks_to_lower(node);
}

static bool is_wanted(const flatten_t* f, const weir_node_t* node) {
  if (weir_node_asks_to_lower(node)) return true;
  if (f->what == WEIR_FLATTEN_MARKED || !weir_node_can_lower(node)) return false;
  return !is_whole(node) || (f->what == WEIR_FLATTEN_ALL && !recurs(f, node));
}

// Nodes from |first| on are of the body of |node|.
static weir_status_t* set_from(flatten_t* f, const weir_node_t* node, size_t first) {
  size_t count = f->graph->node_count;
  if (!WEIR_GROW(f->from, f->from_capacity, count)) return weir_out_of_memory();
  for (; f->from_count < count; ++f->from_count)
    f->from[f->from_count] = f->from_count < first ? 0 : (size_t)node->id + 1;
  return NULL;
}

// ---- lowering ----

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
  out->attrs = node->def.attrs;
  out->is_whole = is_whole(node);
  out->is_call = weir_node_callee(&node->def, &(weir_func_t){0});
  size_t first = f->graph->node_count;
  weir_status_t* status = weir_node_lower(node, &out->executed);
  if (!status) status = set_from(f, node, first);
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

// What |edge|, which |node| reads, stands for. Readers of a lowered node read that instead: as an
// IdentityN it would have to be in one place, however far apart the resources that pass through it
// are, and would need all that only some of its readers do. A fetch asks for all of the node, and
// so does whoever reads a whole one; who reads a call's result, for its side effects.
static weir_status_t* resolve(const flatten_t* f, weir_node_t* node, weir_edge_t* edge) {
  bool is_fetch = weir_node_role(node) == WEIR_ROLE_RETVAL;
  const lowered_t* from = NULL;
  for (; (from = find_lowered(f, edge->node)); *edge = edge->node->inputs[edge->index]) {
    if (is_fetch || from->is_whole) WEIR_TRY(weir_graph_add_control(node, edge->node));
    else if (from->is_call && from->executed)
      WEIR_TRY(weir_graph_add_control(node, from->executed));
    is_fetch = false;
  }
  return NULL;
}

static weir_status_t* bypass(const flatten_t* f, weir_node_t* node) {
  for (int i = 0; i < node->def.input_count; ++i) WEIR_TRY(resolve(f, node, &node->inputs[i]));
  return NULL;
}

// Who waits for a conditional or loop that asked for it waits for its side effects alone.
static void wait_for_effects(const flatten_t* f, weir_node_t* node) {
  if (weir_node_role(node) == WEIR_ROLE_RETVAL) return;
  for (int i = 0; i < node->control_count; ++i) {
    const lowered_t* source = find_lowered(f, node->control_inputs[i]);
    if (source && source->executed && !source->is_whole && !source->is_call)
      node->control_inputs[i] = source->executed;
  }
}

// What is left of a lowered node: something to wait for.
static weir_status_t* await_inputs(const flatten_t* f, weir_node_t* node) {
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_edge_t edge = node->inputs[i];
    WEIR_TRY(resolve(f, node, &edge));
    WEIR_TRY(weir_graph_add_control(node, edge.node));
  }
  return NULL;
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
  // Lowered nodes keep their inputs until nobody follows them any more.
  for (size_t i = 0; i < f->graph->node_count; ++i) {
    weir_node_t* node = f->graph->nodes[i];
    wait_for_effects(f, node);
    WEIR_TRY(find_lowered(f, node) ? await_inputs(f, node) : bypass(f, node));
  }
  for (size_t i = 0; i < f->count; ++i) {
    if (f->lowered[i].is_lowered)
      WEIR_TRY(weir_node_define(f->graph->nodes[i], "NoOp", WEIR_NO_ATTRS, NULL, 0));
  }
  return NULL;
}

weir_status_t* weir_flatten(weir_graph_t* graph, weir_flatten_t what) {
  flatten_t f = {.graph = graph, .what = what};
  weir_status_t* status = flatten(&f);
  weir_free(f.lowered);
  weir_free(f.from);
  return status;
}
