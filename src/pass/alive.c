// alive.c — Conditions of nodes: sets of facts that must all hold, found in one sweep along the
// edges.
//
// A node runs when all that it reads or waits for is alive, so its condition is the union of
// theirs. Facts come in where values may die: a Switch adds "this predicate took that branch". A
// Merge or a Recv is a fact of its own: what it says of others is not looked into.
//
// In a loop each variable has a Merge of its own, yet all are alive in the same turns. That is
// assumed of those whose Enters are alike, and holds if what they get for the next turn is alive
// whenever they are and the loop goes on: by induction over the turns. Merges of which it does not
// hold become facts of their own, and the sweep is repeated.
#include "pass/alive.h"

#include "graph/analysis.h"
#include "pass/rewrite.h"

enum {
  ROUND_LIMIT = 8,
  SET_LIMIT = 16,  // facts of a condition; one with more is a fact of its own
};

// The first number of what is interned: facts of several kinds, and sets of facts.
enum { SET, BRANCH, LOOP, EXIT, NODE };

// An interned list of numbers, known by its place.
typedef struct item_t {
  const int* numbers;
  int count;
} item_t;

typedef struct alive_t {
  const weir_graph_t* graph;
  weir_node_t* const* order;
  size_t count;
  weir_arena_t scratch;
  weir_loops_t loops;
  item_t* items;
  size_t item_count;
  size_t item_capacity;
  int* slots;  // hash table of places in |items| + 1; open addressing, a power of two
  size_t slot_count;
  int* condition;  // by node id, as the next ones
  int* entering;   // of an Enter: the condition of what comes in
  bool* is_apart;  // of a Merge that begins turns: unlike the others of its loop
} alive_t;

// ---- lists of numbers ----

static uint64_t hash_numbers(const int* numbers, int count) {
  return weir_hash_bytes((const char*)numbers, sizeof(*numbers) * (size_t)count, 7);
}

static size_t find_slot(const alive_t* a, const int* numbers, int count) {
  size_t at = (size_t)hash_numbers(numbers, count) & (a->slot_count - 1);
  for (; a->slots[at]; at = (at + 1) & (a->slot_count - 1)) {
    const item_t* item = &a->items[a->slots[at] - 1];
    if (item->count == count &&
        memcmp(item->numbers, numbers, sizeof(*numbers) * (size_t)count) == 0)
      break;
  }
  return at;
}

static weir_status_t* grow_slots(alive_t* a) {
  if (a->item_count * 2 < a->slot_count) return NULL;
  a->slot_count = WEIR_MAX(a->slot_count * 2, (size_t)64);
  a->slots = weir_arena_array(&a->scratch, a->slot_count, sizeof(*a->slots));
  if (!a->slots) return weir_out_of_memory();
  for (size_t i = 0; i < a->item_count; ++i)
    a->slots[find_slot(a, a->items[i].numbers, a->items[i].count)] = (int)i + 1;
  return NULL;
}

// The number that stands for |numbers|: the same for the same ones.
static weir_status_t* intern(alive_t* a, const int* numbers, int count, int* out_number) {
  WEIR_TRY(grow_slots(a));
  size_t at = find_slot(a, numbers, count);
  if (!a->slots[at]) {
    int* kept = weir_arena_array(&a->scratch, (size_t)count, sizeof(*kept));
    if (!kept || !WEIR_GROW(a->items, a->item_capacity, a->item_count + 1))
      return weir_out_of_memory();
    memcpy(kept, numbers, sizeof(*kept) * (size_t)count);
    a->items[a->item_count++] = (item_t){.numbers = kept, .count = count};
    a->slots[at] = (int)a->item_count;
  }
  *out_number = a->slots[at] - 1;
  return NULL;
}

// ---- sets of facts: SET and then the facts, rising ----

typedef struct set_t {
  int numbers[1 + SET_LIMIT];
  int count;
  bool is_full;  // there were more
} set_t;

static void set_clear(set_t* set) { *set = (set_t){.numbers = {SET}, .count = 1}; }

static void set_add(set_t* set, int fact) {
  int at = set->count;
  while (at > 1 && set->numbers[at - 1] > fact) --at;
  if (at > 1 && set->numbers[at - 1] == fact) return;
  if (set->count == 1 + SET_LIMIT) {
    set->is_full = true;
    return;
  }
  memmove(set->numbers + at + 1, set->numbers + at, sizeof(int) * (size_t)(set->count - at));
  set->numbers[at] = fact;
  ++set->count;
}

static void set_unite(const alive_t* a, set_t* set, int condition) {
  const item_t* item = &a->items[condition];
  for (int i = 1; i < item->count; ++i) set_add(set, item->numbers[i]);
}

static weir_status_t* add_fact(alive_t* a, set_t* set, int kind, int x, int y, int z) {
  int fact;
  WEIR_TRY(intern(a, (int[]){kind, x, y, z}, 4, &fact));
  set_add(set, fact);
  return NULL;
}

static weir_status_t* set_keep(alive_t* a, set_t* set, const weir_node_t* node,
                               int* out_condition) {
  if (set->is_full) {
    set_clear(set);
    WEIR_TRY(add_fact(a, set, NODE, node->id, 0, 0));
  }
  return intern(a, set->numbers, set->count, out_condition);
}

// ---- conditions ----

static weir_status_t* unite_edge(alive_t* a, set_t* set, weir_edge_t edge) {
  set_unite(a, set, a->condition[edge.node->id]);
  if (weir_node_role(edge.node) != WEIR_ROLE_SWITCH) return NULL;
  weir_edge_t predicate = edge.node->inputs[1];
  return add_fact(a, set, BRANCH, predicate.node->id, predicate.index, edge.index);
}

// Whoever waits for a Switch does so whatever branch is taken; what waits for the borders of loops
// is a fact of its own.
static weir_status_t* unite_control(alive_t* a, set_t* set, const weir_node_t* source) {
  set_unite(a, set, a->condition[source->id]);
  weir_role_t role = weir_node_role(source);
  if (role == WEIR_ROLE_SWITCH || weir_rewrite_is_anchor(source)) return NULL;
  return add_fact(a, set, NODE, source->id, 1, 0);
}

static const weir_node_t* entering_node(const weir_node_t* merge) {
  const weir_node_t* first = merge->inputs[0].node;
  bool is_plain = merge->def.input_count == 2 && weir_node_role(first) == WEIR_ROLE_ENTER &&
                  weir_node_is_back_edge(merge, merge->inputs[1].node);
  return is_plain && merge->control_count == 0 ? first : NULL;
}

static weir_status_t* merge_condition(alive_t* a, const weir_node_t* node, set_t* set) {
  const weir_node_t* enter = entering_node(node);
  set_clear(set);
  if (!enter || a->is_apart[node->id]) return add_fact(a, set, NODE, node->id, 0, 0);
  set_unite(a, set, a->entering[enter->id]);
  return add_fact(a, set, LOOP, a->loops.inside[node->id], a->entering[enter->id], 0);
}

// A variable leaves the loop if it came in: turn by turn it is alive, until the predicate, alive as
// long, ends it.
static weir_status_t* exit_condition(alive_t* a, const weir_node_t* node, set_t* set) {
  const weir_node_t* end = node->inputs[0].node;
  int inside = a->loops.inside[node->id], last = a->condition[node->id];
  const weir_node_t* predicate = a->loops.items[inside].condition;
  bool is_end = weir_node_role(end) == WEIR_ROLE_SWITCH && node->inputs[0].index == 0 &&
                node->control_count == 0 && end->control_count == 0 && predicate &&
                end->inputs[1].node == predicate;
  const weir_node_t* merge = is_end ? end->inputs[0].node : NULL;
  bool is_plain = merge && weir_node_role(merge) == WEIR_ROLE_MERGE && entering_node(merge) &&
                  end->inputs[0].index == 0 && !a->is_apart[merge->id] &&
                  a->condition[predicate->id] == a->condition[merge->id];
  set_clear(set);
  if (!is_plain) return add_fact(a, set, EXIT, inside, last, 0);
  set_unite(a, set, a->entering[entering_node(merge)->id]);
  return NULL;
}

static weir_status_t* find_condition(alive_t* a, const weir_node_t* node) {
  set_t set;
  int* condition = &a->condition[node->id];
  weir_role_t role = weir_node_role(node);
  if (role == WEIR_ROLE_MERGE) {
    WEIR_TRY(merge_condition(a, node, &set));
    return set_keep(a, &set, node, condition);
  }
  set_clear(&set);
  for (int i = 0; i < node->def.input_count; ++i) WEIR_TRY(unite_edge(a, &set, node->inputs[i]));
  for (int i = 0; i < node->control_count; ++i)
    WEIR_TRY(unite_control(a, &set, node->control_inputs[i]));
  WEIR_TRY(set_keep(a, &set, node, condition));
  if (role == WEIR_ROLE_ENTER) {
    a->entering[node->id] = *condition;
    if (weir_attrs_bool(node->def.attrs, "is_constant")) return NULL;
    WEIR_TRY(add_fact(a, &set, NODE, node->id, 0, 0));  // alive in the first turn only
  } else if (role == WEIR_ROLE_EXIT) {
    WEIR_TRY(exit_condition(a, node, &set));
  } else if (role == WEIR_ROLE_RECV || role == WEIR_ROLE_CONTROL_TRIGGER) {
    WEIR_TRY(add_fact(a, &set, NODE, node->id, 0, 0));
  } else {
    return NULL;
  }
  return set_keep(a, &set, node, condition);
}

// ---- what was assumed of loops ----

// Sets a Merge apart if what it gets for the next turn may be dead though it was not, and the loop
// goes on, or the other way round.
static weir_status_t* check_merge(alive_t* a, const weir_node_t* node, bool* has_changed) {
  if (!entering_node(node) || a->is_apart[node->id]) return NULL;
  const weir_node_t* predicate = a->loops.items[a->loops.inside[node->id]].condition;
  set_t set;
  int expected = -1;
  set_clear(&set);
  set_unite(a, &set, a->condition[node->id]);
  if (predicate) {
    set_unite(a, &set, a->condition[predicate->id]);
    WEIR_TRY(add_fact(a, &set, BRANCH, predicate->id, 0, 1));
    WEIR_TRY(intern(a, set.numbers, set.count, &expected));
  }
  if (a->condition[node->inputs[1].node->id] == expected && !set.is_full) return NULL;
  a->is_apart[node->id] = *has_changed = true;
  return NULL;
}

static weir_status_t* check_loops(alive_t* a, bool* has_changed) {
  *has_changed = false;
  for (size_t i = 0; i < a->count; ++i) {
    if (weir_node_role(a->order[i]) == WEIR_ROLE_MERGE)
      WEIR_TRY(check_merge(a, a->order[i], has_changed));
  }
  return NULL;
}

static weir_status_t* sweep(alive_t* a) {
  for (size_t i = 0; i < a->count; ++i) WEIR_TRY(find_condition(a, a->order[i]));
  return NULL;
}

static weir_status_t* find_all(alive_t* a) {
  bool has_changed = true;
  int always;
  int round = 0;
  WEIR_TRY(intern(a, (int[]){SET}, 1, &always));  // the first, and so 0
  WEIR_TRY(weir_loops_find(a->graph, a->order, a->count, &a->scratch, &a->loops));
  for (; has_changed && round < ROUND_LIMIT; ++round) {
    WEIR_TRY(sweep(a));
    WEIR_TRY(check_loops(a, &has_changed));
  }
  if (!has_changed) return NULL;
  for (size_t i = 0; i < a->count; ++i) a->is_apart[a->order[i]->id] = true;
  return sweep(a);
}

weir_status_t* weir_alive_find(const weir_graph_t* graph, weir_node_t* const* order, size_t count,
                               weir_arena_t* arena, const int** out_condition) {
  alive_t a = {.graph = graph, .order = order, .count = count};
  a.condition = weir_arena_array(arena, count + 1, sizeof(*a.condition));
  a.entering = weir_arena_array(&a.scratch, count + 1, sizeof(*a.entering));
  a.is_apart = weir_arena_array(&a.scratch, count + 1, sizeof(*a.is_apart));
  weir_status_t* status =
      a.condition && a.entering && a.is_apart ? find_all(&a) : weir_out_of_memory();
  *out_condition = a.condition;
  weir_free(a.items);
  weir_arena_free(&a.scratch);
  return status;
}
