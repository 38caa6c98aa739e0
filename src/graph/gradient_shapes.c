// gradient_shapes.c — Shapes within loops, before they are differentiated.
//
// Inference in order of the graph knows nothing of loop variables, which come around. Here they are
// taken to keep the shape they enter with until the body says otherwise, and then widened until
// nothing changes. With known shapes a gradient needs no shapes at run time, and so saves none.
#include "graph/gradient_internal.h"

enum {
  MAX_ROUNDS = 16
};  // a variable is widened once a dimension; nested loops take a few rounds more

static const weir_shape_t* common(weir_arena_t* arena, const weir_shape_t* a,
                                  const weir_shape_t* b) {
  int64_t dims[WEIR_MAX_RANK];
  if (a->rank < 0 || a->rank != b->rank || a->rank > WEIR_MAX_RANK) return &weir_shape_unknown;
  if (weir_shape_equal(a, b)) return a;
  for (int i = 0; i < a->rank; ++i) dims[i] = a->dims[i] == b->dims[i] ? a->dims[i] : -1;
  return weir_shape_make(arena, a->rank, dims);
}

typedef struct widening_t {
  gradient_t* g;
  const weir_shape_t** limits;  // by node id, of loop variables' Merge: what is known to come
                                // around; NULL: nothing yet
} widening_t;

static void set_shape(weir_node_t* node, const weir_shape_t* shape) {
  node->shapes[0] = shape ? shape : &weir_shape_unknown;
}

// A contradiction within a loop may be one that never runs, or that a too narrow guess made.
static void infer(weir_node_t* node) {
  weir_node_forget_shapes(node);  // what the last round's guess led to
  weir_status_t* status = weir_graph_infer(node);
  if (!status) return;
  weir_status_destroy(status);
  weir_node_forget_shapes(node);
}

static void infer_node(widening_t* w, weir_node_t* node) {
  infer(node);
  if (weir_node_role(node) == WEIR_ROLE_ENTER) {
    set_shape(node, weir_edge_shape(node->inputs[0]));
  } else if (weir_node_is_loop_merge(node)) {
    const weir_shape_t* shape = NULL;
    for (int i = 0; i < node->def.input_count; ++i) {
      if (weir_node_role(node->inputs[i].node) == WEIR_ROLE_NEXT_ITERATION) continue;
      const weir_shape_t* entered = weir_edge_shape(node->inputs[i]);
      shape = shape ? common(&node->graph->arena, shape, entered) : entered;
    }
    const weir_shape_t* limit = w->limits[node->id];
    set_shape(node, shape && limit ? common(&node->graph->arena, shape, limit) : shape);
  }
}

// Widens the variables whose next value does not have the shape assumed.
static bool widen(widening_t* w, weir_node_t* node) {
  bool has_changed = false;
  for (int i = 0; i < node->def.input_count; ++i) {
    const weir_node_t* next = node->inputs[i].node;
    if (weir_node_role(next) != WEIR_ROLE_NEXT_ITERATION) continue;
    const weir_shape_t* shape = node->shapes[0];
    const weir_shape_t* both = common(&node->graph->arena, shape, next->shapes[0]);
    if (both && weir_shape_equal(both, shape)) continue;
    w->limits[node->id] = both ? both : &weir_shape_unknown;
    has_changed = true;
  }
  return has_changed;
}

weir_status_t* weir_gradient_infer_loops(gradient_t* g, weir_node_t* const* order) {
  if (!g->frames->next) return NULL;
  widening_t w = {.g = g,
                  .limits = weir_arena_array(&g->arena, g->node_count + 1, sizeof(*w.limits))};
  if (!w.limits) return weir_out_of_memory();
  size_t first = 0;
  while (weir_node_role(order[first]) != WEIR_ROLE_ENTER) ++first;
  bool has_changed = true;
  for (int round = 0; has_changed; ++round) {
    for (size_t i = first; i < g->node_count; ++i) infer_node(&w, order[i]);
    has_changed = false;
    for (size_t i = first; i < g->node_count; ++i) {
      if (!weir_node_is_loop_merge(order[i])) continue;
      if (round < MAX_ROUNDS) {
        has_changed |= widen(&w, order[i]);
      } else if (w.limits[order[i]->id] !=
                 &weir_shape_unknown) {  // enough: nothing is known of any of them
        w.limits[order[i]->id] = &weir_shape_unknown;
        has_changed = true;
      }
    }
  }
  return NULL;
}
