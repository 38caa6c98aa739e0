// arithmetic.c — Runs each op's own simplify hook, and lets readers of pass-through nodes read past
// them.
//
// The algebra is in the ops' files (x * 1, Transpose of Transpose, …): a hook looks at its node and
// may build a replacement for output 0. Hooks know nothing of what surrounds them. This file
// decides whether the replacement may stand there, and a wrong answer is a wrong result, so it asks
// about all that a node is besides its value:
// - effects: whatever with a side effect the node waited for must still be waited for;
// - deadness: in a branch or a loop, the replacement must be dead, and in the same turn, whenever
//   the node was. x * 0 = 0 must not bring a dead branch to life: constants of the replacement get
//   a control edge from something that is dead exactly then, or the replacement is refused;
// - references: what was read of a reference variable changes when that is written to. When a value
//   stops changing, by being copied or computed with, must stay the same;
// - order: the replacement must not come to wait for the node itself.
//
// What the hook added, down to the edges that were there before, is the cone; its leaves are those
// edges. Each question is answered by comparing the leaves with the node's inputs, and by a search
// upstream where they differ. Searches are bounded: "not known in time" means no, which costs speed
// and never a result. A refused replacement stays in the graph, reached by nothing.
//
// Rounds are few, since what one adds another seldom simplifies again.
#include "op/simplify.h"
#include "pass/rewrite.h"

// Rounds over the graph: what one round adds the next one may simplify.
#define ROUND_LIMIT 4
// Edges looked at, at most, to see whether a replacement keeps what its node depended on.
#define SEARCH_LIMIT 256

// What is known of a node for the checks below.
enum {
  CONDITIONAL = 1,
  EFFECT = 2,      // it or something upstream has a side effect
  MOVING = 4,      // its outputs may be memory of a reference variable
  MOVING_ARG = 8,  // they may be memory of an argument that may be such memory
};

typedef struct arithmetic_t {
  weir_rewrite_t rewrite;
  bool has_moving_args;
  uint8_t* marks;  // by node id, new nodes included
  size_t mark_count;
  size_t mark_capacity;
} arithmetic_t;

// What a replacement is made of: nodes the hook added, and the edges of before that these read.
typedef struct cone_t {
  size_t first_new;  // ids from here on are the hook's
  weir_node_t** nodes;
  size_t node_count;
  weir_edge_t* leaves;
  size_t leaf_count;
} cone_t;

// ---- marks ----

static weir_status_t* mark_new_nodes(arithmetic_t* pass) {
  const weir_graph_t* graph = pass->rewrite.graph;
  if (!WEIR_GROW(pass->marks, pass->mark_capacity, graph->node_count)) return weir_out_of_memory();
  for (; pass->mark_count < graph->node_count; ++pass->mark_count) {
    const weir_node_t* node = graph->nodes[pass->mark_count];
    uint8_t marks = 0;
    for (int i = 0; i < node->def.input_count; ++i) marks |= pass->marks[node->inputs[i].node->id];
    for (int i = 0; i < node->control_count; ++i) marks |= pass->marks[node->control_inputs[i]->id];
    pass->marks[pass->mark_count] = marks;
  }
  return NULL;
}

static uint8_t moving_marks(const arithmetic_t* pass, const weir_node_t* node) {
  uint8_t marks = 0;
  if (weir_node_role(node) == WEIR_ROLE_ARG && pass->has_moving_args) marks |= MOVING_ARG;
  for (int i = 0; i < node->def.input_count && weir_node_may_share(node); ++i) {
    marks |= pass->marks[node->inputs[i].node->id] & (MOVING | MOVING_ARG);
    if (weir_dtype_is_ref(weir_edge_dtype(node->inputs[i]))) marks |= MOVING;
  }
  return marks;
}

// Whether a program can tell that |node| ran: by what it does, or by the error of a variable that
// is not initialised.
static bool must_run(const weir_node_t* node) {
  return weir_rewrite_has_effect(node) || weir_rewrite_reads_reference(node);
}

static weir_status_t* mark_nodes(arithmetic_t* pass) {
  const bool* conditional = NULL;
  size_t count = pass->rewrite.count;
  WEIR_TRY(weir_rewrite_mark_conditional(&pass->rewrite, &conditional));
  if (!WEIR_GROW(pass->marks, pass->mark_capacity, count + 1)) return weir_out_of_memory();
  memset(pass->marks, 0, count + 1);
  for (size_t i = 0; i < 2 * count; ++i) {  // twice: for what a loop carries round
    const weir_node_t* node = pass->rewrite.order[i % count];
    uint8_t marks = must_run(node) ? EFFECT : 0;
    for (int k = 0; k < node->def.input_count; ++k)
      marks |= pass->marks[node->inputs[k].node->id] & EFFECT;
    for (int k = 0; k < node->control_count; ++k)
      marks |= pass->marks[node->control_inputs[k]->id] & EFFECT;
    marks |= moving_marks(pass, node);
    pass->marks[node->id] = (uint8_t)(marks | (conditional[node->id] ? CONDITIONAL : 0));
  }
  pass->mark_count = count;
  return NULL;
}

// ---- what a replacement must keep ----

static void reach_edge(cone_t* cone, weir_edge_t edge) {
  if ((size_t)edge.node->id < cone->first_new) {
    cone->leaves[cone->leaf_count++] = edge;
    return;
  }
  for (size_t i = 0; i < cone->node_count; ++i) {
    if (cone->nodes[i] == edge.node) return;
  }
  cone->nodes[cone->node_count++] = edge.node;
}

static weir_status_t* cone_init(arithmetic_t* pass, size_t first_new, weir_edge_t root,
                                cone_t* cone) {
  const weir_graph_t* graph = pass->rewrite.graph;
  size_t leaf_limit = 1;
  for (size_t i = first_new; i < graph->node_count; ++i)
    leaf_limit += (size_t)graph->nodes[i]->def.input_count;
  *cone = (cone_t){.first_new = first_new};
  cone->nodes = weir_arena_array(&pass->rewrite.arena, graph->node_count - first_new + 1,
                                 sizeof(*cone->nodes));
  cone->leaves = weir_arena_array(&pass->rewrite.arena, leaf_limit, sizeof(*cone->leaves));
  if (!cone->nodes || !cone->leaves) return weir_out_of_memory();
  reach_edge(cone, root);
  for (size_t i = 0; i < cone->node_count; ++i) {
    weir_node_t* node = cone->nodes[i];
    for (int k = 0; k < node->def.input_count; ++k) reach_edge(cone, node->inputs[k]);
  }
  return NULL;
}

static bool has_leaf(const cone_t* cone, weir_edge_t edge) {
  for (size_t i = 0; i < cone->leaf_count; ++i) {
    if (weir_edge_equal(cone->leaves[i], edge)) return true;
  }
  return false;
}

// Whether every side effect that the inputs of |node| wait for is still waited for by the leaves.
static bool keeps_effects(const arithmetic_t* pass, const cone_t* cone, const weir_node_t* node,
                          int* budget) {
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_edge_t edge = node->inputs[i];
    if (!(pass->marks[edge.node->id] & EFFECT) || has_leaf(cone, edge)) continue;
    if (--*budget < 0 || must_run(edge.node)) return false;
    // Loops are not searched: their back edges lead round in circles.
    if (weir_node_role(edge.node) != WEIR_ROLE_NONE) return false;
    for (int k = 0; k < edge.node->control_count; ++k) {
      if (pass->marks[edge.node->control_inputs[k]->id] & EFFECT) return false;
    }
    if (!keeps_effects(pass, cone, edge.node, budget)) return false;
  }
  return true;
}

// ---- deadness ----

// Whether a Switch of the predicate that |edge| hangs on, in the same branch, is among the first
// |count| of |seen|.
static bool shares_branch(const weir_edge_t* seen, size_t count, weir_edge_t edge) {
  for (size_t i = 0; i < count; ++i) {
    const weir_node_t* node = seen[i].node;
    if (weir_node_role(node) == WEIR_ROLE_SWITCH && seen[i].index == edge.index &&
        weir_edge_equal(node->inputs[1], edge.node->inputs[1]))
      return true;
  }
  return false;
}

// What is alive whenever the replacement is: its leaves and, up to a limit, what these need. A
// Merge is alive though what it reads may not be.
typedef struct alive_t {
  weir_edge_t edges[SEARCH_LIMIT];  // index -1: awaited by a control edge
  size_t count;
} alive_t;

static bool is_among(const alive_t* alive, weir_edge_t edge) {
  for (size_t i = 0; i < alive->count; ++i) {
    if (weir_edge_equal(alive->edges[i], edge)) return true;
  }
  return false;
}

static void add_alive(const arithmetic_t* pass, alive_t* alive, weir_edge_t edge) {
  bool is_certain = !(pass->marks[edge.node->id] & CONDITIONAL);
  if (is_certain || alive->count == SEARCH_LIMIT || is_among(alive, edge)) return;
  alive->edges[alive->count++] = edge;
}

static void find_alive(const arithmetic_t* pass, const cone_t* cone, alive_t* alive) {
  alive->count = 0;
  for (size_t i = 0; i < cone->leaf_count; ++i) add_alive(pass, alive, cone->leaves[i]);
  for (size_t i = 0; i < alive->count; ++i) {
    const weir_node_t* node = alive->edges[i].node;
    if (weir_node_role(node) == WEIR_ROLE_MERGE || weir_node_role(node) == WEIR_ROLE_ENTER)
      continue;  // what is upstream is another loop's, or need not be alive
    for (int k = 0; k < node->def.input_count; ++k) add_alive(pass, alive, node->inputs[k]);
    for (int k = 0; k < node->control_count; ++k)
      add_alive(pass, alive, (weir_edge_t){.node = node->control_inputs[k], .index = -1});
  }
}

// Whether |edge| is alive whenever all of |alive| is. False when it takes too long to tell.
static bool is_implied(const arithmetic_t* pass, const alive_t* alive, weir_edge_t edge,
                       int* budget) {
  const weir_node_t* node = edge.node;
  if (!(pass->marks[node->id] & CONDITIONAL) || is_among(alive, edge)) return true;
  if (--*budget < 0) return false;
  switch (weir_node_role(node)) {
    case WEIR_ROLE_SWITCH:
      if (!shares_branch(alive->edges, alive->count, edge)) return false;
      break;
    case WEIR_ROLE_NONE:
    case WEIR_ROLE_CONST:
    case WEIR_ROLE_NO_OP: break;
    default: return false;
  }
  for (int i = 0; i < node->def.input_count; ++i) {
    if (!is_implied(pass, alive, node->inputs[i], budget)) return false;
  }
  for (int i = 0; i < node->control_count; ++i) {
    weir_edge_t awaited = {.node = node->control_inputs[i], .index = -1};
    if (!is_implied(pass, alive, awaited, budget)) return false;
  }
  return true;
}

// Something to wait for that is dead, and in the same loop, whenever |node| is; NULL when there is
// none.
static weir_node_t* find_anchor(const arithmetic_t* pass, const weir_node_t* node) {
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_node_t* source = node->inputs[i].node;
    if ((pass->marks[source->id] & CONDITIONAL) && weir_rewrite_is_anchor(source)) return source;
  }
  return NULL;
}

// In a branch or a loop the replacement must be dead whenever one of the node's inputs is, and so
// must all its constants.
static weir_status_t* keep_condition(const arithmetic_t* pass, const cone_t* cone,
                                     const weir_node_t* node, bool* out_kept) {
  *out_kept = true;
  if (!(pass->marks[node->id] & CONDITIONAL)) return NULL;
  alive_t alive;
  find_alive(pass, cone, &alive);
  *out_kept = alive.count > 0;
  int budget = SEARCH_LIMIT;
  for (int i = 0; i < node->def.input_count && *out_kept; ++i)
    *out_kept = is_implied(pass, &alive, node->inputs[i], &budget);
  weir_node_t* anchor = find_anchor(pass, node);
  for (size_t i = 0; i < cone->node_count && *out_kept; ++i) {
    weir_node_t* added = cone->nodes[i];
    if (added->def.input_count > 0 || added->control_count > 0) continue;
    if (!anchor) {
      *out_kept = false;
    } else {
      WEIR_TRY(weir_graph_add_control(added, anchor));
    }
  }
  return NULL;
}

// ---- memory of reference variables ----

// What was read of a variable changes when the variable is written to, until an op makes something
// new of it. When that happens must not change: nothing reads such a value in another op's place,
// and no such value stands for a new one.
static bool keeps_reads(const arithmetic_t* pass, const cone_t* cone, const weir_node_t* node,
                        weir_edge_t replacement) {
  for (size_t i = 0; i < cone->leaf_count; ++i) {
    weir_edge_t leaf = cone->leaves[i];
    if (weir_dtype_is_ref(weir_edge_dtype(leaf)) || (pass->marks[leaf.node->id] & MOVING))
      return false;
  }
  bool is_added = (size_t)replacement.node->id >= cone->first_new;
  return is_added || !(pass->marks[replacement.node->id] & MOVING_ARG) || weir_node_may_share(node);
}

// ---- the hooks ----

static bool is_simplifiable(const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  return op && op->def && op->def->simplify && op->role == WEIR_ROLE_NONE &&
         !(op->flags & WEIR_OP_STATEFUL) && node->def.output_count > 0;
}

// Puts |replacement| in the place of output 0 of |node| if nothing that |node| waited for is lost.
static weir_status_t* accept(arithmetic_t* pass, weir_node_t* node, weir_edge_t replacement,
                             size_t first_new) {
  weir_edge_t self = {.node = node, .index = 0};
  cone_t cone;
  bool is_added = (size_t)replacement.node->id >= first_new;
  int budget = SEARCH_LIMIT;
  bool is_kept = false;
  if (weir_edge_dtype(replacement) != weir_edge_dtype(self) || (node->control_count && !is_added))
    return NULL;
  WEIR_TRY(cone_init(pass, first_new, replacement, &cone));
  for (size_t i = 0; i < cone.leaf_count; ++i) {
    if (cone.leaves[i].node == node) return NULL;  // it would wait for itself
  }
  if (!keeps_effects(pass, &cone, node, &budget)) return NULL;
  if (!keeps_reads(pass, &cone, node, replacement)) return NULL;
  WEIR_TRY(keep_condition(pass, &cone, node, &is_kept));
  if (!is_kept) return NULL;
  for (int i = 0; i < node->control_count; ++i) {
    WEIR_TRY(weir_graph_add_control(replacement.node, node->control_inputs[i]));
  }
  WEIR_TRY(weir_rewrite_replace_edge(&pass->rewrite, self, replacement));
  if (node->def.output_count == 1 && weir_rewrite_is_anchor(replacement.node)) {
    weir_rewrite_replace_node(&pass->rewrite, node, replacement.node);
  }
  return NULL;
}

static weir_status_t* simplify(arithmetic_t* pass, weir_node_t* node) {
  weir_graph_builder_t builder;
  weir_graph_builder_init(&builder, node->graph, node->def.name);
  builder.device = node->def.device;
  weir_simplify_ctx_t ctx = {.builder = &builder.base,
                             .node = &node->def,
                             .self = {.node = node, .index = 0},
                             .inputs = node->inputs,
                             .replacement = WEIR_NO_EDGE};
  size_t first_new = node->graph->node_count;
  weir_status_t* status = node->def.op->def->simplify(&ctx);
  if (!status) {
    status = builder.base.status;
  } else if (builder.base.status != status) {
    weir_status_destroy(builder.base.status);
  }
  if (status) {
    // A hook that fails leaves its node as it was; what it added is reached by nothing.
    weir_status_destroy(status);
    ctx.replacement = WEIR_NO_EDGE;
  }
  if (!weir_edge_is_none(ctx.replacement)) {
    weir_edge_t replacement = weir_rewrite_edge(&pass->rewrite, ctx.replacement);
    if (replacement.node != node) WEIR_TRY(accept(pass, node, replacement, first_new));
  }
  return mark_new_nodes(pass);
}

// ---- pass-through nodes ----

// Whether |node| is held where its input is: a colocation with something else is a copy the user
// asked for.
static bool is_colocated(const weir_node_t* node, const weir_node_t* source) {
  const weir_attr_t* group = weir_attrs_find(node->def.attrs, "_class");
  if (strcmp(node->def.device, source->def.device) != 0) return false;
  if (!group) return true;
  const weir_attr_t* source_group = weir_attrs_find(source->def.attrs, "_class");
  if (source_group && weir_attr_equal(group, source_group)) return true;
  if (group->kind != WEIR_ATTR_STRING || !group->is_list || group->count != 1) return false;
  weir_view_t name = group->u.strings[0];
  if (!weir_view_starts_with(name, "loc:@")) return false;
  return weir_view_is(weir_view(name.data + 5, name.size - 5), source->def.name);
}

static bool is_bypassable(const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  if (!op || !op->def || op->role != WEIR_ROLE_NONE || !(op->flags & WEIR_OP_PASS_THROUGH))
    return false;
  if (op->flags & (WEIR_OP_STATEFUL | WEIR_OP_NO_FOLD)) return false;
  if (node->control_count || node->def.output_count != 1 || node->def.input_count < 1) return false;
  // A reference read here is a value of now; its readers would read it later.
  weir_dtype_t dtype = weir_edge_dtype(node->inputs[0]);
  if (weir_dtype_is_ref(dtype) || dtype != node->def.output_types[0]) return false;
  return is_colocated(node, node->inputs[0].node);
}

static weir_status_t* visit(arithmetic_t* pass, weir_node_t* node) {
  WEIR_TRY(weir_rewrite_inputs(&pass->rewrite, node, NULL));
  if (is_bypassable(node)) {
    weir_node_t* source = node->inputs[0].node;
    WEIR_TRY(weir_rewrite_replace_edge(&pass->rewrite, (weir_edge_t){.node = node, .index = 0},
                                       node->inputs[0]));
    if (weir_rewrite_is_anchor(source)) weir_rewrite_replace_node(&pass->rewrite, node, source);
    return NULL;
  }
  return is_simplifiable(node) ? simplify(pass, node) : NULL;
}

static weir_status_t* run_round(weir_pass_ctx_t* ctx, bool* out_added) {
  arithmetic_t pass = {.has_moving_args = ctx->has_moving_args};
  weir_status_t* status = weir_rewrite_init(&pass.rewrite, ctx->graph);
  if (!status) status = mark_nodes(&pass);
  for (size_t i = 0; i < pass.rewrite.count && !status; ++i)
    status = visit(&pass, pass.rewrite.order[i]);
  if (!status) status = weir_rewrite_finish(&pass.rewrite, ctx);
  *out_added = pass.rewrite.replaced_count > 0 && ctx->graph->node_count > pass.rewrite.count;
  weir_free(pass.marks);
  weir_rewrite_free(&pass.rewrite);
  return status;
}

weir_status_t* weir_pass_arithmetic(weir_pass_ctx_t* ctx) {
  bool has_added = true;
  for (int i = 0; i < ROUND_LIMIT && has_added; ++i) WEIR_TRY(run_round(ctx, &has_added));
  return NULL;
}
