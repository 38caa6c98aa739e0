// towers.c — One graph, a model a device: parts of batches, gradients averaged, the same step
// everywhere.
#include <stdio.h>
#include <string.h>

#include "nodes.h"
#include "optimizer.h"
#include "weir/replicas.h"

typedef struct tower_t {
  weir_scope_t* scope;
  weir_edge_t loss;
  int first, count;            // of its variables, on the root scope, but for the optimizer's
  int slot_first, slot_count;  // those
  weir_variable_gradient_t* gradients;
  int gradient_count;
} tower_t;

typedef struct towers_t {
  weir_scope_t* scope;
  const char* const* devices;
  tower_t* items;
  int count;
  bool has_collectives;  // all are GPUs
} towers_t;

// ---- models ----

static bool is_gpu(const char* device) {
  return strstr(device, "/device:GPU:") || strstr(device, "/gpu:") || strstr(device, "/GPU:");
}

// Row by row: the first rows are the first device's.
static weir_edge_t part_of(const towers_t* t, weir_edge_t batch, int tower) {
  if (t->count == 1) return batch;
  weir_edge_t parts = weir_split(t->scope, weir_const_int(t->scope, 0), batch, t->count);
  return (weir_edge_t){parts.node, tower};
}

static void build_model(towers_t* t, int k, const weir_tower_model_t* model) {
  tower_t* tower = &t->items[k];
  char name[32];
  snprintf(name, sizeof(name), "tower_%d", k);
  weir_edge_t* parts = weir_scope_alloc(t->scope, (size_t)model->input_count + 1, sizeof(*parts));
  if (!parts) return;
  for (int i = 0; i < model->input_count; ++i) parts[i] = part_of(t, model->inputs[i], k);
  tower->scope = weir_scope_on(k ? weir_scope_in(t->scope, name) : t->scope, t->devices[k]);
  tower->first = weir_scope_variable_count(t->scope);
  tower->loss = model->build(tower->scope, parts, model->arg);
  tower->count = weir_scope_variable_count(t->scope) - tower->first;
  if (tower->count == t->items[0].count || weir_scope_status(t->scope)) return;
  weir_lib_fail(t->scope,
                "the models of devices 0 and %d have different numbers of variables: %d and %d", k,
                t->items[0].count, tower->count);
}

static void differentiate(const towers_t* t, tower_t* tower,
                          const weir_minimize_options_t* options) {
  weir_edge_t* own = weir_scope_alloc(t->scope, (size_t)tower->count + 1, sizeof(*own));
  int count = 0;
  if (!own || weir_scope_status(t->scope)) return;
  for (int i = 0; i < tower->count; ++i) {
    weir_variable_info_t variable = weir_scope_variable_at(t->scope, tower->first + i);
    if (variable.is_trainable) own[count++] = variable.value;
  }
  weir_minimize_options_t with = *options;
  with.variables = own;
  with.variable_count = count;
  tower->gradient_count =
      weir_compute_gradients_with(tower->scope, tower->loss, &tower->gradients, &with);
}

// ---- means ----

// Of GPUs: each has a node, which meets those of the others.
static void meet(const towers_t* t, int i, int instance, weir_edge_t* means) {
  enum { GROUP = 0x70776572 };  // apart from groups that people number
  for (int k = 0; k < t->count; ++k)
    means[k] =
        weir_collective_reduce(t->items[k].scope, t->items[k].gradients[i].gradient.values,
                               t->count, GROUP + t->count, instance, "Add", "Div", WEIR_INTS(0));
}

// Of others: the first adds, in their order.
static void add_up(const towers_t* t, int i, weir_edge_t* means) {
  weir_scope_t* s = t->items[0].scope;
  weir_edge_t* all = weir_scope_alloc(t->scope, (size_t)t->count, sizeof(*all));
  if (!all) return;
  for (int k = 0; k < t->count; ++k) all[k] = t->items[k].gradients[i].gradient.values;
  weir_edge_t sum = weir_add_n(s, all, t->count);
  if (weir_scope_status(t->scope)) return;
  weir_edge_t mean = weir_mul(s, sum, weir_lib_number(s, weir_edge_type(sum), 1.0 / t->count));
  for (int k = 0; k < t->count; ++k) means[k] = mean;
}

// Rows of all, each |count|-th as large: what a row is moved by is the mean, rows that a gradient
// lacks being zero there.
static weir_gradient_t join_rows(const towers_t* t, int i) {
  weir_scope_t* s = t->items[0].scope;
  weir_edge_t* rows = weir_scope_alloc(t->scope, (size_t)t->count, sizeof(*rows));
  weir_edge_t* indices = weir_scope_alloc(t->scope, (size_t)t->count, sizeof(*indices));
  weir_gradient_t joined = {.values = WEIR_LIB_NONE};
  if (!rows || !indices) return joined;
  for (int k = 0; k < t->count; ++k) {
    rows[k] = t->items[k].gradients[i].gradient.values;
    indices[k] = t->items[k].gradients[i].gradient.indices;
  }
  weir_edge_t all = weir_concat_v2(s, rows, t->count, weir_const_int(s, 0));
  if (weir_scope_status(t->scope)) return joined;
  joined.values = weir_mul(s, all, weir_lib_number(s, weir_edge_type(all), 1.0 / t->count));
  joined.indices = weir_concat_v2(s, indices, t->count, weir_const_int(s, 0));
  return joined;
}

static bool is_of_all(const towers_t* t, int i) {
  const weir_gradient_t* first = &t->items[0].gradients[i].gradient;
  for (int k = 1; k < t->count; ++k) {
    const weir_gradient_t* other = &t->items[k].gradients[i].gradient;
    if (!first->values.node != !other->values.node || !first->indices.node != !other->indices.node)
      return false;
  }
  return true;
}

static void average(const towers_t* t, int i, weir_edge_t* means) {
  const weir_gradient_t first = t->items[0].gradients[i].gradient;
  if (!is_of_all(t, i)) {
    weir_lib_fail(t->scope, "the losses of some devices do not depend on variable %d as others do",
                  i);
    return;
  }
  if (!first.values.node) return;
  if (first.indices.node) {
    weir_gradient_t joined = join_rows(t, i);
    for (int k = 0; k < t->count; ++k) t->items[k].gradients[i].gradient = joined;
    return;
  }
  if (t->has_collectives) meet(t, i, i + 1, means);
  else add_up(t, i, means);
  for (int k = 0; k < t->count; ++k) t->items[k].gradients[i].gradient.values = means[k];
}

static void average_all(const towers_t* t) {
  weir_edge_t* means = weir_scope_alloc(t->scope, (size_t)t->count, sizeof(*means));
  if (!means || t->count == 1) return;
  for (int k = 1; k < t->count && !weir_scope_status(t->scope); ++k) {
    if (t->items[k].gradient_count != t->items[0].gradient_count)
      weir_lib_fail(t->scope, "the models of devices 0 and %d train different variables", k);
  }
  for (int i = 0; i < t->items[0].gradient_count && !weir_scope_status(t->scope); ++i)
    average(t, i, means);
}

// ---- steps ----

static weir_node_t* apply_all(towers_t* t, const weir_optimizer_t* optimizer,
                              const weir_minimize_options_t* options) {
  weir_node_t** steps = weir_scope_alloc(t->scope, (size_t)t->count, sizeof(*steps));
  if (!steps) return NULL;
  for (int k = 0; k < t->count && !weir_scope_status(t->scope); ++k) {
    tower_t* tower = &t->items[k];
    weir_minimize_options_t with = *options;
    with.global_step = WEIR_LIB_NONE;
    tower->slot_first = weir_scope_variable_count(t->scope);
    steps[k] = weir_apply_gradients_with(tower->scope, optimizer, tower->gradients,
                                         tower->gradient_count, &with);
    tower->slot_count = weir_scope_variable_count(t->scope) - tower->slot_first;
  }
  if (weir_scope_status(t->scope)) return NULL;
  weir_node_t* last = weir_group(t->scope, "towers", steps, t->count);
  if (!options->global_step.node || !last) return last;
  return weir_library_increment(weir_scope_after(t->scope, &last, 1), options->global_step);
}

static weir_node_t* copy_variable(const towers_t* t, int from, int to) {
  weir_variable_info_t first = weir_scope_variable_at(t->scope, from);
  weir_variable_info_t other = weir_scope_variable_at(t->scope, to);
  weir_scope_t* s = weir_scope_on(t->scope, weir_node_device(other.handle.node));
  weir_edge_t now =
      weir_read_variable_op(weir_scope_on(t->scope, weir_node_device(first.handle.node)),
                            first.handle, weir_edge_type(first.value));
  return weir_assign_variable_op(s, other.handle, now);
}

static weir_node_t* copy_all(const towers_t* t) {
  const tower_t* first = &t->items[0];
  size_t room = (size_t)(first->count + first->slot_count) * (size_t)t->count + 1;
  weir_node_t** copies = weir_scope_alloc(t->scope, room, sizeof(*copies));
  int used = 0;
  if (!copies) return NULL;
  for (int k = 1; k < t->count; ++k) {
    const tower_t* tower = &t->items[k];
    for (int i = 0; i < first->count && !weir_scope_status(t->scope); ++i)
      copies[used++] = copy_variable(t, first->first + i, tower->first + i);
    for (int i = 0; i < first->slot_count && !weir_scope_status(t->scope); ++i)
      copies[used++] = copy_variable(t, first->slot_first + i, tower->slot_first + i);
  }
  return weir_scope_status(t->scope) ? NULL : weir_group(t->scope, "towers_start", copies, used);
}

static weir_edge_t mean_loss(const towers_t* t) {
  if (t->count == 1) return t->items[0].loss;
  weir_edge_t* losses = weir_scope_alloc(t->scope, (size_t)t->count, sizeof(*losses));
  if (!losses || weir_scope_status(t->scope)) return WEIR_LIB_NONE;
  for (int k = 0; k < t->count; ++k) losses[k] = t->items[k].loss;
  weir_edge_t sum = weir_add_n(t->scope, losses, t->count);
  if (weir_scope_status(t->scope)) return WEIR_LIB_NONE;
  return weir_mul(t->scope, sum, weir_lib_number(t->scope, weir_edge_type(sum), 1.0 / t->count));
}

static void check(weir_scope_t* scope, const char* const* devices, int count,
                  const weir_minimize_options_t* options) {
  if (count < 1) weir_lib_fail(scope, "towers on %d devices: at least one is needed", count);
  for (int i = 0; i < count; ++i) {
    if (!devices[i]) weir_lib_fail(scope, "tower %d has no device", i);
  }
  if (options->variables || options->accumulate > 1 || options->loss_scale > 0)
    weir_lib_fail(scope, "towers neither choose variables nor accumulate nor scale the loss");
}

weir_towers_t weir_towers_with(weir_scope_t* scope, const weir_optimizer_t* optimizer,
                               const weir_tower_model_t* model, const char* const* devices,
                               int device_count, const weir_minimize_options_t* options) {
  weir_towers_t made = {0};
  options = options ? options : &(const weir_minimize_options_t){0};
  if (!WEIR_HAS_ARG(scope, optimizer) || !WEIR_HAS_ARG(scope, model) ||
      !WEIR_HAS_ARG(scope, devices) || !WEIR_HAS_ARG(scope, model->build))
    return made;
  check(scope, devices, device_count, options);
  if (weir_scope_status(scope)) return made;
  towers_t t = {.scope = scope, .devices = devices, .count = device_count, .has_collectives = true};
  t.items = weir_scope_alloc(scope, (size_t)device_count, sizeof(*t.items));
  if (!t.items) return made;
  for (int k = 0; k < t.count; ++k) t.has_collectives &= is_gpu(devices[k]);
  for (int k = 0; k < t.count && !weir_scope_status(scope); ++k) build_model(&t, k, model);
  for (int k = 0; k < t.count && !weir_scope_status(scope); ++k)
    differentiate(&t, &t.items[k], options);
  if (!weir_scope_status(scope)) average_all(&t);
  if (weir_scope_status(scope)) return made;
  made.step = apply_all(&t, optimizer, options);
  made.loss = mean_loss(&t);
  if (made.step) made.start = copy_all(&t);
  return weir_scope_status(scope) ? (weir_towers_t){0} : made;
}
