// optimizer_adam.c — Adam, AMSGrad and AdaMax. Their sparse updates are graphs, as in TensorFlow.
#include "weir/ops.h"
#include "weir/optimizer.h"

static float or_else(weir_opt_float_t option, float value) {
  return option.is_set ? option.value : value;
}

static weir_edge_t one_minus(const weir_update_t* u, weir_edge_t x) {
  return weir_sub(u->scope, weir_update_const(u, 1), x);
}

static int adam_slots(const weir_optimizer_t* optimizer, float* initial) {
  for (int i = 0; i < 3; ++i) initial[i] = 0;
  return optimizer->is_amsgrad ? 3 : 2;
}

static int adam_powers(const weir_optimizer_t* optimizer, weir_power_t* powers) {
  powers[0] = (weir_power_t){.name = "beta1_power", .base = optimizer->beta1};
  powers[1] = (weir_power_t){.name = "beta2_power", .base = optimizer->beta2};
  return 2;
}

// moment = decay * moment, everywhere, then |rows| are added where |indices| says. Returns what the
// moment then is.
static weir_edge_t decay_and_add(const weir_update_t* u, weir_edge_t moment, weir_edge_t decay,
                                 weir_edge_t rows) {
  weir_edge_t before = weir_read_variable_op(u->scope, moment, u->dtype);
  weir_node_t* decayed =
      weir_assign_variable_op(u->scope, moment, weir_mul(u->scope, before, decay));
  weir_node_t* added =
      weir_resource_scatter_add(weir_scope_after(u->scope, &decayed, 1), moment, u->indices, rows);
  return weir_read_variable_op(weir_scope_after(u->scope, &added, 1), moment, u->dtype);
}

static weir_node_t* adam_sparse(const weir_update_t* u) {
  weir_scope_t* s = u->scope;
  weir_edge_t beta1 = weir_update_const(u, u->optimizer->beta1);
  weir_edge_t beta2 = weir_update_const(u, u->optimizer->beta2);
  weir_edge_t epsilon = weir_update_const(u, u->optimizer->epsilon);
  weir_edge_t g = u->gradient;
  weir_edge_t rate = weir_mul(s, u->rate, weir_sqrt(s, one_minus(u, u->powers[1])));
  rate = weir_real_div(s, rate, one_minus(u, u->powers[0]));
  weir_edge_t m = decay_and_add(u, u->slots[0], beta1, weir_mul(s, g, one_minus(u, beta1)));
  weir_edge_t v =
      decay_and_add(u, u->slots[1], beta2, weir_mul(s, weir_mul(s, g, g), one_minus(u, beta2)));
  weir_node_t* after = NULL;
  if (u->optimizer->is_amsgrad) {
    v = weir_maximum(s, weir_read_variable_op(s, u->slots[2], u->dtype), v);
    after = weir_assign_variable_op(s, u->slots[2], v);
  }
  weir_edge_t divisor = weir_add_v2(s, weir_sqrt(s, v), epsilon);
  weir_edge_t change = weir_real_div(s, weir_mul(s, rate, m), divisor);
  return weir_assign_sub_variable_op(weir_scope_after(s, &after, after != NULL), u->variable.handle,
                                     change);
}

static weir_node_t* adam_apply(const weir_update_t* u) {
  if (u->indices.node) return adam_sparse(u);
  weir_edge_t beta1 = weir_update_const(u, u->optimizer->beta1);
  weir_edge_t beta2 = weir_update_const(u, u->optimizer->beta2);
  weir_edge_t epsilon = weir_update_const(u, u->optimizer->epsilon);
  if (u->optimizer->is_amsgrad) {
    return weir_resource_apply_adam_with_amsgrad(
        u->scope, u->variable.handle, u->slots[0], u->slots[1], u->slots[2], u->powers[0],
        u->powers[1], u->rate, beta1, beta2, epsilon, u->gradient);
  }
  return weir_resource_apply_adam(u->scope, u->variable.handle, u->slots[0], u->slots[1],
                                  u->powers[0], u->powers[1], u->rate, beta1, beta2, epsilon,
                                  u->gradient);
}

static const weir_update_rule_t adam_rule = {
    .name = "Adam", .slots = adam_slots, .powers = adam_powers, .apply = adam_apply};

weir_optimizer_t weir_adam_with(weir_rate_t rate, const weir_adam_options_t* options) {
  options = options ? options : &(const weir_adam_options_t){0};
  return (weir_optimizer_t){.rule = &adam_rule,
                            .learning_rate = rate,
                            .beta1 = or_else(options->beta1, 0.9f),
                            .beta2 = or_else(options->beta2, 0.999f),
                            .epsilon = or_else(options->epsilon, 1e-8f),
                            .is_amsgrad = options->amsgrad};
}

// ---- AdaMax ----

static int adamax_slots(const weir_optimizer_t* optimizer, float* initial) {
  (void)optimizer;
  initial[0] = initial[1] = 0;
  return 2;
}

static int adamax_powers(const weir_optimizer_t* optimizer, weir_power_t* powers) {
  powers[0] = (weir_power_t){.name = "beta1_power", .base = optimizer->beta1};
  return 1;
}

// Only the rows that occur: gathered, computed, written back.
static weir_node_t* adamax_sparse(const weir_update_t* u) {
  weir_scope_t* s = u->scope;
  weir_edge_t beta1 = weir_update_const(u, u->optimizer->beta1);
  weir_edge_t beta2 = weir_update_const(u, u->optimizer->beta2);
  weir_edge_t g = u->gradient;
  weir_edge_t m = weir_resource_gather(s, u->slots[0], u->indices, u->dtype);
  weir_edge_t v = weir_resource_gather(s, u->slots[1], u->indices, u->dtype);
  m = weir_add_v2(s, weir_mul(s, m, beta1), weir_mul(s, g, one_minus(u, beta1)));
  v = weir_maximum(s, weir_mul(s, v, beta2), weir_abs(s, g));
  weir_node_t* written[] = {weir_resource_scatter_update(s, u->slots[0], u->indices, m),
                            weir_resource_scatter_update(s, u->slots[1], u->indices, v)};
  weir_edge_t rate = weir_neg(s, weir_real_div(s, u->rate, one_minus(u, u->powers[0])));
  weir_edge_t divisor = weir_add_v2(s, v, weir_update_const(u, u->optimizer->epsilon));
  weir_edge_t change = weir_mul(s, rate, weir_real_div(s, m, divisor));
  return weir_resource_scatter_add(weir_scope_after(s, written, 2), u->variable.handle, u->indices,
                                   change);
}

static weir_node_t* adamax_apply(const weir_update_t* u) {
  if (u->indices.node) return adamax_sparse(u);
  return weir_resource_apply_ada_max(
      u->scope, u->variable.handle, u->slots[0], u->slots[1], u->powers[0], u->rate,
      weir_update_const(u, u->optimizer->beta1), weir_update_const(u, u->optimizer->beta2),
      weir_update_const(u, u->optimizer->epsilon), u->gradient);
}

static const weir_update_rule_t adamax_rule = {
    .name = "AdaMax", .slots = adamax_slots, .powers = adamax_powers, .apply = adamax_apply};

weir_optimizer_t weir_adamax_with(weir_rate_t rate, const weir_adamax_options_t* options) {
  options = options ? options : &(const weir_adamax_options_t){0};
  return (weir_optimizer_t){.rule = &adamax_rule,
                            .learning_rate = rate,
                            .beta1 = or_else(options->beta1, 0.9f),
                            .beta2 = or_else(options->beta2, 0.999f),
                            .epsilon = or_else(options->epsilon, 1e-7f)};
}
