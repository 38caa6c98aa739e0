// partition.c — Cuts a placed graph into one graph a task: copies, and a Send and a Recv for every
// edge between them.
//
// The parts run on their own, on executors that know nothing of each other, TensorFlow's among
// them; together they must do what the whole would. Nobody fetches from a part: what nothing in it
// reads must run, and is its targets. What crosses is found by key in a rendezvous, by names that
// are unique in the session, since a task keeps kernels by the names of their nodes.
//
// - A value crosses to a task once and is shared there. A constant that nothing orders is cloned
//   instead. A control edge crosses as an empty tensor that a constant makes after the source has
//   run, and arrives through an Identity: in TensorFlow's executor a Recv of a dead tensor is alive
//   for those that only wait for it, an Identity of it is dead.
// - A reference crosses as the value the variable has when it is sent. Its reader should see the
//   one of the time it runs, so the Recv is made to wait for all else that the reader waits for,
//   and readers do not share it.
// - Loops: a Recv is a root of its part and would run once. Where a loop spans tasks, each part
//   that receives inside it gets a small loop (partition_loops.c) that turns as often as the real
//   one and starts the Recvs of every turn. The frame and the iteration are part of a transfer's
//   key. The first value of a loop's variable and its next ones come to their Merge in different
//   turns, so that none of them can be received there in every one: what brings them is where the
//   Merge is, and receives what it brings.
// - TensorFlow's executor wants all that a node in a loop reads to be in that loop, constants too:
//   for tasks other than this one, they are anchored to another input of the node.
#include "pass/partition.h"

#include <stdio.h>

#include "pass/partition_internal.h"

enum { NAME_SIZE = 64 };  // of a transfer: "edge_12_0_S3"

int weir_cut_part(const cutter_t* cutter, const weir_node_t* node) {
  return cutter->part_of_task[weir_cut_placement(cutter, node)->task];
}

const weir_placement_t* weir_cut_placement(const cutter_t* cutter, const weir_node_t* node) {
  return &cutter->params->devices[cutter->params->device_of[node->id]];
}

// ---- transfers ----

// Adds one end of a transfer to |graph|. |input| without a node: the receiving end.
static weir_status_t* add_end(weir_graph_t* graph, const weir_placement_t* from,
                              const weir_placement_t* to, const char* tensor_name,
                              weir_dtype_t dtype, weir_edge_t input, weir_node_t* control,
                              weir_node_t** out_node) {
  bool is_send = input.node != NULL;
  weir_named_attr_t attrs[] = {weir_attr_string("tensor_name", tensor_name),
                               weir_attr_string("send_device", from->device),
                               weir_attr_int("send_device_incarnation", (int64_t)from->incarnation),
                               weir_attr_string("recv_device", to->device),
                               weir_attr_type(is_send ? "T" : "tensor_type", dtype)};
  char name[NAME_SIZE + 8];
  snprintf(name, sizeof(name), "%s/_%s", tensor_name, is_send ? "send" : "recv");
  weir_node_params_t params = {.op = is_send ? "_Send" : "_Recv",
                               .name = name,
                               .unique_name = true,
                               .device = is_send ? from->device : to->device,
                               .inputs = {.items = &input, .count = is_send},
                               .control_inputs = &control,
                               .control_count = control != NULL,
                               .attrs = {.items = attrs, .count = WEIR_COUNT_OF(attrs)}};
  return weir_graph_add(graph, &params, out_node);
}

// An empty tensor that exists once |after| has run.
static weir_status_t* add_signal(const cutter_t* cutter, weir_node_t* after, const char* device,
                                 weir_edge_t* out_edge) {
  (void)cutter;
  weir_tensor_t* empty = NULL;
  weir_node_t* node = NULL;
  const int64_t none = 0;
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_FLOAT, 1, &none, &empty));
  weir_named_attr_t attrs[] = {weir_attr_tensor("value", empty),
                               weir_attr_type("dtype", WEIR_DTYPE_FLOAT)};
  weir_node_params_t params = {.op = "Const",
                               .name = "_signal",
                               .unique_name = true,
                               .device = device,
                               .control_inputs = &after,
                               .control_count = 1,
                               .attrs = {.items = attrs, .count = WEIR_COUNT_OF(attrs)}};
  weir_status_t* status = weir_graph_add(after->graph, &params, &node);
  weir_tensor_release(empty);
  if (!status) *out_edge = (weir_edge_t){.node = node, .index = 0};
  return status;
}

// A constant that nothing orders is the same everywhere: a copy costs less than a transfer.
static bool is_everywhere(const weir_node_t* node) { return weir_node_is_free_const(node); }

static weir_status_t* clone_constant(cutter_t* cutter, const weir_node_t* node,
                                     const weir_placement_t* to, int part, weir_node_t** out_node) {
  // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): inputs of a whole graph are nodes
  weir_node_params_t params = {.op = node->def.op_name,
                               .name = node->def.name,
                               .unique_name = true,
                               .device = to->device,
                               .attrs = node->def.attrs};
  return weir_graph_add(cutter->parts[part].graph, &params, out_node);
}

// A variable by reference. Its reader reads it when all else that it waits for has come, so that
// readers cannot share a transfer.
static bool is_reference(weir_edge_t edge) {
  return edge.index >= 0 && weir_dtype_is_ref(weir_edge_dtype(edge));
}

static weir_status_t* add_transfer(cutter_t* cutter, weir_edge_t edge, const weir_node_t* at,
                                   weir_node_t* trigger, int part, weir_node_t** out_recv) {
  const weir_placement_t* from = weir_cut_placement(cutter, edge.node);
  const weir_placement_t* to = weir_cut_placement(cutter, at);
  weir_node_t* source = cutter->maps[weir_cut_part(cutter, edge.node)][edge.node->id];
  weir_edge_t value = {.node = source, .index = edge.index};
  weir_node_t* send = NULL;
  char name[NAME_SIZE];
  bool is_control = edge.index < 0;
  long long serial = cutter->params->serial;
  if (is_control) snprintf(name, sizeof(name), "edge_%d_control_S%lld", edge.node->id, serial);
  else if (is_reference(edge))
    snprintf(name, sizeof(name), "edge_%d_%d_S%lld_R%d", edge.node->id, edge.index, serial, at->id);
  else snprintf(name, sizeof(name), "edge_%d_%d_S%lld", edge.node->id, edge.index, serial);
  if (is_control) WEIR_TRY(add_signal(cutter, source, from->device, &value));
  weir_dtype_t dtype = weir_dtype_base(weir_edge_dtype(value));
  weir_graph_t* graph = cutter->parts[part].graph;
  WEIR_TRY(add_end(source->graph, from, to, name, dtype, value, NULL, &send));
  WEIR_TRY(add_end(graph, from, to, name, dtype, WEIR_NO_EDGE, trigger, out_recv));
  if (!is_control) return NULL;
  // In TensorFlow's executor a receive that gets a dead tensor is itself alive, as its control
  // outputs see it: what reads the tensor is dead.
  weir_node_params_t params = {.op = "Identity",
                               .name = name,
                               .unique_name = true,
                               .device = to->device,
                               .inputs = WEIR_EDGES((weir_edge_t){.node = *out_recv, .index = 0})};
  return weir_graph_add(graph, &params, out_recv);
}

weir_status_t* weir_cut_edge(cutter_t* cutter, weir_edge_t edge, const weir_node_t* at, int frame,
                             int part, weir_edge_t* out_edge) {
  weir_node_t* here = cutter->maps[part][edge.node->id];
  *out_edge = (weir_edge_t){.node = here, .index = edge.index};
  if (here) return NULL;
  char text[64];
  int reader = is_reference(edge) ? at->id : -1;
  int size = snprintf(text, sizeof(text), "%d:%d:%d:%d", part, edge.node->id, edge.index, reader);
  weir_view_t key = weir_view(text, (size_t)size);
  weir_node_t* trigger = NULL;
  bool is_cloned = edge.index >= 0 && is_everywhere(edge.node);
  // First, for it receives the loop's condition, which |edge| may be.
  if (frame > 0 && !is_cloned) WEIR_TRY(weir_cut_trigger(cutter, at, frame, part, &trigger));
  weir_node_t* recv = weir_map_find(&cutter->receives, key);
  if (!recv) {
    if (is_cloned)
      WEIR_TRY(clone_constant(cutter, edge.node, weir_cut_placement(cutter, at), part, &recv));
    else WEIR_TRY(add_transfer(cutter, edge, at, trigger, part, &recv));
    WEIR_TRY(weir_map_put(&cutter->receives, key, recv));
  }
  *out_edge = (weir_edge_t){.node = recv, .index = 0};
  return NULL;
}

// ---- parts ----

static weir_status_t* find_parts(cutter_t* cutter) {
  const weir_partition_params_t* params = cutter->params;
  int tasks = 0;
  for (int i = 0; i < params->device_count; ++i)
    tasks = WEIR_MAX(tasks, params->devices[i].task + 1);
  cutter->part_of_task = weir_arena_array(cutter->arena, (size_t)tasks, sizeof(int));
  cutter->parts = weir_arena_array(cutter->arena, (size_t)tasks, sizeof(weir_part_t));
  cutter->maps = weir_arena_array(cutter->arena, (size_t)tasks, sizeof(*cutter->maps));
  if (!cutter->part_of_task || !cutter->parts || !cutter->maps) return weir_out_of_memory();
  for (int i = 0; i < tasks; ++i) cutter->part_of_task[i] = -1;
  for (size_t i = 0; i < params->graph->node_count; ++i) {
    int task = weir_cut_placement(cutter, params->graph->nodes[i])->task;
    if (cutter->part_of_task[task] >= 0) continue;
    cutter->part_of_task[task] = cutter->part_count;
    cutter->parts[cutter->part_count++].task = task;
  }
  return NULL;
}

static weir_status_t* copy_part(cutter_t* cutter, int part) {
  const weir_graph_t* graph = cutter->params->graph;
  bool* keep = weir_arena_array(cutter->arena, graph->node_count + 1, sizeof(*keep));
  if (!keep) return weir_out_of_memory();
  for (size_t i = 0; i < graph->node_count; ++i)
    keep[i] = weir_cut_part(cutter, graph->nodes[i]) == part;
  WEIR_TRY(
      weir_graph_copy(graph, keep, cutter->arena, &cutter->parts[part].graph, &cutter->maps[part]));
  cutter->parts[part].graph->producer = graph->producer;
  cutter->parts[part].graph->min_consumer = graph->min_consumer;
  return NULL;
}

// TensorFlow's executor wants everything that a node in a loop reads to be in that loop; constants
// that nothing orders are not. The copy's get an order: after another input of the same node.
static weir_status_t* anchor_constants(cutter_t* cutter, const weir_node_t* node, int part) {
  weir_node_t* copy = cutter->maps[part][node->id];
  weir_node_t* anchor = copy->control_count > 0 ? copy->control_inputs[0] : NULL;
  if (weir_node_role(node) == WEIR_ROLE_MERGE) return NULL;
  for (int i = 0; i < copy->def.input_count && !anchor; ++i) {
    if (!is_everywhere(copy->inputs[i].node)) anchor = copy->inputs[i].node;
  }
  for (int i = 0; i < copy->def.input_count && anchor; ++i) {
    const weir_node_t* constant = copy->inputs[i].node;
    weir_node_t* clone = NULL;
    if (!is_everywhere(constant)) continue;
    WEIR_TRY(clone_constant(cutter, constant, weir_cut_placement(cutter, node), part, &clone));
    WEIR_TRY(weir_graph_add_control(clone, anchor));
    copy->inputs[i].node = clone;
  }
  return NULL;
}

static bool is_received_reference(const cutter_t* cutter, const weir_node_t* node, int input,
                                  int part) {
  weir_edge_t edge = node->inputs[input];
  return is_reference(edge) && weir_cut_part(cutter, edge.node) != part;
}

// A reference from another part is received after all else that the copy of |node| waits for: then
// its task sends what the variable holds by that time, not what it held when the step began.
static weir_status_t* delay_references(cutter_t* cutter, const weir_node_t* node, int part) {
  weir_node_t* copy = cutter->maps[part][node->id];
  if (weir_node_role(node) == WEIR_ROLE_MERGE) return NULL;  // which does not wait for all
  for (int i = 0; i < node->def.input_count; ++i) {
    if (!is_received_reference(cutter, node, i, part)) continue;
    weir_node_t* recv = copy->inputs[i].node;
    for (int k = 0; k < node->def.input_count; ++k) {
      weir_node_t* other = copy->inputs[k].node;
      if (!is_received_reference(cutter, node, k, part) && !is_everywhere(other))
        WEIR_TRY(weir_graph_add_control(recv, other));
    }
    for (int k = 0; k < copy->control_count; ++k)
      WEIR_TRY(weir_graph_add_control(recv, copy->control_inputs[k]));
  }
  return NULL;
}

// Whether the input brings a value to a Merge from another turn than the one it was made in.
static bool comes_from_another_turn(const weir_node_t* node, int input) {
  weir_edge_t edge = node->inputs[input];
  weir_role_t role = weir_node_role(edge.node);
  return weir_node_role(node) == WEIR_ROLE_MERGE && !is_reference(edge) &&
         (role == WEIR_ROLE_ENTER || role == WEIR_ROLE_NEXT_ITERATION);
}

// Makes the Enter or NextIteration |node| of another part anew beside the Merge |at|.
static weir_status_t* clone_into_turn(cutter_t* cutter, const weir_node_t* node,
                                      const weir_node_t* at, int part, weir_edge_t* out_edge) {
  int frame = cutter->loops.inside[node->id];
  weir_edge_t value, after;
  weir_node_t* clone = NULL;
  WEIR_TRY(weir_cut_edge(cutter, node->inputs[0], at, frame, part, &value));
  weir_node_params_t params = {.op = node->def.op_name,
                               .name = node->def.name,
                               .unique_name = true,
                               .device = weir_cut_placement(cutter, at)->device,
                               .inputs = WEIR_EDGES(value),
                               .attrs = node->def.attrs};
  WEIR_TRY(weir_graph_add(cutter->parts[part].graph, &params, &clone));
  for (int i = 0; i < node->control_count; ++i) {
    weir_edge_t control = {.node = node->control_inputs[i], .index = -1};
    WEIR_TRY(weir_cut_edge(cutter, control, at, frame, part, &after));
    WEIR_TRY(weir_graph_add_control(clone, after.node));
  }
  *out_edge = (weir_edge_t){.node = clone, .index = 0};
  return NULL;
}

// Gives the copy of |node| its inputs from other parts.
static weir_status_t* join_node(cutter_t* cutter, const weir_node_t* node) {
  int part = weir_cut_part(cutter, node);
  weir_node_t* copy = cutter->maps[part][node->id];
  int frame = cutter->loops.inside[node->id];
  for (int i = 0; i < node->def.input_count; ++i) {
    if (weir_cut_part(cutter, node->inputs[i].node) == part) continue;
    weir_edge_t edge;
    if (comes_from_another_turn(node, i))
      WEIR_TRY(clone_into_turn(cutter, node->inputs[i].node, node, part, &edge));
    else WEIR_TRY(weir_cut_edge(cutter, node->inputs[i], node, frame, part, &edge));
    copy->inputs[i] = edge;
  }
  for (int i = 0; i < node->control_count; ++i) {
    weir_node_t* source = node->control_inputs[i];
    if (weir_cut_part(cutter, source) == part) continue;
    weir_edge_t edge;
    WEIR_TRY(weir_cut_edge(cutter, (weir_edge_t){.node = source, .index = -1}, node, frame, part,
                           &edge));
    WEIR_TRY(weir_graph_add_control(copy, edge.node));
  }
  WEIR_TRY(delay_references(cutter, node, part));
  bool is_here = cutter->parts[part].task == 0;  // by Weir's executor, which does not care
  return frame > 0 && !is_here ? anchor_constants(cutter, node, part) : NULL;
}

weir_status_t* weir_graph_sinks(weir_graph_t* graph, weir_node_t*** out_sinks, int* out_count) {
  bool* is_read = weir_calloc(graph->node_count + 1, sizeof(*is_read));
  weir_node_t** sinks = weir_arena_array(&graph->arena, graph->node_count + 1, sizeof(*sinks));
  int count = 0;
  if (!is_read || !sinks) {
    weir_free(is_read);
    return weir_out_of_memory();
  }
  for (size_t i = 0; i < graph->node_count; ++i) {
    const weir_node_t* node = graph->nodes[i];
    for (int k = 0; k < node->def.input_count; ++k) is_read[node->inputs[k].node->id] = true;
    for (int k = 0; k < node->control_count; ++k) is_read[node->control_inputs[k]->id] = true;
  }
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (!is_read[i]) sinks[count++] = graph->nodes[i];
  }
  weir_free(is_read);
  *out_sinks = sinks;
  *out_count = count;
  return NULL;
}

static weir_status_t* cut(cutter_t* cutter) {
  const weir_graph_t* graph = cutter->params->graph;
  WEIR_TRY(find_parts(cutter));
  WEIR_TRY(weir_cut_find_loops(cutter));
  for (int i = 0; i < cutter->part_count; ++i) WEIR_TRY(copy_part(cutter, i));
  for (size_t i = 0; i < graph->node_count; ++i) WEIR_TRY(join_node(cutter, graph->nodes[i]));
  for (int i = 0; i < cutter->part_count; ++i) {
    weir_part_t* part = &cutter->parts[i];
    WEIR_TRY(weir_graph_sinks(part->graph, &part->sinks, &part->sink_count));
  }
  return NULL;
}

weir_status_t* weir_partition(const weir_partition_params_t* params, weir_arena_t* arena,
                              weir_part_t** out_parts, int* out_count) {
  cutter_t cutter = {.params = params, .arena = arena, .receives = {.owns_keys = true}};
  weir_status_t* status = cut(&cutter);
  weir_map_free(&cutter.receives);
  if (status) {
    weir_parts_release(cutter.parts, cutter.part_count);
    return status;
  }
  *out_parts = cutter.parts;
  *out_count = cutter.part_count;
  return NULL;
}

void weir_parts_release(weir_part_t* parts, int count) {
  for (int i = 0; i < count; ++i) weir_graph_unref(parts[i].graph);
}
