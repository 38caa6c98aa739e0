// accumulate.c — Gradient accumulation: micro-batches add up in variables beside the weights; every
// n-th step applies their mean.
//
// Each run adds, counts, and then takes one of two branches: what applies the gradients comes after
// the true side of a Switch, so that it is dead in other runs. A Merge makes the step live again.
#include "optimizer.h"
#include "weir/ops.h"

typedef struct accumulation_t {
  const application_t* call;
  weir_scope_t* scope;
  weir_edge_t count;           // the value of the variable that counts micro-batches
  weir_edge_t* sums;           // values of the accumulators; no node where there is no gradient
  weir_edge_t is_due, is_not;  // live in runs that apply, and in the others
} accumulation_t;

static weir_node_t* add_one(weir_scope_t* scope, weir_edge_t sum, weir_gradient_t gradient) {
  weir_edge_t handle = weir_variable_handle(sum);
  if (!gradient.indices.node) return weir_assign_add_variable_op(scope, handle, gradient.values);
  return weir_resource_scatter_add(scope, handle, gradient.indices, gradient.values);
}

// Adds this run's gradients and counts it.
static void add(accumulation_t* a) {
  const application_t* call = a->call;
  weir_node_t** added = weir_scope_alloc(a->scope, (size_t)call->count + 1, sizeof(*added));
  a->sums = weir_scope_alloc(a->scope, (size_t)call->count, sizeof(*a->sums));
  if (!added || !a->sums) return;
  weir_scope_t* state = weir_scope_lift(a->scope);
  a->count = weir_state_variable(state, "count", weir_const_int(state, 0));
  int used = 0;
  for (int i = 0; i < call->count && !weir_scope_status(a->scope); ++i) {
    const weir_variable_gradient_t* pair = &call->gradients[i];
    if (!pair->gradient.values.node) continue;
    a->sums[i] = weir_library_slot(call->state, &pair->variable, "GradientAccumulator", 0);
    added[used++] = add_one(a->scope, a->sums[i], pair->gradient);
  }
  if (weir_scope_status(a->scope)) return;
  added[used++] = weir_library_increment(a->scope, a->count);
  weir_scope_t* after = weir_scope_after(a->scope, added, used);
  weir_edge_t now = weir_read_variable_op(after, weir_variable_handle(a->count), WEIR_DTYPE_INT32);
  weir_edge_t limit = weir_const_int(a->scope, call->options->accumulate);
  weir_edge_t is_full = weir_greater_equal(a->scope, now, limit);
  weir_switch_result_t sides = weir_switch(a->scope, is_full, is_full);
  a->is_due = weir_identity(a->scope, sides.output_true);
  a->is_not = weir_identity(a->scope, sides.output_false);
}

// Applies the means and clears the accumulators. All nodes are dead where |is_due| is.
static weir_node_t* apply(const accumulation_t* a) {
  const application_t* call = a->call;
  size_t room = (size_t)call->count;
  weir_variable_gradient_t* means = weir_scope_alloc(a->scope, room, sizeof(*means));
  weir_node_t** clears = weir_scope_alloc(a->scope, room + 1, sizeof(*clears));
  if (!means || !clears || weir_scope_status(a->scope)) return NULL;
  application_t inner = *call;
  inner.scope = weir_scope_after(call->scope, &a->is_due.node, 1);
  inner.gradients = means;
  for (int i = 0; i < call->count; ++i) {
    means[i].variable = call->gradients[i].variable;
    if (!a->sums[i].node) continue;
    weir_dtype_t dtype = weir_edge_type(a->sums[i]);
    weir_edge_t sum = weir_read_variable_op(inner.scope, weir_variable_handle(a->sums[i]), dtype);
    weir_edge_t runs = weir_library_scalar(a->scope, (float)call->options->accumulate, dtype);
    means[i].gradient.values = weir_real_div(inner.scope, sum, runs);
  }
  weir_node_t* applied = weir_library_apply(&inner);
  weir_scope_t* late = weir_scope_after(inner.scope, &applied, 1);
  int used = 0;
  for (int i = 0; i < call->count && !weir_scope_status(late); ++i) {
    if (!a->sums[i].node) continue;
    weir_edge_t zeros = weir_zeros_like(late, means[i].gradient.values);
    clears[used++] = weir_assign_variable_op(late, weir_variable_handle(a->sums[i]), zeros);
  }
  if (weir_scope_status(late)) return NULL;
  clears[used++] =
      weir_assign_variable_op(late, weir_variable_handle(a->count), weir_const_int(late, 0));
  return weir_group(late, "cleared", clears, used);
}

weir_node_t* weir_library_apply_accumulated(const application_t* call) {
  accumulation_t a = {.call = call, .scope = weir_scope_in(call->scope, "accumulate")};
  add(&a);
  weir_node_t* cleared = apply(&a);
  if (weir_scope_status(a.scope)) return NULL;
  weir_edge_t done = weir_identity(weir_scope_after(a.scope, &cleared, 1), a.is_due);
  return weir_merge(a.scope, ((const weir_edge_t[]){done, a.is_not}), 2).output.node;
}
