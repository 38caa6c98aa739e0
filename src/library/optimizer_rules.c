// optimizer_rules.c — The optimizers that are one update op a variable: SGD, momentum, Adagrad,
// Adadelta, RMSProp, FTRL and the proximal ones.
#include "weir/ops.h"
#include "weir/optimizer.h"

static float or_else(weir_opt_float_t option, float value) {
  return option.is_set ? option.value : value;
}

// A number of the optimizer as an input of the update op.
static weir_edge_t h(const weir_update_t* u, float value) { return weir_update_const(u, value); }
static bool is_sparse(const weir_update_t* u) { return u->indices.node != NULL; }

// ---- gradient descent ----

static weir_node_t* sgd_apply(const weir_update_t* u) {
  weir_edge_t w = u->variable.handle;
  if (!is_sparse(u)) return weir_resource_apply_gradient_descent(u->scope, w, u->rate, u->gradient);
  weir_edge_t change = weir_mul(u->scope, weir_neg(u->scope, u->gradient), u->rate);
  return weir_resource_scatter_add(u->scope, w, u->indices, change);
}

static const weir_update_rule_t sgd_rule = {
    .name = "GradientDescent", .takes_repeated_rows = true, .apply = sgd_apply};

weir_optimizer_t weir_sgd_with(weir_rate_t rate) {
  return (weir_optimizer_t){.rule = &sgd_rule, .learning_rate = rate};
}

// ---- momentum ----

static int one_slot_of_zeros(const weir_optimizer_t* optimizer, float* initial) {
  (void)optimizer;
  initial[0] = 0;
  return 1;
}

static int two_slots_of_zeros(const weir_optimizer_t* optimizer, float* initial) {
  (void)optimizer;
  initial[0] = initial[1] = 0;
  return 2;
}

static weir_node_t* momentum_apply(const weir_update_t* u) {
  weir_edge_t w = u->variable.handle, m = u->slots[0];
  weir_edge_t momentum = h(u, u->optimizer->momentum);
  bool nesterov = u->optimizer->is_nesterov;
  if (is_sparse(u))
    return weir_resource_sparse_apply_momentum(u->scope, w, m, u->rate, u->gradient, u->indices,
                                               momentum, .use_nesterov = nesterov);
  return weir_resource_apply_momentum(u->scope, w, m, u->rate, u->gradient, momentum,
                                      .use_nesterov = nesterov);
}

static const weir_update_rule_t momentum_rule = {
    .name = "Momentum", .slots = one_slot_of_zeros, .apply = momentum_apply};

weir_optimizer_t weir_momentum_with(weir_rate_t rate, float momentum,
                                    const weir_momentum_options_t* options) {
  options = options ? options : &(const weir_momentum_options_t){0};
  return (weir_optimizer_t){.rule = &momentum_rule,
                            .learning_rate = rate,
                            .momentum = momentum,
                            .is_nesterov = options->nesterov};
}

// ---- Adagrad ----

static int accumulator_slot(const weir_optimizer_t* optimizer, float* initial) {
  initial[0] = optimizer->initial_accumulator;
  return 1;
}

static weir_status_t* check_accumulator(const weir_optimizer_t* optimizer) {
  if (optimizer->initial_accumulator > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "initial_accumulator_value must be positive: %g",
                     (double)optimizer->initial_accumulator);
}

static weir_node_t* adagrad_apply(const weir_update_t* u) {
  weir_edge_t w = u->variable.handle, a = u->slots[0];
  if (is_sparse(u))
    return weir_resource_sparse_apply_adagrad(u->scope, w, a, u->rate, u->gradient, u->indices);
  return weir_resource_apply_adagrad(u->scope, w, a, u->rate, u->gradient);
}

static const weir_update_rule_t adagrad_rule = {.name = "Adagrad",
                                                .check = check_accumulator,
                                                .slots = accumulator_slot,
                                                .apply = adagrad_apply};

weir_optimizer_t weir_adagrad_with(weir_rate_t rate, const weir_adagrad_options_t* options) {
  options = options ? options : &(const weir_adagrad_options_t){0};
  return (weir_optimizer_t){.rule = &adagrad_rule,
                            .learning_rate = rate,
                            .initial_accumulator = or_else(options->initial_accumulator, 0.1f)};
}

// ---- Adadelta ----

static weir_node_t* adadelta_apply(const weir_update_t* u) {
  weir_edge_t w = u->variable.handle, a = u->slots[0], d = u->slots[1];
  weir_edge_t rho = h(u, u->optimizer->rho), epsilon = h(u, u->optimizer->epsilon);
  if (is_sparse(u))
    return weir_resource_sparse_apply_adadelta(u->scope, w, a, d, u->rate, rho, epsilon,
                                               u->gradient, u->indices);
  return weir_resource_apply_adadelta(u->scope, w, a, d, u->rate, rho, epsilon, u->gradient);
}

static const weir_update_rule_t adadelta_rule = {
    .name = "Adadelta", .slots = two_slots_of_zeros, .apply = adadelta_apply};

weir_optimizer_t weir_adadelta_with(weir_rate_t rate, const weir_adadelta_options_t* options) {
  options = options ? options : &(const weir_adadelta_options_t){0};
  return (weir_optimizer_t){.rule = &adadelta_rule,
                            .learning_rate = rate,
                            .rho = or_else(options->rho, 0.95f),
                            .epsilon = or_else(options->epsilon, 1e-8f)};
}

// ---- RMSProp ----

// Mean square, mean gradient where centered, momentum: in the order that names them as TensorFlow.
static int rmsprop_slots(const weir_optimizer_t* optimizer, float* initial) {
  initial[0] = 1;
  initial[1] = initial[2] = 0;
  return optimizer->is_centered ? 3 : 2;
}

static weir_node_t* rmsprop_apply(const weir_update_t* u) {
  weir_edge_t w = u->variable.handle, ms = u->slots[0], mom = u->slots[1];
  weir_edge_t rho = h(u, u->optimizer->rho), momentum = h(u, u->optimizer->momentum);
  weir_edge_t epsilon = h(u, u->optimizer->epsilon);
  if (is_sparse(u))
    return weir_resource_sparse_apply_rms_prop(u->scope, w, ms, mom, u->rate, rho, momentum,
                                               epsilon, u->gradient, u->indices);
  return weir_resource_apply_rms_prop(u->scope, w, ms, mom, u->rate, rho, momentum, epsilon,
                                      u->gradient);
}

static weir_node_t* centered_apply(const weir_update_t* u) {
  weir_edge_t w = u->variable.handle, ms = u->slots[0], mg = u->slots[1], mom = u->slots[2];
  weir_edge_t rho = h(u, u->optimizer->rho), momentum = h(u, u->optimizer->momentum);
  weir_edge_t epsilon = h(u, u->optimizer->epsilon);
  if (is_sparse(u))
    return weir_resource_sparse_apply_centered_rms_prop(u->scope, w, mg, ms, mom, u->rate, rho,
                                                        momentum, epsilon, u->gradient, u->indices);
  return weir_resource_apply_centered_rms_prop(u->scope, w, mg, ms, mom, u->rate, rho, momentum,
                                               epsilon, u->gradient);
}

static const weir_update_rule_t rmsprop_rule = {
    .name = "RMSProp", .slots = rmsprop_slots, .apply = rmsprop_apply};
static const weir_update_rule_t centered_rule = {
    .name = "RMSProp", .slots = rmsprop_slots, .apply = centered_apply};

weir_optimizer_t weir_rmsprop_with(weir_rate_t rate, const weir_rmsprop_options_t* options) {
  options = options ? options : &(const weir_rmsprop_options_t){0};
  return (weir_optimizer_t){.rule = options->centered ? &centered_rule : &rmsprop_rule,
                            .learning_rate = rate,
                            .rho = or_else(options->decay, 0.9f),
                            .momentum = options->momentum,
                            .epsilon = or_else(options->epsilon, 1e-10f),
                            .is_centered = options->centered};
}

// ---- FTRL ----

static int ftrl_slots(const weir_optimizer_t* optimizer, float* initial) {
  initial[0] = optimizer->initial_accumulator;
  initial[1] = 0;
  return 2;
}

static weir_status_t* ftrl_check(const weir_optimizer_t* o) {
  const struct {
    const char* name;
    float value;
  } strengths[] = {{"initial_accumulator_value", o->initial_accumulator},
                   {"l1_regularization_strength", o->l1},
                   {"l2_regularization_strength", o->l2},
                   {"l2_shrinkage_regularization_strength", o->l2_shrinkage}};
  for (int i = 0; i < 4; ++i) {
    if (!(strengths[i].value >= 0))
      return WEIR_STATUS(INVALID_ARGUMENT, "%s %g needs to be positive or zero", strengths[i].name,
                         (double)strengths[i].value);
  }
  if (o->rate_power <= 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "learning_rate_power %g needs to be negative or zero",
                     (double)o->rate_power);
}

// The op knows no beta: it is a part of l2, beta / (2 rate).
static weir_edge_t ftrl_l2(const weir_update_t* u) {
  weir_edge_t l2 = h(u, u->optimizer->l2);
  if (u->optimizer->beta == 0) return l2;
  weir_edge_t rate = weir_maximum(u->scope, u->rate, h(u, 1e-36f));
  weir_edge_t twice = weir_mul(u->scope, h(u, 2), rate);
  return weir_add_v2(u->scope, l2, weir_real_div(u->scope, h(u, u->optimizer->beta), twice));
}

static weir_node_t* ftrl_apply(const weir_update_t* u) {
  weir_scope_t* s = u->scope;
  weir_edge_t w = u->variable.handle, a = u->slots[0], z = u->slots[1], g = u->gradient;
  weir_edge_t l1 = h(u, u->optimizer->l1), l2 = ftrl_l2(u);
  weir_edge_t power = h(u, u->optimizer->rate_power);
  if (u->optimizer->l2_shrinkage <= 0) {
    if (is_sparse(u))
      return weir_resource_sparse_apply_ftrl(s, w, a, z, g, u->indices, u->rate, l1, l2, power);
    return weir_resource_apply_ftrl(s, w, a, z, g, u->rate, l1, l2, power);
  }
  weir_edge_t shrinkage = h(u, u->optimizer->l2_shrinkage);
  if (is_sparse(u))
    return weir_resource_sparse_apply_ftrl_v2(s, w, a, z, g, u->indices, u->rate, l1, l2, shrinkage,
                                              power);
  return weir_resource_apply_ftrl_v2(s, w, a, z, g, u->rate, l1, l2, shrinkage, power);
}

static const weir_update_rule_t ftrl_rule = {
    .name = "Ftrl", .check = ftrl_check, .slots = ftrl_slots, .apply = ftrl_apply};

weir_optimizer_t weir_ftrl_with(weir_rate_t rate, const weir_ftrl_options_t* options) {
  options = options ? options : &(const weir_ftrl_options_t){0};
  return (weir_optimizer_t){.rule = &ftrl_rule,
                            .learning_rate = rate,
                            .rate_power = or_else(options->rate_power, -0.5f),
                            .initial_accumulator = or_else(options->initial_accumulator, 0.1f),
                            .l1 = options->l1,
                            .l2 = options->l2,
                            .l2_shrinkage = options->l2_shrinkage,
                            .beta = options->beta};
}

// ---- proximal ----

static weir_node_t* proximal_sgd_apply(const weir_update_t* u) {
  weir_edge_t w = u->variable.handle;
  weir_edge_t l1 = h(u, u->optimizer->l1), l2 = h(u, u->optimizer->l2);
  if (is_sparse(u))
    return weir_resource_sparse_apply_proximal_gradient_descent(u->scope, w, u->rate, l1, l2,
                                                                u->gradient, u->indices);
  return weir_resource_apply_proximal_gradient_descent(u->scope, w, u->rate, l1, l2, u->gradient);
}

static const weir_update_rule_t proximal_sgd_rule = {.name = "ProximalGradientDescent",
                                                     .apply = proximal_sgd_apply};

weir_optimizer_t weir_proximal_sgd_with(weir_rate_t rate, const weir_proximal_options_t* options) {
  options = options ? options : &(const weir_proximal_options_t){0};
  return (weir_optimizer_t){
      .rule = &proximal_sgd_rule, .learning_rate = rate, .l1 = options->l1, .l2 = options->l2};
}

static weir_node_t* proximal_adagrad_apply(const weir_update_t* u) {
  weir_edge_t w = u->variable.handle, a = u->slots[0];
  weir_edge_t l1 = h(u, u->optimizer->l1), l2 = h(u, u->optimizer->l2);
  if (is_sparse(u))
    return weir_resource_sparse_apply_proximal_adagrad(u->scope, w, a, u->rate, l1, l2, u->gradient,
                                                       u->indices);
  return weir_resource_apply_proximal_adagrad(u->scope, w, a, u->rate, l1, l2, u->gradient);
}

static const weir_update_rule_t proximal_adagrad_rule = {.name = "ProximalAdagrad",
                                                         .check = check_accumulator,
                                                         .slots = accumulator_slot,
                                                         .apply = proximal_adagrad_apply};

weir_optimizer_t weir_proximal_adagrad_with(weir_rate_t rate,
                                            const weir_proximal_options_t* options) {
  options = options ? options : &(const weir_proximal_options_t){0};
  return (weir_optimizer_t){.rule = &proximal_adagrad_rule,
                            .learning_rate = rate,
                            .l1 = options->l1,
                            .l2 = options->l2,
                            .initial_accumulator = or_else(options->initial_accumulator, 0.1f)};
}
