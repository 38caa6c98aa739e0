// costs.c — Node times from traces, or else from what their ops say and the rates of devices.
#include "pass/costs.h"

#include "op/cost.h"
#include "op/promise.h"
#include "pass/recurrence.h"

// ---- making ----

static weir_status_t* allocate(weir_costs_t* costs, weir_arena_t* arena) {
  size_t count = costs->graph->node_count + 1;
  costs->work_ns = weir_arena_array(arena, count, sizeof(double));
  costs->visits = weir_arena_array(arena, count, sizeof(double));
  costs->output_bytes = weir_arena_array(arena, count, sizeof(double*));
  costs->host_inputs = weir_arena_array(arena, count, sizeof(uint64_t));
  costs->host_outputs = weir_arena_array(arena, count, sizeof(uint64_t));
  costs->is_light = weir_arena_array(arena, count, sizeof(bool));
  costs->is_promised = weir_arena_array(arena, count, sizeof(bool));
  bool is_good = costs->work_ns && costs->visits && costs->output_bytes && costs->host_inputs &&
                 costs->host_outputs && costs->is_light && costs->is_promised;
  return is_good ? NULL : weir_out_of_memory();
}

static weir_status_t* count_visits(weir_costs_t* costs, weir_arena_t* arena) {
  const weir_graph_t* graph = costs->graph;
  const weir_loops_t* loops = &costs->loops;
  WEIR_TRY(weir_loops_find(graph, costs->order, graph->node_count, arena, &costs->loops));
  for (size_t i = 0; i < graph->node_count; ++i) {
    costs->visits[i] = 1;
    for (int depth = loops->items[loops->inside[i]].depth; depth > 0; --depth)
      costs->visits[i] *= WEIR_COST_TRIPS;
  }
  return NULL;
}

// What a traced node took, as a device of speed 1 would, less what the device it ran on adds: what
// the executor does for a node that it runs itself is not in a trace.
static double measured_ns(const weir_costs_t* costs, const weir_node_time_t* time) {
  for (int i = 0; i < costs->device_count; ++i) {
    const weir_rates_t* rates = &costs->devices[i].rates;
    if (strcmp(costs->devices[i].device, time->device) != 0) continue;
    double added = costs->has_streams ? time->visits * rates->node_ns : 0;
    return WEIR_MAX(time->ns - added, 0) * rates->speed;
  }
  return time->ns;
}

static weir_status_t* find_bytes(weir_costs_t* costs, const weir_node_t* node,
                                 const weir_node_time_t* time, weir_arena_t* arena) {
  int count = node->def.output_count;
  double* bytes = weir_arena_array(arena, (size_t)count + 1, sizeof(*bytes));
  if (!bytes) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) {
    bytes[i] = weir_cost_bytes(node->shapes[i], node->def.output_types[i]);
    if (time && count == 1 && !weir_shape_is_full(node->shapes[i])) bytes[i] = time->bytes;
  }
  costs->output_bytes[node->id] = bytes;
  return NULL;
}

static weir_status_t* estimate(const weir_costs_t* costs, const weir_node_t* node,
                               weir_arena_t* arena, double* out_ns) {
  const weir_rates_t* rates = &costs->devices[0].rates;
  const weir_shape_t** inputs =
      weir_arena_array(arena, (size_t)node->def.input_count + 1, sizeof(*inputs));
  if (!inputs) return weir_out_of_memory();
  for (int i = 0; i < node->def.input_count; ++i) inputs[i] = weir_edge_shape(node->inputs[i]);
  weir_cost_ctx_t ctx = {.node = &node->def, .inputs = inputs, .outputs = node->shapes};
  weir_cost_t cost = weir_cost_of(&ctx);
  *out_ns = (cost.flops / rates->flops + cost.bytes / rates->bytes) * 1e9;
  return NULL;
}

// What the kernel says: which inputs and outputs are in host memory wherever the node is, and
// whether outputs are handed on before they are computed. The same on every device.
static void ask_kernel(weir_costs_t* costs, const weir_node_t* node) {
  const char* type =
      costs->devices[0].kernel_type ? costs->devices[0].kernel_type : costs->devices[0].type;
  weir_role_t role = weir_node_role(node);
  bool has_kernel = node->def.op && role != WEIR_ROLE_ARG && role != WEIR_ROLE_RETVAL;
  const weir_kernel_def_t* kernel = has_kernel ? weir_op_kernel(&node->def, type) : NULL;
  costs->host_inputs[node->id] = kernel ? weir_kernel_host_args(&node->def, kernel, false) : ~0ull;
  costs->host_outputs[node->id] = kernel ? weir_kernel_host_args(&node->def, kernel, true) : ~0ull;
  costs->is_promised[node->id] = kernel && weir_node_may_promise(&node->def, kernel);
}

static weir_status_t* add_node(weir_costs_t* costs, const weir_node_t* node,
                               const weir_node_times_t* times, weir_arena_t* arena) {
  const weir_node_time_t* time = weir_node_times_find(times, node->def.name);
  WEIR_TRY(find_bytes(costs, node, time, arena));
  ask_kernel(costs, node);
  costs->is_light[node->id] =
      weir_node_role(node) != WEIR_ROLE_NONE || weir_node_has(node, WEIR_OP_PASS_THROUGH);
  if (time) {
    costs->visits[node->id] = time->visits;
    costs->work_ns[node->id] = measured_ns(costs, time);
    return NULL;
  }
  WEIR_TRY(estimate(costs, node, arena, &costs->work_ns[node->id]));
  costs->work_ns[node->id] *= costs->visits[node->id];
  return NULL;
}

// Whether executors of several tasks run the nodes.
static bool has_tasks(const weir_costs_t* costs) {
  for (int i = 0; i < costs->device_count && !costs->has_streams; ++i)
    if (costs->devices[i].task > 0) return true;
  return false;
}

weir_status_t* weir_costs_init(weir_costs_t* costs, const weir_costs_params_t* params,
                               weir_arena_t* arena) {
  const weir_graph_t* graph = params->graph;
  *costs = (weir_costs_t){
      .graph = graph, .devices = params->devices, .device_count = params->device_count};
  for (int i = 0; i < costs->device_count; ++i) costs->has_streams |= costs->devices[i].has_queue;
  WEIR_TRY(weir_graph_order(graph, arena, &costs->order));
  WEIR_TRY(allocate(costs, arena));
  if (has_tasks(costs)) WEIR_TRY(weir_recurrences_find(graph, arena, &costs->circles));
  WEIR_TRY(count_visits(costs, arena));
  for (size_t i = 0; i < graph->node_count; ++i) {
    WEIR_TRY(add_node(costs, graph->nodes[i], params->times, arena));
    if (!params->is_run || params->is_run[i]) continue;
    costs->work_ns[i] = costs->visits[i] = 0;
    costs->is_light[i] = true;
  }
  return NULL;
}

// ---- asking ----

double weir_costs_node_ns(const weir_costs_t* costs, const weir_node_t* node, int device) {
  const weir_rates_t* rates = &costs->devices[device].rates;
  bool is_light = costs->is_light[node->id] && costs->has_streams;
  double fixed = weir_node_is_free_const(node) || is_light ? 0 : rates->node_ns;
  return costs->work_ns[node->id] / rates->speed + fixed * costs->visits[node->id];
}

double weir_costs_delay_ns(const weir_costs_t* costs, const weir_node_t* node, int device) {
  if (costs->is_light[node->id] || costs->is_promised[node->id]) return 0;
  return costs->devices[device].rates.delay_ns * costs->visits[node->id];
}

// How often a value goes to another task in a step: in every turn of its loop, the last one too, in
// which it is dead.
static double sends_of(const weir_costs_t* costs, const weir_node_t* node) {
  const weir_node_t* condition = costs->loops.items[costs->loops.outputs[node->id]].condition;
  bool is_entry =
      weir_node_role(node) == WEIR_ROLE_ENTER && !weir_attrs_bool(node->def.attrs, "is_constant");
  return costs->visits[condition && !is_entry ? condition->id : node->id];
}

// What |bytes| take on their way, besides what every copy does.
static double bytes_ns(const weir_rates_t* rates, double bytes) {
  double large = rates->large_ns + bytes / rates->copy_bytes * 1e9;
  return rates->small_bytes > 0 ? WEIR_MIN(bytes / rates->small_bytes * 1e9, large) : large;
}

static double copy_ns(const weir_costs_t* costs, weir_edge_t edge, int device, double each_ns) {
  double bytes = costs->output_bytes[edge.node->id][edge.index];
  double visits = costs->visits[edge.node->id];
  double times = costs->devices[device].has_queue ? visits : sends_of(costs, edge.node);
  return each_ns * times + bytes_ns(&costs->devices[device].rates, bytes) * visits;
}

double weir_costs_copy_ns(const weir_costs_t* costs, weir_edge_t edge, int device) {
  return copy_ns(costs, edge, device, costs->devices[device].rates.copy_ns);
}

double weir_costs_message_ns(const weir_costs_t* costs, weir_edge_t edge, int device) {
  return copy_ns(costs, edge, device, costs->devices[device].rates.message_ns);
}

double weir_costs_sending_ns(const weir_costs_t* costs, weir_edge_t edge, int device) {
  return costs->devices[device].rates.message_ns * sends_of(costs, edge.node);
}

int weir_costs_process(const weir_costs_t* costs, int device) {
  return costs->devices[device].task == 0 ? WEIR_HOST : device;
}

int weir_costs_memory(const weir_costs_t* costs, const weir_node_t* node, int i, bool is_output,
                      int device) {
  uint64_t mask = is_output ? costs->host_outputs[node->id] : costs->host_inputs[node->id];
  if (costs->devices[device].rates.is_host) return WEIR_HOST;
  // Another task has but one memory.
  return costs->devices[device].has_queue && i < 64 && (mask >> i & 1) ? WEIR_HOST : device;
}

bool weir_costs_is_sent(const weir_node_t* reader, weir_edge_t edge) {
  bool is_const = weir_node_is_free_const(edge.node) && weir_node_role(reader) != WEIR_ROLE_MERGE;
  return !is_const && !weir_node_is_back_edge(reader, edge.node);
}
