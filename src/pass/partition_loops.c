// partition_loops.c — Loops that span tasks: which loop a node is in, and the small loops that
// start the receives of every iteration.
#include "pass/partition_internal.h"

// ---- which loop a node is in ----

static weir_status_t* find_child(cutter_t* cutter, int parent, const weir_node_t* enter,
                                 int* out_frame) {
  weir_view_t name = weir_attrs_string(enter->def.attrs, "frame_name");
  for (int i = 1; i < cutter->frame_count; ++i) {
    if (cutter->frames[i].parent != parent || !weir_view_equal(cutter->frames[i].name, name))
      continue;
    *out_frame = i;
    return NULL;
  }
  if (!WEIR_GROW(cutter->frames, cutter->frame_capacity, (size_t)cutter->frame_count + 1))
    return weir_out_of_memory();
  cutter->frames[cutter->frame_count] =
      (cut_frame_t){.parent = parent, .name = name, .enter = enter, .condition = WEIR_NO_EDGE};
  *out_frame = cutter->frame_count++;
  return NULL;
}

static int frame_after(const cutter_t* cutter, const weir_node_t* node) {
  int frame = cutter->frame_of[node->id];
  switch (weir_node_role(node)) {
    case WEIR_ROLE_ENTER: return cutter->child_of[node->id];
    case WEIR_ROLE_EXIT: return frame > 0 ? cutter->frames[frame].parent : 0;
    default: return frame;
  }
}

// The loop that the inputs (but for a back edge) come from. Constants stand outside of all loops
// and are read inside as well: they do not tell.
static int frame_before(const cutter_t* cutter, const weir_node_t* node) {
  for (int i = 0; i < node->def.input_count + node->control_count; ++i) {
    bool is_data = i < node->def.input_count;
    const weir_node_t* source =
        is_data ? node->inputs[i].node : node->control_inputs[i - node->def.input_count];
    bool is_back_edge = weir_node_role(node) == WEIR_ROLE_MERGE &&
                        weir_node_role(source) == WEIR_ROLE_NEXT_ITERATION;
    int frame = is_back_edge ? 0 : frame_after(cutter, source);
    if (frame > 0) return frame;
  }
  return 0;
}

weir_status_t* weir_cut_find_frames(cutter_t* cutter) {
  const weir_graph_t* graph = cutter->params->graph;
  weir_node_t** order = NULL;
  WEIR_TRY(weir_graph_order(graph, cutter->arena, &order));
  cutter->frame_of = weir_arena_array(cutter->arena, graph->node_count + 1, sizeof(int));
  cutter->child_of = weir_arena_array(cutter->arena, graph->node_count + 1, sizeof(int));
  if (!cutter->frame_of || !cutter->child_of) return weir_out_of_memory();
  if (!WEIR_GROW(cutter->frames, cutter->frame_capacity, 4)) return weir_out_of_memory();
  cutter->frames[0] = (cut_frame_t){.parent = -1, .condition = WEIR_NO_EDGE};
  cutter->frame_count = 1;
  for (size_t i = 0; i < graph->node_count; ++i) {
    weir_node_t* node = order[i];
    int frame = frame_before(cutter, node);
    cutter->frame_of[node->id] = frame;
    if (weir_node_role(node) == WEIR_ROLE_ENTER)
      WEIR_TRY(find_child(cutter, frame, node, &cutter->child_of[node->id]));
    if (weir_node_role(node) == WEIR_ROLE_LOOP_COND)
      cutter->frames[frame].condition = (weir_edge_t){.node = node, .index = 0};
  }
  size_t triggers = (size_t)cutter->part_count * (size_t)cutter->frame_count;
  cutter->triggers = weir_arena_array(cutter->arena, triggers, sizeof(*cutter->triggers));
  return cutter->triggers ? NULL : weir_out_of_memory();
}

void weir_cut_free_frames(cutter_t* cutter) { weir_free(cutter->frames); }

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
  const cut_frame_t* info = &cutter->frames[frame];
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
  cutter->triggers[part * cutter->frame_count + frame] = merge.node;
  WEIR_TRY(weir_cut_edge(cutter, info->condition, at, frame, part, &condition));
  WEIR_TRY(
      add_node(graph, "Switch", device, WEIR_EDGES(merge, condition), WEIR_NO_ATTRS, NULL, &turn));
  turn.index = 1;  // as long as the condition is true
  WEIR_TRY(add_node(graph, "NextIteration", device, WEIR_EDGES(turn), WEIR_NO_ATTRS, NULL, &next));
  return weir_graph_set_input(merge.node, 1, next);
}

weir_status_t* weir_cut_trigger(cutter_t* cutter, const weir_node_t* at, int frame, int part,
                                weir_node_t** out_trigger) {
  weir_node_t** place = &cutter->triggers[part * cutter->frame_count + frame];
  const cut_frame_t* info = &cutter->frames[frame];
  if (!*place && !info->condition.node) {
    return WEIR_STATUS(
        INVALID_ARGUMENT, "Loop '%.*s' crosses to '%s' by node '%s', but has no LoopCond",
        WEIR_VIEW_ARG(info->name), weir_cut_placement(cutter, at)->device, at->def.name);
  }
  if (!*place) WEIR_TRY(add_loop(cutter, at, frame, part));
  *out_trigger = *place;
  return NULL;
}
