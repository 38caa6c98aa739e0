// moving_average.c — Exponential moving averages: a variable beside each value, and the node that
// moves it.
#include "weir/moving_average.h"

#include <string.h>

#include "optimizer.h"
#include "weir/ops.h"

// One call of weir_moving_average under way.
typedef struct building_t {
  weir_scope_t* scope;
  weir_scope_t* state;
  weir_edge_t rest;  // 1 - decay, float
  const char* name;
  bool zero_debias;
  int count;
  weir_edge_t* values;
  weir_variable_info_t *variables, *averages;
  weir_node_t** updates;
} building_t;

// What is averaged: |options->values| or all trainable variables.
static bool choose(building_t* b, const weir_moving_average_options_t* options) {
  int all = weir_scope_variable_count(b->scope);
  size_t room = (size_t)(options->values ? options->value_count : all);
  b->values = weir_scope_alloc(b->scope, room, sizeof(*b->values));
  b->variables = weir_scope_alloc(b->scope, room, sizeof(*b->variables));
  b->averages = weir_scope_alloc(b->scope, room, sizeof(*b->averages));
  b->updates = weir_scope_alloc(b->scope, room, sizeof(*b->updates));
  if (weir_scope_status(b->scope)) return false;
  for (int i = 0; i < all && !options->values; ++i) {
    weir_variable_info_t variable = weir_scope_variable_at(b->scope, i);
    if (!variable.is_trainable) continue;
    b->variables[b->count] = variable;
    b->values[b->count++] = variable.value;
  }
  for (int i = 0; i < options->value_count && options->values; ++i) {
    b->values[i] = options->values[i];
    weir_library_find_variable(b->scope, b->values[i], &b->variables[i]);
    b->count = i + 1;
  }
  if (b->count) return true;
  weir_scope_fail(b->scope, WEIR_STATUS(INVALID_ARGUMENT, "there is nothing to average"));
  return false;
}

static weir_status_t* check_value(weir_edge_t value) {
  if (!value.node) return WEIR_STATUS(INVALID_ARGUMENT, "moving average of no edge");
  weir_dtype_t dtype = weir_edge_type(value);
  if (dtype == WEIR_DTYPE_FLOAT || dtype == WEIR_DTYPE_DOUBLE || dtype == WEIR_DTYPE_HALF ||
      dtype == WEIR_DTYPE_BFLOAT16)
    return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "moving average: '%s' must be half, float, or double",
                     weir_node_name(value.node));
}

// The variable that holds the average of value |i|, beside it: of a variable it starts where that
// starts, of anything else at zero.
static void add_average(building_t* b, int i) {
  weir_edge_t value = b->values[i];
  weir_variable_info_t* variable = &b->variables[i];
  weir_edge_t average;
  if (variable->handle.node) {
    weir_scope_t* beside =
        weir_scope_on(weir_scope_at(b->state, weir_node_name(variable->handle.node)),
                      weir_node_device(variable->handle.node));
    average = weir_state_variable(beside, b->name, variable->initial);
  } else {
    weir_variable_info_t like = {.handle = value, .initial = value};
    average = weir_library_slot(b->state, &like, b->name, 0);
  }
  weir_library_find_variable(b->scope, average, &b->averages[i]);
}

// average -= rest * (average - value)
static weir_node_t* move(weir_scope_t* s, weir_edge_t handle, weir_edge_t value, weir_edge_t rest) {
  weir_edge_t now = weir_read_variable_op(s, handle, weir_edge_type(value));
  weir_edge_t change = weir_mul(s, weir_sub(s, now, value), rest);
  return weir_assign_sub_variable_op(s, handle, change);
}

// Moves a second average that starts at zero, and divides it by the weight it has gathered.
static weir_node_t* move_unbiased(building_t* b, int i, weir_edge_t value, weir_edge_t rest) {
  weir_scope_t* s = b->scope;
  weir_dtype_t dtype = weir_edge_type(value);
  const weir_variable_info_t* average = &b->averages[i];
  weir_edge_t biased = weir_variable_handle(weir_library_slot(b->state, average, "biased", 0));
  weir_scope_t* beside = weir_scope_at(b->state, weir_node_name(average->handle.node));
  weir_edge_t zero = weir_library_scalar(beside, 0, dtype);
  weir_edge_t local_step = weir_variable_handle(weir_state_variable(beside, "local_step", zero));
  if (weir_scope_status(s)) return NULL;
  weir_edge_t one = weir_library_scalar(s, 1, dtype);
  weir_node_t* moved[] = {move(s, biased, value, rest),
                          weir_assign_add_variable_op(s, local_step, one)};
  weir_scope_t* late = weir_scope_after(s, moved, 2);
  weir_edge_t steps = weir_read_variable_op(late, local_step, dtype);
  weir_edge_t weight = weir_sub(s, one, weir_pow(s, weir_sub(s, one, rest), steps));
  weir_edge_t sum = weir_read_variable_op(late, biased, dtype);
  return weir_assign_variable_op(s, average->handle, weir_real_div(s, sum, weight));
}

static weir_node_t* update_one(building_t* b, int i) {
  weir_dtype_t dtype = weir_edge_type(b->values[i]);
  weir_edge_t rest = weir_library_cast(b->scope, b->rest, dtype);
  bool is_variable = b->variables[i].handle.node != NULL;
  if (b->zero_debias && !is_variable) return move_unbiased(b, i, b->values[i], rest);
  weir_edge_t value = b->values[i];
  if (is_variable) value = weir_read_variable_op(b->scope, b->variables[i].handle, dtype);
  return weir_scope_status(b->scope) ? NULL : move(b->scope, b->averages[i].handle, value, rest);
}

static weir_edge_t rest_of(weir_scope_t* s, weir_rate_t decay, weir_edge_t num_updates) {
  weir_edge_t kept = weir_rate_value(s, decay, WEIR_DTYPE_FLOAT);
  if (num_updates.node) {
    weir_edge_t n = weir_library_cast(s, num_updates, WEIR_DTYPE_FLOAT);
    weir_edge_t above = weir_add_v2(s, weir_const_float(s, 1), n);
    weir_edge_t below = weir_add_v2(s, weir_const_float(s, 10), n);
    kept = weir_minimum(s, kept, weir_real_div(s, above, below));
  }
  return weir_sub(s, weir_const_float(s, 1), kept);
}

weir_moving_average_t weir_moving_average_with(weir_scope_t* scope, weir_rate_t decay,
                                               const weir_moving_average_options_t* options) {
  options = options ? options : &(const weir_moving_average_options_t){0};
  weir_moving_average_t none = {0};
  if (weir_scope_status(scope)) return none;
  const char* name = options->name ? options->name : "ExponentialMovingAverage";
  building_t b = {.scope = weir_scope_in(scope, name),
                  .state = weir_scope_lift(scope),
                  .name = name,
                  .zero_debias = options->zero_debias};
  b.rest = rest_of(b.scope, decay, options->num_updates);
  if (weir_scope_status(scope) || !choose(&b, options)) return none;
  for (int i = 0; i < b.count; ++i) {
    if (b.variables[i].handle.node) b.values[i] = b.variables[i].value;  // a handle was given
    weir_status_t* status = check_value(b.values[i]);
    if (status) weir_scope_fail(scope, status);
    else add_average(&b, i);
    if (!weir_scope_status(scope)) b.updates[i] = update_one(&b, i);
    if (weir_scope_status(scope)) return none;
  }
  weir_node_t* update = weir_group(b.scope, "update", b.updates, b.count);
  return (weir_moving_average_t){.count = b.count,
                                 .values = b.values,
                                 .averages = b.averages,
                                 .variables = b.variables,
                                 .update = update};
}

weir_edge_t weir_moving_average_of(const weir_moving_average_t* average, weir_edge_t value) {
  WEIR_ASSERT_ARG(average);
  for (int i = 0; i < average->count; ++i) {
    bool is_value =
        average->values[i].node == value.node && average->values[i].index == value.index;
    if (is_value || (value.node && average->variables[i].handle.node == value.node))
      return average->averages[i].value;
  }
  return (weir_edge_t){0};
}

// ---- evaluation with averages ----

weir_node_t* weir_moving_average_swap(weir_scope_t* scope, const weir_moving_average_t* average) {
  if (!WEIR_HAS_ARG(scope, average)) return NULL;
  if (weir_scope_status(scope)) return NULL;
  weir_scope_t* s = weir_scope_in(scope, "swap_averages");
  weir_node_t** nodes = weir_scope_alloc(s, 2 * (size_t)average->count, sizeof(*nodes));
  if (!nodes) return NULL;
  int used = 0;
  for (int i = 0; i < average->count && !weir_scope_status(s); ++i) {
    weir_edge_t a = average->variables[i].handle, b = average->averages[i].handle;
    if (!a.node) continue;
    weir_dtype_t dtype = weir_edge_type(average->values[i]);
    weir_edge_t x = weir_read_variable_op(s, a, dtype), y = weir_read_variable_op(s, b, dtype);
    weir_scope_t* late = weir_scope_after(s, ((weir_node_t*[]){x.node, y.node}), 2);
    nodes[used++] = weir_assign_variable_op(late, a, y);
    nodes[used++] = weir_assign_variable_op(late, b, x);
  }
  return weir_group(s, "swap", nodes, used);
}

static weir_edge_t names_edge(weir_scope_t* s, const char* const* names, int count) {
  weir_tensor_t* tensor = NULL;
  size_t* sizes = weir_scope_alloc(s, (size_t)count, sizeof(*sizes));
  if (!sizes) return (weir_edge_t){0};
  for (int i = 0; i < count; ++i) sizes[i] = strlen(names[i]);
  weir_status_t* status = weir_tensor_create_strings(1, &(int64_t){count}, names, sizes, &tensor);
  if (status) {
    weir_scope_fail(s, status);
    return (weir_edge_t){0};
  }
  weir_edge_t edge = weir_const(s, tensor);
  weir_tensor_release(tensor);
  return edge;
}

weir_node_t* weir_moving_average_restore(weir_scope_t* scope, const weir_moving_average_t* average,
                                         weir_edge_t prefix) {
  if (!WEIR_HAS_ARG(scope, average)) return NULL;
  if (weir_scope_status(scope)) return NULL;
  weir_scope_t* s = weir_scope_in(scope, "restore_averages");
  size_t room = (size_t)average->count;
  const char** names = weir_scope_alloc(s, room, sizeof(*names));
  const char** slices = weir_scope_alloc(s, room, sizeof(*slices));
  weir_dtype_t* types = weir_scope_alloc(s, room, sizeof(*types));
  weir_edge_t* handles = weir_scope_alloc(s, room, sizeof(*handles));
  weir_node_t** nodes = weir_scope_alloc(s, room, sizeof(*nodes));
  if (weir_scope_status(s)) return NULL;
  int used = 0;
  for (int i = 0; i < average->count; ++i) {
    if (!average->variables[i].handle.node) continue;
    names[used] = weir_node_name(average->averages[i].handle.node);
    slices[used] = "";
    types[used] = weir_edge_type(average->values[i]);
    handles[used++] = average->variables[i].handle;
  }
  if (!used) return weir_group(s, "restore", NULL, 0);
  weir_edge_t read =
      weir_restore_v2(s, prefix, names_edge(s, names, used), names_edge(s, slices, used),
                      ((weir_types_t){.items = types, .count = used}));
  if (weir_scope_status(s)) return NULL;
  for (int i = 0; i < used; ++i)
    nodes[i] = weir_assign_variable_op(s, handles[i], ((weir_edge_t){read.node, i}));
  return weir_group(s, "restore", nodes, used);
}
