// train.c — Gradients on a scope, and optimizers as the user-level code they are: graphs over
// gradients and update ops.
#include "api/scope.h"
#include "graph/gradient.h"

weir_status_t* weir_gradients_sparse(weir_scope_t* scope, const weir_edge_t* ys, int y_count,
                                     const weir_edge_t* xs, int x_count, const weir_edge_t* grad_ys,
                                     weir_gradient_t* out_grads) {
  if (scope->root->status) return weir_status_copy(scope->root->status);
  for (int i = 0; i < y_count + x_count; ++i) {
    weir_edge_t edge = i < y_count ? ys[i] : xs[i - y_count];
    if (!edge.node)
      return WEIR_STATUS(INVALID_ARGUMENT, "gradients: %s %d is no edge", i < y_count ? "y" : "x",
                         i);
  }
  weir_grad_value_t* grads = weir_calloc((size_t)x_count, sizeof(*grads));
  if (!grads) return weir_out_of_memory();
  const char* prefix = weir_arena_printf(&scope->root->arena, "%s%sgradients", scope->prefix,
                                         *scope->prefix ? "/" : "");
  weir_gradient_params_t params = {.ys = {.items = ys, .count = y_count},
                                   .xs = {.items = xs, .count = x_count},
                                   .grad_ys = grad_ys,
                                   .prefix = prefix};
  weir_mutex_lock(&scope->root->graph->mu);
  weir_status_t* status = weir_graph_gradients(scope->root->graph, &params, grads);
  weir_mutex_unlock(&scope->root->graph->mu);
  for (int i = 0; i < x_count && !status; ++i) {
    out_grads[i] = (weir_gradient_t){.values = grads[i].values,
                                     .indices = grads[i].indices,
                                     .dense_shape = grads[i].dense_shape};
  }
  weir_free(grads);
  return status;
}

static weir_edge_t densify(weir_scope_t* scope, weir_gradient_t gradient) {
  if (weir_edge_is_none(gradient.indices)) return gradient.values;
  weir_graph_builder_t builder;
  weir_graph_builder_init(&builder, scope->root->graph, "gradients");
  const weir_grad_value_t dy = {
      .values = gradient.values, .indices = gradient.indices, .dense_shape = gradient.dense_shape};
  weir_grad_ctx_t ctx = {.builder = &builder.base, .dys = &dy};
  weir_mutex_lock(&scope->root->graph->mu);
  weir_edge_t dense = weir_grad_dy(&ctx, 0);
  weir_mutex_unlock(&scope->root->graph->mu);
  if (builder.base.status) weir_scope_fail(scope, builder.base.status);
  return dense;
}

weir_status_t* weir_gradients(weir_scope_t* scope, const weir_edge_t* ys, int y_count,
                              const weir_edge_t* xs, int x_count, const weir_edge_t* grad_ys,
                              weir_edge_t* out_grads) {
  weir_gradient_t* grads = weir_calloc((size_t)x_count, sizeof(*grads));
  if (!grads) return weir_out_of_memory();
  weir_status_t* status = weir_gradients_sparse(scope, ys, y_count, xs, x_count, grad_ys, grads);
  for (int i = 0; i < x_count && !status; ++i) out_grads[i] = densify(scope, grads[i]);
  weir_free(grads);
  return status ? status : weir_status_copy(scope->root->status);
}

// ---- optimizers ----

// One optimizer: what it keeps beside a variable, and the node that updates it.
typedef struct optimizer_t optimizer_t;
struct optimizer_t {
  const char* name;
  int slot_count;
  const char* slot_names[2];
  weir_node_t* (*update)(const optimizer_t* self, weir_scope_t* scope, weir_edge_t handle,
                         const weir_edge_t* slots, weir_edge_t gradient);
  weir_edge_t learning_rate, momentum, beta1, beta2, epsilon, beta1_power, beta2_power;
};

static weir_edge_t zeros_like_variable(weir_scope_t* scope, const weir_variable_t* variable) {
  const weir_shape_t* shape = weir_edge_shape(variable->initializer->inputs[1]);
  weir_edge_t zero = weir_const_float(scope, 0);
  if (!weir_shape_is_full(shape)) {
    return weir_scope_first(weir_scope_add(
        scope, "ZerosLike", NULL, WEIR_EDGES(variable->initializer->inputs[1]), WEIR_NO_ATTRS));
  }
  int dims[WEIR_MAX_RANK];
  for (int i = 0; i < shape->rank; ++i) dims[i] = (int)shape->dims[i];
  weir_edge_t extent = weir_const_ints(scope, dims, shape->rank);
  return weir_scope_first(
      weir_scope_add(scope, "Fill", NULL, WEIR_EDGES(extent, zero), WEIR_NO_ATTRS));
}

// The trainable variables by themselves: slots are variables too and appended meanwhile.
static weir_status_t* trainable(weir_scope_root_t* root, weir_variable_t** out_variables,
                                int* out_count) {
  weir_variable_t* chosen = weir_arena_array(&root->arena, root->variable_count, sizeof(*chosen));
  if (!chosen) return weir_out_of_memory();
  int count = 0;
  for (size_t i = 0; i < root->variable_count; ++i) {
    if (root->variables[i].is_trainable) chosen[count++] = root->variables[i];
  }
  *out_variables = chosen;
  *out_count = count;
  return count ? NULL : WEIR_STATUS(INVALID_ARGUMENT, "there is no variable to train");
}

static weir_status_t* minimize(weir_scope_t* scope, const optimizer_t* optimizer, weir_edge_t loss,
                               weir_node_t** out_node) {
  weir_variable_t* variables = NULL;
  int count = 0;
  if (scope->root->status) return NULL;
  WEIR_TRY(trainable(scope->root, &variables, &count));
  weir_edge_t* handles = weir_arena_array(&scope->root->arena, (size_t)count, sizeof(*handles));
  weir_edge_t* grads = weir_arena_array(&scope->root->arena, (size_t)count, sizeof(*grads));
  weir_node_t** updates = weir_arena_array(&scope->root->arena, (size_t)count, sizeof(*updates));
  if (!handles || !grads || !updates) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) handles[i] = variables[i].handle;
  WEIR_TRY(weir_gradients(scope, &loss, 1, handles, count, NULL, grads));
  int used = 0;
  for (int i = 0; i < count; ++i) {
    if (weir_edge_is_none(grads[i])) continue;  // the loss does not depend on it
    weir_edge_t slots[2] = {WEIR_NO_EDGE, WEIR_NO_EDGE};
    weir_scope_t beside = {.root = scope->root, .prefix = variables[i].handle.node->def.name};
    for (int k = 0; k < optimizer->slot_count; ++k) {
      slots[k] = weir_variable_handle(weir_state_variable(
          &beside, optimizer->slot_names[k], zeros_like_variable(&beside, &variables[i])));
    }
    if (scope->root->status) return NULL;
    updates[used++] = optimizer->update(optimizer, scope, handles[i], slots, grads[i]);
  }
  *out_node = weir_group(scope, optimizer->name, updates, used);
  return NULL;
}

static weir_node_t* train(weir_scope_t* scope, const optimizer_t* optimizer, weir_edge_t loss) {
  weir_node_t* node = NULL;
  weir_status_t* status = minimize(scope, optimizer, loss, &node);
  if (status) weir_scope_fail(scope, status);
  return node;
}

static weir_node_t* sgd_update(const optimizer_t* self, weir_scope_t* scope, weir_edge_t handle,
                               const weir_edge_t* slots, weir_edge_t gradient) {
  (void)slots;
  return weir_scope_add(scope, "ResourceApplyGradientDescent", NULL,
                        WEIR_EDGES(handle, self->learning_rate, gradient), WEIR_NO_ATTRS);
}

weir_node_t* weir_train_sgd_with(weir_scope_t* scope, weir_edge_t loss, weir_edge_t learning_rate) {
  optimizer_t sgd = {.name = "step", .update = sgd_update, .learning_rate = learning_rate};
  return train(weir_scope_in(scope, "sgd"), &sgd, loss);
}

weir_node_t* weir_train_sgd(weir_scope_t* scope, weir_edge_t loss, float learning_rate) {
  return weir_train_sgd_with(scope, loss, weir_const_float(scope, learning_rate));
}

static weir_node_t* momentum_update(const optimizer_t* self, weir_scope_t* scope,
                                    weir_edge_t handle, const weir_edge_t* slots,
                                    weir_edge_t gradient) {
  return weir_scope_add(scope, "ResourceApplyMomentum", NULL,
                        WEIR_EDGES(handle, slots[0], self->learning_rate, gradient, self->momentum),
                        WEIR_NO_ATTRS);
}

weir_node_t* weir_train_momentum_with(weir_scope_t* scope, weir_edge_t loss,
                                      weir_edge_t learning_rate, float momentum) {
  weir_scope_t* own = weir_scope_in(scope, "momentum");
  optimizer_t optimizer = {.name = "step",
                           .slot_count = 1,
                           .slot_names = {"Momentum"},
                           .update = momentum_update,
                           .learning_rate = learning_rate,
                           .momentum = weir_const_float(own, momentum)};
  return train(own, &optimizer, loss);
}

weir_node_t* weir_train_momentum(weir_scope_t* scope, weir_edge_t loss, float learning_rate,
                                 float momentum) {
  return weir_train_momentum_with(scope, loss, weir_const_float(scope, learning_rate), momentum);
}

static weir_node_t* adam_update(const optimizer_t* self, weir_scope_t* scope, weir_edge_t handle,
                                const weir_edge_t* slots, weir_edge_t gradient) {
  return weir_scope_add(
      scope, "ResourceApplyAdam", NULL,
      WEIR_EDGES(handle, slots[0], slots[1], self->beta1_power, self->beta2_power,
                 self->learning_rate, self->beta1, self->beta2, self->epsilon, gradient),
      WEIR_NO_ATTRS);
}

// power *= beta, after the updates that used it.
static weir_node_t* advance_power(weir_scope_t* scope, weir_edge_t power, weir_edge_t beta,
                                  weir_node_t* after) {
  weir_scope_t* late = weir_scope_after(scope, &after, 1);
  weir_edge_t product =
      weir_scope_first(weir_scope_add(late, "Mul", NULL, WEIR_EDGES(power, beta), WEIR_NO_ATTRS));
  if (scope->root->status) return NULL;
  return weir_scope_add(late, "AssignVariableOp", NULL,
                        WEIR_EDGES(weir_variable_handle(power), product), WEIR_NO_ATTRS);
}

weir_node_t* weir_train_adam_with(weir_scope_t* scope, weir_edge_t loss,
                                  weir_edge_t learning_rate) {
  weir_scope_t* own = weir_scope_in(scope, "adam");
  optimizer_t adam = {.name = "update",
                      .slot_count = 2,
                      .slot_names = {"Adam", "Adam_1"},
                      .update = adam_update,
                      .learning_rate = learning_rate,
                      .beta1 = weir_const_float(own, 0.9f),
                      .beta2 = weir_const_float(own, 0.999f),
                      .epsilon = weir_const_float(own, 1e-8f)};
  adam.beta1_power = weir_state_variable(own, "beta1_power", weir_const_float(own, 0.9f));
  adam.beta2_power = weir_state_variable(own, "beta2_power", weir_const_float(own, 0.999f));
  weir_node_t* update = train(own, &adam, loss);
  if (!update) return NULL;
  weir_node_t* powers[] = {update, advance_power(own, adam.beta1_power, adam.beta1, update),
                           advance_power(own, adam.beta2_power, adam.beta2, update)};
  return weir_group(own, "step", powers, 3);
}

weir_node_t* weir_train_adam(weir_scope_t* scope, weir_edge_t loss, float learning_rate) {
  return weir_train_adam_with(scope, loss, weir_const_float(scope, learning_rate));
}
