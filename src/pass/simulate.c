// simulate.c — The simulation: a queue of what is ready, and for each processor when it is free.
#include "pass/simulate.h"

typedef struct weir_due_t {
  double time;
  int64_t turn;  // of two at the same time, the one that was ready first
  int item;      // negative: a processor is free, -1 the first
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

bool weir_simulation_is_sign(weir_edge_t edge) { return edge.index == edge.node->def.output_count; }

static weir_edge_t sign_of(weir_node_t* node) {
  return (weir_edge_t){node, node->def.output_count};
}

static bool is_task(const weir_simulation_t* sim, int device) {
  return sim->costs->devices[device].task > 0;
}

int weir_simulation_device(const weir_simulation_t* sim, int item) {
  if (item < node_count(sim)) return sim->device_of[item];
  int memory = memory_of_copy(sim, item);
  return memory != WEIR_HOST ? memory : sim->device_of[weir_simulation_edge(sim, item).node->id];
}

int weir_simulation_lane(const weir_simulation_t* sim, int item, int device) {
  int work = sim->costs->devices[device].rates.processor * WEIR_LANES + WEIR_LANE_WORK;
  if (item < node_count(sim)) return work;
  // The threads that carry messages of a task do so both ways.
  bool is_down = memory_of_copy(sim, item) == WEIR_HOST && !is_task(sim, device);
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

static void each_source(weir_simulation_t* sim, const weir_node_t* node,
                        void (*visit)(void*, int, weir_sim_reader_t)) {
  for (int k = 0; k < node->def.input_count; ++k) {
    weir_edge_t edge = node->inputs[k];
    if (weir_costs_is_sent(node, edge))
      visit(sim, edge.node->id, (weir_sim_reader_t){node->id, k, edge.index});
  }
  for (int k = 0; k < node->control_count; ++k) {
    weir_edge_t sign = sign_of(node->control_inputs[k]);
    visit(sim, sign.node->id, (weir_sim_reader_t){node->id, -1, sign.index});
  }
  const weir_node_t* turn = last_turn_of(node);
  if (turn) visit(sim, turn->id, (weir_sim_reader_t){node->id, -1, -1});
}

// Readers in the order in which plans have them. What is not run reads nothing.
static void each_edge(weir_simulation_t* sim, void (*visit)(void*, int, weir_sim_reader_t)) {
  for (size_t i = 0; i < sim->costs->graph->node_count; ++i) {
    const weir_node_t* node = sim->costs->order[i];
    if (sim->costs->visits[node->id] > 0) each_source(sim, node, visit);
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
    total += (size_t)graph->nodes[i]->def.output_count + 1;
  }
  sim->node_of = weir_arena_array(arena, total + 1, sizeof(int));
  if (!sim->node_of) return weir_out_of_memory();
  for (size_t i = 0; i < graph->node_count; ++i) {
    for (int k = 0; k <= graph->nodes[i]->def.output_count; ++k)
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
  size_t turns = (size_t)costs->loops.count * (size_t)costs->device_count;
  sim->ready = weir_arena_array(arena, items, sizeof(double));
  sim->start = weir_arena_array(arena, items, sizeof(double));
  sim->end = weir_arena_array(arena, items, sizeof(double));
  sim->done = weir_arena_array(arena, items, sizeof(double));
  sim->held = weir_arena_array(arena, costs->graph->node_count + 1, sizeof(double));
  sim->held_by = weir_arena_array(arena, costs->graph->node_count + 1, sizeof(int));
  sim->given = weir_arena_array(arena, items, sizeof(double));
  sim->cause = weir_arena_array(arena, items, sizeof(int));
  sim->is_made = weir_arena_array(arena, items, sizeof(bool));
  sim->heap = weir_arena_array(arena, items + (size_t)costs->device_count, sizeof(*sim->heap));
  sim->pending = weir_arena_array(arena, costs->graph->node_count + 1, sizeof(int));
  sim->free_at = weir_arena_array(arena, lanes, sizeof(double));
  sim->last = weir_arena_array(arena, lanes, sizeof(int));
  sim->newest = weir_arena_array(arena, (size_t)costs->device_count, sizeof(int));
  sim->below = weir_arena_array(arena, costs->graph->node_count + 1, sizeof(int));
  sim->is_idle = weir_arena_array(arena, (size_t)costs->device_count, sizeof(bool));
  sim->is_awaited = weir_arena_array(arena, turns, sizeof(bool));
  sim->turned = weir_arena_array(arena, turns, sizeof(double));
  bool is_good = sim->ready && sim->start && sim->end && sim->done && sim->held && sim->held_by &&
                 sim->given && sim->cause && sim->is_made && sim->heap && sim->pending &&
                 sim->free_at && sim->last && sim->newest && sim->below && sim->is_idle &&
                 sim->is_awaited && sim->turned;
  return is_good ? NULL : weir_out_of_memory();
}

// ---- what is ready ----

static bool is_before(const weir_due_t* a, const weir_due_t* b) {
  return a->time != b->time ? a->time < b->time : a->turn < b->turn;
}

static void push_at(weir_simulation_t* sim, int item, double time) {
  weir_due_t due = {.time = time, .turn = sim->pushed++, .item = item};
  int at = sim->heap_size++;
  for (; at > 0 && is_before(&due, &sim->heap[(at - 1) / 2]); at = (at - 1) / 2)
    sim->heap[at] = sim->heap[(at - 1) / 2];
  sim->heap[at] = due;
}

// Copies are given to a stream before nodes that are ready.
static void push(weir_simulation_t* sim, int item) {
  int device = weir_simulation_device(sim, item);
  bool is_early = sim->ready[item] <= sim->free_at[sim->costs->devices[device].rates.executor];
  bool is_first = item >= node_count(sim) && !is_task(sim, device) && is_early;
  push_at(sim, item, is_first ? -1 : sim->ready[item]);
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

static int turn_of(const weir_simulation_t* sim, int loop, int device) {
  return loop * sim->costs->device_count + device;
}

static double visits_of(const weir_simulation_t* sim, int item) {
  bool is_node = item < node_count(sim);
  return sim->costs->visits[is_node ? item : weir_simulation_edge(sim, item).node->id];
}

// Whether what |source| makes in a turn may be ahead of the turn in which |reader| needs it.
static bool is_flow(const weir_simulation_t* sim, int source, int reader) {
  const weir_costs_t* costs = sim->costs;
  const int loop = costs->loops.inside[source];
  return costs->circles && loop > 0 && loop == costs->loops.inside[reader] &&
         costs->visits[source] > 1 && costs->circles[source] != costs->circles[reader];
}

// When the value of an item's first turn is there.
static double first_of(const weir_simulation_t* sim, int item) {
  return sim->start[item] +
         (sim->done[item] - sim->start[item]) / WEIR_MAX(visits_of(sim, item), 1);
}

// What leaves a loop has seen all its turns.
static void wait_for_turns(weir_simulation_t* sim, int id) {
  weir_node_t* exit = sim->costs->graph->nodes[id];
  int loop = sim->costs->loops.inside[id], device = sim->device_of[id];
  double turned = sim->turned[turn_of(sim, loop, device)];
  if (weir_node_role(exit) != WEIR_ROLE_EXIT || turned <= sim->ready[id]) return;
  weir_edge_t condition = {sim->costs->loops.items[loop].condition, 0};
  sim->ready[id] = turned;
  sim->cause[id] = weir_simulation_copy(sim, condition, weir_costs_process(sim->costs, device));
}

static void arrive(weir_simulation_t* sim, int node, double time, int cause) {
  if (time >= sim->ready[node]) {
    sim->ready[node] = time;
    sim->cause[node] = cause;
  }
  if (--sim->pending[node] > 0) return;
  wait_for_turns(sim, node);
  push(sim, node);
}

// A reader need not wait for the end of |item|, which brought its value, but it ends after that.
static void flow(weir_simulation_t* sim, int reader, double time, int item) {
  if (sim->end[item] > sim->held[reader]) {
    sim->held[reader] = sim->end[item];
    sim->held_by[reader] = item;
  }
  arrive(sim, reader, WEIR_MIN(time, sim->end[item]), item);
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

// Where a reader has its input, or learns that it need not wait.
static int memory_wanted(const weir_simulation_t* sim, weir_sim_reader_t reader) {
  const weir_node_t* node = sim->costs->graph->nodes[reader.node];
  int device = sim->device_of[reader.node];
  return reader.input < 0 ? weir_costs_process(sim->costs, device)
                          : weir_costs_memory(sim->costs, node, reader.input, false, device);
}

// Where a value is made.
static int memory_made(const weir_simulation_t* sim, weir_edge_t edge) {
  int device = sim->device_of[edge.node->id];
  return weir_simulation_is_sign(edge)
             ? weir_costs_process(sim->costs, device)
             : weir_costs_memory(sim->costs, edge.node, edge.index, true, device);
}

// Whether somebody who reads |edge| in |memory| begins with its first turn.
static bool flows_to(const weir_simulation_t* sim, weir_edge_t edge, int memory) {
  const int id = edge.node->id;
  for (int k = sim->first_reader[id]; k < sim->first_reader[id + 1]; ++k) {
    weir_sim_reader_t reader = sim->readers[k];
    if (reader.output == edge.index && is_flow(sim, id, reader.node) &&
        memory_wanted(sim, reader) == memory)
      return true;
  }
  return false;
}

// |item| brought the value of |edge| to |memory|, where somebody reads it.
static void hand_over(weir_simulation_t* sim, weir_edge_t edge, int reader, double time, int item) {
  const bool is_copy = item >= node_count(sim);
  if (!is_flow(sim, edge.node->id, reader)) arrive(sim, reader, time, item);
  else flow(sim, reader, is_copy ? first_of(sim, item) : sim->done[item], item);
}

// The value of |edge| is in |memory|: those who read it there have it, and copies begin to where
// others do: from the host, through which devices of a process go, or from task to task. |item|
// brought it.
static void deliver(weir_simulation_t* sim, weir_edge_t edge, int memory, double time, int item) {
  int id = edge.node->id, origin = memory_made(sim, edge);
  bool is_direct = is_task(sim, sim->device_of[id]);
  for (int k = sim->first_reader[id]; k < sim->first_reader[id + 1]; ++k) {
    weir_sim_reader_t reader = sim->readers[k];
    if (reader.output != edge.index) continue;
    int wanted = memory_wanted(sim, reader);
    if (wanted == memory) hand_over(sim, edge, reader.node, time, item);
    else if (memory == origin && (is_direct || memory == WEIR_HOST))
      begin_copy(sim, edge, wanted, flows_to(sim, edge, wanted) ? first_of(sim, item) : time, item);
    else if (memory == origin) begin_copy(sim, edge, WEIR_HOST, time, item);
    else if (memory == WEIR_HOST && wanted != origin && !is_direct)
      begin_copy(sim, edge, wanted, time, item);
  }
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
  sim->free_at[lane] = sim->done[item];
  sim->last[lane] = item;
}

// The executor gives a device with streams its work, and is then free for more. Copies wait for all
// work that the device was given before.
static void run_in_stream(weir_simulation_t* sim, int item, int device) {
  const weir_rates_t* rates = &sim->costs->devices[device].rates;
  int lane = weir_simulation_lane(sim, item, device);
  double* executor = &sim->free_at[rates->executor];
  double start = WEIR_MAX(sim->ready[item], *executor);
  start += rates->submit_ns * visits_of(sim, item);
  sim->given[item] = *executor = start;
  sim->last[rates->executor] = item;
  if (item >= node_count(sim))
    take_turn(sim, item, rates->processor * WEIR_LANES + WEIR_LANE_WORK, &start);
  take_turn(sim, item, lane, &start);
  sim->start[item] = start;
  sim->end[item] = sim->done[item] = start + duration(sim, item, device);
  keep_busy(sim, item, lane);
}

// What flows to an item has to be there before its last turn.
static void end_after(weir_simulation_t* sim, int item, double held, int held_by) {
  const double last = (sim->done[item] - sim->start[item]) / WEIR_MAX(visits_of(sim, item), 1);
  sim->end[item] = sim->done[item];
  if (held + last <= sim->end[item]) return;
  sim->end[item] = held + last;
  sim->cause[item] = held_by;
}

// Beside streams, what hands values on needs no turn.
static void run_here(weir_simulation_t* sim, int item, int device) {
  int lane = weir_simulation_lane(sim, item, device);
  bool is_light = sim->costs->is_light[item] && sim->costs->has_streams;
  double start = sim->ready[item];
  if (!is_light) take_turn(sim, item, lane, &start);
  sim->start[item] = start;
  sim->done[item] = start + duration(sim, item, device);
  end_after(sim, item, sim->held[item], sim->held_by[item]);
  sim->given[item] = sim->end[item];
  if (!is_light) keep_busy(sim, item, lane);
}

// A message is on its way longer than it keeps the threads busy that carry messages, or the one
// that made its value and begins to send it.
static void send(weir_simulation_t* sim, int item, int device) {
  int lane = weir_simulation_lane(sim, item, device);
  weir_edge_t edge = weir_simulation_edge(sim, item);
  double start = sim->ready[item];
  int from = sim->device_of[edge.node->id];
  int work = sim->costs->devices[from].rates.processor * WEIR_LANES + WEIR_LANE_WORK;
  sim->free_at[work] += weir_costs_sending_ns(sim->costs, edge, device);
  take_turn(sim, item, lane, &start);
  sim->given[item] = sim->start[item] = start;
  sim->done[item] = start + duration(sim, item, device);
  end_after(sim, item, sim->end[edge.node->id], edge.node->id);
  sim->free_at[lane] = start + weir_costs_message_ns(sim->costs, edge, device);
  sim->last[lane] = item;
}

static void run_item(weir_simulation_t* sim, int item) {
  int device = weir_simulation_device(sim, item);
  bool is_node = item < node_count(sim);
  bool is_here = is_node && (sim->costs->is_light[item] || !sim->costs->devices[device].has_queue);
  if (is_here) run_here(sim, item, device);
  else if (!is_node && is_task(sim, device)) send(sim, item, device);
  else run_in_stream(sim, item, device);
  if (sim->last_item < 0 || sim->end[item] > sim->end[sim->last_item]) sim->last_item = item;
  double step_ns = sim->costs->devices[device].rates.step_ns;
  if (!is_node || !sim->costs->is_light[item]) sim->step_ns = WEIR_MAX(sim->step_ns, step_ns);
}

// Sends the condition of a loop to all tasks that receive in it.
static void start_turns(weir_simulation_t* sim, weir_node_t* condition, double time) {
  int loop = sim->costs->loops.inside[condition->id];
  weir_edge_t edge = {condition, 0};
  for (int i = 0; i < sim->costs->device_count; ++i) {
    int process = weir_costs_process(sim->costs, i);
    if (sim->is_awaited[turn_of(sim, loop, i)] && process != memory_made(sim, edge))
      begin_copy(sim, edge, process, time, condition->id);
  }
}

// A task has the condition of all turns: each took the way of its request, and back.
static void end_turns(weir_simulation_t* sim, const weir_node_t* condition, int item) {
  int memory = memory_of_copy(sim, item), device = memory == WEIR_HOST ? 0 : memory;
  int loop = sim->costs->loops.inside[condition->id];
  double turned = 2 * sim->end[item] - sim->start[item];
  sim->turned[turn_of(sim, loop, device)] = turned;
  sim->last_turned = WEIR_MAX(sim->last_turned, turned);
}

static void finish_node(weir_simulation_t* sim, int id) {
  const weir_costs_t* costs = sim->costs;
  weir_node_t* node = costs->graph->nodes[id];
  int device = sim->device_of[id];
  double time = costs->is_promised[id] ? sim->given[id]
                                       : sim->end[id] + weir_costs_delay_ns(costs, node, device);
  for (int i = 0; i <= node->def.output_count; ++i) {
    weir_edge_t edge = {node, i};
    deliver(sim, edge, memory_made(sim, edge), time, id);
  }
  for (int k = sim->first_reader[id]; k < sim->first_reader[id + 1]; ++k) {
    if (sim->readers[k].output < 0) arrive(sim, sim->readers[k].node, time, id);
  }
  if (weir_node_role(node) == WEIR_ROLE_LOOP_COND) start_turns(sim, node, time);
}

static void finish_copy(weir_simulation_t* sim, int item) {
  const weir_costs_t* costs = sim->costs;
  weir_edge_t edge = weir_simulation_edge(sim, item);
  int id = edge.node->id, device = weir_simulation_device(sim, item);
  double delay = costs->devices[device].rates.delay_ns;
  sim->crossed_bytes += costs->output_bytes[id][edge.index] * costs->visits[id];
  if (is_task(sim, device) && weir_node_role(edge.node) == WEIR_ROLE_LOOP_COND)
    end_turns(sim, edge.node, item);
  deliver(sim, edge, memory_of_copy(sim, item), sim->end[item] + delay * costs->visits[id], item);
}

// Finds the tasks that receive in loops, and with that in those around them.
static void find_awaited(weir_simulation_t* sim) {
  const weir_loops_t* loops = &sim->costs->loops;
  size_t turns = (size_t)loops->count * (size_t)sim->costs->device_count;
  memset(sim->is_awaited, 0, turns * sizeof(*sim->is_awaited));
  memset(sim->turned, 0, turns * sizeof(*sim->turned));
  for (size_t i = 0; i < sim->costs->graph->node_count && loops->count > 1; ++i) {
    for (int k = sim->first_reader[i]; k < sim->first_reader[i + 1]; ++k) {
      weir_sim_reader_t reader = sim->readers[k];
      int to = sim->device_of[reader.node];
      if (reader.output < 0 ||
          weir_costs_process(sim->costs, sim->device_of[i]) == weir_costs_process(sim->costs, to))
        continue;
      for (int loop = loops->inside[reader.node]; loop > 0; loop = loops->items[loop].parent)
        sim->is_awaited[turn_of(sim, loop, to)] = true;
    }
  }
}

static void reset(weir_simulation_t* sim, const int* device_of) {
  size_t count = sim->costs->graph->node_count;
  sim->device_of = device_of;
  sim->heap_size = 0;
  sim->pushed = 0;
  sim->step_ns = sim->total_ns = sim->crossed_bytes = sim->last_turned = 0;
  sim->last_item = -1;
  for (int i = 0; i < sim->costs->device_count; ++i) {
    sim->newest[i] = -1;
    sim->is_idle[i] = false;
  }
  memset(sim->is_made, 0, (size_t)sim->item_count * sizeof(*sim->is_made));
  for (int i = 0; i < WEIR_LANES * sim->costs->device_count; ++i) {
    sim->free_at[i] = 0;
    sim->last[i] = -1;
  }
  for (size_t i = 0; i < count; ++i) {
    sim->ready[i] = 0;
    sim->held[i] = 0;
    sim->cause[i] = sim->held_by[i] = -1;
    sim->pending[i] = 0;
  }
  for (int k = 0; k < sim->first_reader[count]; ++k) ++sim->pending[sim->readers[k].node];
  find_awaited(sim);
}

static void do_item(weir_simulation_t* sim, int item) {
  run_item(sim, item);
  if (item < node_count(sim)) finish_node(sim, item);
  else finish_copy(sim, item);
}

static int processor_of(const weir_simulation_t* sim, int node) {
  return sim->costs->devices[sim->device_of[node]].rates.processor;
}

// A processor that is free does what became ready last, and is free again after it.
static void take_newest(weir_simulation_t* sim, int processor) {
  int node = sim->newest[processor];
  sim->is_idle[processor] = node < 0;
  if (node < 0) return;
  sim->newest[processor] = sim->below[node];
  do_item(sim, node);
  push_at(sim, -1 - processor, sim->done[node]);
}

static void add_newest(weir_simulation_t* sim, int node) {
  int processor = processor_of(sim, node);
  sim->below[node] = sim->newest[processor];
  sim->newest[processor] = node;
  if (sim->is_idle[processor]) take_newest(sim, processor);
}

double weir_simulate(weir_simulation_t* sim, const int* device_of) {
  const weir_costs_t* costs = sim->costs;
  reset(sim, device_of);
  for (size_t i = 0; i < costs->graph->node_count; ++i) {
    if (sim->pending[costs->order[i]->id] == 0) push(sim, costs->order[i]->id);
  }
  for (int i = 0; i < costs->device_count && !costs->has_streams; ++i) push_at(sim, -1 - i, 0);
  while (sim->heap_size > 0) {
    int item = pop(sim);
    if (item < 0) take_newest(sim, -1 - item);
    else if (!costs->has_streams && item < node_count(sim)) add_newest(sim, item);
    else do_item(sim, item);
  }
  double end = sim->last_item < 0 ? 0 : sim->end[sim->last_item];
  sim->total_ns = sim->step_ns + WEIR_MAX(end, sim->last_turned);
  return sim->total_ns;
}
