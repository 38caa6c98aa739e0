// fence.c — Adding the rounds of op/gate.h around the reads of a graph.
//
//   task 1:  _HoldWrites ─┐            ┌─ _AwaitWrites ─┐         ┌─ reads ─ _OpenWrites ─ users
//                         ├─ ConcatV2 ─┤                ├─ NoOp ──┤
//   task 2:  _HoldWrites ─┘            └─ _AwaitWrites ─┘         └─ reads ─ _OpenWrites ─ users
//
// ConcatV2 and NoOp are on the master's task, so there are two messages a task and round.
#include "pass/fence.h"

#include "base/alloc.h"

// What is added on one task.
typedef struct guard_t {
  const char* device;  // its first CPU
  weir_node_t *hold, *await, *open;
  int read_count;
} guard_t;

typedef struct fence_t {
  weir_graph_t* graph;
  size_t node_count;  // of those that were there before
  const weir_placement_t* devices;
  int device_count;
  weir_arena_t arena;
  guard_t** guard_of;  // by node id, of reads; NULL: it is none
  guard_t* guards;     // by number of task; |hold| NULL: no reads there
  int task_count;
  weir_node_t* barrier;
} fence_t;

// Of |params|, op, device, inputs and control inputs.
static weir_status_t* add(fence_t* f, weir_node_params_t params, weir_node_t** out_node) {
  const char* op = params.op;
  const char* name = weir_arena_printf(&f->graph->arena, "fence/%s", *op == '_' ? op + 1 : op);
  if (!name) return weir_out_of_memory();
  params.name = name;
  params.unique_name = true;
  return weir_graph_add(f->graph, &params, out_node);
}

// ---- which tasks ----

static int find_task(const fence_t* f, const weir_node_t* node) {
  for (int i = 0; i < f->device_count; ++i) {
    if (!strcmp(f->devices[i].device, node->def.device)) return f->devices[i].task;
  }
  return 0;
}

static weir_status_t* find_cpu(const fence_t* f, int task, const char** out_device) {
  for (int i = 0; i < f->device_count; ++i) {
    if (f->devices[i].task != task || strcmp(f->devices[i].type, "CPU")) continue;
    *out_device = f->devices[i].device;
    return NULL;
  }
  return WEIR_STATUS(UNIMPLEMENTED, "a task without a CPU cannot hold up steps");
}

static weir_status_t* init(fence_t* f) {
  for (int i = 0; i < f->device_count; ++i)
    f->task_count = WEIR_MAX(f->task_count, f->devices[i].task + 1);
  f->guards = weir_arena_array(&f->arena, (size_t)f->task_count, sizeof(*f->guards));
  f->guard_of = weir_arena_array(&f->arena, f->node_count + 1, sizeof(*f->guard_of));
  return f->guards && f->guard_of ? NULL : weir_out_of_memory();
}

// Finds the reads, and adds what holds the gates of their tasks.
static weir_status_t* hold_tasks(fence_t* f) {
  for (size_t i = 0; i < f->node_count; ++i) {
    weir_node_t* node = f->graph->nodes[i];
    bool is_ref = weir_node_role(node) == WEIR_ROLE_VARIABLE &&
                  weir_dtype_is_ref(weir_edge_dtype((weir_edge_t){.node = node}));
    if (is_ref)
      return WEIR_STATUS(UNIMPLEMENTED,
                         "'%s' is a reference variable: what reads it sees later "
                         "writes",
                         node->def.name);
    if (!weir_node_has(node, WEIR_OP_SNAPSHOT)) continue;
    const int task = find_task(f, node);
    guard_t* guard = &f->guards[task];
    f->guard_of[node->id] = guard;
    ++guard->read_count;
    if (guard->hold) continue;
    WEIR_TRY(find_cpu(f, task, &guard->device));
    WEIR_TRY(
        add(f, (weir_node_params_t){.op = "_HoldWrites", .device = guard->device}, &guard->hold));
  }
  return NULL;
}

// ---- rounds ----

static weir_status_t* add_axis(fence_t* f, weir_edge_t* out_edge) {
  weir_tensor_t* zero = NULL;
  weir_node_t* node = NULL;
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_INT32, 0, NULL, &zero));
  *WEIR_TENSOR_DATA(zero, int32_t) = 0;
  weir_node_params_t params = {.op = "Const",
                               .name = "fence/axis",
                               .unique_name = true,
                               .device = f->devices[0].device,
                               .attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_INT32),
                                                   weir_attr_tensor("value", zero))};
  weir_status_t* status = weir_graph_add(f->graph, &params, &node);
  weir_tensor_release(zero);
  *out_edge = (weir_edge_t){.node = node};
  return status;
}

// The steps that have passed some gate.
static weir_status_t* join_steps(fence_t* f, weir_edge_t* out_steps) {
  weir_node_t* node = NULL;
  int count = 0;
  weir_edge_t* inputs = weir_arena_array(&f->arena, (size_t)f->task_count + 1, sizeof(*inputs));
  if (!inputs) return weir_out_of_memory();
  for (int i = 0; i < f->task_count; ++i) {
    if (f->guards[i].hold) inputs[count++] = (weir_edge_t){.node = f->guards[i].hold};
  }
  *out_steps = inputs[0];
  if (count == 1) return NULL;
  WEIR_TRY(add_axis(f, &inputs[count]));
  weir_node_params_t concat = {.op = "ConcatV2",
                               .device = f->devices[0].device,
                               .inputs = {.items = inputs, .count = count + 1}};
  WEIR_TRY(add(f, concat, &node));
  *out_steps = (weir_edge_t){.node = node};
  return NULL;
}

static weir_status_t* add_open(fence_t* f, guard_t* guard) {
  weir_node_t** reads = weir_arena_array(&f->arena, (size_t)guard->read_count, sizeof(*reads));
  if (!reads) return weir_out_of_memory();
  int count = 0;
  for (size_t i = 0; i < f->node_count; ++i) {
    if (f->guard_of[i] == guard) reads[count++] = f->graph->nodes[i];
  }
  weir_node_params_t open = {.op = "_OpenWrites",
                             .device = guard->device,
                             .control_inputs = reads,
                             .control_count = count};
  return add(f, open, &guard->open);
}

static weir_status_t* await_tasks(fence_t* f) {
  weir_edge_t steps;
  WEIR_TRY(join_steps(f, &steps));
  weir_node_params_t barrier = {.op = "NoOp", .device = f->devices[0].device};
  WEIR_TRY(add(f, barrier, &f->barrier));
  for (int i = 0; i < f->task_count; ++i) {
    guard_t* guard = &f->guards[i];
    if (!guard->hold) continue;
    weir_node_params_t await = {
        .op = "_AwaitWrites", .device = guard->device, .inputs = WEIR_EDGES(steps)};
    WEIR_TRY(add(f, await, &guard->await));
    WEIR_TRY(weir_graph_add_control(f->barrier, guard->await));
    WEIR_TRY(add_open(f, guard));
  }
  return NULL;
}

// ---- reads and who uses them ----

static guard_t* guard_of(const fence_t* f, const weir_node_t* node) {
  return (size_t)node->id < f->node_count ? f->guard_of[node->id] : NULL;
}

// |node| comes after what opens the gates behind the reads that it waits for: in place of these,
// where it only waits, since each would be a message.
static weir_status_t* wait_for_open(fence_t* f, weir_node_t* node) {
  const int control_count = node->control_count;
  weir_node_t** controls = node->control_inputs;
  node->control_inputs = NULL;
  node->control_count = 0;
  for (int i = 0; i < control_count; ++i) {
    const guard_t* guard = guard_of(f, controls[i]);
    WEIR_TRY(weir_graph_add_control(node, guard ? guard->open : controls[i]));
  }
  for (int i = 0; i < node->def.input_count; ++i) {
    const guard_t* guard = guard_of(f, node->inputs[i].node);
    if (guard) WEIR_TRY(weir_graph_add_control(node, guard->open));
  }
  return NULL;
}

static bool awaits_reads(const fence_t* f, const weir_node_t* node) {
  for (int i = 0; i < node->control_count; ++i) {
    if (guard_of(f, node->control_inputs[i])) return true;
  }
  for (int i = 0; i < node->def.input_count; ++i) {
    if (guard_of(f, node->inputs[i].node)) return true;
  }
  return false;
}

static weir_status_t* order_nodes(fence_t* f) {
  for (size_t i = 0; i < f->node_count; ++i) {
    weir_node_t* node = f->graph->nodes[i];
    if (awaits_reads(f, node)) WEIR_TRY(wait_for_open(f, node));
    if (f->guard_of[i]) WEIR_TRY(weir_graph_add_control(node, f->barrier));
  }
  return NULL;
}

static weir_status_t* build(fence_t* f) {
  bool has_reads = false;
  WEIR_TRY(init(f));
  WEIR_TRY(hold_tasks(f));
  for (int i = 0; i < f->task_count; ++i) has_reads |= f->guards[i].hold != NULL;
  if (!has_reads) return NULL;
  WEIR_TRY(await_tasks(f));
  return order_nodes(f);
}

weir_status_t* weir_fence_reads(weir_graph_t* graph, const weir_placement_t* devices,
                                int device_count) {
  fence_t fence = {.graph = graph,
                   .node_count = graph->node_count,
                   .devices = devices,
                   .device_count = device_count};
  weir_status_t* status = build(&fence);
  weir_arena_free(&fence.arena);
  return status;
}
