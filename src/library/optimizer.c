// optimizer.c — From a loss and an optimizer to the node that takes a step: gradients, slots,
// updates.
#include "optimizer.h"

#include <stdio.h>
#include <string.h>

#include "nodes.h"
#include "weir/clip.h"
#include "weir/mapped.h"
#include "weir/ops.h"
#include "weir/partition.h"

// ---- small graphs ----

weir_rate_t weir_rate_float(float value) { return (weir_rate_t){.value = value}; }
weir_rate_t weir_rate_edge(weir_edge_t edge) { return (weir_rate_t){.edge = edge}; }
weir_rate_t weir_rate_same(weir_rate_t rate) { return rate; }

weir_edge_t weir_rate_value(weir_scope_t* scope, weir_rate_t rate, weir_dtype_t dtype) {
  if (!rate.edge.node) return weir_library_scalar(scope, rate.value, dtype);
  return weir_library_cast(scope, rate.edge, dtype);
}

weir_edge_t weir_library_cast(weir_scope_t* scope, weir_edge_t edge, weir_dtype_t dtype) {
  if (!edge.node) return edge;
  if (!weir_lib_ready(scope, "cast", edge)) return (weir_edge_t){.node = NULL};
  return weir_edge_type(edge) == dtype ? edge : weir_cast(scope, edge, dtype);
}

weir_edge_t weir_library_scalar(weir_scope_t* scope, float value, weir_dtype_t dtype) {
  return weir_library_cast(scope, weir_const_float(scope, value), dtype);
}

weir_edge_t weir_update_const(const weir_update_t* update, float value) {
  WEIR_ASSERT_ARG(update);
  return weir_library_scalar(update->scope, value, update->dtype);
}

// The extent of |initial| as an int32 vector: a constant where it is known.
static weir_edge_t extent(weir_scope_t* scope, weir_edge_t initial) {
  enum { MOST = 16 };
  int64_t dims[MOST];
  int known[MOST];
  int rank = weir_edge_dims(initial, dims, MOST);
  bool is_known = rank >= 0 && rank <= MOST;
  for (int i = 0; i < rank && is_known; ++i) {
    is_known = dims[i] >= 0 && dims[i] <= INT32_MAX;
    known[i] = (int)dims[i];
  }
  return is_known ? weir_const_ints(scope, known, rank) : weir_shape(scope, initial);
}

// |whole| and the name that a slot beside |variable| will have: "table/Adam_1" of a table in parts,
// whose own slot is "table/part_0/Adam_1"; "file.Adam_1" of one in a file. NULL after an error.
static const char* name_of_slots(weir_scope_t* state, weir_edge_t variable, const char* whole,
                                 char separator, const char* slot) {
  const char* beside = weir_node_name(variable.node);
  const size_t size = strlen(beside) + strlen(whole) + strlen(slot) + 32;
  char* name = weir_scope_alloc(state, size, 1);
  if (!name) return NULL;
  snprintf(name, size, "%s/%s", beside, slot);
  int number = 0;
  while (weir_graph_find_node(weir_scope_graph(state), name))
    snprintf(name, size, "%s/%s_%d", beside, slot, ++number);
  if (number) snprintf(name, size, "%s%c%s_%d", whole, separator, slot, number);
  else snprintf(name, size, "%s%c%s", whole, separator, slot);
  return name;
}

// A file beside the variable's |file|. Such begin as zeros.
static weir_edge_t slot_in_file(weir_scope_t* beside, const weir_variable_info_t* variable,
                                const char* file, const weir_variable_part_t* part,
                                const char* name, float value) {
  int64_t dims[WEIR_MAX_RANK];
  const int rank = weir_edge_dims(variable->initial, dims, WEIR_MAX_RANK);
  const char* path = name_of_slots(beside, variable->handle, file, '.', name);
  if (path && value != 0) {
    weir_lib_fail(beside,
                  "'%s' lies in a file, and so would '%s', which starts with %g: only zeros can",
                  weir_node_name(variable->handle.node), name, (double)value);
  }
  if (!path || weir_scope_status(beside)) return (weir_edge_t){0};
  return weir_mapped_variable(beside, name, path, ((weir_dims_t){dims, rank, true}),
                              .dtype = weir_edge_type(variable->initial), .part = part,
                              .is_state = true);
}

weir_edge_t weir_library_slot(weir_scope_t* state, const weir_variable_info_t* variable,
                              const char* name, float value) {
  if (weir_scope_status(state)) return (weir_edge_t){0};
  weir_variable_part_t part;
  const bool is_part = weir_variable_part(state, variable->handle, &part);
  if (is_part) part.name = name_of_slots(state, variable->handle, part.name, '/', name);
  const char* file = weir_variable_file(state, variable->handle);
  if (weir_scope_status(state)) return (weir_edge_t){0};
  weir_scope_t* beside = weir_scope_on(weir_scope_at(state, weir_node_name(variable->handle.node)),
                                       weir_node_device(variable->handle.node));
  if (file) return slot_in_file(beside, variable, file, is_part ? &part : NULL, name, value);
  weir_edge_t fill = weir_library_scalar(beside, value, weir_edge_type(variable->initial));
  weir_edge_t initial = weir_fill(beside, extent(beside, variable->initial), fill);
  return is_part ? weir_part_variable(beside, name, initial, &part, false)
                 : weir_state_variable(beside, name, initial);
}

bool weir_library_find_variable(const weir_scope_t* scope, weir_edge_t edge,
                                weir_variable_info_t* out_variable) {
  int count = weir_scope_variable_count(scope);
  for (int i = 0; i < count; ++i) {
    weir_variable_info_t variable = weir_scope_variable_at(scope, i);
    if (edge.index || (variable.handle.node != edge.node && variable.value.node != edge.node))
      continue;
    *out_variable = variable;
    return true;
  }
  return false;
}

bool weir_library_find_named(const weir_scope_t* scope, const char* name,
                             weir_variable_info_t* out_variable) {
  int count = weir_scope_variable_count(scope);
  for (int i = 0; i < count; ++i) {
    *out_variable = weir_scope_variable_at(scope, i);
    if (!strcmp(weir_node_name(out_variable->handle.node), name)) return true;
  }
  return false;
}

weir_node_t* weir_library_increment(weir_scope_t* scope, weir_edge_t step) {
  weir_variable_info_t variable;
  if (weir_scope_status(scope)) return NULL;
  if (!weir_library_find_variable(scope, step, &variable)) {
    weir_scope_fail(scope, WEIR_STATUS(INVALID_ARGUMENT, "global step '%s' is no variable",
                                       weir_node_name(step.node)));
    return NULL;
  }
  weir_edge_t one =
      weir_library_cast(scope, weir_const_int(scope, 1), weir_edge_type(variable.value));
  return weir_assign_add_variable_op(scope, variable.handle, one);
}

weir_edge_t weir_global_step(weir_scope_t* scope) {
  weir_variable_info_t variable;
  if (weir_library_find_named(scope, "global_step", &variable)) return variable.value;
  weir_scope_t* state = weir_scope_at(weir_scope_lift(scope), "");
  return weir_state_variable(state, "global_step",
                             weir_cast(state, weir_const_int(state, 0), WEIR_DTYPE_INT64));
}

weir_gradient_t weir_gradient_unique(weir_scope_t* scope, weir_gradient_t gradient) {
  if (!gradient.indices.node || weir_scope_status(scope)) return gradient;
  weir_unique_result_t rows = weir_unique(scope, gradient.indices);
  gradient.values =
      weir_unsorted_segment_sum(scope, gradient.values, rows.idx, weir_size(scope, rows.y));
  gradient.indices = rows.y;
  return gradient;
}

// ---- applying gradients ----

static const char* name_of(const weir_optimizer_t* optimizer) {
  return optimizer->name ? optimizer->name : optimizer->rule->name;
}

// Powers are variables of the optimizer, not of one variable. Sets their values.
static int add_powers(const application_t* a, weir_power_t* powers, weir_edge_t* values) {
  const weir_update_rule_t* rule = a->optimizer->rule;
  int count = rule->powers ? rule->powers(a->optimizer, powers) : 0;
  for (int i = 0; i < count; ++i) {
    values[i] =
        weir_state_variable(a->state, powers[i].name, weir_const_float(a->state, powers[i].base));
  }
  return count;
}

static weir_node_t* update_one(const application_t* a, const weir_edge_t* powers, int power_count,
                               const weir_variable_info_t* variable, weir_gradient_t gradient) {
  const weir_optimizer_t* optimizer = a->optimizer;
  char name[256];
  snprintf(name, sizeof(name), "update_%s", weir_node_name(variable->handle.node));
  weir_scope_t* scope = weir_scope_in(a->scope, name);
  const char* device = weir_node_device(variable->handle.node);
  if (*device) scope = weir_scope_on(scope, device);
  weir_update_t update = {.scope = scope,
                          .optimizer = optimizer,
                          .variable = *variable,
                          .dtype = weir_edge_type(variable->value)};
  float initial[WEIR_MAX_SLOTS] = {0};
  int slot_count = optimizer->rule->slots ? optimizer->rule->slots(optimizer, initial) : 0;
  for (int i = 0; i < slot_count; ++i) {
    update.slots[i] =
        weir_variable_handle(weir_library_slot(a->state, variable, name_of(optimizer), initial[i]));
  }
  for (int i = 0; i < power_count; ++i)
    update.powers[i] = weir_library_cast(scope, powers[i], update.dtype);
  if (!optimizer->rule->takes_repeated_rows) gradient = weir_gradient_unique(scope, gradient);
  update.rate = weir_rate_value(scope, optimizer->learning_rate, update.dtype);
  update.gradient = gradient.values;
  update.indices = gradient.indices;
  return weir_scope_status(scope) ? NULL : optimizer->rule->apply(&update);
}

// Multiplies the powers, after the updates that used them.
static weir_node_t* advance_powers(weir_scope_t* scope, const weir_power_t* powers,
                                   const weir_edge_t* values, int count, weir_node_t* updates) {
  if (!count) return updates;
  weir_node_t* nodes[WEIR_MAX_SLOTS + 1] = {updates};
  weir_scope_t* late = weir_scope_after(scope, &updates, 1);
  for (int i = 0; i < count && !weir_scope_status(scope); ++i) {
    weir_edge_t handle = weir_variable_handle(values[i]);
    weir_edge_t now = weir_read_variable_op(late, handle, WEIR_DTYPE_FLOAT);
    nodes[i + 1] = weir_assign_variable_op(
        late, handle, weir_mul(late, now, weir_const_float(scope, powers[i].base)));
  }
  return weir_group(scope, "finish", nodes, count + 1);
}

static void clip(const application_t* a, weir_gradient_t* gradients) {
  if (!(a->options->clip_global_norm > 0)) return;
  weir_clip_by_global_norm(weir_scope_in(a->scope, "clip"), gradients, a->count,
                           a->options->clip_global_norm);
}

weir_node_t* weir_library_apply(const application_t* a) {
  size_t room = (size_t)a->count;
  weir_gradient_t* gradients = weir_scope_alloc(a->scope, room, sizeof(*gradients));
  weir_node_t** nodes = weir_scope_alloc(a->scope, room, sizeof(*nodes));
  if (!gradients || !nodes) return NULL;
  for (int i = 0; i < a->count; ++i) gradients[i] = a->gradients[i].gradient;
  clip(a, gradients);
  weir_power_t powers[WEIR_MAX_SLOTS] = {{0}};
  weir_edge_t power_values[WEIR_MAX_SLOTS] = {{0}};
  int power_count = add_powers(a, powers, power_values);
  int used = 0;
  for (int i = 0; i < a->count && !weir_scope_status(a->scope); ++i) {
    if (!gradients[i].values.node) continue;
    nodes[used++] =
        update_one(a, power_values, power_count, &a->gradients[i].variable, gradients[i]);
  }
  weir_node_t* last = weir_group(a->scope, "update", nodes, used);
  last = advance_powers(a->scope, powers, power_values, power_count, last);
  if (!a->options->global_step.node) return last;
  return weir_library_increment(weir_scope_after(a->scope, &last, 1), a->options->global_step);
}

// |step| and what layers ask to be run with it.
static weir_node_t* with_updates(weir_scope_t* scope, weir_node_t* step) {
  const weir_edge_t* updates = NULL;
  int count = weir_scope_collected(scope, WEIR_UPDATES, &updates);
  weir_node_t** nodes = weir_scope_alloc(scope, (size_t)count + 1, sizeof(*nodes));
  if (!nodes) return NULL;
  nodes[0] = step;
  for (int i = 0; i < count; ++i) nodes[i + 1] = updates[i].node;
  return weir_group(scope, "step", nodes, count + 1);
}

static weir_status_t* check(const weir_optimizer_t* optimizer,
                            const weir_variable_gradient_t* gradients, int count,
                            const weir_minimize_options_t* options) {
  if (!optimizer || !optimizer->rule)
    return WEIR_STATUS(INVALID_ARGUMENT, "an optimizer without a rule");
  if (options->accumulate < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "cannot accumulate %d steps", options->accumulate);
  if (options->loss_scale < 0 || options->loss_scale_period < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "cannot scale the loss by %g, doubled after %d steps",
                       (double)options->loss_scale, options->loss_scale_period);
  int used = 0;
  for (int i = 0; i < count; ++i) {
    if (!gradients[i].gradient.values.node) continue;
    if (!gradients[i].variable.handle.node || !gradients[i].variable.initial.node)
      return WEIR_STATUS(INVALID_ARGUMENT, "gradient %d has no variable", i);
    ++used;
  }
  if (!used)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "no gradients provided for any variable: the loss depends on none of %d "
                       "variables to train",
                       count);
  return optimizer->rule->check ? optimizer->rule->check(optimizer) : NULL;
}

weir_node_t* weir_apply_gradients_with(weir_scope_t* scope, const weir_optimizer_t* optimizer,
                                       const weir_variable_gradient_t* gradients, int count,
                                       const weir_minimize_options_t* options) {
  options = options ? options : &(const weir_minimize_options_t){0};
  if (weir_scope_status(scope)) return NULL;
  weir_status_t* status = check(optimizer, gradients, count, options);
  if (status) {
    weir_scope_fail(scope, status);
    return NULL;
  }
  application_t application = {.scope = weir_scope_in(scope, name_of(optimizer)),
                               .state = weir_scope_lift(scope),
                               .optimizer = optimizer,
                               .gradients = gradients,
                               .count = count,
                               .options = options};
  weir_node_t* step = options->loss_scale > 0   ? weir_library_apply_scaled(&application)
                      : options->accumulate > 1 ? weir_library_apply_accumulated(&application)
                                                : weir_library_apply(&application);
  return weir_scope_status(scope) ? NULL : with_updates(application.scope, step);
}

// ---- computing gradients ----

// The chosen variables, or all trainable ones. Returns how many; an error when there is none.
static weir_status_t* choose(weir_scope_t* scope, const weir_minimize_options_t* options,
                             weir_variable_gradient_t* chosen, int* out_count) {
  int count = 0;
  for (int i = 0; i < options->variable_count; ++i) {
    if (!weir_library_find_variable(scope, options->variables[i], &chosen[count++].variable)) {
      const weir_node_t* node = options->variables[i].node;
      return WEIR_STATUS(INVALID_ARGUMENT, "'%s' (variable %d to train) is no variable",
                         node ? weir_node_name(node) : "", i);
    }
  }
  int all = options->variables ? 0 : weir_scope_variable_count(scope);
  for (int i = 0; i < all; ++i) {
    weir_variable_info_t variable = weir_scope_variable_at(scope, i);
    if (variable.is_trainable) chosen[count++].variable = variable;
  }
  *out_count = count;
  return count ? NULL : WEIR_STATUS(INVALID_ARGUMENT, "there is no variable to train");
}

static weir_status_t* differentiate(weir_scope_t* scope, weir_edge_t loss, weir_edge_t grad,
                                    weir_variable_gradient_t* chosen, int count) {
  weir_edge_t* handles = weir_scope_alloc(scope, (size_t)count, sizeof(*handles));
  weir_gradient_t* gradients = weir_scope_alloc(scope, (size_t)count, sizeof(*gradients));
  if (!handles || !gradients) return NULL;  // stuck already
  for (int i = 0; i < count; ++i) handles[i] = chosen[i].variable.handle;
  WEIR_TRY(
      weir_gradients_sparse(scope, &loss, 1, handles, count, grad.node ? &grad : NULL, gradients));
  for (int i = 0; i < count; ++i) chosen[i].gradient = gradients[i];
  return NULL;
}

// Of other types there are no gradients, which would look as if nothing depended on variables.
static weir_status_t* check_loss(weir_edge_t loss) {
  const bool is_output =
      loss.node && loss.index >= 0 && loss.index < weir_node_output_count(loss.node);
  if (!is_output) return NULL;  // said where it is differentiated
  weir_dtype_t dtype = weir_dtype_base(weir_edge_type(loss));
  if (weir_dtype_is_floating(dtype) || weir_dtype_is_complex(dtype)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "the loss '%s:%d' (%s) is %s, not a float",
                     weir_node_name(loss.node), loss.index, weir_node_op(loss.node),
                     weir_dtype_name(dtype));
}

int weir_compute_gradients_with(weir_scope_t* scope, weir_edge_t loss,
                                weir_variable_gradient_t** out_gradients,
                                const weir_minimize_options_t* options) {
  WEIR_ASSERT_ARG(scope);
  WEIR_ASSERT_ARG(out_gradients);
  options = options ? options : &(const weir_minimize_options_t){0};
  *out_gradients = NULL;
  if (weir_scope_status(scope)) return 0;
  size_t room = (size_t)weir_scope_variable_count(scope) + (size_t)options->variable_count;
  weir_variable_gradient_t* chosen = weir_scope_alloc(scope, room, sizeof(*chosen));
  if (!chosen) return 0;
  int count = 0;
  weir_status_t* status = check_loss(loss);
  if (!status) status = choose(scope, options, chosen, &count);
  weir_edge_t grad = weir_library_scale_loss(scope, loss, options);
  if (!status) status = differentiate(scope, loss, grad, chosen, count);
  if (status) weir_scope_fail(scope, status);
  weir_library_unscale(scope, chosen, count, options);
  if (weir_scope_status(scope)) return 0;
  *out_gradients = chosen;
  return count;
}

weir_node_t* weir_minimize_with(weir_scope_t* scope, const weir_optimizer_t* optimizer,
                                weir_edge_t loss, const weir_minimize_options_t* options) {
  options = options ? options : &(const weir_minimize_options_t){0};
  weir_variable_gradient_t* gradients = NULL;
  int count = weir_compute_gradients_with(scope, loss, &gradients, options);
  return weir_apply_gradients_with(scope, optimizer, gradients, count, options);
}
