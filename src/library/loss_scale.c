// loss_scale.c — Loss scaling: gradients of a loss that was multiplied, so that small ones are not
// lost in half precision, and steps that are left out where that was too much.
//
// The scale is a variable. Gradients are divided by it as soon as they are there, in the variables'
// type. A step then looks whether all of them are finite, and only if so applies them, in one of
// two branches as in accumulate.c. The scale is halved when they are not, and doubled after so many
// steps when they are, as TensorFlow's dynamic loss scale is, under the same names.
#include "optimizer.h"
#include "weir/ops.h"

enum { DEFAULT_PERIOD = 2000 };
static const float kLargest = 0x1p127f;

static weir_edge_t state_variable(weir_scope_t* scope, const char* name, float initial,
                                  weir_dtype_t dtype) {
  weir_variable_info_t variable;
  if (weir_library_find_named(scope, name, &variable)) return variable.value;
  weir_scope_t* state = weir_scope_at(weir_scope_lift(scope), "");
  return weir_state_variable(state, name, weir_library_scalar(state, initial, dtype));
}

static weir_edge_t scale_of(weir_scope_t* scope, const weir_minimize_options_t* options) {
  return state_variable(scope, "current_loss_scale", options->loss_scale, WEIR_DTYPE_FLOAT);
}

weir_edge_t weir_library_scale_loss(weir_scope_t* scope, weir_edge_t loss,
                                    const weir_minimize_options_t* options) {
  if (!(options->loss_scale > 0) || weir_scope_status(scope)) return options->loss_gradient;
  weir_scope_t* s = weir_scope_in(scope, "loss_scale");
  weir_edge_t grad = options->loss_gradient;
  if (!grad.node) grad = weir_ones_like(s, loss);
  return weir_mul(s, grad, weir_library_cast(s, scale_of(scope, options), weir_edge_type(grad)));
}

void weir_library_unscale(weir_scope_t* scope, weir_variable_gradient_t* gradients, int count,
                          const weir_minimize_options_t* options) {
  if (!(options->loss_scale > 0) || weir_scope_status(scope)) return;
  weir_scope_t* s = weir_scope_in(scope, "loss_unscale");
  weir_edge_t inverse = weir_reciprocal(s, scale_of(scope, options));
  for (int i = 0; i < count && !weir_scope_status(s); ++i) {
    weir_edge_t* values = &gradients[i].gradient.values;
    if (values->node)
      *values = weir_mul(s, *values, weir_library_cast(s, inverse, weir_edge_type(*values)));
  }
}

static weir_edge_t are_all_finite(weir_scope_t* s, const application_t* call) {
  weir_edge_t all = {0};
  for (int i = 0; i < call->count && !weir_scope_status(s); ++i) {
    weir_edge_t values = call->gradients[i].gradient.values;
    if (!values.node) continue;
    weir_edge_t axes =
        weir_range(s, weir_const_int(s, 0), weir_rank(s, values), weir_const_int(s, 1));
    weir_edge_t is_finite = weir_all(s, weir_is_finite(s, values), axes);
    all = all.node ? weir_logical_and(s, all, is_finite) : is_finite;
  }
  return all;
}

// Nodes that set the scale of the next step and count steps that went well.
static weir_node_t* adapt(weir_scope_t* s, const application_t* call, weir_edge_t is_good) {
  weir_edge_t scale = scale_of(s, call->options);
  weir_edge_t runs = state_variable(s, "good_steps", 0, WEIR_DTYPE_INT64);
  int period = call->options->loss_scale_period;
  if (weir_scope_status(s)) return NULL;
  weir_edge_t zero = weir_zeros_like(s, runs), one = weir_ones_like(s, runs);
  weir_edge_t limit =
      weir_library_scalar(s, (float)(period ? period : DEFAULT_PERIOD), WEIR_DTYPE_INT64);
  weir_edge_t done = weir_select_v2(s, is_good, weir_add_v2(s, runs, one), zero);
  weir_edge_t is_long = weir_greater_equal(s, done, limit);
  weir_edge_t two = weir_const_float(s, 2), half = weir_const_float(s, 0.5f);
  weir_edge_t more = weir_minimum(s, weir_mul(s, scale, two), weir_const_float(s, kLargest));
  weir_edge_t less = weir_maximum(s, weir_mul(s, scale, half), weir_const_float(s, 1));
  weir_edge_t good = weir_select_v2(s, is_long, more, scale);
  weir_node_t* nodes[] = {weir_assign_variable_op(s, weir_variable_handle(scale),
                                                  weir_select_v2(s, is_good, good, less)),
                          weir_assign_variable_op(s, weir_variable_handle(runs),
                                                  weir_select_v2(s, is_long, zero, done))};
  return weir_scope_status(s) ? NULL : weir_group(s, "adapt", nodes, 2);
}

weir_node_t* weir_library_apply_scaled(const application_t* call) {
  weir_scope_t* s = weir_scope_in(call->scope, "loss_scale");
  weir_edge_t is_good = are_all_finite(s, call);
  weir_node_t* adapted = adapt(s, call, is_good);
  if (weir_scope_status(s)) return NULL;
  weir_switch_result_t sides = weir_switch(s, is_good, is_good);
  weir_edge_t is_due = weir_identity(s, sides.output_true);
  weir_edge_t is_not = weir_identity(s, sides.output_false);
  application_t inner = *call;
  inner.scope = weir_scope_after(call->scope, &is_due.node, 1);
  weir_node_t* applied = call->options->accumulate > 1 ? weir_library_apply_accumulated(&inner)
                                                       : weir_library_apply(&inner);
  if (weir_scope_status(s)) return NULL;
  weir_edge_t done = weir_identity(weir_scope_after(s, &applied, 1), is_due);
  weir_edge_t ways[] = {done, is_not};
  weir_node_t* nodes[] = {adapted, weir_merge(s, ways, 2).output.node};
  return weir_scope_status(s) ? NULL : weir_group(s, "applied", nodes, 2);
}
