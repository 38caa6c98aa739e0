// function_gradient.c — The gradient of a function: the one its library registers, or its body
// differentiated.
#include "graph/function_gradient.h"

#include <stdio.h>

#include "graph/gradient.h"
#include "graph/gradient_internal.h"
#include "graph/graph_internal.h"
#include "graph/lower.h"

// ---- adding arguments and results to a body ----

static weir_status_t* add_arg(weir_graph_t* graph, weir_dtype_t dtype, int index,
                              weir_node_t** out_node) {
  weir_named_attr_t attrs[] = {weir_attr_type("T", dtype), weir_attr_int("index", index)};
  weir_node_params_t params = {.op = "_Arg",
                               .name = "arg",
                               .unique_name = true,
                               .attrs = {.items = attrs, .count = WEIR_COUNT_OF(attrs)}};
  return weir_graph_add(graph, &params, out_node);
}

static weir_status_t* add_ret(weir_graph_t* graph, weir_edge_t value, int index,
                              weir_node_t** out_node) {
  weir_named_attr_t attrs[] = {weir_attr_int("index", index)};
  weir_node_params_t params = {.op = "_Retval",
                               .name = "ret",
                               .unique_name = true,
                               .inputs = WEIR_EDGES(value),
                               .attrs = {.items = attrs, .count = WEIR_COUNT_OF(attrs)}};
  return weir_graph_add(graph, &params, out_node);
}

// ---- an op as a function of one node ----

static weir_status_t* add_op_node(weir_function_body_t* body, const weir_op_t* op,
                                  weir_attrs_t attrs) {
  weir_graph_t* graph = body->graph;
  const weir_dtype_t* types = NULL;
  WEIR_TRY(weir_op_arg_types(op, op->name, attrs, false, &graph->arena, &types, &body->arg_count));
  size_t count = (size_t)body->arg_count;
  body->args = weir_arena_array(&graph->arena, count, sizeof(*body->args));
  weir_edge_t* inputs = weir_arena_array(&graph->arena, count, sizeof(*inputs));
  if (!body->args || !inputs) return weir_out_of_memory();
  for (int i = 0; i < body->arg_count; ++i) {
    WEIR_TRY(add_arg(graph, types[i], i, &body->args[i]));
    inputs[i] = (weir_edge_t){.node = body->args[i], .index = 0};
  }
  weir_node_t* node = NULL;
  weir_node_params_t params = {.op = op->name,
                               .name = "op",
                               .unique_name = true,
                               .inputs = {.items = inputs, .count = body->arg_count},
                               .attrs = attrs};
  WEIR_TRY(weir_graph_add(graph, &params, &node));
  body->ret_count = node->def.output_count;
  body->rets = weir_arena_array(&graph->arena, (size_t)body->ret_count, sizeof(*body->rets));
  if (!body->rets) return weir_out_of_memory();
  for (int i = 0; i < body->ret_count; ++i)
    WEIR_TRY(add_ret(graph, (weir_edge_t){.node = node, .index = i}, i, &body->rets[i]));
  return NULL;
}

static weir_status_t* instantiate_op(weir_function_library_t* library,
                                     const weir_registry_t* registry, const weir_func_t* func,
                                     weir_function_body_t* out_body) {
  const weir_op_t* op = weir_registry_find(registry, func->name);
  if (!op) {
    return WEIR_STATUS(NOT_FOUND, "Function '%.*s' is not defined", WEIR_VIEW_ARG(func->name));
  }
  weir_function_body_t body = {0};
  weir_attrs_t attrs = {0};
  WEIR_TRY(weir_graph_new(registry, &body.graph));
  weir_function_library_release(body.graph->library);
  body.graph->library = weir_function_library_retain(library);
  weir_status_t* status =
      weir_op_resolve(op, op->name, func->attrs, NULL, 0, &body.graph->arena, &attrs);
  if (!status) status = add_op_node(&body, op, attrs);
  if (status) {
    weir_function_body_free(&body);
    return status;
  }
  *out_body = body;
  return NULL;
}

// ---- differentiating a body ----

// A result of the function itself is none of its gradient: the node stays, but does nothing.
static weir_status_t* retire(weir_node_t* ret) {
  WEIR_TRY(weir_node_define(ret, "NoOp", WEIR_NO_ATTRS, NULL, 0));
  ret->inputs = NULL;
  return weir_node_alloc_shapes(ret);
}

typedef struct sides_t {
  weir_edge_t* ys;  // results through which gradients flow, and their gradients
  weir_edge_t* dys;
  int y_count;
  weir_edge_t* xs;  // all arguments
} sides_t;

static weir_status_t* find_sides(const weir_function_body_t* body, weir_arena_t* arena,
                                 sides_t* s) {
  s->ys = weir_arena_array(arena, (size_t)body->ret_count, sizeof(*s->ys));
  s->dys = weir_arena_array(arena, (size_t)body->ret_count, sizeof(*s->dys));
  s->xs = weir_arena_array(arena, (size_t)body->arg_count, sizeof(*s->xs));
  if (!s->ys || !s->dys || !s->xs) return weir_out_of_memory();
  for (int i = 0; i < body->arg_count; ++i)
    s->xs[i] = (weir_edge_t){.node = body->args[i], .index = 0};
  for (int i = 0; i < body->ret_count; ++i) {
    weir_edge_t y = body->rets[i]->inputs[0];
    weir_node_t* dy = NULL;
    WEIR_TRY(add_arg(body->graph, weir_dtype_base(weir_edge_dtype(y)), body->arg_count + i, &dy));
    WEIR_TRY(retire(body->rets[i]));
    if (!weir_gradient_flows(y)) continue;
    s->ys[s->y_count] = y;
    s->dys[s->y_count++] = (weir_edge_t){.node = dy, .index = 0};
  }
  return NULL;
}

static weir_status_t* find_gradients(weir_function_body_t* body, weir_arena_t* arena, sides_t* s,
                                     weir_grad_value_t** out_dxs) {
  WEIR_TRY(find_sides(body, arena, s));
  weir_grad_value_t* dxs = weir_arena_array(arena, (size_t)body->arg_count, sizeof(*dxs));
  if (!dxs) return weir_out_of_memory();
  weir_gradient_params_t params = {.ys = {.items = s->ys, .count = s->y_count},
                                   .xs = {.items = s->xs, .count = body->arg_count},
                                   .grad_ys = s->dys};
  *out_dxs = dxs;
  return weir_graph_gradients(body->graph, &params, dxs);
}

// From now on |rets| are the results, and gradients of the old ones arguments, too.
static void set_results(weir_function_body_t* body, weir_node_t** rets, int count) {
  body->arg_count += body->ret_count;
  body->ret_count = count;
  body->rets = rets;
}

static weir_status_t* add_gradients(weir_function_body_t* body, weir_arena_t* arena) {
  sides_t s = {0};
  weir_grad_value_t* dxs = NULL;
  WEIR_TRY(find_gradients(body, arena, &s, &dxs));
  weir_node_t** rets =
      weir_arena_array(&body->graph->arena, (size_t)body->arg_count, sizeof(*rets));
  if (!rets) return weir_out_of_memory();
  weir_graph_builder_t builder;
  weir_graph_builder_init(&builder, body->graph, "gradients");
  for (int i = 0; i < body->arg_count; ++i) {
    weir_edge_t dx = weir_edge_is_none(dxs[i].values)
                         ? weir_gradient_zeros(&builder.base, s.xs[i])
                         : weir_gradient_densify(&builder.base, dxs[i]);
    if (builder.base.status) return builder.base.status;
    WEIR_TRY(add_ret(body->graph, dx, i, &rets[i]));
  }
  set_results(body, rets, body->arg_count);
  return NULL;
}

weir_status_t* weir_function_instantiate_gradient(weir_function_library_t* library,
                                                  const weir_registry_t* registry,
                                                  const weir_func_t* func,
                                                  weir_function_body_t* out_body) {
  const weir_function_t* function = weir_function_find(library, func->name);
  if (function && function->gradient) {
    const weir_function_t* gradient = weir_function_find(library, weir_view_of(function->gradient));
    if (!gradient) {
      return WEIR_STATUS(NOT_FOUND, "Function '%s', the gradient of '%s', is not defined",
                         function->gradient, function->name);
    }
    return weir_function_instantiate(library, registry, gradient, func->attrs, out_body);
  }
  weir_function_body_t body = {0};
  weir_arena_t arena = {0};
  WEIR_TRY(function ? weir_function_instantiate(library, registry, function, func->attrs, &body)
                    : instantiate_op(library, registry, func, &body));
  weir_status_t* status = add_gradients(&body, &arena);
  weir_arena_free(&arena);
  if (status) {
    weir_function_body_free(&body);
    return status;
  }
  *out_body = body;
  return NULL;
}

// ---- the gradients that there are ----

// A call of the gradient computes the body once more: what it changes it would change twice.
static weir_status_t* check_repeatable(const weir_graph_t* graph, const weir_func_t* func) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    const weir_node_t* node = graph->nodes[i];
    bool is_stateful = weir_node_has(node, WEIR_OP_STATEFUL) &&
                       !weir_node_has(node, WEIR_OP_READ_ONLY | WEIR_OP_STEP_STATE);
    bool is_state = weir_node_role(node) == WEIR_ROLE_VARIABLE;
    bool is_end = weir_node_role(node) == WEIR_ROLE_ARG || weir_node_role(node) == WEIR_ROLE_RETVAL;
    if (!is_stateful || is_state || is_end) continue;
    return WEIR_STATUS(UNIMPLEMENTED,
                       "Gradients of '%.*s' are not supported: '%s' (%s) in it has side effects or "
                       "is random. Take gradients inside of the function, or do not call it as one",
                       WEIR_VIEW_ARG(func->name), node->def.name, node->def.op_name);
  }
  return NULL;
}

static weir_status_t* add_part(weir_function_body_t* body, weir_edge_t value, int arg,
                               weir_grad_part_kind_t kind, weir_partial_gradient_t* out) {
  if (!value.node) return NULL;
  out->parts[out->count] =
      (weir_grad_part_t){.arg = arg, .kind = kind, .type = weir_dtype_base(weir_edge_dtype(value))};
  weir_status_t* status = add_ret(body->graph, value, out->count, &out->body.rets[out->count]);
  ++out->count;
  return status;
}

static weir_status_t* add_parts(weir_partial_gradient_t* out, weir_arena_t* scratch) {
  weir_function_body_t* body = &out->body;
  weir_arena_t* arena = &body->graph->arena;
  size_t most = 3 * (size_t)body->arg_count + 1;
  sides_t s = {0};
  weir_grad_value_t* dxs = NULL;
  WEIR_TRY(find_gradients(body, scratch, &s, &dxs));
  weir_node_t** rets = weir_arena_array(arena, most, sizeof(*rets));
  out->parts = weir_arena_array(arena, most, sizeof(*out->parts));
  if (!rets || !out->parts) return weir_out_of_memory();
  int args = body->arg_count, results = body->ret_count;
  body->rets = rets;
  for (int i = 0; i < args; ++i) {
    WEIR_TRY(add_part(body, dxs[i].values, i, WEIR_GRAD_VALUES, out));
    WEIR_TRY(add_part(body, dxs[i].indices, i, WEIR_GRAD_INDICES, out));
    WEIR_TRY(add_part(body, dxs[i].dense_shape, i, WEIR_GRAD_DENSE_SHAPE, out));
  }
  body->ret_count = results;
  set_results(body, rets, out->count);
  return NULL;
}

// FunctionDefs list their arguments: those of |body| were moved by what stands for gradients.
static weir_status_t* find_args(weir_function_body_t* body) {
  weir_node_t** args =
      weir_arena_array(&body->graph->arena, (size_t)body->arg_count, sizeof(*args));
  if (!args) return weir_out_of_memory();
  for (size_t i = 0; i < body->graph->node_count; ++i) {
    weir_node_t* node = body->graph->nodes[i];
    if (weir_node_role(node) == WEIR_ROLE_ARG)
      args[weir_attrs_int(node->def.attrs, "index")] = node;
  }
  body->args = args;
  return NULL;
}

weir_status_t* weir_function_instantiate_partial(weir_function_library_t* library,
                                                 const weir_registry_t* registry,
                                                 const weir_func_t* func,
                                                 weir_partial_gradient_t* out_gradient) {
  const weir_function_t* function = weir_function_find(library, func->name);
  weir_partial_gradient_t gradient = {.count = 0};
  weir_arena_t scratch = {0};
  if (function)
    WEIR_TRY(weir_function_instantiate(library, registry, function, func->attrs, &gradient.body));
  else WEIR_TRY(instantiate_op(library, registry, func, &gradient.body));
  weir_status_t* status = add_parts(&gradient, &scratch);
  if (!status) status = check_repeatable(gradient.body.graph, func);
  if (!status) status = find_args(&gradient.body);
  weir_arena_free(&scratch);
  if (status) weir_function_body_free(&gradient.body);
  else *out_gradient = gradient;
  return status;
}

// ---- differentiating a call ----

static const weir_function_t* registered(weir_function_library_t* library,
                                         const weir_node_def_t* node, weir_func_t* out_func) {
  if (!weir_node_callee(node, out_func)) return NULL;
  const weir_function_t* function = weir_function_find(library, out_func->name);
  return function && function->gradient ? function : NULL;
}

bool weir_node_has_function_gradient(const weir_node_t* node) {
  weir_func_t func;
  return registered(node->graph->library, &node->def, &func) != NULL;
}

weir_status_t* weir_function_build_grad(weir_grad_ctx_t* g) {
  const weir_node_def_t* node = g->node;
  weir_func_t func;
  if (!registered(g->library, node, &func)) {
    return WEIR_STATUS(INTERNAL, "no gradient is registered for the function that '%s' calls",
                       node->name);
  }
  weir_arena_t arena = {0};
  const int count = node->input_count + node->output_count;
  weir_edge_t* inputs = weir_arena_array(&arena, (size_t)count, sizeof(*inputs));
  weir_dtype_t* types = weir_arena_array(&arena, (size_t)count, sizeof(*types));
  weir_status_t* status = inputs && types ? NULL : weir_out_of_memory();
  for (int i = 0; i < count && !status; ++i) {
    const int output = i - node->input_count;
    inputs[i] = output < 0 ? weir_grad_input(g, i) : weir_grad_dy(g, output);
    types[i] = weir_dtype_base(output < 0 ? node->input_types[i] : node->output_types[output]);
  }
  if (!status) {
    weir_named_attr_t attrs[] = {
        weir_attr_types("Tin", types, (size_t)count),
        weir_attr_types("Tout", types, (size_t)node->input_count),
        weir_attr_func("f", &func),
    };
    weir_edge_t first =
        weir_grad_node_with(g, "SymbolicGradient", (weir_edges_t){.items = inputs, .count = count},
                            (weir_attrs_t){.items = attrs, .count = WEIR_COUNT_OF(attrs)});
    for (int i = 0; i < node->input_count && !status; ++i)
      status = weir_grad_set(g, i, weir_build_output(first, i));
  }
  weir_arena_free(&arena);
  return status;
}
