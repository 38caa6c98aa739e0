// cond.c — Conditionals on a scope: branches between a Switch for each value they use and a Merge
// for each result.
#include "api/control.h"

typedef struct cond_t {
  weir_scope_t* scope;  // in the context around the conditional, under its name
  weir_control_t sides[2];
  int count;
  weir_edge_t* results[2];
} cond_t;

static const char* const side_names[2] = {"else", "then"};

static bool check_truth(const cond_t* cond, weir_edge_t pred) {
  weir_scope_t* scope = cond->scope;
  if (scope->root->status) return false;
  bool is_truth = weir_control_is_edge(pred) &&
                  weir_dtype_base(weir_edge_dtype(pred)) == WEIR_DTYPE_BOOL &&
                  weir_edge_shape(pred)->rank <= 0;
  if (!is_truth) {
    weir_scope_fail(scope, WEIR_STATUS(INVALID_ARGUMENT,
                                       "the predicate of '%s' must be a bool scalar, but is %s",
                                       scope->prefix, pred.node ? pred.node->def.name : "none"));
  }
  return is_truth;
}

static bool begin(cond_t* cond, weir_edge_t pred) {
  weir_scope_t* scope = cond->scope;
  pred = weir_control_value(scope, pred);
  weir_node_t* split = weir_scope_add(scope, "Switch", NULL, WEIR_EDGES(pred, pred), WEIR_NO_ATTRS);
  for (int i = 0; i < 2 && split; ++i) {
    weir_control_t* side = &cond->sides[i];
    *side = (weir_control_t){.kind = WEIR_CONTROL_BRANCH,
                             .parent = scope->control,
                             .outside = scope,
                             .name = scope->prefix,
                             .pred = pred,
                             .side = i,
                             .twin = &cond->sides[1 - i]};
    side->pivot = weir_control_add(scope, "Identity",
                                   WEIR_EDGES((weir_edge_t){.node = split, .index = i}), side);
    cond->results[i] = weir_scope_alloc(scope, (size_t)cond->count + 1, sizeof(weir_edge_t));
  }
  return !scope->root->status;
}

static void add_branch(cond_t* cond, int side, weir_branch_fn_t branch, void* user) {
  weir_scope_t* scope = weir_control_scope(&cond->sides[side]);
  weir_scope_root_t* root = scope->root;
  weir_edge_t* results = cond->results[side];
  if (root->status) return;
  branch(scope, results, user);
  for (int i = 0; i < cond->count && !root->status; ++i) {
    if (!weir_control_is_edge(results[i])) {
      weir_scope_fail(scope,
                      WEIR_STATUS(INVALID_ARGUMENT, "the '%s' branch of '%s' gives no result %d",
                                  side_names[side], scope->prefix, i));
      return;
    }
    weir_edge_t value = weir_control_value(scope, results[i]);
    bool is_own =
        value.node && !weir_node_is_free_const(value.node) && weir_control_owns(scope, value);
    if (!is_own && value.node)
      value = weir_scope_first(
          weir_scope_add(scope, "Identity", NULL, WEIR_EDGES(value), WEIR_NO_ATTRS));
    results[i] = value;
  }
}

// On an eager scope: the branch that is taken, and no other.
static void take_branch(cond_t* cond, bool is_then, weir_branch_fn_t branch, void* user,
                        weir_edge_t* outs) {
  weir_scope_t* scope = cond->scope;
  branch(scope, outs, user);
  for (int i = 0; i < cond->count && !scope->root->status; ++i) {
    if (weir_control_is_edge(outs[i])) continue;
    weir_scope_fail(scope,
                    WEIR_STATUS(INVALID_ARGUMENT, "the '%s' branch of '%s' gives no result %d",
                                side_names[is_then], scope->prefix, i));
  }
}

static void merge(cond_t* cond, weir_edge_t* outs) {
  weir_scope_t* scope = cond->scope;
  for (int i = 0; i < cond->count && !scope->root->status; ++i) {
    weir_edge_t otherwise = cond->results[0][i];
    weir_edge_t then = cond->results[1][i];
    weir_dtype_t first = weir_dtype_base(weir_edge_dtype(then));
    weir_dtype_t second = weir_dtype_base(weir_edge_dtype(otherwise));
    if (first != second) {
      weir_scope_fail(scope,
                      WEIR_STATUS(INVALID_ARGUMENT,
                                  "result %d of '%s' is %s in the 'then' branch ('%s'), but %s in "
                                  "the 'else' branch ('%s')",
                                  i, scope->prefix, weir_dtype_name(first), then.node->def.name,
                                  weir_dtype_name(second), otherwise.node->def.name));
      return;
    }
    outs[i] = weir_scope_first(
        weir_control_add(scope, "Merge", WEIR_EDGES(otherwise, then), scope->control));
  }
}

void weir_cond_with(weir_scope_t* scope, weir_edge_t pred, weir_branch_fn_t then_fn,
                    weir_branch_fn_t else_fn, void* user, weir_edge_t* outs, int count,
                    const weir_cond_options_t* options) {
  options = options ? options : &(const weir_cond_options_t){0};
  WEIR_ASSERT_ARG(scope);
  if (!WEIR_HAS_ARG(scope, then_fn) || !WEIR_HAS_ARG(scope, else_fn)) return;
  if (count > 0 && !WEIR_HAS_ARG(scope, outs)) return;
  for (int i = 0; i < count; ++i) outs[i] = WEIR_NO_EDGE;
  cond_t* cond = weir_scope_alloc(scope, 1, sizeof(*cond));  // nodes refer to its contexts
  if (!cond) return;
  cond->scope = weir_scope_in(scope, options->name ? options->name : "cond");
  cond->count = count;
  if (!check_truth(cond, pred)) return;
  if (weir_scope_is_eager(scope)) {
    bool is_then = weir_control_truth(cond->scope, pred);
    if (!scope->root->status) take_branch(cond, is_then, is_then ? then_fn : else_fn, user, outs);
    return;
  }
  if (!begin(cond, pred)) return;
  add_branch(cond, 1, then_fn, user);
  add_branch(cond, 0, else_fn, user);
  merge(cond, outs);
}

// ---- many branches: one conditional within the other ----

typedef struct cases_t {
  weir_edge_t index;
  const weir_branch_fn_t* branches;
  int at, branch_count;
  void* user;
  int count;
} cases_t;

static void this_case(weir_scope_t* scope, weir_edge_t* outs, void* user) {
  const cases_t* cases = user;
  cases->branches[cases->at](scope, outs, cases->user);
}

static void add_cases(weir_scope_t* scope, weir_edge_t* outs, const cases_t* cases,
                      const weir_cond_options_t* options);

static void other_cases(weir_scope_t* scope, weir_edge_t* outs, void* user) {
  cases_t rest = *(const cases_t*)user;
  ++rest.at;
  if (rest.at == rest.branch_count - 1) this_case(scope, outs, &rest);
  else add_cases(scope, outs, &rest, &(const weir_cond_options_t){0});
}

static void add_cases(weir_scope_t* scope, weir_edge_t* outs, const cases_t* cases,
                      const weir_cond_options_t* options) {
  weir_edge_t number = weir_const_int(scope, cases->at);
  weir_edge_t is_this = weir_scope_first(
      weir_scope_add(scope, "Equal", NULL, WEIR_EDGES(cases->index, number), WEIR_NO_ATTRS));
  weir_cond_with(scope, is_this, this_case, other_cases, (void*)cases, outs, cases->count, options);
}

void weir_switch_case_with(weir_scope_t* scope, weir_edge_t index, const weir_branch_fn_t* branches,
                           int branch_count, void* user, weir_edge_t* outs, int count,
                           const weir_cond_options_t* options) {
  options = options ? options : &(const weir_cond_options_t){0};
  WEIR_ASSERT_ARG(scope);
  if (branch_count > 0 && !WEIR_HAS_ARG(scope, branches)) return;
  if (count > 0 && !WEIR_HAS_ARG(scope, outs)) return;
  for (int i = 0; i < count; ++i) outs[i] = WEIR_NO_EDGE;
  if (scope->root->status) return;
  bool is_index =
      weir_control_is_edge(index) && weir_dtype_base(weir_edge_dtype(index)) == WEIR_DTYPE_INT32;
  if (branch_count < 1 || !is_index) {
    weir_scope_fail(scope,
                    WEIR_STATUS(INVALID_ARGUMENT,
                                "weir_switch_case needs an int32 index and a branch, but has %s "
                                "and %d branches",
                                index.node ? index.node->def.name : "no index", branch_count));
    return;
  }
  cases_t cases = {.index = index,
                   .branches = branches,
                   .branch_count = branch_count,
                   .user = user,
                   .count = count};
  if (branch_count == 1) branches[0](scope, outs, user);
  else add_cases(scope, outs, &cases, options);
}
