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
// A reduction is the last of its group on the way that it is on: what reads it is in another, as
// all of what it reads must be there first. A group has one at most, as its kernels make but one in
// passing.
//
// A group's nodes are alike in all that a node is besides its value: device, deadness and loop. All
// of it waits for what one of them awaits: the root did so anyhow. Nodes that hand a value on, held
// back by control edges, are members without a step; gradients have many of them. What reads
// references or has effects is no elementwise op, or no plain one.
#include "op/kernel.h"
#include "pass/alive.h"
#include "pass/device_kernels.h"
#include "pass/fuse_internal.h"

// ---- nodes that may be fused ----

static bool counts_inputs(const weir_op_t* op, const weir_attr_def_t* attr) {
  for (int i = 0; i < op->input_count; ++i) {
    if (op->inputs[i].number_attr && strcmp(op->inputs[i].number_attr, attr->name) == 0)
      return true;
  }
  return false;
}

// Attributes besides types: a number of type float is the function's parameter, what else there is
// makes another function of it unless it is the default.
static bool has_plain_attrs(const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  for (int i = 0; i < op->attr_count; ++i) {
    const weir_attr_def_t* attr = &op->attrs[i];
    if (attr->kind == WEIR_ATTR_TYPE || (attr->kind == WEIR_ATTR_FLOAT && !attr->is_list) ||
        counts_inputs(op, attr))
      continue;
    const weir_attr_t* value = weir_attrs_find(node->def.attrs, attr->name);
    if (!value || !attr->has_default || !weir_attr_equal(value, &attr->default_value)) return false;
  }
  return true;
}

static bool has_plain_types(const weir_node_t* node, weir_scalar_t scalar) {
  weir_dtype_t type = weir_fuse_operand_type(node);
  for (int i = 0; i < node->def.input_count; ++i) {
    bool is_condition = scalar.kind == WEIR_SCALAR_SELECT && i == 0;
    if (node->def.input_types[i] != (is_condition ? WEIR_DTYPE_BOOL : type)) return false;
  }
  return weir_scalar_can_fuse(scalar, type, node->def.output_types[0]);
}

static bool has_fused_kernel(const weir_op_t* fused, const char* kernel_type) {
  for (const weir_kernel_def_t* const* table = weir_op_kernels(fused); *table; ++table) {
    for (const weir_kernel_def_t* kernel = *table; kernel->device; ++kernel) {
      if (strcmp(kernel->device, kernel_type) == 0) return true;
    }
  }
  return false;
}

// Whether |node| runs where there is code for fused nodes. What runs on a device but computes in
// the host's memory, integers of a GPU for one, is left there.
static bool is_where_fused(const weir_op_t* fused, const weir_node_t* node) {
  const char* kind = weir_pass_kernel_type(node);
  if (!kind || !has_fused_kernel(fused, kind)) return false;
  const weir_kernel_def_t* kernel = weir_pass_find_kernel(&node->def, kind);
  return kernel && !weir_kernel_host_args(&node->def, kernel, false) &&
         !weir_kernel_host_args(&node->def, kernel, true);
}

static bool is_plain(const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  return op && op->def && op->role == WEIR_ROLE_NONE &&
         !(op->flags & (WEIR_OP_STATEFUL | WEIR_OP_NO_FOLD)) && node->def.output_count == 1 &&
         weir_rewrite_is_plain(node);
}

static bool is_step(const weir_fuse_t* f, const weir_node_t* node) {
  if (!is_plain(node) || node->def.op->def->scalar.kind == WEIR_SCALAR_NONE) return false;
  weir_scalar_t scalar = node->def.op->def->scalar;
  bool reduces = weir_scalar_reduces(scalar);
  return node->def.input_count == weir_scalar_arity(scalar) && (reduces || has_plain_attrs(node)) &&
         has_plain_types(node, scalar) &&
         is_where_fused(reduces ? f->fused_reduce : f->fused, node);
}

// What only hands its value on is gone by now, unless it waits for something.
static bool is_hop(const weir_node_t* node) {
  return is_plain(node) && weir_node_has(node, WEIR_OP_PASS_THROUGH) && node->control_count > 0 &&
         node->def.input_count == 1 && weir_dtype_is_plain(node->def.output_types[0]);
}

// ---- what nodes wait for ----

enum { MAX_CONTROLS = 64 };

static bool has_control(const weir_fuse_controls_t* controls, const weir_node_t* node) {
  for (int i = 0; i < controls->count; ++i) {
    if (controls->nodes[i] == node) return true;
  }
  return false;
}

// A NoOp that waits: whoever awaits it awaits what it does.
static bool is_barrier(const weir_node_t* node) {
  return weir_node_role(node) == WEIR_ROLE_NO_OP && node->control_count > 0;
}

// Puts what a barrier waits for in its place. False: it is too much.
static bool open_barrier(weir_fuse_controls_t* controls, int at) {
  const weir_node_t* barrier = controls->nodes[at];
  controls->nodes[at] = controls->nodes[--controls->count];
  for (int i = 0; i < barrier->control_count; ++i) {
    if (has_control(controls, barrier->control_inputs[i])) continue;
    if (controls->count == MAX_CONTROLS) return false;
    controls->nodes[controls->count++] = barrier->control_inputs[i];
  }
  return true;
}

weir_status_t* weir_fuse_find_controls(weir_fuse_t* f, const weir_node_t* node) {
  weir_node_t* found[MAX_CONTROLS];
  weir_fuse_controls_t all = {.nodes = node->control_inputs, .count = node->control_count};
  weir_fuse_controls_t open = {.nodes = found, .count = all.count};
  bool is_open = all.count <= MAX_CONTROLS;
  for (int i = 0; i < all.count && is_open; ++i) found[i] = all.nodes[i];
  for (int i = 0; i < open.count && is_open;) {
    if (is_barrier(open.nodes[i])) is_open = open_barrier(&open, i);
    else ++i;
  }
  if (is_open) all = open;
  weir_node_t** kept = weir_arena_array(&f->rewrite.arena, (size_t)all.count, sizeof(*kept));
  if (!kept) return weir_out_of_memory();
  for (int i = 0; i < all.count; ++i) kept[i] = all.nodes[i];
  f->controls[node->id] = (weir_fuse_controls_t){.nodes = kept, .count = all.count};
  return NULL;
}

// ---- groups ----

bool weir_fuse_is_alike(const weir_fuse_t* f, const weir_node_t* a, const weir_node_t* b) {
  return strcmp(a->def.device, b->def.device) == 0 && f->condition[a->id] == f->condition[b->id] &&
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
  if (number < 0 || f->is_awaited[node->id] || weir_fuse_reduces(node)) return false;
  const weir_fuse_group_t* group = f->groups[number];
  return group->member_count < WEIR_FUSED_MAX_STEPS && weir_fuse_is_alike(f, node, group->root) &&
         group->input_count - 1 + count_new_inputs(group, node) <= WEIR_FUSED_MAX_INPUTS;
}

static weir_status_t* choose_group(weir_fuse_t* f, weir_node_t* node) {
  f->is_hop[node->id] = is_hop(node);
  if (!f->is_hop[node->id] && !is_step(f, node)) return NULL;
  WEIR_TRY(weir_fuse_find_controls(f, node));
  int number = f->reader_group[node->id];
  if (!can_join(f, number, node)) {
    weir_fuse_group_t* group = weir_arena_alloc(&f->rewrite.arena, sizeof(*group));
    if (!group) return weir_out_of_memory();
    group->root = node;
    group->reduces = weir_fuse_reduces(node);
    number = f->group_count++;
    f->groups[number] = group;
  }
  join(f, number, node);
  return NULL;
}

void weir_fuse_note_reader(weir_fuse_t* f, const weir_node_t* node) {
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
    weir_fuse_note_reader(f, node);
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
  f->fused_reduce = weir_registry_find(ctx->graph->registry, weir_view_of("_FusedReduce"));
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
  f->controls = weir_arena_array(arena, count, sizeof(*f->controls));
  f->is_hop = weir_arena_array(arena, count, sizeof(*f->is_hop));
  if (!f->group_of || !f->reader_group || !f->next_member || !f->value_of || !f->groups ||
      !f->controls || !f->is_hop)
    return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) f->group_of[i] = f->reader_group[i] = WEIR_NO_GROUP;
  return NULL;
}

weir_status_t* weir_pass_fuse(weir_pass_ctx_t* ctx) {
  weir_fuse_t f = {0};
  weir_status_t* status = init(&f, ctx);
  if (!status) status = choose_groups(&f);
  if (!status) status = weir_fuse_join_groups(&f);
  if (!status) status = weir_fuse_replace_groups(&f);
  if (!status) status = weir_rewrite_finish(&f.rewrite, ctx);
  weir_rewrite_free(&f.rewrite);
  return status;
}
