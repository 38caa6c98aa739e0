// fuse.c — Elementwise nodes that read each other become one node, _Fused, whose program computes
// them tile by tile (kernel/fused/program.h).
//
// Which nodes those are, their ops say (weir_scalar_t in op/op.h). A node joins the group of its
// readers when all of them are in one group: what leaves a group then leaves it by its last node,
// the root, which depended on all of the group before. So a group waits for nothing that its root
// did not wait for, and no cycle can come of it, not even one through another task or a queue.
// Readers are chosen before what they read, in one sweep.
//
// A group's nodes are alike in all that a node is besides its value: device, colocation, deadness
// and loop. Nodes with control inputs, and those that others wait for or that are targets, are not
// joined to their readers' group; the latter may be roots. What reads references or has effects is
// no elementwise op, or not a plain one.
#include "device/device.h"
#include "graph/analysis.h"
#include "kernel/fused/program.h"
#include "pass/alive.h"
#include "pass/rewrite.h"

enum { NO_GROUP = -1, MIXED = -2 };

// An edge that a group reads, by the order in which it was met.
typedef struct group_t {
  weir_node_t* root;
  int member_count;
  int input_count;
  weir_edge_t inputs[WEIR_FUSED_MAX_INPUTS];
} group_t;

typedef struct fuse_t {
  weir_rewrite_t rewrite;
  const int* condition;  // by node id, as all below: when it is alive
  weir_loops_t loops;    // which loop it is in
  bool* is_live;
  bool* is_awaited;    // by control edges, or as a target
  int* group_of;       // NO_GROUP: none
  int* reader_group;   // of all that read it; NO_GROUP: nobody does; MIXED: not one group
  uint16_t* value_of;  // of a member: its value in the group's program
  group_t** groups;
  int group_count;
} fuse_t;

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

static bool has_kernel(const weir_node_def_t* def, const char* device) {
  const weir_kernel_def_t* kernel = NULL;
  weir_status_t* status = weir_op_find_kernel(def, device, &kernel);
  weir_status_destroy(status);
  return status == NULL;
}

// Whether |node| runs where there is code for fused nodes.
static bool is_on_cpu(const weir_node_t* node) {
  weir_device_name_t name;
  weir_status_t* status = weir_device_name_parse(weir_view_of(node->def.device), &name);
  bool is_cpu = !status && (!*name.type || !strcmp(name.type, WEIR_DEVICE_CPU));
  weir_status_destroy(status);
  return is_cpu && has_kernel(&node->def, WEIR_DEVICE_CPU);
}

static bool is_fusable(const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  if (!op || !op->def || op->def->scalar.kind == WEIR_SCALAR_NONE) return false;
  weir_scalar_t scalar = op->def->scalar;
  return op->role == WEIR_ROLE_NONE && !(op->flags & (WEIR_OP_STATEFUL | WEIR_OP_NO_FOLD)) &&
         node->control_count == 0 && node->def.output_count == 1 &&
         node->def.input_count == weir_scalar_arity(scalar) && weir_rewrite_is_plain(node) &&
         has_plain_attrs(node) && has_plain_types(node, scalar) && is_on_cpu(node);
}

// ---- groups ----

static bool is_same_class(const weir_node_t* a, const weir_node_t* b) {
  const weir_attr_t* x = weir_attrs_find(a->def.attrs, "_class");
  const weir_attr_t* y = weir_attrs_find(b->def.attrs, "_class");
  return x && y ? weir_attr_equal(x, y) : x == y;
}

static bool is_same_place(const weir_node_t* a, const weir_node_t* b) {
  return strcmp(a->def.device, b->def.device) == 0 && is_same_class(a, b);
}

static int find_input(const group_t* group, weir_edge_t edge) {
  for (int i = 0; i < group->input_count; ++i) {
    if (weir_edge_equal(group->inputs[i], edge)) return i;
  }
  return -1;
}

// Inputs that |node| brings along, at most.
static int count_new_inputs(const group_t* group, const weir_node_t* node) {
  int count = 0;
  for (int i = 0; i < node->def.input_count; ++i) count += find_input(group, node->inputs[i]) < 0;
  return count;
}

static void join(fuse_t* f, int number, weir_node_t* node) {
  group_t* group = f->groups[number];
  int own = find_input(group, (weir_edge_t){.node = node, .index = 0});
  if (own >= 0) group->inputs[own] = group->inputs[--group->input_count];
  for (int i = 0; i < node->def.input_count; ++i) {
    if (find_input(group, node->inputs[i]) < 0)
      group->inputs[group->input_count++] = node->inputs[i];
  }
  ++group->member_count;
  f->group_of[node->id] = number;
}

static bool can_join(const fuse_t* f, int number, const weir_node_t* node) {
  if (number < 0 || f->is_awaited[node->id]) return false;
  const group_t* group = f->groups[number];
  return group->member_count < WEIR_FUSED_MAX_STEPS && is_same_place(node, group->root) &&
         f->condition[node->id] == f->condition[group->root->id] &&
         f->loops.inside[node->id] == f->loops.inside[group->root->id] &&
         group->input_count - 1 + count_new_inputs(group, node) <= WEIR_FUSED_MAX_INPUTS;
}

static weir_status_t* choose_group(fuse_t* f, weir_node_t* node) {
  if (!is_fusable(node)) return NULL;
  int number = f->reader_group[node->id];
  if (!can_join(f, number, node)) {
    group_t* group = weir_arena_alloc(&f->rewrite.arena, sizeof(*group));
    if (!group) return weir_out_of_memory();
    group->root = node;
    number = f->group_count++;
    f->groups[number] = group;
  }
  join(f, number, node);
  return NULL;
}

// Tells what |node| reads who reads it.
static void note_reader(fuse_t* f, const weir_node_t* node) {
  int group = f->group_of[node->id];
  for (int i = 0; i < node->def.input_count; ++i) {
    int* seen = &f->reader_group[node->inputs[i].node->id];
    if (group == NO_GROUP || (*seen != NO_GROUP && *seen != group)) *seen = MIXED;
    else *seen = group;
  }
}

static weir_status_t* choose_groups(fuse_t* f) {
  for (size_t k = f->rewrite.count; k-- > 0;) {
    weir_node_t* node = f->rewrite.order[k];
    if (!f->is_live[node->id]) continue;
    WEIR_TRY(choose_group(f, node));
    note_reader(f, node);
  }
  return NULL;
}

// ---- programs ----

static weir_status_t* add_fused(fuse_t* f, group_t* group, const weir_fused_program_t* program,
                                const weir_dtype_t* types, weir_node_t** out_node) {
  weir_node_t* root = group->root;
  weir_named_attr_t attrs[WEIR_FUSED_ATTRS + 3];
  size_t count = WEIR_FUSED_ATTRS;
  WEIR_TRY(weir_fused_encode(program, &f->rewrite.arena, attrs));
  attrs[count++] = weir_attr_types("Tin", types, (size_t)group->input_count);
  attrs[count++] = weir_attr_types("Tout", root->def.output_types, 1);
  const weir_attr_t* class = weir_attrs_find(root->def.attrs, "_class");
  if (class) attrs[count++] = weir_attr_copy("_class", class);
  const char* name = weir_arena_printf(&root->graph->arena, "%s_fused", root->def.name);
  if (!name) return weir_out_of_memory();
  weir_node_params_t params = {.op = "_Fused",
                               .name = name,
                               .unique_name = true,
                               .device = root->def.device,
                               .inputs = {.items = group->inputs, .count = group->input_count},
                               .attrs = {.items = attrs, .count = count}};
  WEIR_TRY(weir_graph_add(root->graph, &params, out_node));
  (*out_node)->shapes[0] = root->shapes[0];
  return NULL;
}

static uint16_t value_of_edge(const fuse_t* f, const group_t* group, weir_edge_t edge) {
  int input = find_input(group, edge);
  return input >= 0 ? (uint16_t)input : f->value_of[edge.node->id];
}

static void write_step(const fuse_t* f, const group_t* group, const weir_node_t* node,
                       weir_fused_step_t* out) {
  *out = (weir_fused_step_t){.scalar = node->def.op->def->scalar,
                             .type = (uint8_t)operand_type(node),
                             .out_type = (uint8_t)node->def.output_types[0],
                             .parameter = parameter_of(node)};
  for (int i = 0; i < node->def.input_count; ++i)
    out->operands[i] = value_of_edge(f, group, node->inputs[i]);
}

// Replaces the |members| of a group, in order, the root last.
static weir_status_t* replace_group(fuse_t* f, group_t* group, weir_node_t* const* members) {
  weir_arena_t* arena = &f->rewrite.arena;
  size_t count = (size_t)group->member_count;
  weir_fused_step_t* steps = weir_arena_array(arena, count, sizeof(*steps));
  weir_view_t* names = weir_arena_array(arena, count, sizeof(*names));
  weir_view_t* op_names = weir_arena_array(arena, count, sizeof(*op_names));
  weir_dtype_t types[WEIR_FUSED_MAX_INPUTS];
  uint16_t output = (uint16_t)((size_t)group->input_count + count - 1);
  if (!steps || !names || !op_names) return weir_out_of_memory();
  for (int i = 0; i < group->input_count; ++i) types[i] = weir_edge_dtype(group->inputs[i]);
  for (size_t i = 0; i < count; ++i) {
    write_step(f, group, members[i], &steps[i]);
    names[i] = weir_view_of(members[i]->def.name);
    op_names[i] = weir_view_of(members[i]->def.op_name);
    f->value_of[members[i]->id] = (uint16_t)((size_t)group->input_count + i);
  }
  weir_fused_program_t program = {.input_count = group->input_count,
                                  .step_count = group->member_count,
                                  .output_count = 1,
                                  .steps = steps,
                                  .outputs = &output,
                                  .names = names,
                                  .op_names = op_names};
  weir_node_t* fused = NULL;
  WEIR_TRY(add_fused(f, group, &program, types, &fused));
  WEIR_TRY(weir_rewrite_replace_edge(&f->rewrite, (weir_edge_t){.node = group->root, .index = 0},
                                     (weir_edge_t){.node = fused, .index = 0}));
  weir_rewrite_replace_node(&f->rewrite, group->root, fused);
  return NULL;
}

// Members of each group in topological order, one group after the other.
static weir_status_t* replace_groups(fuse_t* f) {
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
    group_t* group = f->groups[g];
    if (group->member_count < 2) continue;
    WEIR_TRY(replace_group(f, group, members + ends[g] - group->member_count));
  }
  return NULL;
}

// ---- the pass ----

static weir_status_t* mark_awaited(fuse_t* f, const weir_pass_ctx_t* ctx) {
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

static weir_status_t* init(fuse_t* f, const weir_pass_ctx_t* ctx) {
  weir_arena_t* arena = &f->rewrite.arena;
  WEIR_TRY(weir_rewrite_init(&f->rewrite, ctx->graph));
  WEIR_TRY(weir_alive_find(ctx->graph, f->rewrite.order, f->rewrite.count, arena, &f->condition));
  WEIR_TRY(weir_loops_find(ctx->graph, f->rewrite.order, f->rewrite.count, arena, &f->loops));
  WEIR_TRY(weir_rewrite_mark_live(ctx, arena, &f->is_live));
  WEIR_TRY(mark_awaited(f, ctx));
  size_t count = f->rewrite.count + 1;
  f->group_of = weir_arena_array(arena, count, sizeof(*f->group_of));
  f->reader_group = weir_arena_array(arena, count, sizeof(*f->reader_group));
  f->value_of = weir_arena_array(arena, count, sizeof(*f->value_of));
  f->groups = weir_arena_array(arena, count, sizeof(*f->groups));
  if (!f->group_of || !f->reader_group || !f->value_of || !f->groups) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) f->group_of[i] = f->reader_group[i] = NO_GROUP;
  return NULL;
}

weir_status_t* weir_pass_fuse(weir_pass_ctx_t* ctx) {
  fuse_t f = {0};
  weir_status_t* status = init(&f, ctx);
  if (!status) status = choose_groups(&f);
  if (!status) status = replace_groups(&f);
  if (!status) status = weir_rewrite_finish(&f.rewrite, ctx);
  weir_rewrite_free(&f.rewrite);
  return status;
}
