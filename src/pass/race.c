// race.c — Branches of a conditional exclude each other, so their Merge has one input that is
// alive, or one and a constant. Programs that give a Merge more can still tell which comes first
// where one input is made from another.
#include "pass/race.h"

#include "graph/analysis.h"
#include "pass/alive.h"

typedef struct race_t {
  weir_graph_t* graph;
  weir_arena_t* arena;
  const int* condition;  // weir_alive_find
  bool* mask;
} race_t;

// Whether |node| is there from a step's start: nothing comes before it.
static bool is_first(const weir_node_t* node) {
  return node->def.input_count == 0 && node->control_count == 0;
}

static bool may_both_be_alive(const race_t* race, const weir_node_t* a, const weir_node_t* b) {
  if (a == b || is_first(a) || is_first(b)) return false;
  const int x = race->condition[a->id], y = race->condition[b->id];
  return x == y || x == 0 || y == 0;
}

// Whether some inputs of |merge| may be alive together.
static bool is_race(const race_t* race, const weir_node_t* merge) {
  for (int i = 1; i < merge->def.input_count; ++i) {
    for (int j = 0; j < i; ++j) {
      if (may_both_be_alive(race, merge->inputs[i].node, merge->inputs[j].node)) return true;
    }
  }
  return false;
}

// Marks |last| and all that it needs, if another input of |merge| is among that.
static weir_status_t* mark_before(race_t* race, const weir_node_t* merge, weir_node_t* last) {
  weir_reach_t reach;
  WEIR_TRY(weir_reach_init(&reach, race->graph, race->arena));
  weir_reach_add(&reach, last);
  weir_reach_sources(&reach);
  bool is_ordered = false;
  for (int i = 0; i < merge->def.input_count; ++i) {
    const weir_node_t* other = merge->inputs[i].node;
    is_ordered = is_ordered || (other != last && !is_first(other) && reach.is_reached[other->id]);
  }
  if (!is_ordered) return NULL;
  if (!race->mask) {
    race->mask = weir_arena_array(race->arena, race->graph->node_count + 1, sizeof(bool));
    if (!race->mask) return weir_out_of_memory();
  }
  for (size_t i = 0; i < race->graph->node_count; ++i) race->mask[i] |= reach.is_reached[i];
  return NULL;
}

weir_status_t* weir_race_find(weir_rewrite_t* rewrite, const bool** out_mask) {
  race_t race = {.graph = rewrite->graph, .arena = &rewrite->arena};
  *out_mask = NULL;
  for (size_t i = 0; i < rewrite->count; ++i) {
    const weir_node_t* node = rewrite->order[i];
    if (weir_node_role(node) != WEIR_ROLE_MERGE || weir_node_is_loop_merge(node)) continue;
    if (!race.condition) {
      WEIR_TRY(weir_alive_find(rewrite->graph, rewrite->order, rewrite->count, race.arena,
                               &race.condition));
    }
    for (int k = 0; is_race(&race, node) && k < node->def.input_count; ++k)
      WEIR_TRY(mark_before(&race, node, node->inputs[k].node));
  }
  *out_mask = race.mask;
  return NULL;
}
