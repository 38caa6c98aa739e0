// eager_api.c — Contexts and scopes on which ops run at once.
#include "api/scope.h"
#include "base/live.h"
#include "eager/frame.h"
#include "ops/builtin_ops.h"
#include "weir/eager.h"

weir_status_t* weir_eager_create(const weir_eager_options_t* options, weir_eager_t** out_eager) {
  WEIR_REQUIRE_ARG(out_eager);
  options = options ? options : &(const weir_eager_options_t){0};
  weir_eager_params_t params = {.threads = options->threads,
                                .devices = options->devices,
                                .disabled_passes = options->disabled_passes,
                                .allow_soft_placement = options->allow_soft_placement};
  WEIR_TRY(weir_registry_builtin(&params.registry));
  return weir_eager_new(&params, out_eager);
}

void weir_eager_destroy(weir_eager_t* eager) { weir_eager_unref(eager); }

void weir_eager_reset(weir_eager_t* eager) {
  WEIR_ASSERT_ARG(eager);
  weir_resources_clear_all(eager->program->resources);
}

weir_scope_t* weir_eager_scope(weir_eager_t* eager) {
  WEIR_ASSERT_ARG(eager);
  weir_graph_t* graph = NULL;
  weir_status_t* status = weir_eager_frame_create(eager, &graph);
  weir_scope_t* scope = status ? NULL : weir_scope_create(graph);
  weir_status_destroy(status);
  weir_graph_unref(graph);
  return scope;
}

weir_scope_t* weir_eager_step(weir_scope_t* model) {
  WEIR_ASSERT_ARG(model);
  weir_eager_t* eager = weir_eager_of(model->root->graph);
  if (!eager) weir_abort_on(__func__, "model", "is not an eager scope");
  weir_scope_t* scope = weir_eager_scope(eager);
  if (!scope) return NULL;
  const weir_scope_root_t* from = model->root;
  weir_scope_root_t* to = scope->root;
  to->seed = from->seed;
  size_t count = from->variable_count;
  if (from->status) {
    weir_scope_fail(scope, weir_status_copy(from->status));
  } else if (count && !WEIR_GROW(to->variables, to->variable_capacity, count)) {
    weir_scope_fail(scope, weir_out_of_memory());
  } else if (count) {
    memcpy(to->variables, from->variables, count * sizeof(*to->variables));
    to->variable_count = count;
  }
  return scope;
}

static weir_status_t* check_eager(const weir_scope_t* scope, const char* function) {
  if (scope->root->status) return weir_status_copy(scope->root->status);
  if (weir_scope_is_eager(scope)) return NULL;
  return WEIR_STATUS(FAILED_PRECONDITION,
                     "%s: the scope is not eager: its values are there when a session runs it",
                     function);
}

weir_status_t* weir_eager_value(weir_scope_t* scope, weir_edge_t edge, weir_tensor_t** out_tensor) {
  WEIR_REQUIRE_ARG(scope);
  WEIR_REQUIRE_ARG(out_tensor);
  WEIR_TRY(check_eager(scope, __func__));
  return weir_status_prefix(weir_eager_read(scope->root->graph, edge, out_tensor),
                            "%s: ", __func__);
}

weir_status_t* weir_eager_float(weir_scope_t* scope, weir_edge_t edge, float* out_value) {
  WEIR_REQUIRE_ARG(out_value);
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_eager_value(scope, edge, &tensor));
  weir_status_t* status = NULL;
  char shape[WEIR_SHAPE_TEXT_SIZE];
  if (tensor->dtype == WEIR_DTYPE_FLOAT && tensor->count == 1)
    *out_value = *WEIR_TENSOR_DATA(tensor, const float);
  else
    status = WEIR_STATUS(INVALID_ARGUMENT, "%s: '%s' is %s%s, not one float", __func__,
                         edge.node->def.name, weir_dtype_name(weir_tensor_type(tensor)),
                         weir_tensor_shape_text(tensor, shape));
  weir_tensor_release(tensor);
  return status;
}

weir_status_t* weir_eager_recover(weir_scope_t* scope) {
  WEIR_REQUIRE_ARG(scope);
  weir_status_t* status = scope->root->status;
  scope->root->status = NULL;
  return status;
}

void weir_eager_cancel(weir_scope_t* scope) {
  WEIR_ASSERT_ARG(scope);
  if (weir_scope_is_eager(scope)) weir_eager_cancel_frame(scope->root->graph);
}

static weir_edge_t* gather_args(weir_scope_t* scope, const weir_defined_t* f,
                                const weir_edge_t* args, int count) {
  weir_edge_t* all = weir_scope_alloc(scope, (size_t)(count + f->captured_count) + 1, sizeof(*all));
  for (int i = 0; all && i < count; ++i) all[i] = weir_scope_local(scope, args[i]);
  for (int i = 0; all && i < f->captured_count; ++i)
    all[count + i] = weir_scope_local(scope, f->captured[i]);
  return scope->root->status ? NULL : all;
}

void weir_eager_call(weir_scope_t* scope, const weir_defined_t* function, const weir_edge_t* args,
                     int arg_count, weir_edge_t* results) {
  WEIR_ASSERT_ARG(scope);
  if (scope->root->status || !WEIR_HAS_ARG(scope, function)) return;
  if (!WEIR_HAS_ARG(scope, function->name) || !WEIR_HAS_ARG(scope, results)) return;
  if (!weir_scope_has_count(scope, arg_count, __func__, "arg_count")) return;
  if (arg_count > 0 && !WEIR_HAS_ARG(scope, args)) return;
  int count = arg_count + function->captured_count, result_count = function->results.types.count;
  for (int i = 0; i < result_count; ++i) results[i] = WEIR_NO_EDGE;
  weir_edge_t* all = gather_args(scope, function, args, arg_count);
  weir_dtype_t* types = weir_scope_alloc(scope, (size_t)count + 1, sizeof(*types));
  if (!all || !types) return;
  for (int i = 0; i < count; ++i) {
    if (!all[i].node) {
      weir_scope_fail(scope, WEIR_STATUS(INVALID_ARGUMENT, "%s: argument %d of '%s' is no edge",
                                         __func__, i, function->name));
      return;
    }
    types[i] = weir_dtype_base(weir_edge_dtype(all[i]));
  }
  weir_func_t func = {.name = weir_view_of(function->name)};
  weir_types_t out = function->results.types;
  weir_named_attr_t attrs[] = {weir_attr_types("Tin", types, (size_t)count),
                               weir_attr_types("Tout", out.items, (size_t)out.count),
                               weir_attr_func("f", &func)};
  weir_node_t* node =
      weir_scope_add(scope, "StatefulPartitionedCall", NULL, (weir_edges_t){all, count},
                     (weir_attrs_t){.items = attrs, .count = WEIR_COUNT_OF(attrs)});
  for (int i = 0; node && i < result_count; ++i) results[i] = (weir_edge_t){node, i};
}
