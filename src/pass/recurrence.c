// recurrence.c — Circles of a graph: its strongly connected parts, by Tarjan's walk, against the
// edges.
#include "pass/recurrence.h"

typedef struct walk_t {
  int* number;   // by node id: when it was reached, from 1; 0: not yet
  int* lowest;   // by node id: the smallest number that it leads back to
  int* next;     // by node id: which of its sources comes next
  int* circles;  // by node id; -1: not known yet
  int* path;     // from where the walk began to where it is
  int* open;     // reached, of circles not known yet
  int depth, open_count, reached, circle_count;
} walk_t;

static weir_status_t* begin(const weir_graph_t* graph, weir_arena_t* arena, walk_t* out) {
  const size_t count = graph->node_count + 1;
  *out = (walk_t){.number = weir_arena_array(arena, count, sizeof(int)),
                  .lowest = weir_arena_array(arena, count, sizeof(int)),
                  .next = weir_arena_array(arena, count, sizeof(int)),
                  .circles = weir_arena_array(arena, count, sizeof(int)),
                  .path = weir_arena_array(arena, count, sizeof(int)),
                  .open = weir_arena_array(arena, count, sizeof(int))};
  if (!out->number || !out->lowest || !out->next || !out->circles || !out->path || !out->open)
    return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    out->number[i] = out->next[i] = 0;
    out->circles[i] = -1;
  }
  return NULL;
}

static int source_count(const weir_node_t* node) {
  return node->def.input_count + node->control_count;
}

static int source(const weir_node_t* node, int i) {
  const int inputs = node->def.input_count;
  return i < inputs ? node->inputs[i].node->id : node->control_inputs[i - inputs]->id;
}

static void reach(walk_t* walk, int id) {
  walk->number[id] = walk->lowest[id] = ++walk->reached;
  walk->path[walk->depth++] = id;
  walk->open[walk->open_count++] = id;
}

// All of a node's sources were walked. If it leads back to none before it, what is open since is
// its circle.
static void leave(walk_t* walk, int id) {
  --walk->depth;
  if (walk->depth > 0) {
    const int reader = walk->path[walk->depth - 1];
    walk->lowest[reader] = WEIR_MIN(walk->lowest[reader], walk->lowest[id]);
  }
  if (walk->lowest[id] != walk->number[id]) return;
  int member;
  do {
    member = walk->open[--walk->open_count];
    walk->circles[member] = walk->circle_count;
  } while (member != id);
  ++walk->circle_count;
}

static void walk_from(walk_t* walk, const weir_graph_t* graph, int start) {
  reach(walk, start);
  while (walk->depth > 0) {
    const int id = walk->path[walk->depth - 1];
    if (walk->next[id] == source_count(graph->nodes[id])) {
      leave(walk, id);
      continue;
    }
    const int other = source(graph->nodes[id], walk->next[id]++);
    if (!walk->number[other]) reach(walk, other);
    else if (walk->circles[other] < 0)
      walk->lowest[id] = WEIR_MIN(walk->lowest[id], walk->number[other]);
  }
}

weir_status_t* weir_recurrences_find(const weir_graph_t* graph, weir_arena_t* arena,
                                     int** out_circles) {
  walk_t walk;
  WEIR_TRY(begin(graph, arena, &walk));
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (!walk.number[i]) walk_from(&walk, graph, (int)i);
  }
  *out_circles = walk.circles;
  return NULL;
}
