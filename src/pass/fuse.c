// fuse.c — Elementwise nodes that read each other become one node, _Fused, whose program computes
// them tile by tile (kernel/fused/program.h).
//
// Which nodes those are, their ops say (weir_scalar_t in op/op.h). A node joins the group of its
// readers when all of them are in one group: what leaves a group then leaves it by its last node,
// the root, which depended on all of the group before. So a group waits for nothing that its root
// did not wait for, and no cycle can come of it, not even one through another task or a queue.
// Readers are chosen before what they read, in one sweep. Then groups are joined further where that
// is known to be right though others read what is between them (fuse_join.c).
//
// A group's nodes are alike in all that a node is besides its value: device, colocation, deadness
// and loop. Nodes with control inputs are left alone. Values that others read, await, or that are
// targets are outputs. What reads references or has effects is no elementwise op, or no plain one.
#include "device/device.h"
#include "op/kernel.h"
#include "pass/alive.h"
#include "pass/fuse_internal.h"

// ---- nodes that may be fused ----

// Attributes besides types: a number of type float is the function's parameter, what else there is
// makes another function of it unless it is the default.
static bool has_plain_attrs(const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  for (int i = 0; i < op->attr_count; ++i) {
    const weir_attr_def_t* attr = &op->attrs[i];
    if (attr->kind == WEIR_ATTR_TYPE || (attr->kind == WEIR_ATTR_FLOAT && !attr->is_list)) continue;
    const weir_attr_t* value = weir_attrs_find(node->def.attrs, attr->name);
    if (!value || !attr->has_default || !weir_attr_equal(value, &attr->default_value)) return false;
  }
  return true;
}

static float parameter_of(const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  for (int i = 0; i < op->attr_count; ++i) {
    if (op->attrs[i].kind == WEIR_ATTR_FLOAT)
      return weir_attrs_float(node->def.attrs, op->attrs[i].name);
  }
  return 0;
}

// Type of the operands; of a select's choices.
static weir_dtype_t operand_type(const weir_node_t* node) {
  return node->def.input_types[node->def.input_count - 1];
}

static bool has_plain_types(const weir_node_t* node, weir_scalar_t scalar) {
  weir_dtype_t type = operand_type(node);
  for (int i = 0; i < node->def.input_count; ++i) {
    bool is_condition = scalar.kind == WEIR_SCALAR_SELECT && i == 0;
    if (node->def.input_types[i] != (is_condition ? WEIR_DTYPE_BOOL : type)) return false;
  }
  return weir_scalar_can_fuse(scalar, type, node->def.output_types[0]);
}

// The kernel that runs |def| on devices of a kind, if that is one of their own that has all of its
// tensors in the device's memory; else NULL.
static const weir_kernel_def_t* find_kernel(const weir_node_def_t* def, const char* kernel_type) {
  const weir_kernel_def_t* kernel = NULL;
  weir_status_t* status = weir_op_find_kernel(def, kernel_type, &kernel);
  weir_status_destroy(status);
  bool is_good = !status && strcmp(kernel->device, kernel_type) == 0 &&
                 !weir_kernel_host_args(def, kernel, false) &&
                 !weir_kernel_host_args(def, kernel, true);
  return is_good ? kernel : NULL;
}

static bool has_fused_kernel(const weir_fuse_t* f, const char* kernel_type) {
  const weir_kernel_def_t* const* table = f->fused ? f->fused->kernel_tables : NULL;
  for (; table && *table; ++table) {
    for (const weir_kernel_def_t* kernel = *table; kernel->device; ++kernel) {
      if (strcmp(kernel->device, kernel_type) == 0) return true;
    }
  }
  return false;
}

// Whether |node| runs where there is code for fused nodes. What runs on a device but computes in
// the host's memory, integers of a GPU for one, is left there.
static bool is_where_fused(const weir_fuse_t* f, const weir_node_t* node) {
  weir_device_name_t name;
  weir_status_t* status = weir_device_name_parse(weir_view_of(node->def.device), &name);
  const weir_device_kind_t* kind =
      status ? NULL : weir_device_kind_find(weir_view_of(*name.type ? name.type : WEIR_DEVICE_CPU));
  weir_status_destroy(status);
  return kind && has_fused_kernel(f, kind->kernel_type) &&
         find_kernel(&node->def, kind->kernel_type);
}

static bool is_fusable(const weir_fuse_t* f, const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  if (!op || !op->def || op->def->scalar.kind == WEIR_SCALAR_NONE) return false;
  weir_scalar_t scalar = op->def->scalar;
  return op->role == WEIR_ROLE_NONE && !(op->flags & (WEIR_OP_STATEFUL | WEIR_OP_NO_FOLD)) &&
         node->control_count == 0 && node->def.output_count == 1 &&
         node->def.input_count == weir_scalar_arity(scalar) && weir_rewrite_is_plain(node) &&
         has_plain_attrs(node) && has_plain_types(node, scalar) && is_where_fused(f, node);
}

// ---- groups ----

static bool is_same_class(const weir_node_t* a, const weir_node_t* b) {
  const weir_attr_t* x = weir_attrs_find(a->def.attrs, "_class");
  const weir_attr_t* y = weir_attrs_find(b->def.attrs, "_class");
  return x && y ? weir_attr_equal(x, y) : x == y;
}

bool weir_fuse_is_alike(const weir_fuse_t* f, const weir_node_t* a, const weir_node_t* b) {
  return strcmp(a->def.device, b->def.device) == 0 && is_same_class(a, b) &&
         f->condition[a->id] == f->condition[b->id] &&
         f->loops.inside[a->id] == f->loops.inside[b->id];
}

int weir_fuse_find_input(const weir_fuse_group_t* group, weir_edge_t edge) {
  for (int i = 0; i < group->input_count; ++i) {
    if (weir_edge_equal(group->inputs[i], edge)) return i;
  }
  return -1;
}

// Inputs that |node| brings along, at most.
static int count_new_inputs(const weir_fuse_group_t* group, const weir_node_t* node) {
  int count = 0;
  for (int i = 0; i < node->def.input_count; ++i)
    count += weir_fuse_find_input(group, node->inputs[i]) < 0;
  return count;
}

static void join(weir_fuse_t* f, int number, weir_node_t* node) {
  weir_fuse_group_t* group = f->groups[number];
  int own = weir_fuse_find_input(group, (weir_edge_t){.node = node, .index = 0});
  if (own >= 0) group->inputs[own] = group->inputs[--group->input_count];
  for (int i = 0; i < node->def.input_count; ++i) {
    if (weir_fuse_find_input(group, node->inputs[i]) < 0)
      group->inputs[group->input_count++] = node->inputs[i];
  }
  ++group->member_count;
  f->next_member[node->id] = group->first;
  group->first = node;
  f->group_of[node->id] = number;
}

static bool can_join(const weir_fuse_t* f, int number, const weir_node_t* node) {
  if (number < 0 || f->is_awaited[node->id]) return false;
  const weir_fuse_group_t* group = f->groups[number];
  return group->member_count < WEIR_FUSED_MAX_STEPS && weir_fuse_is_alike(f, node, group->root) &&
         group->input_count - 1 + count_new_inputs(group, node) <= WEIR_FUSED_MAX_INPUTS;
}

static weir_status_t* choose_group(weir_fuse_t* f, weir_node_t* node) {
  if (!is_fusable(f, node)) return NULL;
  int number = f->reader_group[node->id];
  if (!can_join(f, number, node)) {
    weir_fuse_group_t* group = weir_arena_alloc(&f->rewrite.arena, sizeof(*group));
    if (!group) return weir_out_of_memory();
    group->root = node;
    number = f->group_count++;
    f->groups[number] = group;
  }
  join(f, number, node);
  return NULL;
}

// Tells what |node| reads who reads it.
static void note_reader(weir_fuse_t* f, const weir_node_t* node) {
  int group = f->group_of[node->id];
  for (int i = 0; i < node->def.input_count; ++i) {
    int* seen = &f->reader_group[node->inputs[i].node->id];
    if (group == WEIR_NO_GROUP || (*seen != WEIR_NO_GROUP && *seen != group))
      *seen = WEIR_MIXED_GROUPS;
    else *seen = group;
  }
}

static weir_status_t* choose_groups(weir_fuse_t* f) {
  for (size_t k = f->rewrite.count; k-- > 0;) {
    weir_node_t* node = f->rewrite.order[k];
    if (!f->is_live[node->id]) continue;
    WEIR_TRY(choose_group(f, node));
    note_reader(f, node);
  }
  return NULL;
}

// ---- programs ----

typedef struct outputs_t {
  weir_node_t** nodes;  // members that are read or awaited outside
  uint16_t* values;
  weir_dtype_t* types;
  size_t count;
} outputs_t;

static weir_status_t* add_fused(weir_fuse_t* f, const weir_fuse_group_t* group,
                                const weir_fused_program_t* program, const outputs_t* outputs,
                                weir_node_t** out_node) {
  weir_named_attr_t attrs[WEIR_FUSED_ATTRS + 4];
  size_t count = WEIR_FUSED_ATTRS;
  weir_dtype_t types[WEIR_FUSED_MAX_INPUTS];
  const weir_shape_t* shapes[WEIR_FUSED_MAX_INPUTS];
  const weir_node_t* last = outputs->nodes[outputs->count - 1];
  for (int i = 0; i < group->input_count; ++i) {
    types[i] = weir_edge_dtype(group->inputs[i]);
    shapes[i] = weir_edge_shape(group->inputs[i]);
  }
  WEIR_TRY(weir_fused_encode(program, &f->rewrite.arena, attrs));
  attrs[count++] = weir_attr_types("Tin", types, (size_t)group->input_count);
  attrs[count++] = weir_attr_types("Tout", outputs->types, outputs->count);
  attrs[count++] = weir_attr_shapes("shapes", shapes, (size_t)group->input_count);
  const weir_attr_t* class = weir_attrs_find(last->def.attrs, "_class");
  if (class) attrs[count++] = weir_attr_copy("_class", class);
  const char* name = weir_arena_printf(&last->graph->arena, "%s_fused", last->def.name);
  if (!name) return weir_out_of_memory();
  weir_node_params_t params = {.op = "_Fused",
                               .name = name,
                               .unique_name = true,
                               .device = last->def.device,
                               .inputs = {.items = group->inputs, .count = group->input_count},
                               .attrs = {.items = attrs, .count = count}};
  WEIR_TRY(weir_graph_add(last->graph, &params, out_node));
  for (size_t i = 0; i < outputs->count; ++i) (*out_node)->shapes[i] = outputs->nodes[i]->shapes[0];
  return NULL;
}

static uint16_t value_of_edge(const weir_fuse_t* f, const weir_fuse_group_t* group,
                              weir_edge_t edge) {
  int input = weir_fuse_find_input(group, edge);
  return input >= 0 ? (uint16_t)input : f->value_of[edge.node->id];
}

static void write_step(const weir_fuse_t* f, const weir_fuse_group_t* group,
                       const weir_node_t* node, weir_fused_step_t* out) {
  *out = (weir_fused_step_t){.scalar = node->def.op->def->scalar,
                             .type = (uint8_t)operand_type(node),
                             .out_type = (uint8_t)node->def.output_types[0],
                             .parameter = parameter_of(node)};
  for (int i = 0; i < node->def.input_count; ++i)
    out->operands[i] = value_of_edge(f, group, node->inputs[i]);
}

static weir_status_t* find_outputs(weir_fuse_t* f, const weir_fuse_group_t* group, int number,
                                   weir_node_t* const* members, outputs_t* out) {
  size_t count = (size_t)group->member_count;
  out->count = 0;
  out->nodes = weir_arena_array(&f->rewrite.arena, count, sizeof(*out->nodes));
  out->values = weir_arena_array(&f->rewrite.arena, count, sizeof(*out->values));
  out->types = weir_arena_array(&f->rewrite.arena, count, sizeof(*out->types));
  if (!out->nodes || !out->values || !out->types) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    weir_node_t* node = members[i];
    f->value_of[node->id] = (uint16_t)((size_t)group->input_count + i);
    if (f->reader_group[node->id] == number && !f->is_awaited[node->id]) continue;
    out->nodes[out->count] = node;
    out->values[out->count] = f->value_of[node->id];
    out->types[out->count++] = node->def.output_types[0];
  }
  return NULL;
}

// Replaces the |members| of a group, in topological order.
static weir_status_t* replace_group(weir_fuse_t* f, int number, weir_node_t* const* members) {
  const weir_fuse_group_t* group = f->groups[number];
  weir_arena_t* arena = &f->rewrite.arena;
  size_t count = (size_t)group->member_count;
  weir_fused_step_t* steps = weir_arena_array(arena, count, sizeof(*steps));
  weir_view_t* names = weir_arena_array(arena, count, sizeof(*names));
  weir_view_t* op_names = weir_arena_array(arena, count, sizeof(*op_names));
  outputs_t outputs;
  weir_node_t* fused = NULL;
  if (!steps || !names || !op_names) return weir_out_of_memory();
  WEIR_TRY(find_outputs(f, group, number, members, &outputs));
  for (size_t i = 0; i < count; ++i) {
    write_step(f, group, members[i], &steps[i]);
    names[i] = weir_view_of(members[i]->def.name);
    op_names[i] = weir_view_of(members[i]->def.op_name);
  }
  weir_fused_program_t program = {.input_count = group->input_count,
                                  .step_count = group->member_count,
                                  .output_count = (int)outputs.count,
                                  .steps = steps,
                                  .outputs = outputs.values,
                                  .names = names,
                                  .op_names = op_names};
  WEIR_TRY(add_fused(f, group, &program, &outputs, &fused));
  for (size_t i = 0; i < outputs.count; ++i) {
    weir_edge_t from = {.node = outputs.nodes[i], .index = 0};
    WEIR_TRY(weir_rewrite_replace_edge(&f->rewrite, from,
                                       (weir_edge_t){.node = fused, .index = (int)i}));
    weir_rewrite_replace_node(&f->rewrite, from.node, fused);
  }
  return NULL;
}

// Groups have grown together: says anew who reads each node.
static void note_readers(weir_fuse_t* f) {
  for (size_t i = 0; i <= f->rewrite.count; ++i) f->reader_group[i] = WEIR_NO_GROUP;
  for (size_t k = 0; k < f->rewrite.count; ++k) {
    const weir_node_t* node = f->rewrite.order[k];
    if (f->is_live[node->id]) note_reader(f, node);
  }
}

// Members of each group in topological order, one group after the other.
static weir_status_t* replace_groups(weir_fuse_t* f) {
  size_t groups = (size_t)f->group_count;
  size_t* ends = weir_arena_array(&f->rewrite.arena, groups + 1, sizeof(*ends));
  weir_node_t** members =
      weir_arena_array(&f->rewrite.arena, f->rewrite.count + 1, sizeof(*members));
  if (!ends || !members) return weir_out_of_memory();
  for (size_t g = 0; g < groups; ++g) ends[g + 1] = ends[g] + (size_t)f->groups[g]->member_count;
  for (size_t k = 0; k < f->rewrite.count; ++k) {
    weir_node_t* node = f->rewrite.order[k];
    if (f->is_live[node->id] && f->group_of[node->id] >= 0)
      members[ends[f->group_of[node->id]]++] = node;
  }
  for (size_t g = 0; g < groups; ++g) {  // ends[g] is now where group g ends
    int count = f->groups[g]->member_count;
    if (count >= 2) WEIR_TRY(replace_group(f, (int)g, members + ends[g] - count));
  }
  return NULL;
}

// ---- the pass ----

static weir_status_t* mark_awaited(weir_fuse_t* f, const weir_pass_ctx_t* ctx) {
  size_t count = f->rewrite.count + 1;
  f->is_awaited = weir_arena_array(&f->rewrite.arena, count, sizeof(*f->is_awaited));
  if (!f->is_awaited) return weir_out_of_memory();
  for (size_t k = 0; k < f->rewrite.count; ++k) {
    const weir_node_t* node = f->rewrite.order[k];
    for (int i = 0; i < node->control_count && f->is_live[node->id]; ++i)
      f->is_awaited[node->control_inputs[i]->id] = true;
  }
  for (int i = 0; i < ctx->target_count; ++i) f->is_awaited[ctx->targets[i]->id] = true;
  return NULL;
}

static weir_status_t* init(weir_fuse_t* f, const weir_pass_ctx_t* ctx) {
  weir_arena_t* arena = &f->rewrite.arena;
  f->fused = weir_registry_find(ctx->graph->registry, weir_view_of("_Fused"));
  WEIR_TRY(weir_rewrite_init(&f->rewrite, ctx->graph));
  WEIR_TRY(weir_alive_find(ctx->graph, f->rewrite.order, f->rewrite.count, arena, &f->condition));
  WEIR_TRY(weir_loops_find(ctx->graph, f->rewrite.order, f->rewrite.count, arena, &f->loops));
  WEIR_TRY(weir_rewrite_mark_live(ctx, arena, &f->is_live));
  WEIR_TRY(mark_awaited(f, ctx));
  size_t count = f->rewrite.count + 1;
  f->group_of = weir_arena_array(arena, count, sizeof(*f->group_of));
  f->reader_group = weir_arena_array(arena, count, sizeof(*f->reader_group));
  f->next_member = weir_arena_array(arena, count, sizeof(*f->next_member));
  f->value_of = weir_arena_array(arena, count, sizeof(*f->value_of));
  f->groups = weir_arena_array(arena, count, sizeof(*f->groups));
  if (!f->group_of || !f->reader_group || !f->next_member || !f->value_of || !f->groups)
    return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) f->group_of[i] = f->reader_group[i] = WEIR_NO_GROUP;
  return NULL;
}

weir_status_t* weir_pass_fuse(weir_pass_ctx_t* ctx) {
  weir_fuse_t f = {0};
  weir_status_t* status = init(&f, ctx);
  if (!status) status = choose_groups(&f);
  if (!status) status = weir_fuse_join_groups(&f);
  if (!status) note_readers(&f);
  if (!status) status = replace_groups(&f);
  if (!status) status = weir_rewrite_finish(&f.rewrite, ctx);
  weir_rewrite_free(&f.rewrite);
  return status;
}
