// partition_loops.c — Loops that span tasks: which loop a node is in, and the small loops that
// start the receives of every iteration.
#include "pass/partition_internal.h"

// ---- which loop a node is in ----

weir_status_t* weir_cut_find_loops(cutter_t* cutter) {
  const weir_graph_t* graph = cutter->params->graph;
  weir_node_t** order = NULL;
  WEIR_TRY(weir_graph_order(graph, cutter->arena, &order));
  WEIR_TRY(weir_loops_find(graph, order, graph->node_count, cutter->arena, &cutter->loops));
  size_t triggers = (size_t)cutter->part_count * (size_t)cutter->loops.count;
  cutter->triggers = weir_arena_array(cutter->arena, triggers, sizeof(*cutter->triggers));
  return cutter->triggers ? NULL : weir_out_of_memory();
}

// ---- the loops that start receives ----

static weir_status_t* add_node(weir_graph_t* graph, const char* op, const char* device,
                               weir_edges_t inputs, weir_attrs_t attrs, weir_node_t* control,
                               weir_edge_t* out_edge) {
  weir_node_t* node = NULL;
  weir_node_params_t params = {.op = op,
                               .name = "_turn",
                               .unique_name = true,
                               .device = device,
                               .inputs = inputs,
                               .control_inputs = &control,
                               .control_count = control != NULL,
                               .attrs = attrs};
  WEIR_TRY(weir_graph_add(graph, &params, &node));
  *out_edge = (weir_edge_t){.node = node, .index = 0};
  return NULL;
}

// A value in the surrounding loop, or outside of all, that the new loop starts with.
static weir_status_t* add_start(cutter_t* cutter, const weir_node_t* at, int parent, int part,
                                const char* device, weir_edge_t* out_edge) {
  weir_graph_t* graph = cutter->parts[part].graph;
  weir_node_t* trigger = NULL;
  weir_tensor_t* zero = NULL;
  if (parent > 0) WEIR_TRY(weir_cut_trigger(cutter, at, parent, part, &trigger));
  const int32_t value = 0;
  WEIR_TRY(weir_tensor_create_from(WEIR_DTYPE_INT32, 0, NULL, &value, &zero));
  weir_named_attr_t attrs[] = {weir_attr_tensor("value", zero),
                               weir_attr_type("dtype", WEIR_DTYPE_INT32)};
  weir_status_t* status =
      add_node(graph, "Const", device, WEIR_NO_EDGES,
               (weir_attrs_t){.items = attrs, .count = WEIR_COUNT_OF(attrs)}, trigger, out_edge);
  weir_tensor_release(zero);
  return status;
}

// Enter → Merge ⇄ NextIteration ← Switch. The Merge stands in |out_merge| and in |triggers| before
// the condition is fetched, since its Recv is itself started by it.
static weir_status_t* add_loop(cutter_t* cutter, const weir_node_t* at, int frame, int part) {
  const weir_loop_t* info = &cutter->loops.items[frame];
  weir_graph_t* graph = cutter->parts[part].graph;
  const char* device = weir_cut_placement(cutter, at)->device;
  weir_edge_t start, enter, merge, condition, turn, next;
  WEIR_TRY(add_start(cutter, at, info->parent, part, device, &start));
  int64_t parallel = weir_attrs_int(info->enter->def.attrs, "parallel_iterations");
  weir_named_attr_t attrs[] = {weir_attr_view("frame_name", info->name),
                               weir_attr_bool("is_constant", false),
                               weir_attr_int("parallel_iterations", parallel)};
  weir_attrs_t enter_attrs = {.items = attrs, .count = WEIR_COUNT_OF(attrs)};
  WEIR_TRY(add_node(graph, "Enter", device, WEIR_EDGES(start), enter_attrs, NULL, &enter));
  WEIR_TRY(add_node(graph, "Merge", device, WEIR_EDGES(enter, enter), WEIR_NO_ATTRS, NULL, &merge));
  cutter->triggers[part * cutter->loops.count + frame] = merge.node;
  WEIR_TRY(weir_cut_edge(cutter, (weir_edge_t){.node = info->condition, .index = 0}, at, frame,
                         part, &condition));
  WEIR_TRY(
      add_node(graph, "Switch", device, WEIR_EDGES(merge, condition), WEIR_NO_ATTRS, NULL, &turn));
  turn.index = 1;  // as long as the condition is true
  WEIR_TRY(add_node(graph, "NextIteration", device, WEIR_EDGES(turn), WEIR_NO_ATTRS, NULL, &next));
  return weir_graph_set_input(merge.node, 1, next);
}

weir_status_t* weir_cut_trigger(cutter_t* cutter, const weir_node_t* at, int frame, int part,
                                weir_node_t** out_trigger) {
  weir_node_t** place = &cutter->triggers[part * cutter->loops.count + frame];
  const weir_loop_t* info = &cutter->loops.items[frame];
  if (!*place && !info->condition) {
    return WEIR_STATUS(
        INVALID_ARGUMENT, "Loop '%.*s' crosses to '%s' by node '%s', but has no LoopCond",
        WEIR_VIEW_ARG(info->name), weir_cut_placement(cutter, at)->device, at->def.name);
  }
  if (!*place) WEIR_TRY(add_loop(cutter, at, frame, part));
  *out_trigger = *place;
  return NULL;
}
