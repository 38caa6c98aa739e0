// gradients.c — Gradients on a scope.
#include "api/scope.h"
#include "eager/frame.h"
#include "graph/gradient.h"

// On an eager scope edges may be of others, and what is a variable's value is asked for by its
// handle: all its reads count.
static weir_status_t* localize(weir_scope_t* scope, weir_gradient_params_t* params) {
  size_t ys = (size_t)params->ys.count, xs = (size_t)params->xs.count;
  weir_graph_t* graph = scope->root->graph;
  if (!weir_scope_is_eager(scope)) return NULL;
  weir_edge_t* all = weir_scope_alloc(scope, 2 * ys + xs + 1, sizeof(*all));
  if (!all) return weir_out_of_memory();
  for (size_t i = 0; i < ys; ++i) {
    WEIR_TRY(weir_eager_local(graph, params->ys.items[i], &all[i]));
    if (params->grad_ys && params->grad_ys[i].node)
      WEIR_TRY(weir_eager_local(graph, params->grad_ys[i], &all[ys + i]));
  }
  for (size_t i = 0; i < xs; ++i)
    WEIR_TRY(weir_eager_source(graph, params->xs.items[i], &all[2 * ys + i]));
  params->ys.items = all;
  params->xs.items = all + 2 * ys;
  if (params->grad_ys) params->grad_ys = all + ys;
  return NULL;
}

weir_status_t* weir_gradients_sparse(weir_scope_t* scope, const weir_edge_t* ys, int y_count,
                                     const weir_edge_t* xs, int x_count, const weir_edge_t* grad_ys,
                                     weir_gradient_t* out_grads) {
  WEIR_REQUIRE_COUNT(y_count);
  WEIR_REQUIRE_COUNT(x_count);
  if (y_count > 0) WEIR_REQUIRE_ARG(ys);
  if (x_count > 0) WEIR_REQUIRE_ARG(xs);
  WEIR_REQUIRE_ARG(scope);
  WEIR_REQUIRE_ARG(out_grads);
  if (scope->root->status) return weir_status_copy(scope->root->status);
  weir_grad_value_t* grads = weir_calloc((size_t)x_count, sizeof(*grads));
  if (!grads) return weir_out_of_memory();
  const char* prefix = weir_arena_printf(&scope->root->arena, "%s%sgradients", scope->prefix,
                                         *scope->prefix ? "/" : "");
  weir_gradient_params_t params = {.ys = {.items = ys, .count = y_count},
                                   .xs = {.items = xs, .count = x_count},
                                   .grad_ys = grad_ys,
                                   .prefix = prefix};
  weir_mutex_lock(&scope->root->graph->mu);
  weir_status_t* status = localize(scope, &params);
  if (!status) status = weir_graph_gradients(scope->root->graph, &params, grads);
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
  WEIR_REQUIRE_ARG(scope);
  WEIR_REQUIRE_ARG(out_grads);
  WEIR_REQUIRE_COUNT(x_count);
  weir_gradient_t* grads = weir_calloc((size_t)x_count, sizeof(*grads));
  if (!grads) return weir_out_of_memory();
  weir_status_t* status = weir_gradients_sparse(scope, ys, y_count, xs, x_count, grad_ys, grads);
  for (int i = 0; i < x_count && !status; ++i) out_grads[i] = densify(scope, grads[i]);
  weir_free(grads);
  return status ? status : weir_status_copy(scope->root->status);
}
