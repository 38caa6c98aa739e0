// plan.c — Freezing a graph into a plan: reachable nodes in order, frames, kernels, slots, edges.
//
// A step should cost nothing for what is the same in every step. So all that can be decided once is
// decided here: which nodes run, with which kernel and state, where each output goes, what each
// node waits for. A step then needs two arrays an iteration, of values and of counts, both copied
// from or sized by the plan, and never looks at the graph, at names or at attributes.
//
// - Inputs have slots, numbered within the frame (a loop, or the graph itself), so that an
//   iteration is one block of memory. An edge is a node and a slot; edges of an output are
//   neighbours, so that the last one can take the value instead of a reference to it.
// - A constant that nothing orders is no node: it is put into its reader's slot before each run.
//   Not for a Merge, which takes what comes first, and for which it must arrive like all else.
// - State of stateful kernels comes from a cache that outlives the plan, so that another signature
//   of the session goes on with the same random generator or counter. State that holds handles of
//   functions, and the ends of transfers, are the plan's own.
// - Where a reference variable was read, the value may be the variable's memory and be left behind
//   by a write later in the step (tensor.h: tensors that move). |mark_moving| follows such values
//   through all that may share memory, round loops too, and marks the nodes that must renew their
//   inputs. All others skip the check: the price is paid by graphs with reference variables only.
// - A plan without control flow, asynchronous kernels or a second device is linear: linear.c runs
//   it in the order of |nodes|, without counts. That is why the order is a topological one.
#include "exec/plan.h"

#include "base/details.h"
#include "device/builds.h"
#include "exec/frames.h"
#include "exec/linear.h"
#include "exec/recorded.h"
#include "graph/analysis.h"
#include "op/misspelt.h"
#include "op/promise.h"

// A constant in the memory of a device.
typedef struct const_copy_t {
  const weir_node_t* source;
  const weir_device_t* device;
  weir_tensor_t* tensor;
} const_copy_t;

typedef struct planner_t {
  const weir_plan_params_t* params;
  weir_plan_t* plan;
  weir_arena_t scratch;
  weir_node_t** nodes;  // what runs, in order
  int32_t* position;    // node id → position in |nodes|, -1: not in the plan
  int32_t count;
  int32_t* frame_of;  // by position
  int32_t* child_of;
  const_copy_t* copies;
  int32_t copy_count;
  size_t copy_capacity;
} planner_t;

// A constant nothing is ordered by becomes part of its consumers. A Merge takes what comes first,
// so there it has to arrive like anything else.
static bool is_bound(weir_edge_t edge, const weir_node_t* consumer) {
  return weir_node_is_free_const(edge.node) && weir_node_role(consumer) != WEIR_ROLE_MERGE;
}

static weir_device_t* device_of(const planner_t* p, const weir_node_t* node) {
  return p->params->devices[p->params->device_of ? p->params->device_of[node->id] : 0];
}

// ---- which nodes ----

static bool is_target(const planner_t* p, const weir_node_t* node) {
  for (int i = 0; i < p->params->target_count; ++i) {
    if (p->params->targets[i] == node) return true;
  }
  return false;
}

// By node id: a Merge of the plan reads it.
static weir_status_t* mark_merged(planner_t* p, const bool* is_marked, bool** out_merged) {
  weir_graph_t* graph = p->params->graph;
  bool* is_merged = weir_arena_array(&p->scratch, graph->node_count + 1, sizeof(*is_merged));
  if (!is_merged) return weir_out_of_memory();
  for (size_t i = 0; i < graph->node_count; ++i) {
    const weir_node_t* node = graph->nodes[i];
    if (!is_marked[node->id] || weir_node_role(node) != WEIR_ROLE_MERGE) continue;
    for (int k = 0; k < node->def.input_count; ++k) is_merged[node->inputs[k].node->id] = true;
  }
  *out_merged = is_merged;
  return NULL;
}

// A constant is left out unless a Merge reads it or it is a target itself. Nobody need wait for it.
static weir_status_t* choose_nodes(planner_t* p) {
  weir_graph_t* graph = p->params->graph;
  weir_node_t** order = NULL;
  bool* is_merged = NULL;
  weir_reach_t reach;
  WEIR_TRY(weir_graph_order(graph, &p->scratch, &order));
  WEIR_TRY(weir_reach_init(&reach, graph, &p->scratch));
  weir_reach_add_results(&reach, graph, p->params->targets, p->params->target_count);
  weir_reach_sources(&reach);
  WEIR_TRY(mark_merged(p, reach.is_reached, &is_merged));
  p->nodes = weir_arena_array(&p->scratch, graph->node_count + 1, sizeof(*p->nodes));
  p->position = weir_arena_array(&p->scratch, graph->node_count + 1, sizeof(*p->position));
  if (!p->nodes || !p->position) return weir_out_of_memory();
  for (size_t i = 0; i < graph->node_count; ++i) {
    weir_node_t* node = order[i];
    bool is_kept = reach.is_reached[node->id] &&
                   (!weir_node_is_free_const(node) || is_merged[node->id] || is_target(p, node));
    p->position[node->id] = is_kept ? p->count : -1;
    if (is_kept) p->nodes[p->count++] = node;
  }
  return NULL;
}

// ---- kernels ----

// Whether the node's state holds handles of functions, which mean something within one session
// only; kernels may be shared by more.
static bool holds_functions(const weir_node_t* node) {
  for (size_t i = 0; i < node->def.attrs.count; ++i) {
    if (node->def.attrs.items[i].value.kind == WEIR_ATTR_FUNC) return true;
  }
  return false;
}

static weir_status_t* resolve_kernel(planner_t* p, const weir_node_t* node, weir_plan_node_t* out) {
  if (!node->def.op) {
    return weir_registry_suggest(node->graph->registry, node->def.op_name,
                                 WEIR_STATUS(NOT_FOUND, "Op type not registered '%s' (node '%s')",
                                             node->def.op_name, node->def.name));
  }
  if (out->role == WEIR_ROLE_ARG || out->role == WEIR_ROLE_RETVAL) return NULL;
  WEIR_TRY(weir_op_find_kernel(&node->def, out->device->kernel_type, &out->kernel));
  out->compute = out->kernel->compute;
  out->start = out->kernel->compute_async;
  out->host_outputs = weir_kernel_host_args(&node->def, out->kernel, true);
  // What only hands values on need not wait for its turn in the device's stream.
  bool is_queued = out->device->vtable->submit && out->compute && !out->runs_locked &&
                   out->role != WEIR_ROLE_NO_OP && out->role != WEIR_ROLE_VARIABLE &&
                   out->role != WEIR_ROLE_SEND;
  bool has_streams = weir_device_has_streams(out->device);
  out->is_copy = has_streams && out->start;
  p->plan->has_streams |= has_streams;
  if (has_streams && out->compute) out->is_cheap = true;  // to submit, or to launch
  if (is_queued) {
    out->compute = NULL;
    out->may_promise = weir_node_may_promise(&node->def, out->kernel);
  }
  if (out->kernel->state_size == 0 && !out->kernel->init) return NULL;
  weir_kernel_init_t init = {.node = &node->def,
                             .kernel = out->kernel,
                             .device = out->device,
                             .functions = p->params->functions};
  weir_status_t* status = NULL;
  // The ends of transfers are made anew, under the same names, for every signature.
  bool is_transfer = out->role == WEIR_ROLE_SEND || out->role == WEIR_ROLE_RECV;
  if (is_transfer) p->plan->has_transfers = true;
  bool is_kept = weir_node_has(node, WEIR_OP_STATEFUL) && !is_transfer &&
                 (out->kernel->names_functions || !holds_functions(node));
  if (p->params->kernels && is_kept) {
    status = weir_kernel_cache_get(p->params->kernels, &init, out->kernel, &out->state);
  } else {
    out->state = weir_arena_alloc(&p->plan->arena, WEIR_MAX(out->kernel->state_size, 1));
    if (!out->state) return weir_out_of_memory();
    out->owns_state = true;
    if (out->kernel->init) status = out->kernel->init(&init, out->state);
  }
  return weir_status_at_node(status, node->def.name, node->def.op_name);
}

static bool is_control_flow(weir_role_t role) {
  return (role >= WEIR_ROLE_SWITCH && role <= WEIR_ROLE_CONTROL_TRIGGER) ||
         role == WEIR_ROLE_SEND || role == WEIR_ROLE_RECV;
}

static weir_status_t* check_index(int64_t index, int count, const weir_node_t* node) {
  if (index >= 0 && index < count) return NULL;
  return WEIR_NODE_STATUS(INVALID_ARGUMENT, node->def.name, "index %lld is not in [0, %d)",
                          (long long)index, count);
}

// Whether the values of inputs decide how long the node takes: sizes, which are what inputs in host
// memory mostly are, and which are no constants.
static bool is_sized_by_values(const weir_node_t* node, const weir_kernel_def_t* kernel) {
  if (!kernel || weir_node_has(node, WEIR_OP_CHEAP)) return false;
  for (int arg = 0; arg < 64 && kernel->host_input_args >> arg; ++arg) {
    int first = 0, count = 0;
    if (!(kernel->host_input_args >> arg & 1)) continue;
    weir_node_input_range(&node->def, arg, &first, &count);
    for (int i = first; i < first + count; ++i) {
      weir_dtype_t type = node->def.input_types[i];
      bool is_number = weir_dtype_is_integer(type) || weir_dtype_is_floating(type);
      if (is_number && !is_bound(node->inputs[i], node)) return true;
    }
  }
  return false;
}

// Whether what it gives comes from outside of its loop by an Enter, on whichever device that is.
static bool is_entry(const planner_t* p, const weir_node_t* node, const weir_plan_node_t* out) {
  if (out->role == WEIR_ROLE_ENTER) return true;
  if (!out->is_copy || node->def.input_count != 1) return false;
  int32_t from = p->position[node->inputs[0].node->id];
  return from >= 0 && p->plan->nodes[from].is_entry;
}

// Fills what a plan node is by itself, apart from its edges.
static weir_status_t* plan_node(planner_t* p, int32_t at) {
  weir_plan_t* plan = p->plan;
  const weir_node_t* node = p->nodes[at];
  weir_plan_node_t* out = &plan->nodes[at];
  out->def = &node->def;
  out->role = (uint8_t)weir_node_role(node);
  out->input_count = node->def.input_count;
  out->output_count = node->def.output_count;
  out->is_cheap = weir_node_has(node, WEIR_OP_CHEAP) || out->role != WEIR_ROLE_NONE;
  // Such kernels touch nothing but their slots, so they cannot wait for the lock that is held.
  out->runs_locked = (out->role >= WEIR_ROLE_SWITCH && out->role <= WEIR_ROLE_LOOP_COND) ||
                     weir_node_has(node, WEIR_OP_PASS_THROUGH);
  out->ret = -1;
  out->device = device_of(p, node);
  out->frame = p->frame_of[at];
  out->child_frame = p->child_of[at];
  atomic_init(&out->cost_ns, -1);
  atomic_init(&out->cost_bytes, 0);
  plan->max_outputs = WEIR_MAX(plan->max_outputs, out->output_count);
  if (out->role == WEIR_ROLE_ENTER)
    out->is_constant_enter = weir_attrs_bool(node->def.attrs, "is_constant");
  if (out->role == WEIR_ROLE_ARG || out->role == WEIR_ROLE_RETVAL) {
    int64_t index = weir_attrs_int(node->def.attrs, "index");
    bool is_arg = out->role == WEIR_ROLE_ARG;
    WEIR_TRY(check_index(index, is_arg ? plan->arg_count : plan->ret_count, node));
    if (is_arg) plan->args[index] = at;
    if (!is_arg) out->ret = (int32_t)index;
    if (!is_arg && out->frame != 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Tensor '%s:%d' is inside a loop and has no single value to fetch",
                         node->inputs[0].node->def.name, node->inputs[0].index);
    }
  }
  for (int i = 0; i < node->def.input_count; ++i) {
    bool is_ref_source = weir_dtype_is_ref(weir_edge_dtype(node->inputs[i]));
    out->has_refs |= is_ref_source;
    bool passes = weir_dtype_is_ref(node->def.input_types[i]);
    bool may_be_empty = node->def.op && node->def.op->flags & WEIR_OP_UNINITIALIZED_INPUT;
    if (is_ref_source && !passes) out->input_work |= WEIR_INPUTS_READ;
    if (is_ref_source && passes && !may_be_empty) out->input_work |= WEIR_INPUTS_SET;
  }
  WEIR_TRY(resolve_kernel(p, node, out));
  out->is_entry = is_entry(p, node, out);
  out->is_unbounded =
      weir_node_has(node, WEIR_OP_UNBOUNDED) || is_sized_by_values(node, out->kernel);
  plan->is_unbounded |= out->is_unbounded;
  bool is_sync = out->compute || !out->kernel;
  bool is_elsewhere = out->kernel && out->device != plan->device;
  if (is_control_flow((weir_role_t)out->role) || !is_sync || is_elsewhere) plan->is_linear = false;
  return NULL;
}

// ---- slots and edges ----

static void count_inputs(planner_t* p, int32_t at, int32_t* edge_counts, int32_t* const_count) {
  const weir_node_t* node = p->nodes[at];
  weir_plan_frame_t* frame = &p->plan->frames[p->plan->nodes[at].frame];
  p->plan->nodes[at].local = frame->node_count++;
  p->plan->nodes[at].first_slot = frame->slot_count;
  frame->slot_count += node->def.input_count;
  for (int i = 0; i < node->def.input_count; ++i) {
    int32_t from = p->position[node->inputs[i].node->id];
    if (is_bound(node->inputs[i], node)) ++*const_count;
    else ++edge_counts[from];
  }
  for (int i = 0; i < node->control_count; ++i) {
    if (weir_node_is_free_const(node->control_inputs[i])) continue;
    ++edge_counts[p->position[node->control_inputs[i]->id]];
  }
}

static weir_status_t* alloc_edges(planner_t* p, int32_t** out_counts) {
  weir_plan_t* plan = p->plan;
  int32_t* counts = weir_arena_array(&p->scratch, (size_t)p->count + 1, sizeof(*counts));
  if (!counts) return weir_out_of_memory();
  int32_t consts = 0;
  for (int32_t i = 0; i < p->count; ++i) count_inputs(p, i, counts, &consts);
  int32_t total = 0;
  for (int32_t i = 0; i < p->count; ++i) {
    plan->nodes[i].first_edge = total;
    total += counts[i];
  }
  plan->edges = weir_arena_array(&plan->arena, (size_t)total, sizeof(*plan->edges));
  plan->consts = weir_arena_array(&plan->arena, (size_t)consts, sizeof(*plan->consts));
  if (!plan->edges || !plan->consts) return weir_out_of_memory();
  *out_counts = counts;
  return NULL;
}

// The value of a constant, retained: as it is, or where |device| wants it in memory of its own, a
// copy, one for all its nodes.
static weir_status_t* const_value(planner_t* p, const weir_node_t* source, weir_device_t* device,
                                  bool is_host, weir_tensor_t** out_tensor) {
  weir_tensor_t* value = weir_attrs_tensor(source->def.attrs, "value");
  if (is_host || weir_device_is_host(device)) {
    *out_tensor = weir_tensor_retain(value);
    return NULL;
  }
  for (int32_t k = 0; k < p->copy_count; ++k) {
    if (p->copies[k].source != source || p->copies[k].device != device) continue;
    *out_tensor = weir_tensor_retain(p->copies[k].tensor);
    return NULL;
  }
  WEIR_TRY(weir_device_fetch(device, WEIR_MEMORY_DEVICE, value, out_tensor));
  if (!WEIR_GROW(p->copies, p->copy_capacity, (size_t)p->copy_count + 1)) return NULL;
  p->copies[p->copy_count++] =
      (const_copy_t){.source = source, .device = device, .tensor = *out_tensor};
  return NULL;
}

static weir_status_t* bind_const(planner_t* p, const weir_plan_node_t* consumer,
                                 const weir_node_t* source, int i, weir_tensor_t** out_tensor) {
  bool is_host = !consumer->kernel || weir_kernel_is_host_input(consumer->def, consumer->kernel, i);
  return const_value(p, source, consumer->device, is_host, out_tensor);
}

// Appends the edges into the node at |at| to their producers' ranges: data edges in a first sweep,
// control edges in a second.
static weir_status_t* add_data_edges(planner_t* p, int32_t at) {
  weir_plan_t* plan = p->plan;
  const weir_node_t* node = p->nodes[at];
  weir_plan_node_t* consumer = &plan->nodes[at];
  consumer->first_const = plan->const_count;
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_edge_t edge = node->inputs[i];
    if (is_bound(edge, node)) {
      weir_plan_const_t* bound = &plan->consts[plan->const_count];
      WEIR_TRY(bind_const(p, consumer, edge.node, i, &bound->tensor));
      bound->input = i;
      ++plan->const_count;
      ++consumer->const_count;
      continue;
    }
    weir_plan_node_t* producer = &plan->nodes[p->position[edge.node->id]];
    plan->edges[producer->first_edge + producer->data_edge_count++] =
        (weir_plan_edge_t){.node = at, .slot = consumer->first_slot + i, .output = edge.index};
    ++producer->edge_count;
  }
  return NULL;
}

static void add_control_edges(planner_t* p, int32_t at) {
  weir_plan_t* plan = p->plan;
  const weir_node_t* node = p->nodes[at];
  for (int i = 0; i < node->control_count; ++i) {
    if (weir_node_is_free_const(node->control_inputs[i])) continue;
    weir_plan_node_t* producer = &plan->nodes[p->position[node->control_inputs[i]->id]];
    plan->edges[producer->first_edge + producer->edge_count++] =
        (weir_plan_edge_t){.node = at, .slot = -1, .output = -1};
    ++plan->nodes[at].control_count;
  }
}

// Data edges by output, so that a step hands out each value in one go. Insertion sort: stable, and
// most have one output.
static void sort_edges(weir_plan_t* plan, const weir_plan_node_t* node) {
  if (node->output_count < 2) return;
  weir_plan_edge_t* edges = plan->edges + node->first_edge;
  for (int32_t i = 1; i < node->data_edge_count; ++i) {
    weir_plan_edge_t edge = edges[i];
    int32_t k = i;
    for (; k > 0 && edges[k - 1].output > edge.output; --k) edges[k] = edges[k - 1];
    edges[k] = edge;
  }
}

static weir_status_t* link_nodes(planner_t* p) {
  weir_plan_t* plan = p->plan;
  int32_t* counts = NULL;
  WEIR_TRY(alloc_edges(p, &counts));
  for (int32_t i = 0; i < p->count; ++i) WEIR_TRY(add_data_edges(p, i));
  for (int32_t i = 0; i < p->count; ++i) add_control_edges(p, i);
  for (int32_t i = 0; i < p->count; ++i) sort_edges(plan, &plan->nodes[i]);
  return NULL;
}

// ---- what may be memory of a reference variable ----

// Whether such memory may come out of a node into which none goes as a value: where a reference is
// read, where state was kept, and where a function begins.
static bool is_moving_source(const planner_t* p, int32_t at) {
  const weir_node_t* node = p->nodes[at];
  if (p->plan->nodes[at].input_work & WEIR_INPUTS_READ) return weir_node_may_share(node);
  if (p->plan->nodes[at].role == WEIR_ROLE_ARG) return p->params->has_moving_args;
  if (p->plan->nodes[at].role == WEIR_ROLE_RECV) return true;
  if (weir_node_has(node, WEIR_OP_SNAPSHOT)) return false;
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_dtype_t dtype = node->def.input_types[i];
    if (dtype == WEIR_DTYPE_RESOURCE || weir_dtype_is_ref(dtype)) return true;
  }
  return false;
}

static bool reads_moving(const planner_t* p, const bool* is_moving, int32_t at) {
  const weir_node_t* node = p->nodes[at];
  for (int i = 0; i < node->def.input_count; ++i) {
    int32_t from = p->position[node->inputs[i].node->id];
    if (from >= 0 && is_moving[from]) return true;
  }
  return false;
}

// Nodes that only hand values on need not look into them. A Switch looks at its condition.
static bool only_hands_on(const weir_plan_node_t* node) {
  return node->runs_locked && node->role != WEIR_ROLE_SWITCH;
}

// Marks the nodes whose inputs executors must renew.
static weir_status_t* mark_moving(planner_t* p) {
  bool* is_moving = weir_arena_array(&p->scratch, (size_t)p->count + 1, sizeof(*is_moving));
  if (!is_moving) return weir_out_of_memory();
  for (bool has_changed = true; has_changed;) {  // once more for what goes round in a loop
    has_changed = false;
    for (int32_t i = 0; i < p->count; ++i) {
      bool may_pass = weir_node_may_share(p->nodes[i]) && reads_moving(p, is_moving, i);
      if (is_moving[i] || !(may_pass || is_moving_source(p, i))) continue;
      is_moving[i] = has_changed = true;
    }
  }
  for (int32_t i = 0; i < p->count; ++i) {
    weir_plan_node_t* node = &p->plan->nodes[i];
    bool is_ret = node->role == WEIR_ROLE_RETVAL;
    if (!reads_moving(p, is_moving, i) && !(is_ret && node->input_work)) continue;
    if (is_ret) p->plan->has_moving_rets = true;
    else if (!only_hands_on(node)) node->input_work |= WEIR_INPUTS_RENEW;
  }
  return NULL;
}

// ---- what writes to variables ----

static bool is_state(weir_dtype_t dtype) {
  return dtype == WEIR_DTYPE_RESOURCE || weir_dtype_is_ref(dtype);
}

// Whether |edge|, a handle or a reference, may be of a variable. Where a function begins nobody
// knows.
static bool may_be_variable(weir_edge_t edge) {
  for (const weir_node_t* node = edge.node; node;) {
    weir_role_t role = weir_node_role(node);
    if (role == WEIR_ROLE_VARIABLE || role == WEIR_ROLE_ARG) return true;
    int i = 0;
    while (i < node->def.input_count && !is_state(node->def.input_types[i])) ++i;
    bool hands_on = i < node->def.input_count && role != WEIR_ROLE_NEXT_ITERATION;
    node = hands_on ? node->inputs[i].node : NULL;
  }
  return false;
}

// What waits or calls does not write itself; what only hands handles on neither.
static bool is_write(const weir_node_t* node, const weir_plan_node_t* planned) {
  bool is_computed = planned->kernel && !planned->start && !planned->runs_locked;
  if (!is_computed || weir_node_has(node, WEIR_OP_READ_ONLY)) return false;
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_dtype_t dtype = node->def.input_types[i];
    bool may_write = weir_dtype_is_ref(dtype) || weir_node_has(node, WEIR_OP_STATEFUL);
    if (is_state(dtype) && may_write && may_be_variable(node->inputs[i])) return true;
  }
  return false;
}

static void mark_writes(planner_t* p) {
  for (int32_t i = 0; i < p->count; ++i) {
    weir_plan_node_t* node = &p->plan->nodes[i];
    node->is_write = is_write(p->nodes[i], node);
    if (node->is_write) p->plan->has_writes = true;
  }
}

static weir_status_t* give_const(planner_t* p, int32_t at) {
  const weir_plan_node_t* node = &p->plan->nodes[at];
  weir_plan_given_t* given = &p->plan->given[p->plan->given_count];
  bool is_host = weir_kernel_is_host_arg(node->def, node->kernel, true, 0);
  WEIR_TRY(const_value(p, p->nodes[at], node->device, is_host, &given->tensor));
  given->node = at;
  ++p->plan->given_count;
  return NULL;
}

// What each node of a frame waits for. A Merge waits for one live input (the lowest bit) and two
// for each control input, so that the two kinds can be told apart; see deliver_merge in
// propagate.c.
static weir_status_t* count_pending(planner_t* p) {
  weir_plan_t* plan = p->plan;
  for (int32_t f = 0; f < plan->frame_count; ++f) {
    weir_plan_frame_t* frame = &plan->frames[f];
    frame->pending = weir_arena_array(&plan->arena, (size_t)frame->node_count, sizeof(int32_t));
    frame->data_inputs = weir_arena_array(&plan->arena, (size_t)frame->node_count, sizeof(int32_t));
    if (!frame->pending || !frame->data_inputs) return weir_out_of_memory();
  }
  plan->roots = weir_arena_array(&plan->arena, (size_t)plan->node_count, sizeof(int32_t));
  plan->given = weir_arena_array(&plan->arena, (size_t)plan->node_count, sizeof(*plan->given));
  if (!plan->roots || !plan->given) return weir_out_of_memory();
  for (int32_t i = 0; i < plan->node_count; ++i) {
    const weir_plan_node_t* node = &plan->nodes[i];
    weir_plan_frame_t* frame = &plan->frames[node->frame];
    int32_t data = node->input_count - node->const_count;
    frame->data_inputs[node->local] = data;
    bool is_merge = node->role == WEIR_ROLE_MERGE;
    frame->pending[node->local] =
        is_merge ? 1 + 2 * node->control_count : data + node->control_count;
    if (data + node->control_count > 0 || node->role == WEIR_ROLE_ARG) continue;
    if (node->role == WEIR_ROLE_CONST) WEIR_TRY(give_const(p, i));
    else plan->roots[plan->root_count++] = i;
  }
  return NULL;
}

// Kernels begin to be compiled one after the other and are waited for together.
static weir_status_t* plan_nodes(planner_t* p) {
  weir_builds_t builds = {0}, *outer = weir_builds_gather(&builds);
  weir_status_t* status = NULL;
  for (int32_t i = 0; i < p->count && !status; ++i) {
    builds.owner = i;
    status = plan_node(p, i);
  }
  weir_builds_gather(outer);
  if (status) {
    weir_builds_free(&builds);
    return status;
  }
  int32_t owner = 0;
  status = weir_builds_finish(&builds, &owner);
  if (!status) return NULL;
  const weir_node_def_t* def = &p->nodes[owner]->def;
  return weir_status_at_node(status, def->name, def->op_name);
}

static weir_status_t* build(planner_t* p) {
  weir_plan_t* plan = p->plan;
  WEIR_TRY(choose_nodes(p));
  plan->node_count = p->count;
  plan->nodes = weir_arena_array(&plan->arena, (size_t)p->count, sizeof(*plan->nodes));
  plan->args = weir_arena_array(&plan->arena, (size_t)plan->arg_count, sizeof(*plan->args));
  p->frame_of = weir_arena_array(&p->scratch, (size_t)p->count, sizeof(int32_t));
  p->child_of = weir_arena_array(&p->scratch, (size_t)p->count, sizeof(int32_t));
  if (!plan->nodes || !plan->args || !p->frame_of || !p->child_of) return weir_out_of_memory();
  for (int32_t i = 0; i < plan->arg_count; ++i) plan->args[i] = -1;
  WEIR_TRY(weir_frames_find(plan->graph, p->nodes, p->count, &p->scratch, &plan->arena, p->frame_of,
                            p->child_of, &plan->frames, &plan->frame_count));
  if (p->count) plan->device = device_of(p, p->nodes[p->count - 1]);
  WEIR_TRY(plan_nodes(p));
  WEIR_TRY(link_nodes(p));
  WEIR_TRY(mark_moving(p));
  mark_writes(p);
  return count_pending(p);
}

weir_status_t* weir_plan_create(const weir_plan_params_t* params, weir_plan_t** out_plan) {
  weir_plan_t* plan = weir_calloc(1, sizeof(*plan));
  if (!plan) {
    weir_graph_unref(params->graph);
    return weir_out_of_memory();
  }
  weir_ref_init(&plan->ref);
  weir_mutex_init(&plan->mu);
  plan->graph = params->graph;
  plan->device = params->devices[0];
  plan->arg_count = params->arg_count;
  plan->ret_count = params->ret_count;
  plan->is_linear = true;
  planner_t planner = {.params = params, .plan = plan};
  weir_status_t* status = build(&planner);
  if (!status && plan->has_streams) status = weir_recorded_create(plan, &plan->recorded);
  weir_arena_free(&planner.scratch);
  weir_free(planner.copies);
  if (status) {
    weir_plan_release(plan);
    return status;
  }
  *out_plan = plan;
  return NULL;
}

weir_plan_t* weir_plan_retain(weir_plan_t* plan) {
  weir_ref_inc(&plan->ref, 1);
  return plan;
}

void weir_plan_release(weir_plan_t* plan) {
  if (!plan || !weir_ref_dec(&plan->ref)) return;
  weir_linear_free_states(plan);
  weir_recorded_destroy(plan->recorded);
  for (int32_t i = 0; plan->nodes && i < plan->node_count; ++i) {
    weir_plan_node_t* node = &plan->nodes[i];
    if (node->owns_state && node->kernel->deinit) node->kernel->deinit(node->state);
  }
  for (int32_t i = 0; i < plan->const_count; ++i) weir_tensor_release(plan->consts[i].tensor);
  for (int32_t i = 0; i < plan->given_count; ++i) weir_tensor_release(plan->given[i].tensor);
  weir_mutex_destroy(&plan->mu);
  weir_arena_free(&plan->arena);
  weir_graph_unref(plan->graph);
  weir_free(plan);
}
