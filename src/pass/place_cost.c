// place_cost.c — Placement by cost. A greedy sweep puts each node where it would end first, the
// ones with the longest way to the end of the step before others; and as it looks but one step
// ahead, what it finds competes in the simulation with simpler placements: everything on one
// device, and cuts in two. The best of them is improved, group by group, as long as that shortens
// the simulated step.
#include "pass/place_cost.h"

#include <stdlib.h>

#include "graph/analysis.h"

enum {
  UNDECIDED = -1,
  MAX_SWEEPS = 4,
};
static const double kMaxVisits = 2e7;  // of items, in simulations: some seconds
static const double kGain = 0.005;     // what a placement must be better by: estimates are rough

typedef struct placer_t {
  const weir_place_cost_t* problem;
  const weir_costs_t* costs;
  weir_simulation_t sim;
  int* order;        // ids of nodes, in the order of the sweep
  double* rank;      // by node id: time from its start to the end of the step
  int* device_of;    // by group; of one attempt
  int* leader;       // by group: the group that decided where it is, which may be itself
  int* expanded;     // by node id: device_of of its group
  int* best;         // by group
  int* best_leader;  // by group
  double best_ns;
  double* end;          // by item: of nodes and copies of the attempt; negative: not there
  double* free_at;      // by lane
  double copy_weight;   // how often copies count, so that values are not moved for small gains
  const double* share;  // by node id, where nodes are cut in two: the share of work before it; NULL
  double cut;           // up to this share
  int first, second;    // the devices of the two parts
  double visits;        // of items so far
} placer_t;

static int count_of(const placer_t* p) { return (int)p->costs->graph->node_count; }
static weir_node_t* node_at(const placer_t* p, int id) { return p->costs->graph->nodes[id]; }
static int group_of(const placer_t* p, const weir_node_t* node) {
  return p->problem->group_of[node->id];
}
static bool is_allowed(const placer_t* p, int group, int device) {
  return p->problem->is_allowed[group * p->costs->device_count + device];
}
static int first_allowed(const placer_t* p, int group) {
  int device = 0;
  while (device + 1 < p->costs->device_count && !is_allowed(p, group, device)) ++device;
  return device;
}

// ---- the order of the sweep ----

static double mean_node_ns(const placer_t* p, const weir_node_t* node) {
  double sum = 0;
  int count = 0;
  for (int i = 0; i < p->costs->device_count; ++i) {
    if (!is_allowed(p, group_of(p, node), i)) continue;
    sum += weir_costs_node_ns(p->costs, node, i) + weir_costs_delay_ns(p->costs, node, i);
    ++count;
  }
  return sum / WEIR_MAX(count, 1);
}

static double mean_copy_ns(const placer_t* p, weir_edge_t edge) {
  double sum = 0;
  for (int i = 0; i < p->costs->device_count; ++i) {
    if (!p->costs->devices[i].rates.is_host) sum += weir_costs_copy_ns(p->costs, edge, i);
  }
  return sum / p->costs->device_count;
}

static void find_ranks(placer_t* p) {
  for (int i = count_of(p); i-- > 0;) {
    weir_node_t* node = p->costs->order[i];
    double longest = 0;
    for (int k = p->sim.first_reader[node->id]; k < p->sim.first_reader[node->id + 1]; ++k) {
      weir_sim_reader_t reader = p->sim.readers[k];
      double copy = reader.input < 0 ? 0 : mean_copy_ns(p, (weir_edge_t){node, reader.output});
      longest = WEIR_MAX(longest, copy + p->rank[reader.node]);
    }
    p->rank[node->id] = mean_node_ns(p, node) + longest;
  }
}

typedef struct ranked_t {
  double rank;
  int position;  // in topological order
  int id;
} ranked_t;

static int by_rank(const void* a, const void* b) {
  const ranked_t *x = a, *y = b;
  if (x->rank != y->rank) return x->rank < y->rank ? 1 : -1;
  return x->position - y->position;
}

// |out_order|: ids of nodes, those with the highest rank first.
static weir_status_t* sort_nodes(const placer_t* p, const double* rank, int* out_order) {
  int count = count_of(p);
  ranked_t* nodes = weir_alloc_array((size_t)count + 1, sizeof(*nodes));
  if (!nodes) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) {
    int id = p->costs->order[i]->id;
    nodes[i] = (ranked_t){.rank = rank[id], .position = i, .id = id};
  }
  qsort(nodes, (size_t)count, sizeof(*nodes), by_rank);
  for (int i = 0; i < count; ++i) out_order[i] = nodes[i].id;
  weir_free(nodes);
  return NULL;
}

// ---- the sweep ----

// What makes a value without work worth mentioning goes where the value is read first: a variable
// with whoever computes with it.
static bool is_follower(const placer_t* p, const weir_node_t* node) {
  if (p->device_of[group_of(p, node)] != UNDECIDED) return false;
  if (!p->costs->is_light[node->id] && !weir_node_has(node, WEIR_OP_CHEAP)) return false;
  for (int i = 0; i < node->def.input_count; ++i) {
    const weir_node_t* source = node->inputs[i].node;
    if (weir_costs_is_sent(node, node->inputs[i]) && p->device_of[group_of(p, source)] != UNDECIDED)
      return false;
  }
  return true;
}

// When the value of |edge|, there at |time|, is in |memory|; |device| makes the copy.
static double after_copy(placer_t* p, weir_edge_t edge, int memory, int device, double time,
                         bool is_real) {
  int item = weir_simulation_copy(&p->sim, edge, memory);
  double* end = &p->end[item];
  double* free_at = &p->free_at[weir_simulation_lane(&p->sim, item, device)];
  double copy = weir_costs_copy_ns(p->costs, edge, device);
  if (*end >= 0) return *end;
  if (!is_real) return time + copy * p->copy_weight;
  *end = *free_at = WEIR_MAX(time, *free_at) + copy;
  return *end;
}

// When a reader on |device| has its input |i|. |is_real|: the copies it takes for that are made.
static double arrival(placer_t* p, const weir_node_t* node, int i, int device, bool is_real) {
  weir_edge_t edge = node->inputs[i];
  int source = p->device_of[group_of(p, edge.node)];
  if (source == UNDECIDED) source = device;  // it will follow
  int from = weir_costs_memory(p->costs, edge.node, edge.index, true, source);
  int to = weir_costs_memory(p->costs, node, i, false, device);
  double time = WEIR_MAX(p->end[edge.node->id], 0);
  if (from == to) return time;
  if (from != WEIR_HOST) time = after_copy(p, edge, WEIR_HOST, source, time, is_real);
  return to == WEIR_HOST ? time : after_copy(p, edge, to, device, time, is_real);
}

static double ready_at(placer_t* p, const weir_node_t* node, int device, bool is_real) {
  double ready = 0;
  for (int i = 0; i < node->def.input_count; ++i) {
    if (!weir_costs_is_sent(node, node->inputs[i])) continue;
    ready = WEIR_MAX(ready, arrival(p, node, i, device, is_real));
  }
  for (int i = 0; i < node->control_count; ++i)
    ready = WEIR_MAX(ready, p->end[node->control_inputs[i]->id]);
  return ready;
}

static int choose_device(placer_t* p, const weir_node_t* node) {
  if (p->share) return p->share[node->id] <= p->cut ? p->first : p->second;
  double best = 0;
  int chosen = UNDECIDED;
  for (int i = 0; i < p->costs->device_count; ++i) {
    if (!is_allowed(p, group_of(p, node), i)) continue;
    double free_at = p->free_at[weir_simulation_lane(&p->sim, node->id, i)];
    double start = WEIR_MAX(ready_at(p, node, i, false), free_at);
    double end = start + weir_costs_node_ns(p->costs, node, i);
    if (chosen != UNDECIDED && end >= best) continue;
    best = end;
    chosen = i;
  }
  return chosen == UNDECIDED ? 0 : chosen;
}

static void decide(placer_t* p, int group, int device, int leader) {
  p->device_of[group] = is_allowed(p, group, device) ? device : first_allowed(p, group);
  p->leader[group] = leader;
}

// Takes along what waits to follow |node|, directly or through others.
static void take_along(placer_t* p, const weir_node_t* node, int depth) {
  enum { MAX_DEPTH = 64 };
  int group = group_of(p, node), leader = p->leader[group];
  for (int i = 0; i < node->def.input_count && depth < MAX_DEPTH; ++i) {
    const weir_node_t* source = node->inputs[i].node;
    if (!weir_costs_is_sent(node, node->inputs[i])) continue;
    if (p->device_of[group_of(p, source)] != UNDECIDED) continue;
    decide(p, group_of(p, source), p->device_of[group], leader);
    take_along(p, source, depth + 1);
  }
}

static void place_node(placer_t* p, const weir_node_t* node) {
  int group = group_of(p, node);
  if (p->device_of[group] == UNDECIDED) {
    if (is_follower(p, node)) return;
    decide(p, group, choose_device(p, node), group);
  }
  take_along(p, node, 0);
  int device = p->device_of[group];
  double start = ready_at(p, node, device, true);
  double* free_at = &p->free_at[weir_simulation_lane(&p->sim, node->id, device)];
  bool is_light = p->costs->is_light[node->id];
  if (!is_light) start = WEIR_MAX(start, *free_at);
  double end = start + weir_costs_node_ns(p->costs, node, device);
  if (!is_light) *free_at = end;
  p->end[node->id] = end + weir_costs_delay_ns(p->costs, node, device);
}

static void clear(placer_t* p) {
  for (int i = 0; i < count_of(p); ++i) {
    p->device_of[i] = UNDECIDED;
    p->leader[i] = i;
  }
  for (int i = 0; i < p->sim.item_count; ++i) p->end[i] = -1;
  for (int i = 0; i < WEIR_LANES * p->costs->device_count; ++i) p->free_at[i] = 0;
}

static void sweep(placer_t* p, double copy_weight) {
  clear(p);
  p->copy_weight = copy_weight;
  for (int i = 0; i < count_of(p); ++i) place_node(p, node_at(p, p->order[i]));
  for (int i = 0; i < count_of(p); ++i) {  // what nobody reads
    int group = p->problem->group_of[i];
    if (p->device_of[group] == UNDECIDED) decide(p, group, first_allowed(p, group), group);
  }
}

static void put_all_on(placer_t* p, int device) {
  for (int i = 0; i < count_of(p); ++i) decide(p, p->problem->group_of[i], device, i);
}

// ---- comparing ----

static double play(placer_t* p, const int* device_of) {
  for (int i = 0; i < count_of(p); ++i) p->expanded[i] = device_of[p->problem->group_of[i]];
  p->visits += p->sim.item_count;
  return weir_simulate(&p->sim, p->expanded);
}

// Keeps the attempt where it is better than all before, by |gain| at least.
static void compare(placer_t* p, double gain) {
  double ns = play(p, p->device_of);
  if (p->best_ns >= 0 && ns >= p->best_ns * (1 - gain)) return;
  size_t count = (size_t)count_of(p);
  memcpy(p->best, p->device_of, count * sizeof(*p->best));
  memcpy(p->best_leader, p->leader, count * sizeof(*p->best_leader));
  p->best_ns = ns;
}

// Moves a group, and those it leads, to |device|; |saved| gets where they were.
static bool move(placer_t* p, int leader, int device, int* saved) {
  bool is_moved = false;
  for (int i = 0; i < count_of(p); ++i) {
    saved[i] = p->best[i];
    if (p->best_leader[i] != leader || p->problem->group_of[i] != i) continue;
    if (p->best[i] == device || !is_allowed(p, i, device)) continue;
    p->best[i] = device;
    is_moved = true;
  }
  return is_moved;
}

static bool improve(placer_t* p) {
  bool is_better = false;
  for (int k = 0; k < count_of(p); ++k) {
    int group = p->problem->group_of[p->order[k]];
    bool is_first = p->best_leader[group] == group && group == p->order[k];
    for (int device = 0; is_first && device < p->costs->device_count; ++device) {
      if (p->visits > kMaxVisits) return false;
      if (!move(p, group, device, p->device_of)) continue;
      double ns = play(p, p->best);
      if (ns < p->best_ns * (1 - kGain)) {
        p->best_ns = ns;
        is_better = true;
      } else {
        memcpy(p->best, p->device_of, (size_t)count_of(p) * sizeof(*p->best));
      }
    }
  }
  return is_better;
}

// ---- cuts ----

// For each node, how far it is from the nearer end of the step. A training step goes through its
// layers and back: what is about as far belongs to one layer.
static void find_depths(const placer_t* p, double* depth) {
  for (int i = 0; i < count_of(p); ++i) {
    const weir_node_t* node = p->costs->order[i];
    double end = depth[node->id] + mean_node_ns(p, node);
    for (int k = p->sim.first_reader[node->id]; k < p->sim.first_reader[node->id + 1]; ++k) {
      double* there = &depth[p->sim.readers[k].node];
      *there = WEIR_MAX(*there, end);
    }
  }
  for (int i = 0; i < count_of(p); ++i) depth[i] = WEIR_MIN(depth[i], p->rank[i]);
}

static weir_status_t* find_shares(const placer_t* p, const double* rank, weir_arena_t* arena,
                                  double** out_share) {
  size_t count = (size_t)count_of(p) + 1;
  double* share = weir_arena_array(arena, count, sizeof(*share));
  int* order = weir_arena_array(arena, count, sizeof(*order));
  double sum = 0;
  if (!share || !order) return weir_out_of_memory();
  WEIR_TRY(sort_nodes(p, rank, order));
  for (int i = 0; i < count_of(p); ++i) {
    share[order[i]] = sum;
    sum += mean_node_ns(p, node_at(p, order[i]));
  }
  for (int i = 0; i < count_of(p); ++i) share[i] /= WEIR_MAX(sum, 1);
  *out_share = share;
  return NULL;
}

// Tries every pair of devices with some cuts.
static void cut_in_two(placer_t* p, const double* share) {
  enum { PARTS = 8 };
  int count = p->costs->device_count;
  p->share = share;
  for (int i = 0; i < count * count * PARTS && p->visits < kMaxVisits / 4; ++i) {
    p->first = i / PARTS / count;
    p->second = i / PARTS % count;
    p->cut = (double)(i % PARTS) / PARTS;
    if (p->first == p->second || i % PARTS == 0) continue;
    sweep(p, 1);
    compare(p, kGain);
  }
  p->share = NULL;
}

static weir_status_t* try_cuts(placer_t* p, weir_arena_t* arena) {
  double* depth = weir_arena_array(arena, (size_t)count_of(p) + 1, sizeof(*depth));
  double *along = NULL, *across = NULL;
  if (!depth) return weir_out_of_memory();
  find_depths(p, depth);
  WEIR_TRY(find_shares(p, p->rank, arena, &along));
  WEIR_TRY(find_shares(p, depth, arena, &across));
  cut_in_two(p, along);
  cut_in_two(p, across);
  return NULL;
}

static weir_status_t* init(placer_t* p, weir_arena_t* arena) {
  size_t count = (size_t)count_of(p) + 1;
  WEIR_TRY(weir_simulation_init(&p->sim, p->costs, arena));
  p->order = weir_arena_array(arena, count, sizeof(int));
  p->rank = weir_arena_array(arena, count, sizeof(double));
  p->device_of = weir_arena_array(arena, count, sizeof(int));
  p->leader = weir_arena_array(arena, count, sizeof(int));
  p->expanded = weir_arena_array(arena, count, sizeof(int));
  p->best = weir_arena_array(arena, count, sizeof(int));
  p->best_leader = weir_arena_array(arena, count, sizeof(int));
  p->end = weir_arena_array(arena, (size_t)p->sim.item_count + 1, sizeof(double));
  p->free_at = weir_arena_array(arena, WEIR_LANES * (size_t)p->costs->device_count, sizeof(double));
  bool is_good = p->order && p->rank && p->device_of && p->leader && p->expanded && p->best &&
                 p->best_leader && p->end && p->free_at;
  if (!is_good) return weir_out_of_memory();
  // Twice: an Exit stands before the last turn that it waits for in the topological order.
  for (int pass = 0; pass < 2; ++pass) find_ranks(p);
  return sort_nodes(p, p->rank, p->order);
}

weir_status_t* weir_place_by_cost(const weir_place_cost_t* problem, weir_arena_t* arena,
                                  int** out_device_of) {
  static const double weights[] = {1, 4, 16};
  placer_t placer = {.problem = problem, .costs = problem->costs, .best_ns = -1};
  WEIR_TRY(init(&placer, arena));
  for (int i = 0; i < problem->costs->device_count; ++i) {
    clear(&placer);
    put_all_on(&placer, i);
    compare(&placer, 0);
  }
  for (size_t i = 0; i < WEIR_COUNT_OF(weights); ++i) {
    sweep(&placer, weights[i]);
    compare(&placer, kGain);
  }
  WEIR_TRY(try_cuts(&placer, arena));
  for (int i = 0; i < MAX_SWEEPS && improve(&placer); ++i) continue;
  play(&placer, placer.best);
  *out_device_of = placer.expanded;
  return NULL;
}
