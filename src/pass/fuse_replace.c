// fuse_replace.c — Groups become nodes: what their programs are, what they read, await and give.
//
// A hop, a member that hands its input on, has no step: who reads it in the group reads what it
// hands on. Others read that as an output of the group, or the hop itself where its input comes
// from outside, for which it stays in the graph.
#include "pass/fuse_internal.h"

// ---- members ----

// Leaves out of the groups the hops that no step of theirs reads or awaits: nothing is gained by
// having them in it.
static weir_status_t* leave_out_hops(weir_fuse_t* f) {
  bool* is_wanted = weir_arena_array(&f->rewrite.arena, f->rewrite.count + 1, sizeof(*is_wanted));
  if (!is_wanted) return weir_out_of_memory();
  for (size_t k = f->rewrite.count; k-- > 0;) {
    const weir_node_t* node = f->rewrite.order[k];
    int group = f->group_of[node->id];
    if (group < 0) continue;
    if (f->is_hop[node->id] && !is_wanted[node->id]) {
      f->group_of[node->id] = WEIR_NO_GROUP;
      --f->groups[group]->member_count;
      continue;
    }
    for (int i = 0; i < node->def.input_count; ++i)
      is_wanted[node->inputs[i].node->id] |= f->group_of[node->inputs[i].node->id] == group;
    for (int i = 0; i < f->controls[node->id].count; ++i) {
      const weir_node_t* source = f->controls[node->id].nodes[i];
      is_wanted[source->id] |= f->group_of[source->id] == group;
    }
  }
  return NULL;
}

// What an edge is, hops of the group left out.
static weir_edge_t behind_hops(const weir_fuse_t* f, int group, weir_edge_t edge) {
  while (f->group_of[edge.node->id] == group && f->is_hop[edge.node->id])
    edge = edge.node->inputs[0];
  return edge;
}

static bool is_inside(const weir_fuse_t* f, int group, weir_edge_t edge) {
  return f->group_of[behind_hops(f, group, edge).node->id] == group;
}

// ---- programs ----

typedef struct draft_t {
  weir_fuse_t* f;
  int number;
  weir_node_t* const* members;  // in topological order
  int member_count;
  weir_edge_t inputs[WEIR_FUSED_MAX_INPUTS];
  int input_count;
  weir_fused_step_t* steps;
  weir_node_t** nodes;  // that the steps were
  weir_view_t* names;
  weir_view_t* op_names;
  int step_count;
  bool* is_output;      // by step: read outside
  int* output_of;       // by step
  uint16_t* outputs;    // values
  weir_dtype_t* types;  // of the outputs
  int output_count;
} draft_t;

static weir_status_t* alloc(draft_t* d) {
  weir_arena_t* arena = &d->f->rewrite.arena;
  size_t count = (size_t)d->member_count;
  d->steps = weir_arena_array(arena, count, sizeof(*d->steps));
  d->nodes = weir_arena_array(arena, count, sizeof(*d->nodes));
  d->names = weir_arena_array(arena, count, sizeof(*d->names));
  d->op_names = weir_arena_array(arena, count, sizeof(*d->op_names));
  d->is_output = weir_arena_array(arena, count, sizeof(*d->is_output));
  d->output_of = weir_arena_array(arena, count, sizeof(*d->output_of));
  d->outputs = weir_arena_array(arena, count, sizeof(*d->outputs));
  d->types = weir_arena_array(arena, count, sizeof(*d->types));
  bool is_good = d->steps && d->nodes && d->names && d->op_names && d->is_output && d->output_of &&
                 d->outputs && d->types;
  return is_good ? NULL : weir_out_of_memory();
}

static int find_input(const draft_t* d, weir_edge_t edge) {
  for (int i = 0; i < d->input_count; ++i) {
    if (weir_edge_equal(d->inputs[i], edge)) return i;
  }
  return -1;
}

static void list_members(draft_t* d) {
  for (int i = 0; i < d->member_count; ++i) {
    weir_node_t* node = d->members[i];
    if (d->f->is_hop[node->id]) continue;
    d->nodes[d->step_count++] = node;
    for (int k = 0; k < node->def.input_count; ++k) {
      weir_edge_t edge = behind_hops(d->f, d->number, node->inputs[k]);
      if (d->f->group_of[edge.node->id] != d->number && find_input(d, edge) < 0)
        d->inputs[d->input_count++] = edge;
    }
  }
}

static float parameter_of(const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  for (int i = 0; i < op->attr_count; ++i) {
    if (op->attrs[i].kind == WEIR_ATTR_FLOAT)
      return weir_attrs_float(node->def.attrs, op->attrs[i].name);
  }
  return 0;
}

// What a reduction keeps.
static uint32_t axes_of(const weir_node_t* node) {
  const weir_attr_t* format = weir_attrs_find(node->def.attrs, "data_format");
  bool is_nchw = format && weir_view_is(format->u.s, "NCHW");
  return is_nchw ? WEIR_FUSED_KEEPS_SECOND : WEIR_FUSED_KEEPS_LAST;
}

static void write_reduction(const weir_node_t* node, weir_fused_step_t* step) {
  step->scalar.kind = WEIR_SCALAR_REDUCE;
  step->axes = axes_of(node);
}

static uint16_t value_of_edge(const draft_t* d, weir_edge_t edge) {
  edge = behind_hops(d->f, d->number, edge);
  int input = find_input(d, edge);
  return input >= 0 ? (uint16_t)input : d->f->value_of[edge.node->id];
}

static void write_steps(draft_t* d) {
  for (int i = 0; i < d->step_count; ++i) {
    const weir_node_t* node = d->nodes[i];
    d->f->value_of[node->id] = (uint16_t)(d->input_count + i);
    d->names[i] = weir_view_of(node->def.name);
    d->op_names[i] = weir_view_of(node->def.op_name);
    d->steps[i] = (weir_fused_step_t){.scalar = node->def.op->def->scalar,
                                      .type = (uint8_t)weir_fuse_operand_type(node),
                                      .out_type = (uint8_t)node->def.output_types[0],
                                      .parameter = parameter_of(node)};
    if (weir_fuse_reduces(node)) write_reduction(node, &d->steps[i]);
    for (int k = 0; k < node->def.input_count; ++k)
      d->steps[i].operands[k] = value_of_edge(d, node->inputs[k]);
  }
}

// ---- outputs ----

static bool is_read_outside(const draft_t* d, const weir_node_t* node) {
  int readers = d->f->reader_group[node->id];
  return readers != d->number && readers != WEIR_NO_GROUP;
}

// What others read, of a step or of a hop behind it; at least the last value.
static void find_outputs(draft_t* d) {
  for (int i = 0; i < d->member_count; ++i) {
    weir_edge_t edge = {.node = d->members[i], .index = 0};
    if (is_read_outside(d, edge.node) && is_inside(d->f, d->number, edge))
      d->is_output[value_of_edge(d, edge) - d->input_count] = true;
  }
  bool has_any = false;
  for (int i = 0; i < d->step_count; ++i) has_any |= d->is_output[i];
  if (!has_any) d->is_output[d->step_count - 1] = true;
  for (int i = 0; i < d->step_count; ++i) {
    if (!d->is_output[i]) continue;
    d->output_of[i] = d->output_count;
    d->types[d->output_count] = d->nodes[i]->def.output_types[0];
    d->outputs[d->output_count++] = (uint16_t)(d->input_count + i);
  }
}

// ---- nodes ----

static weir_status_t* add_node(const draft_t* d, weir_node_t** out_node) {
  weir_named_attr_t attrs[WEIR_FUSED_ATTRS + 3];
  size_t count = WEIR_FUSED_ATTRS;
  weir_dtype_t types[WEIR_FUSED_MAX_INPUTS];
  const weir_shape_t* shapes[WEIR_FUSED_MAX_INPUTS];
  const weir_node_t* last = d->nodes[d->step_count - 1];
  weir_fused_program_t program = {.input_count = d->input_count,
                                  .step_count = d->step_count,
                                  .output_count = d->output_count,
                                  .steps = d->steps,
                                  .outputs = d->outputs,
                                  .names = d->names,
                                  .op_names = d->op_names};
  for (int i = 0; i < d->input_count; ++i) {
    types[i] = weir_edge_dtype(d->inputs[i]);
    shapes[i] = weir_edge_shape(d->inputs[i]);
  }
  WEIR_TRY(weir_fused_encode(&program, &d->f->rewrite.arena, attrs));
  attrs[count++] = weir_attr_types("Tin", types, (size_t)d->input_count);
  attrs[count++] = weir_attr_types("Tout", d->types, (size_t)d->output_count);
  attrs[count++] = weir_attr_shapes("shapes", shapes, (size_t)d->input_count);
  const char* name = weir_arena_printf(&last->graph->arena, "%s_fused", last->def.name);
  if (!name) return weir_out_of_memory();
  weir_node_params_t params = {.op = weir_fused_reduces(&program) ? "_FusedReduce" : "_Fused",
                               .name = name,
                               .unique_name = true,
                               .device = last->def.device,
                               .inputs = {.items = d->inputs, .count = d->input_count},
                               .attrs = {.items = attrs, .count = count}};
  WEIR_TRY(weir_graph_add(last->graph, &params, out_node));
  for (int i = 0; i < d->step_count; ++i) {
    if (d->is_output[i]) (*out_node)->shapes[d->output_of[i]] = d->nodes[i]->shapes[0];
  }
  return NULL;
}

// Waits for what the members waited for, but for each other.
static weir_status_t* add_controls(const draft_t* d, weir_node_t* fused) {
  for (int i = 0; i < d->member_count; ++i) {
    const weir_node_t* node = d->members[i];
    const weir_fuse_controls_t* controls = &d->f->controls[node->id];
    for (int k = 0; k < controls->count; ++k) {
      if (d->f->group_of[controls->nodes[k]->id] != d->number)
        WEIR_TRY(weir_graph_add_control(fused, controls->nodes[k]));
    }
    if (!d->f->is_hop[node->id] || is_inside(d->f, d->number, node->inputs[0])) continue;
    // A hop may be awaited only: then what it hands on is no input.
    weir_edge_t source = behind_hops(d->f, d->number, node->inputs[0]);
    if (find_input(d, source) < 0) WEIR_TRY(weir_graph_add_control(fused, source.node));
  }
  return NULL;
}

static weir_status_t* replace_members(const draft_t* d, weir_node_t* fused) {
  weir_rewrite_t* rewrite = &d->f->rewrite;
  for (int i = 0; i < d->member_count; ++i) {
    weir_edge_t edge = {.node = d->members[i], .index = 0};
    if (!is_inside(d->f, d->number, edge)) continue;  // a hop that stays, for others
    int step = value_of_edge(d, edge) - d->input_count;
    if (d->is_output[step])
      WEIR_TRY(weir_rewrite_replace_edge(
          rewrite, edge, (weir_edge_t){.node = fused, .index = d->output_of[step]}));
    weir_rewrite_replace_node(rewrite, edge.node, fused);
  }
  return NULL;
}

static weir_status_t* replace_group(weir_fuse_t* f, int number, weir_node_t* const* members,
                                    int count) {
  draft_t d = {.f = f, .number = number, .members = members, .member_count = count};
  weir_node_t* fused = NULL;
  WEIR_TRY(alloc(&d));
  list_members(&d);
  if (d.step_count < 2) return NULL;
  write_steps(&d);
  find_outputs(&d);
  WEIR_TRY(add_node(&d, &fused));
  WEIR_TRY(add_controls(&d, fused));
  return replace_members(&d, fused);
}

// Groups have grown together: says anew who reads each node.
static void note_readers(weir_fuse_t* f) {
  for (size_t i = 0; i <= f->rewrite.count; ++i) f->reader_group[i] = WEIR_NO_GROUP;
  for (size_t k = 0; k < f->rewrite.count; ++k) {
    const weir_node_t* node = f->rewrite.order[k];
    if (f->is_live[node->id]) weir_fuse_note_reader(f, node);
  }
}

// Members of each group in topological order, one group after the other.
weir_status_t* weir_fuse_replace_groups(weir_fuse_t* f) {
  size_t groups = (size_t)f->group_count;
  size_t* ends = weir_arena_array(&f->rewrite.arena, groups + 1, sizeof(*ends));
  weir_node_t** members =
      weir_arena_array(&f->rewrite.arena, f->rewrite.count + 1, sizeof(*members));
  if (!ends || !members) return weir_out_of_memory();
  WEIR_TRY(leave_out_hops(f));
  note_readers(f);
  for (size_t g = 0; g < groups; ++g) ends[g + 1] = ends[g] + (size_t)f->groups[g]->member_count;
  for (size_t k = 0; k < f->rewrite.count; ++k) {
    weir_node_t* node = f->rewrite.order[k];
    if (f->is_live[node->id] && f->group_of[node->id] >= 0)
      members[ends[f->group_of[node->id]]++] = node;
  }
  for (size_t g = 0; g < groups; ++g) {  // ends[g] is now where group g ends
    int count = f->groups[g]->member_count;
    if (count >= 2) WEIR_TRY(replace_group(f, (int)g, members + ends[g] - count, count));
  }
  return NULL;
}
