// pick.c — Finds the nodes of a graph that initialise, train and tell the loss, by what they are.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static bool begins(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}
static bool has_op(const weir_node_t* node, const char* op) {
  return strcmp(weir_node_op(node), op) == 0;
}

static bool is_assign(const weir_node_t* node) {
  return has_op(node, "Assign") || has_op(node, "AssignVariableOp");
}
static bool is_table_init(const weir_node_t* node) {
  return begins(weir_node_op(node), "InitializeTable") ||
         begins(weir_node_op(node), "LookupTableImport");
}
static bool is_variable(const weir_node_t* node) {
  return has_op(node, "VarHandleOp") || has_op(node, "VariableV2") || has_op(node, "Variable");
}
static bool is_update(const weir_node_t* node) {
  const char* op = weir_node_op(node);
  return begins(op, "Apply") || begins(op, "ResourceApply") || begins(op, "SparseApply") ||
         begins(op, "ResourceSparseApply") || begins(op, "AssignSub") || begins(op, "ScatterSub");
}

// ---- what a node depends on ----

typedef struct walk_t {
  const weir_node_t** stack;
  const weir_node_t** seen;  // an open hash table
  size_t capacity, count, depth;
} walk_t;

static bool walk_open(walk_t* walk, weir_graph_t* graph) {
  size_t nodes = weir_graph_node_count(graph);
  *walk = (walk_t){.capacity = 2 * nodes + 8};
  walk->stack = malloc(sizeof(*walk->stack) * (nodes + 1));
  walk->seen = calloc(walk->capacity, sizeof(*walk->seen));
  return walk->stack && walk->seen;
}
static void walk_close(walk_t* walk) {
  free(walk->stack);
  free(walk->seen);
}
static void walk_push(walk_t* walk, const weir_node_t* node) {
  size_t at = ((size_t)node >> 4) % walk->capacity;
  while (walk->seen[at] && walk->seen[at] != node) at = (at + 1) % walk->capacity;
  if (walk->seen[at]) return;
  walk->seen[at] = node;
  walk->stack[walk->depth++] = node;
  ++walk->count;
}
static void walk_start(walk_t* walk, const weir_node_t* node) {
  memset(walk->seen, 0, walk->capacity * sizeof(*walk->seen));
  walk->count = walk->depth = 0;
  walk_push(walk, node);
}
// The next node that the start depends on, itself first; NULL: there are no more.
static const weir_node_t* walk_next(walk_t* walk) {
  if (walk->depth == 0) return NULL;
  const weir_node_t* node = walk->stack[--walk->depth];
  for (int i = 0; i < weir_node_input_count(node); ++i)
    walk_push(walk, weir_node_input(node, i).node);
  for (int i = 0; i < weir_node_control_count(node); ++i)
    walk_push(walk, weir_node_control(node, i));
  return node;
}

// ---- initialisers: nodes without an output that wait for assignments, and for nothing else ----

static bool is_restored(walk_t* walk, const weir_node_t* assign) {
  if (weir_node_input_count(assign) < 2) return true;
  walk_start(walk, weir_node_input(assign, 1).node);
  for (const weir_node_t* node; (node = walk_next(walk));) {
    if (begins(weir_node_op(node), "Restore") || has_op(node, "Placeholder")) return true;
  }
  return false;
}

// How many assignments, or tables, a group waits for; 0: for something else, too.
static int initialised_by(walk_t* walk, const weir_node_t* node, bool of_tables, int depth) {
  int total = 0;
  if (depth > 8 || !has_op(node, "NoOp") || weir_node_input_count(node) > 0) return 0;
  for (int i = 0; i < weir_node_control_count(node); ++i) {
    const weir_node_t* on = weir_node_control(node, i);
    int count = of_tables ? is_table_init(on) : is_assign(on) && !is_restored(walk, on);
    if (!count) count = initialised_by(walk, on, of_tables, depth + 1);
    if (!count) return 0;
    total += count;
  }
  return total;
}

static weir_node_t* pick_group(weir_graph_t* graph, bool of_tables) {
  walk_t walk;
  weir_node_t* best = NULL;
  int most = 0;
  bool is_open = walk_open(&walk, graph);
  for (size_t i = 0; is_open && i < weir_graph_node_count(graph); ++i) {
    weir_node_t* node = weir_graph_node_at(graph, i);
    int count = initialised_by(&walk, node, of_tables, 0);
    if (count <= most) continue;
    most = count;
    best = node;
  }
  walk_close(&walk);
  return best;
}
weir_node_t* pick_init(weir_graph_t* graph) { return pick_group(graph, false); }
weir_node_t* pick_table_init(weir_graph_t* graph) { return pick_group(graph, true); }

bool has_variables(weir_graph_t* graph) {
  for (size_t i = 0; i < weir_graph_node_count(graph); ++i) {
    if (is_variable(weir_graph_node_at(graph, i))) return true;
  }
  return false;
}

// ---- the step: what depends on most updates by an optimizer, of those the least ----

weir_node_t* pick_step(weir_graph_t* graph) {
  walk_t walk;
  weir_node_t* best = NULL;
  size_t most = 0, size = 0;
  bool is_open = walk_open(&walk, graph);
  for (size_t i = 0; is_open && i < weir_graph_node_count(graph); ++i) {
    weir_node_t* node = weir_graph_node_at(graph, i);
    bool is_group = has_op(node, "NoOp") || begins(weir_node_op(node), "Assign") || is_update(node);
    size_t updates = 0;
    if (!is_group) continue;
    walk_start(&walk, node);
    for (const weir_node_t* on; (on = walk_next(&walk));) updates += is_update(on);
    if (updates < most || updates == 0 || (updates == most && walk.count >= size)) continue;
    most = updates;
    size = walk.count;
    best = node;
  }
  walk_close(&walk);
  return best;
}

// ---- the loss: a floating scalar that depends on variables ----

static bool contains(const char* text, const char* word) {
  for (; *text; ++text) {
    size_t i = 0;
    while (word[i] && tolower((unsigned char)text[i]) == word[i]) ++i;
    if (!word[i]) return true;
  }
  return false;
}

static bool may_be_loss(weir_node_t* node) {
  int64_t dims[1];
  weir_edge_t edge = {node, 0};
  if (weir_node_output_count(node) != 1) return false;
  weir_dtype_t dtype = weir_edge_type(edge);
  bool is_sum = has_op(node, "Mean") || has_op(node, "Sum") || begins(weir_node_op(node), "Add") ||
                has_op(node, "RealDiv") || has_op(node, "Mul") || has_op(node, "DivNoNan") ||
                has_op(node, "Identity") || has_op(node, "L2Loss");
  return is_sum && (dtype == WEIR_DTYPE_FLOAT || dtype == WEIR_DTYPE_DOUBLE) &&
         weir_edge_dims(edge, dims, 1) == 0 && !contains(weir_node_name(node), "gradients");
}

// Its name counts more than its op, and that more than how much it depends on; 0: on no variable.
static size_t loss_score(walk_t* walk, weir_node_t* node, size_t nodes) {
  bool is_trained = false;
  const char* name = weir_node_name(node);
  walk_start(walk, node);
  for (const weir_node_t* on; (on = walk_next(walk));) {
    if (is_update(on)) return 0;  // what the step has made
    is_trained |= is_variable(on);
  }
  if (!is_trained) return 0;
  size_t rank = contains(name, "loss") || contains(name, "cost") ? 2 : 0;
  rank += has_op(node, "Mean") || has_op(node, "Sum") || begins(weir_node_op(node), "Add");
  return rank * (nodes + 1) + walk->count;
}

bool pick_loss(weir_graph_t* graph, weir_edge_t* out_edge) {
  walk_t walk;
  size_t best = 0, nodes = weir_graph_node_count(graph);
  bool is_open = walk_open(&walk, graph);
  for (size_t i = 0; is_open && i < nodes; ++i) {
    weir_node_t* node = weir_graph_node_at(graph, i);
    size_t score = may_be_loss(node) ? loss_score(&walk, node, nodes) : 0;
    if (score <= best) continue;
    best = score;
    *out_edge = (weir_edge_t){node, 0};
  }
  walk_close(&walk);
  return best > 0;
}
