// join.c — Nodes of one op that do the same to many tensors become one node that does it to all:
// updates of variables by an optimizer, on a device where each would be a launch of its own.
//
// Which op does the work of several, the op's definition says (weir_op_def_t.joined). Nodes are
// joined that are awaited by the same nodes. So nobody waits for anything that he did not wait for
// before, and none of them can lead to another: there would have been a cycle. That stays so
// whatever else is joined, since no way between two other nodes is added.
//
// Inputs' memory is held until the last node of the group has its own. So what is large, which
// gains nothing, is left alone, and groups do not grow without end.
#include "graph/analysis.h"
#include "pass/alive.h"
#include "pass/device_kernels.h"
#include "pass/rewrite.h"

enum { LARGE = 1 << 22, MOST_TOGETHER = 1 << 24 };  // elements

// Who awaits a node, by data or control edges, the last in the topological order first.
typedef struct reader_t {
  const weir_node_t* node;
  struct reader_t* next;
} reader_t;

typedef struct member_t {
  weir_node_t* node;
  struct member_t* next;
} member_t;

typedef struct group_t {
  const weir_op_t* joined;
  member_t *first, *last;
  int count;
  int64_t elements;
  struct group_t* next;
} group_t;

typedef struct join_t {
  weir_rewrite_t rewrite;
  weir_loops_t loops;    // by node id, as all below
  const int* condition;  // when it is alive (alive.h)
  bool* is_live;
  bool* is_target;
  reader_t** readers;  // of nodes that may be joined
  group_t *first_group, *last_group;
} join_t;

// ---- nodes that may be joined ----

static const weir_op_t* joined_op(const join_t* j, const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  if (!op || !op->def || !op->def->joined) return NULL;
  return weir_registry_find(j->rewrite.graph->registry, weir_view_of(op->def->joined));
}

// Of the largest input, as far as that is known.
static int64_t count_elements(const weir_node_t* node) {
  int64_t most = 0;
  for (int i = 0; i < node->def.input_count; ++i) {
    const weir_shape_t* shape = weir_edge_shape(node->inputs[i]);
    int64_t count = shape && shape->rank >= 0 ? 1 : 0;
    for (int d = 0; count && d < shape->rank; ++d) {
      if (shape->dims[d] < 0 || __builtin_mul_overflow(count, shape->dims[d], &count)) count = 0;
    }
    most = WEIR_MAX(most, count);
  }
  return most;
}

// Whether a node of |joined| in the place of |node| would have a kernel of its device's own.
static bool has_kernel(const weir_op_t* joined, const weir_node_t* node) {
  const char* kind = weir_pass_kernel_type(node);
  weir_node_def_t def = node->def;
  def.op = joined;
  return kind && weir_pass_find_kernel(&def, kind);
}

// ---- groups ----

// Whether two nodes have a variable in common.
static bool share_state(const weir_node_t* a, const weir_node_t* b) {
  for (int i = 0; i < a->def.input_count; ++i) {
    if (weir_dtype_is_plain(a->def.input_types[i])) continue;
    for (int k = 0; k < b->def.input_count; ++k) {
      if (weir_edge_equal(a->inputs[i], b->inputs[k])) return true;
    }
  }
  return false;
}

static bool have_same_attrs(const weir_op_t* joined, const weir_node_t* a, const weir_node_t* b) {
  for (int i = 0; i < joined->attr_count; ++i) {
    const weir_attr_t* x = weir_attrs_find(a->def.attrs, joined->attrs[i].name);
    const weir_attr_t* y = weir_attrs_find(b->def.attrs, joined->attrs[i].name);
    if (x && y && !weir_attr_equal(x, y)) return false;
  }
  return true;
}

static bool have_same_readers(const join_t* j, const weir_node_t* a, const weir_node_t* b) {
  const reader_t* x = j->readers[a->id];
  const reader_t* y = j->readers[b->id];
  for (; x && y && x->node == y->node; x = x->next) y = y->next;
  return !x && !y && j->is_target[a->id] == j->is_target[b->id];
}

static bool are_alike(const join_t* j, const weir_node_t* a, const weir_node_t* b) {
  return a->def.op == b->def.op && j->condition[a->id] == j->condition[b->id] &&
         j->loops.inside[a->id] == j->loops.inside[b->id] && have_same_readers(j, a, b) &&
         strcmp(a->def.device, b->def.device) == 0;
}

static bool fits(const join_t* j, const group_t* group, const weir_node_t* node) {
  const weir_node_t* first = group->first->node;
  if (!are_alike(j, first, node) || !have_same_attrs(group->joined, first, node)) return false;
  for (const member_t* m = group->first; m; m = m->next) {
    if (share_state(m->node, node)) return false;
  }
  return true;
}

static weir_status_t* start_group(join_t* j, const weir_op_t* joined, group_t** out_group) {
  group_t* group = weir_arena_alloc(&j->rewrite.arena, sizeof(*group));
  if (!group) return weir_out_of_memory();
  group->joined = joined;
  if (j->last_group) j->last_group->next = group;
  else j->first_group = group;
  j->last_group = *out_group = group;
  return NULL;
}

static weir_status_t* choose_group(join_t* j, weir_node_t* node) {
  const weir_op_t* joined = joined_op(j, node);
  const int64_t elements = count_elements(node);
  if (!joined || !has_kernel(joined, node) || elements > LARGE) return NULL;
  group_t* group = j->first_group;
  while (group && (group->elements + elements > MOST_TOGETHER || !fits(j, group, node)))
    group = group->next;
  if (!group) WEIR_TRY(start_group(j, joined, &group));
  member_t* member = weir_arena_alloc(&j->rewrite.arena, sizeof(*member));
  if (!member) return weir_out_of_memory();
  member->node = node;
  if (group->last) group->last->next = member;
  else group->first = member;
  group->last = member;
  group->elements += elements;
  ++group->count;
  return NULL;
}

// ---- what becomes of a group ----

typedef struct draft_t {
  const group_t* group;
  weir_edge_t* inputs;
  int input_count;
  weir_view_t *names, *ops;
  int64_t* outputs;  // whose they are
  int output_count;
  weir_named_attr_t* attrs;
  size_t attr_count;
} draft_t;

static weir_status_t* alloc(draft_t* d, weir_arena_t* arena) {
  const group_t* group = d->group;
  const weir_node_def_t* node = &group->first->node->def;
  size_t count = (size_t)group->count;
  d->inputs = weir_arena_array(arena, count * (size_t)node->input_count, sizeof(*d->inputs));
  d->names = weir_arena_array(arena, count, sizeof(*d->names));
  d->ops = weir_arena_array(arena, count, sizeof(*d->ops));
  d->outputs = weir_arena_array(arena, count * (size_t)node->output_count + 1, sizeof(*d->outputs));
  d->attrs = weir_arena_array(arena, (size_t)group->joined->attr_count + 4, sizeof(*d->attrs));
  return d->inputs && d->names && d->ops && d->outputs && d->attrs ? NULL : weir_out_of_memory();
}

static void list_inputs(draft_t* d) {
  for (int i = 0; i < d->group->first->node->def.input_count; ++i) {
    for (const member_t* m = d->group->first; m; m = m->next)
      d->inputs[d->input_count++] = m->node->inputs[i];
  }
}

// The attributes that its members share, and what it has of its own.
static void list_attrs(draft_t* d) {
  const weir_op_t* joined = d->group->joined;
  const weir_node_def_t* first = &d->group->first->node->def;
  size_t count = 0;
  for (const member_t* m = d->group->first; m; m = m->next) {
    d->names[count] = weir_view_of(m->node->def.name);
    d->ops[count++] = weir_view_of(m->node->def.op_name);
  }
  d->output_count = first->output_count * (int)count;
  for (int i = 0; i < d->output_count; ++i) d->outputs[i] = d->input_count + i % (int)count;
  for (int i = 0; i < joined->attr_count; ++i) {
    const weir_attr_t* value = weir_attrs_find(first->attrs, joined->attrs[i].name);
    if (value)
      d->attrs[d->attr_count++] =
          (weir_named_attr_t){.name = joined->attrs[i].name, .value = *value};
  }
  d->attrs[d->attr_count++] = weir_attr_int("N", (int64_t)count);
  d->attrs[d->attr_count++] = weir_attr_strings("names", d->names, count);
  d->attrs[d->attr_count++] = weir_attr_strings("ops", d->ops, count);
  d->attrs[d->attr_count++] = weir_attr_ints("outputs", d->outputs, (size_t)d->output_count);
}

static weir_status_t* add_node(const draft_t* d, weir_node_t** out_node) {
  weir_node_t* last = d->group->last->node;
  const char* name = weir_arena_printf(&last->graph->arena, "%s_joined", last->def.name);
  if (!name) return weir_out_of_memory();
  weir_node_params_t params = {.op = d->group->joined->name,
                               .name = name,
                               .unique_name = true,
                               .device = last->def.device,
                               .inputs = {.items = d->inputs, .count = d->input_count},
                               .attrs = {.items = d->attrs, .count = d->attr_count}};
  WEIR_TRY(weir_graph_add(last->graph, &params, out_node));
  for (const member_t* m = d->group->first; m; m = m->next) {
    for (int i = 0; i < m->node->control_count; ++i)
      WEIR_TRY(weir_graph_add_control(*out_node, m->node->control_inputs[i]));
  }
  return NULL;
}

static weir_status_t* replace_group(join_t* j, const group_t* group) {
  draft_t d = {.group = group};
  weir_node_t* node = NULL;
  int number = 0;
  WEIR_TRY(alloc(&d, &j->rewrite.arena));
  list_inputs(&d);
  list_attrs(&d);
  WEIR_TRY(add_node(&d, &node));
  for (const member_t* m = group->first; m; m = m->next, ++number) {
    for (int i = 0; i < m->node->def.output_count; ++i) {
      weir_edge_t to = {.node = node, .index = i * group->count + number};
      node->shapes[to.index] = m->node->shapes[i];
      WEIR_TRY(
          weir_rewrite_replace_edge(&j->rewrite, (weir_edge_t){.node = m->node, .index = i}, to));
    }
    weir_rewrite_replace_node(&j->rewrite, m->node, node);
  }
  return NULL;
}

// ---- the pass ----

static weir_status_t* note_reader(join_t* j, const weir_node_t* reader, const weir_node_t* source) {
  reader_t** first = &j->readers[source->id];
  if (!source->def.op || !source->def.op->def || !source->def.op->def->joined ||
      (*first && (*first)->node == reader))
    return NULL;
  reader_t* noted = weir_arena_alloc(&j->rewrite.arena, sizeof(*noted));
  if (!noted) return weir_out_of_memory();
  *noted = (reader_t){.node = reader, .next = *first};
  *first = noted;
  return NULL;
}

static weir_status_t* note_readers(join_t* j) {
  for (size_t k = 0; k < j->rewrite.count; ++k) {
    const weir_node_t* node = j->rewrite.order[k];
    if (!j->is_live[node->id]) continue;
    for (int i = 0; i < node->def.input_count; ++i)
      WEIR_TRY(note_reader(j, node, node->inputs[i].node));
    for (int i = 0; i < node->control_count; ++i)
      WEIR_TRY(note_reader(j, node, node->control_inputs[i]));
  }
  return NULL;
}

static bool has_candidates(const weir_graph_t* graph) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    const weir_op_t* op = graph->nodes[i]->def.op;
    if (op && op->def && op->def->joined) return true;
  }
  return false;
}

static weir_status_t* init(join_t* j, const weir_pass_ctx_t* ctx) {
  weir_arena_t* arena = &j->rewrite.arena;
  WEIR_TRY(weir_rewrite_init(&j->rewrite, ctx->graph));
  WEIR_TRY(weir_alive_find(ctx->graph, j->rewrite.order, j->rewrite.count, arena, &j->condition));
  WEIR_TRY(weir_loops_find(ctx->graph, j->rewrite.order, j->rewrite.count, arena, &j->loops));
  WEIR_TRY(weir_rewrite_mark_live(ctx, arena, &j->is_live));
  j->is_target = weir_arena_array(arena, j->rewrite.count + 1, sizeof(*j->is_target));
  j->readers = weir_arena_array(arena, j->rewrite.count + 1, sizeof(*j->readers));
  if (!j->is_target || !j->readers) return weir_out_of_memory();
  for (int i = 0; i < ctx->target_count; ++i) j->is_target[ctx->targets[i]->id] = true;
  return note_readers(j);
}

static weir_status_t* join(join_t* j, weir_pass_ctx_t* ctx) {
  WEIR_TRY(init(j, ctx));
  for (size_t k = 0; k < j->rewrite.count; ++k) {
    weir_node_t* node = j->rewrite.order[k];
    if (j->is_live[node->id]) WEIR_TRY(choose_group(j, node));
  }
  for (const group_t* group = j->first_group; group; group = group->next) {
    if (group->count > 1) WEIR_TRY(replace_group(j, group));
  }
  return weir_rewrite_finish(&j->rewrite, ctx);
}

weir_status_t* weir_pass_join(weir_pass_ctx_t* ctx) {
  join_t j = {0};
  if (!has_candidates(ctx->graph)) return NULL;
  weir_status_t* status = join(&j, ctx);
  weir_rewrite_free(&j.rewrite);
  return status;
}
