// simulate.c — The simulation: a queue of what is ready, and for each processor when it is free.
#include "pass/simulate.h"

#include "graph/analysis.h"

typedef struct weir_due_t {
  double time;
  int64_t turn;  // of two at the same time, the one that was ready first
  int item;
} weir_due_t;

static int node_count(const weir_simulation_t* sim) { return (int)sim->costs->graph->node_count; }

// ---- items ----

static int memory_count(const weir_simulation_t* sim) { return sim->costs->device_count + 1; }

int weir_simulation_copy(const weir_simulation_t* sim, weir_edge_t edge, int memory) {
  int output = sim->first_output[edge.node->id] + edge.index;
  return node_count(sim) + output * memory_count(sim) + memory + 1;
}

static int memory_of_copy(const weir_simulation_t* sim, int item) {
  return (item - node_count(sim)) % memory_count(sim) - 1;
}

weir_edge_t weir_simulation_edge(const weir_simulation_t* sim, int item) {
  if (item < node_count(sim)) return WEIR_NO_EDGE;
  int output = (item - node_count(sim)) / memory_count(sim);
  int id = sim->node_of[output];
  return (weir_edge_t){sim->costs->graph->nodes[id], output - sim->first_output[id]};
}

int weir_simulation_device(const weir_simulation_t* sim, int item) {
  if (item < node_count(sim)) return sim->device_of[item];
  int memory = memory_of_copy(sim, item);
  return memory != WEIR_HOST ? memory : sim->device_of[weir_simulation_edge(sim, item).node->id];
}

int weir_simulation_lane(const weir_simulation_t* sim, int item, int device) {
  int work = sim->costs->devices[device].rates.processor * WEIR_LANES + WEIR_LANE_WORK;
  if (item < node_count(sim)) return work;
  bool is_down = memory_of_copy(sim, item) == WEIR_HOST;
  return device * WEIR_LANES + (is_down ? WEIR_LANE_DOWNLOAD : WEIR_LANE_UPLOAD);
}

// ---- making ----

static void count_reader(void* arg, int source, weir_sim_reader_t reader) {
  weir_simulation_t* sim = arg;
  (void)reader;
  ++sim->first_reader[source + 2];
}

static void add_reader(void* arg, int source, weir_sim_reader_t reader) {
  weir_simulation_t* sim = arg;
  sim->readers[sim->first_reader[source + 1]++] = reader;
}

// What an Exit waits for besides its input: a loop is played through once, without the way back,
// but its last turn comes after all that the turns before it did to the variable.
static const weir_node_t* last_turn_of(const weir_node_t* exit) {
  const weir_node_t* choice = weir_node_role(exit) == WEIR_ROLE_EXIT ? exit->inputs[0].node : NULL;
  if (!choice || weir_node_role(choice) != WEIR_ROLE_SWITCH) return NULL;
  const weir_node_t* merge = choice->inputs[0].node;
  for (int i = 0; i < merge->def.input_count; ++i) {
    if (weir_node_is_back_edge(merge, merge->inputs[i].node)) return merge->inputs[i].node;
  }
  return NULL;
}

static void each_edge(weir_simulation_t* sim, void (*visit)(void*, int, weir_sim_reader_t)) {
  for (size_t i = 0; i < sim->costs->graph->node_count; ++i) {
    const weir_node_t* node = sim->costs->graph->nodes[i];
    for (int k = 0; k < node->def.input_count; ++k) {
      weir_edge_t edge = node->inputs[k];
      if (weir_costs_is_sent(node, edge))
        visit(sim, edge.node->id, (weir_sim_reader_t){(int)i, k, edge.index});
    }
    for (int k = 0; k < node->control_count; ++k)
      visit(sim, node->control_inputs[k]->id, (weir_sim_reader_t){(int)i, -1, -1});
    const weir_node_t* turn = last_turn_of(node);
    if (turn) visit(sim, turn->id, (weir_sim_reader_t){(int)i, -1, -1});
  }
}

static weir_status_t* find_readers(weir_simulation_t* sim, weir_arena_t* arena) {
  size_t count = sim->costs->graph->node_count;
  sim->first_reader = weir_arena_array(arena, count + 2, sizeof(int));
  if (!sim->first_reader) return weir_out_of_memory();
  each_edge(sim, count_reader);
  for (size_t i = 2; i <= count + 1; ++i) sim->first_reader[i] += sim->first_reader[i - 1];
  size_t total = (size_t)sim->first_reader[count + 1];
  sim->readers = weir_arena_array(arena, total + 1, sizeof(*sim->readers));
  if (!sim->readers) return weir_out_of_memory();
  each_edge(sim, add_reader);  // first_reader[id + 1] walks up to its final place
  return NULL;
}

static weir_status_t* number_outputs(weir_simulation_t* sim, weir_arena_t* arena) {
  const weir_graph_t* graph = sim->costs->graph;
  size_t total = 0;
  sim->first_output = weir_arena_array(arena, graph->node_count + 1, sizeof(int));
  if (!sim->first_output) return weir_out_of_memory();
  for (size_t i = 0; i < graph->node_count; ++i) {
    sim->first_output[i] = (int)total;
    total += (size_t)graph->nodes[i]->def.output_count;
  }
  sim->node_of = weir_arena_array(arena, total + 1, sizeof(int));
  if (!sim->node_of) return weir_out_of_memory();
  for (size_t i = 0; i < graph->node_count; ++i) {
    for (int k = 0; k < graph->nodes[i]->def.output_count; ++k)
      sim->node_of[sim->first_output[i] + k] = (int)i;
  }
  sim->item_count = (int)(graph->node_count + total * (size_t)memory_count(sim));
  return NULL;
}

weir_status_t* weir_simulation_init(weir_simulation_t* sim, const weir_costs_t* costs,
                                    weir_arena_t* arena) {
  *sim = (weir_simulation_t){.costs = costs};
  WEIR_TRY(find_readers(sim, arena));
  WEIR_TRY(number_outputs(sim, arena));
  size_t items = (size_t)sim->item_count + 1, lanes = WEIR_LANES * (size_t)costs->device_count;
  sim->ready = weir_arena_array(arena, items, sizeof(double));
  sim->start = weir_arena_array(arena, items, sizeof(double));
  sim->end = weir_arena_array(arena, items, sizeof(double));
  sim->given = weir_arena_array(arena, items, sizeof(double));
  sim->cause = weir_arena_array(arena, items, sizeof(int));
  sim->is_made = weir_arena_array(arena, items, sizeof(bool));
  sim->heap = weir_arena_array(arena, items, sizeof(*sim->heap));
  sim->pending = weir_arena_array(arena, costs->graph->node_count + 1, sizeof(int));
  sim->free_at = weir_arena_array(arena, lanes, sizeof(double));
  sim->last = weir_arena_array(arena, lanes, sizeof(int));
  bool is_good = sim->ready && sim->start && sim->end && sim->given && sim->cause && sim->is_made &&
                 sim->heap && sim->pending && sim->free_at && sim->last;
  return is_good ? NULL : weir_out_of_memory();
}

// ---- what is ready ----

static bool is_before(const weir_due_t* a, const weir_due_t* b) {
  return a->time != b->time ? a->time < b->time : a->turn < b->turn;
}

// Copies are given away before nodes that are ready.
static void push(weir_simulation_t* sim, int item) {
  weir_due_t due = {.time = sim->ready[item], .turn = sim->pushed++, .item = item};
  int lane = sim->costs->devices[weir_simulation_device(sim, item)].rates.executor;
  if (item >= node_count(sim) && due.time <= sim->free_at[lane]) due.time = -1;
  int at = sim->heap_size++;
  for (; at > 0 && is_before(&due, &sim->heap[(at - 1) / 2]); at = (at - 1) / 2)
    sim->heap[at] = sim->heap[(at - 1) / 2];
  sim->heap[at] = due;
}

static int pop(weir_simulation_t* sim) {
  int item = sim->heap[0].item;
  weir_due_t moved = sim->heap[--sim->heap_size];
  int at = 0;
  for (;;) {
    int child = 2 * at + 1;
    if (child >= sim->heap_size) break;
    if (child + 1 < sim->heap_size && is_before(&sim->heap[child + 1], &sim->heap[child])) ++child;
    if (!is_before(&sim->heap[child], &moved)) break;
    sim->heap[at] = sim->heap[child];
    at = child;
  }
  sim->heap[at] = moved;
  return item;
}

// ---- playing ----

static void arrive(weir_simulation_t* sim, int node, double time, int cause) {
  if (time >= sim->ready[node]) {
    sim->ready[node] = time;
    sim->cause[node] = cause;
  }
  if (--sim->pending[node] == 0) push(sim, node);
}

static void begin_copy(weir_simulation_t* sim, weir_edge_t edge, int memory, double time,
                       int cause) {
  int item = weir_simulation_copy(sim, edge, memory);
  if (sim->is_made[item]) return;
  sim->is_made[item] = true;
  sim->ready[item] = time;
  sim->cause[item] = cause;
  push(sim, item);
}

// The value of |edge| is in |memory|: those who read it there have it, and from there, or from the
// host, copies begin to where others do. |item| brought it.
static void deliver(weir_simulation_t* sim, weir_edge_t edge, int memory, int origin, double time,
                    int item) {
  const weir_costs_t* costs = sim->costs;
  int id = edge.node->id;
  for (int k = sim->first_reader[id]; k < sim->first_reader[id + 1]; ++k) {
    weir_sim_reader_t reader = sim->readers[k];
    if (reader.output != edge.index) continue;
    const weir_node_t* node = costs->graph->nodes[reader.node];
    int wanted = weir_costs_memory(costs, node, reader.input, false, sim->device_of[reader.node]);
    if (wanted == memory) arrive(sim, reader.node, time, item);
    else if (memory == WEIR_HOST && wanted != origin) begin_copy(sim, edge, wanted, time, item);
    else if (memory == origin) begin_copy(sim, edge, WEIR_HOST, time, item);
  }
}

static double visits_of(const weir_simulation_t* sim, int item) {
  bool is_node = item < node_count(sim);
  return sim->costs->visits[is_node ? item : weir_simulation_edge(sim, item).node->id];
}

static double duration(const weir_simulation_t* sim, int item, int device) {
  if (item < node_count(sim))
    return weir_costs_node_ns(sim->costs, sim->costs->graph->nodes[item], device);
  return weir_costs_copy_ns(sim->costs, weir_simulation_edge(sim, item), device);
}

static void take_turn(weir_simulation_t* sim, int item, int lane, double* start) {
  if (sim->free_at[lane] <= *start) return;
  *start = sim->free_at[lane];
  sim->cause[item] = sim->last[lane];
}

static void keep_busy(weir_simulation_t* sim, int item, int lane) {
  sim->free_at[lane] = sim->end[item];
  sim->last[lane] = item;
}

// The executor gives a device with streams its work, and is then free for more. Copies wait for all
// work that the device was given before; those between tasks do not.
static void run_in_stream(weir_simulation_t* sim, int item, int device) {
  const weir_rates_t* rates = &sim->costs->devices[device].rates;
  int lane = weir_simulation_lane(sim, item, device);
  double* executor = &sim->free_at[rates->executor];
  double start = WEIR_MAX(sim->ready[item], *executor);
  start += rates->submit_ns * visits_of(sim, item);
  sim->given[item] = *executor = start;
  sim->last[rates->executor] = item;
  if (item >= node_count(sim) && sim->costs->devices[device].has_queue)
    take_turn(sim, item, rates->processor * WEIR_LANES + WEIR_LANE_WORK, &start);
  take_turn(sim, item, lane, &start);
  sim->start[item] = start;
  sim->end[item] = start + duration(sim, item, device);
  keep_busy(sim, item, lane);
}

// What hands values on needs no turn.
static void run_here(weir_simulation_t* sim, int item, int device) {
  int lane = weir_simulation_lane(sim, item, device);
  bool is_light = sim->costs->is_light[item];
  double start = sim->ready[item];
  if (!is_light) take_turn(sim, item, lane, &start);
  sim->start[item] = start;
  sim->given[item] = sim->end[item] = start + duration(sim, item, device);
  if (!is_light) keep_busy(sim, item, lane);
}

static void run_item(weir_simulation_t* sim, int item) {
  int device = weir_simulation_device(sim, item);
  bool is_node = item < node_count(sim);
  bool is_here = is_node && (sim->costs->is_light[item] || !sim->costs->devices[device].has_queue);
  if (is_here) run_here(sim, item, device);
  else run_in_stream(sim, item, device);
  if (sim->last_item < 0 || sim->end[item] > sim->end[sim->last_item]) sim->last_item = item;
  double step_ns = sim->costs->devices[device].rates.step_ns;
  if (!is_node || !sim->costs->is_light[item]) sim->step_ns = WEIR_MAX(sim->step_ns, step_ns);
}

static void finish_node(weir_simulation_t* sim, int id) {
  const weir_costs_t* costs = sim->costs;
  weir_node_t* node = costs->graph->nodes[id];
  int device = sim->device_of[id];
  double time = costs->is_promised[id] ? sim->given[id]
                                       : sim->end[id] + weir_costs_delay_ns(costs, node, device);
  for (int i = 0; i < node->def.output_count; ++i) {
    int memory = weir_costs_memory(costs, node, i, true, device);
    deliver(sim, (weir_edge_t){node, i}, memory, memory, time, id);
  }
  for (int k = sim->first_reader[id]; k < sim->first_reader[id + 1]; ++k) {
    if (sim->readers[k].input < 0) arrive(sim, sim->readers[k].node, time, id);
  }
}

static void finish_copy(weir_simulation_t* sim, int item) {
  const weir_costs_t* costs = sim->costs;
  weir_edge_t edge = weir_simulation_edge(sim, item);
  int id = edge.node->id;
  int origin = weir_costs_memory(costs, edge.node, edge.index, true, sim->device_of[id]);
  double delay = costs->devices[weir_simulation_device(sim, item)].rates.delay_ns;
  sim->crossed_bytes += costs->output_bytes[id][edge.index] * costs->visits[id];
  deliver(sim, edge, memory_of_copy(sim, item), origin, sim->end[item] + delay * costs->visits[id],
          item);
}

static void reset(weir_simulation_t* sim, const int* device_of) {
  size_t count = sim->costs->graph->node_count;
  sim->device_of = device_of;
  sim->heap_size = 0;
  sim->pushed = 0;
  sim->step_ns = sim->total_ns = sim->crossed_bytes = 0;
  sim->last_item = -1;
  memset(sim->is_made, 0, (size_t)sim->item_count * sizeof(*sim->is_made));
  for (int i = 0; i < WEIR_LANES * sim->costs->device_count; ++i) {
    sim->free_at[i] = 0;
    sim->last[i] = -1;
  }
  for (size_t i = 0; i < count; ++i) {
    sim->ready[i] = 0;
    sim->cause[i] = -1;
    sim->pending[i] = 0;
  }
  for (int k = 0; k < sim->first_reader[count]; ++k) ++sim->pending[sim->readers[k].node];
}

double weir_simulate(weir_simulation_t* sim, const int* device_of) {
  const weir_costs_t* costs = sim->costs;
  reset(sim, device_of);
  for (size_t i = 0; i < costs->graph->node_count; ++i) {
    if (sim->pending[costs->order[i]->id] == 0) push(sim, costs->order[i]->id);
  }
  while (sim->heap_size > 0) {
    int item = pop(sim);
    run_item(sim, item);
    if (item < node_count(sim)) finish_node(sim, item);
    else finish_copy(sim, item);
  }
  sim->total_ns = sim->step_ns + (sim->last_item < 0 ? 0 : sim->end[sim->last_item]);
  return sim->total_ns;
}
