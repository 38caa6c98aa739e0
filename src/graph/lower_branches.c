// lower_branches.c — Lowering of If and Case: every branch in place, between a Switch for each
// argument and a Merge for each result.
#include "graph/lower_internal.h"

typedef struct branch_t {
  const weir_func_t* func;
  weir_edge_t pred;   // a scalar bool: whether this branch is taken, or the opposite
  int side;           // which output of a Switch on |pred| is this branch's
  weir_edge_t pivot;  // alive when the branch is taken
  inlining_t body;
} branch_t;

// Equal(index, k); the last branch takes all that no other does.
static weir_edge_t case_pred(lowering_t* l, weir_edge_t index, int k, int count) {
  weir_builder_t* b = &l->builder.base;
  if (k < count - 1)
    return weir_build(b, "Equal", WEIR_EDGES(index, weir_build_int32(b, k)), WEIR_NO_ATTRS);
  weir_edge_t at_least =
      weir_build(b, "GreaterEqual", WEIR_EDGES(index, weir_build_int32(b, 0)), WEIR_NO_ATTRS);
  weir_edge_t below =
      weir_build(b, "Less", WEIR_EDGES(index, weir_build_int32(b, count - 1)), WEIR_NO_ATTRS);
  weir_edge_t is_other = weir_build(b, "LogicalAnd", WEIR_EDGES(at_least, below), WEIR_NO_ATTRS);
  return weir_build(b, "LogicalNot", WEIR_EDGES(is_other), WEIR_NO_ATTRS);
}

// The value that decides, alive only when the node is to run: every branch then is, too.
static weir_edge_t decider(lowering_t* l) {
  if (!weir_node_is_free_const(l->args[0].node)) return l->args[0];
  return weir_lower_add(l, "Identity", WEIR_EDGES(l->args[0]), WEIR_NO_ATTRS, &l->pivot,
                        l->pivot ? 1 : 0);
}

static weir_status_t* list_branches(lowering_t* l, branch_t** out_branches, int* out_count) {
  weir_attrs_t attrs = l->node->def.attrs;
  const weir_attr_t* list = weir_attrs_find(attrs, "branches");
  int count = list ? (int)list->count : 2;
  branch_t* branches = weir_arena_array(&l->arena, (size_t)count, sizeof(*branches));
  if (!branches) return weir_out_of_memory();
  weir_edge_t decides = decider(l);
  if (list) {
    for (int i = 0; i < count; ++i) {
      branches[i] =
          (branch_t){.func = &list->u.funcs[i], .pred = case_pred(l, decides, i, count), .side = 1};
    }
  } else {
    weir_edge_t pred = weir_lower_truth(l, decides);
    branches[0] =
        (branch_t){.func = weir_attrs_func(attrs, "else_branch"), .pred = pred, .side = 0};
    branches[1] =
        (branch_t){.func = weir_attrs_func(attrs, "then_branch"), .pred = pred, .side = 1};
  }
  *out_branches = branches;
  *out_count = count;
  return NULL;
}

static weir_status_t* inline_branch(lowering_t* l, branch_t* branch, int number) {
  weir_builder_t* b = &l->builder.base;
  const weir_node_t* node = l->node;
  size_t count = (size_t)node->def.input_count;
  weir_edge_t* args = weir_arena_array(&l->arena, count, sizeof(*args));
  bool* is_anchored = weir_arena_array(&l->arena, count, sizeof(*is_anchored));
  if (!args || !is_anchored) return weir_out_of_memory();
  for (int i = 1; i < node->def.input_count; ++i) {
    weir_edge_t split =
        weir_build(b, "Switch", WEIR_EDGES(l->args[i], branch->pred), WEIR_NO_ATTRS);
    args[i - 1] = weir_build_output(split, branch->side);
    is_anchored[i - 1] = true;
  }
  weir_edge_t split =
      weir_build(b, "Switch", WEIR_EDGES(branch->pred, branch->pred), WEIR_NO_ATTRS);
  branch->pivot =
      weir_build(b, "Identity", WEIR_EDGES(weir_build_output(split, branch->side)), WEIR_NO_ATTRS);
  const char* name = weir_arena_printf(&l->arena, "branch%d/", number);
  if (!name) return weir_out_of_memory();
  branch->body = (inlining_t){.func = branch->func,
                              .name = name,
                              .args = args,
                              .is_anchored = is_anchored,
                              .pivot = branch->pivot.node};
  WEIR_TRY(weir_lower_inline(l, &branch->body));
  if (b->status) return NULL;
  if (branch->body.ret_count != node->def.output_count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "'%s' has %d outputs, but its branch %d returns %d",
                       node->def.name, node->def.output_count, number, branch->body.ret_count);
  }
  return NULL;
}

// A Merge of the pivots after the side effects of all branches: alive when the node is, whatever
// is dead within the branch that is taken.
static weir_status_t* add_executed(lowering_t* l, const branch_t* branches, int count,
                                   int effect_count) {
  weir_edge_t* pivots = weir_arena_array(&l->arena, (size_t)count, sizeof(*pivots));
  weir_node_t** effects = weir_arena_array(&l->arena, (size_t)effect_count, sizeof(*effects));
  if (!pivots || !effects) return weir_out_of_memory();
  for (int i = 0, k = 0; i < count; ++i) {
    pivots[i] = branches[i].pivot;
    for (int e = 0; e < branches[i].body.effect_count; ++e)
      effects[k++] = branches[i].body.effects[e];
  }
  weir_edges_t merged = {.items = pivots, .count = count};
  l->executed = weir_lower_add(l, "Merge", merged, WEIR_NO_ATTRS, effects, effect_count).node;
  return NULL;
}

weir_status_t* weir_lower_branches(lowering_t* l) {
  weir_builder_t* b = &l->builder.base;
  branch_t* branches = NULL;
  int count = 0, effect_count = 0;
  WEIR_TRY(list_branches(l, &branches, &count));
  for (int i = 0; i < count && !b->status; ++i) {
    WEIR_TRY(inline_branch(l, &branches[i], i));
    effect_count += branches[i].body.effect_count;
  }
  weir_edge_t* values = weir_arena_array(&l->arena, (size_t)count, sizeof(*values));
  weir_edge_t* results =
      weir_arena_array(&l->arena, (size_t)l->node->def.output_count, sizeof(*results));
  if (!values || !results) return weir_out_of_memory();
  weir_edges_t merged = {.items = values, .count = count};
  for (int i = 0; i < l->node->def.output_count && !b->status; ++i) {
    for (int k = 0; k < count; ++k) values[k] = branches[k].body.rets[i];
    results[i] = weir_build(b, "Merge", merged, WEIR_NO_ATTRS);
  }
  if (b->status) return NULL;
  WEIR_TRY(add_executed(l, branches, count, effect_count));
  return weir_lower_finish(l, results, &l->executed, 1);
}
