// function.c — Functions on a scope: a C function adds the nodes of a body in a graph of its own,
// which goes to the library.
#include "graph/function.h"

#include "api/control.h"
#include "api/function.h"
#include "eager/frame.h"
#include "graph/analysis.h"
#include "weir/function.h"

// Constants up to this size are copied into bodies, where shapes may depend on them.
enum { COPIED_BYTES = 4096 };

// ---- capturing ----

// Adds a node to the body, outside of all loops and branches of it.
static weir_node_t* add_plain(weir_scope_root_t* root, const char* op, const char* name,
                              weir_attrs_t attrs) {
  weir_scope_t bare = {.root = root, .prefix = ""};
  return weir_scope_add(&bare, op, name, WEIR_NO_EDGES, attrs);
}

static weir_node_t* add_arg(weir_scope_root_t* root, weir_dtype_t dtype,
                            const weir_shape_t* shape) {
  weir_function_scope_t* f = root->function;
  if (!WEIR_GROW(f->args, f->arg_capacity, f->arg_count + 1)) {
    if (!root->status) root->status = weir_out_of_memory();
    return NULL;
  }
  weir_named_attr_t attrs[] = {weir_attr_type("T", weir_dtype_base(dtype)),
                               weir_attr_int("index", (int64_t)f->arg_count),
                               weir_attr_shape("_shape", shape)};
  weir_node_t* arg =
      add_plain(root, "_Arg", "arg", (weir_attrs_t){.items = attrs, .count = WEIR_COUNT_OF(attrs)});
  if (arg) f->args[f->arg_count++] = arg;
  return arg;
}

static bool is_copied(weir_edge_t edge) {
  const weir_tensor_t* value = weir_edge_constant(edge);
  return weir_node_is_free_const(edge.node) && value &&
         weir_tensor_byte_size(value) <= COPIED_BYTES;
}

static weir_edge_t copy_const(weir_scope_root_t* root, const weir_node_t* node) {
  return weir_scope_first(add_plain(root, "Const", NULL, node->def.attrs));
}

// |outside| is an output of a node of the graph around the function.
static weir_edge_t capture(weir_scope_root_t* root, weir_edge_t outside) {
  weir_function_scope_t* f = root->function;
  for (size_t i = 0; i < f->captured_count; ++i) {
    if (weir_edge_equal(f->captured[i], outside)) return weir_scope_first(f->args[f->declared + i]);
  }
  if (is_copied(outside)) return copy_const(root, outside.node);
  if (!WEIR_GROW(f->captured, f->captured_capacity, f->captured_count + 1)) {
    if (!root->status) root->status = weir_out_of_memory();
    return WEIR_NO_EDGE;
  }
  weir_node_t* arg = add_arg(root, weir_edge_dtype(outside), weir_edge_shape(outside));
  if (!arg) return WEIR_NO_EDGE;
  arg->handles[0] = outside.node->handles[outside.index];
  f->captured[f->captured_count++] = outside;
  return weir_scope_first(arg);
}

// The value of a variable is read when the function runs, not when it is called.
static weir_edge_t read_inside(weir_scope_root_t* root, weir_edge_t handle, weir_dtype_t dtype) {
  weir_edge_t inside = capture(root, handle);
  for (size_t i = 0; inside.node && i < root->graph->node_count; ++i) {
    weir_node_t* node = root->graph->nodes[i];
    bool is_read = !strcmp(node->def.op_name, "ReadVariableOp") && !node->control_count;
    if (is_read && weir_edge_equal(node->inputs[0], inside)) return weir_scope_first(node);
  }
  weir_scope_t bare = {.root = root, .prefix = ""};
  return weir_scope_first(weir_scope_add(&bare, "ReadVariableOp", NULL, WEIR_EDGES(inside),
                                         WEIR_ATTRS(weir_attr_type("dtype", dtype))));
}

static weir_edge_t capture_eager(weir_scope_root_t* root, weir_edge_t edge) {
  weir_scope_t* outer = root->function->outer;
  bool is_live = !weir_edge_is_none(weir_eager_live_handle(edge));
  weir_edge_t outside = WEIR_NO_EDGE;
  weir_status_t* status = is_live ? weir_eager_source(outer->root->graph, edge, &outside)
                                  : weir_eager_local(outer->root->graph, edge, &outside);
  if (status) {
    weir_scope_fail(outer, status);
    return edge;
  }
  return is_live ? read_inside(root, outside, weir_dtype_base(weir_edge_dtype(edge)))
                 : capture(root, outside);
}

static weir_edge_t value_of(weir_scope_root_t* root, weir_edge_t edge) {
  if (!root->function || !edge.node || edge.node->graph == root->graph) return edge;
  weir_scope_root_t* outer = root->function->outer->root;
  if (weir_eager_of(outer->graph) && weir_eager_of(edge.node->graph))
    return capture_eager(root, edge);
  weir_edge_t outside = value_of(outer, edge);
  bool is_known = weir_control_is_edge(outside) && outside.node->graph == outer->graph;
  return is_known ? capture(root, outside) : edge;
}

bool weir_function_capture(weir_scope_t* scope, weir_edges_t* io) {
  weir_edge_t* inside = weir_scope_alloc(scope, (size_t)io->count + 1, sizeof(*inside));
  for (int i = 0; inside && i < io->count; ++i) inside[i] = value_of(scope->root, io->items[i]);
  if (inside) io->items = inside;
  return !scope->root->status;
}

// ---- adding a body to the library ----

static const char* unique_name(weir_scope_t* scope, const char* name) {
  weir_scope_root_t* root = scope->root;
  const char* base = name && *name ? name : "function";
  const char* unique = weir_arena_strndup(&root->arena, base, strlen(base));
  for (int i = 1; unique; ++i) {
    weir_view_t view = weir_view_of(unique);
    bool is_taken = weir_function_find(root->graph->library, view) ||
                    weir_registry_find(root->graph->registry, view);
    if (!is_taken) return unique;
    unique = weir_arena_printf(&root->arena, "%s_%d", base, i);
  }
  weir_scope_fail(scope, weir_out_of_memory());
  return NULL;
}

// Types and shapes of |edges|, in the arena of |scope|.
static weir_spec_t spec_of(weir_scope_t* scope, const weir_edge_t* edges, int count) {
  weir_dtype_t* types = weir_scope_alloc(scope, (size_t)count + 1, sizeof(*types));
  weir_dims_t* shapes = weir_scope_alloc(scope, (size_t)count + 1, sizeof(*shapes));
  if (!types || !shapes) return (weir_spec_t){0};
  for (int i = 0; i < count; ++i) {
    const weir_shape_t* shape = weir_edge_shape(edges[i]);
    size_t rank = (size_t)WEIR_MAX(shape->rank, 0);
    int64_t* dims = weir_scope_alloc(scope, rank + 1, sizeof(*dims));
    if (!dims) return (weir_spec_t){0};
    if (rank) memcpy(dims, shape->dims, rank * sizeof(*dims));
    types[i] = weir_dtype_base(weir_edge_dtype(edges[i]));
    shapes[i] = (weir_dims_t){dims, shape->rank, true};
  }
  return (weir_spec_t){.types = {types, count}, .shapes = {shapes, count}};
}

// Adds it under a free name. Another scope of the graph may take that in the meantime.
static const char* add_unique(weir_scope_t* scope, const char* base,
                              const weir_function_body_t* body) {
  weir_function_library_t* library = scope->root->graph->library;
  for (;;) {
    const char* name = unique_name(scope, base);
    if (!name) return NULL;
    weir_status_t* status = weir_function_library_add_body(library, name, body);
    if (!status) return name;
    if (!weir_function_find(library, weir_view_of(name))) {
      weir_scope_fail(scope, status);
      return NULL;
    }
    weir_status_destroy(status);
  }
}

static weir_defined_t add_to_library(weir_scope_t* scope, const char* name,
                                     const weir_function_body_t* body) {
  weir_edge_t* edges = weir_scope_alloc(scope, (size_t)body->ret_count + 1, sizeof(*edges));
  if (!edges) return (weir_defined_t){0};
  for (int i = 0; i < body->ret_count; ++i) edges[i] = body->rets[i]->inputs[0];
  weir_defined_t defined = {.results = spec_of(scope, edges, body->ret_count)};
  defined.name = add_unique(scope, name, body);
  return scope->root->status ? (weir_defined_t){0} : defined;
}

// ---- building one ----

static weir_graph_t* new_body(weir_scope_t* scope) {
  weir_graph_t* graph = NULL;
  weir_status_t* status = weir_graph_new(scope->root->graph->registry, &graph);
  if (status) {
    weir_scope_fail(scope, status);
    return NULL;
  }
  weir_function_library_release(graph->library);
  graph->library = weir_function_library_retain(scope->root->graph->library);
  return graph;
}

static void add_declared(weir_scope_t* body, weir_spec_t spec, weir_edge_t* args) {
  weir_scope_root_t* root = body->root;
  for (int i = 0; i < spec.types.count && !root->status; ++i) {
    bool has_shape = i < spec.shapes.count && spec.shapes.items[i].is_set;
    weir_dims_t dims = has_shape ? spec.shapes.items[i] : (weir_dims_t){.rank = -1};
    const weir_shape_t* shape =
        dims.rank < 0 ? &weir_shape_unknown : weir_shape_make(&root->arena, dims.rank, dims.dims);
    if (!shape) weir_scope_fail(body, weir_out_of_memory());
    if (shape) args[i] = weir_scope_first(add_arg(root, spec.types.items[i], shape));
  }
  root->function->declared = root->function->arg_count;
}

static weir_node_t** add_results(weir_scope_t* body, const weir_edge_t* results, int count) {
  weir_scope_root_t* root = body->root;
  weir_node_t** rets = weir_scope_alloc(body, (size_t)count + 1, sizeof(*rets));
  for (int i = 0; rets && i < count && !root->status; ++i) {
    weir_edge_t value = value_of(root, results[i]);
    weir_status_t* status =
        root->status ? NULL : weir_graph_check_edge(root->graph, value, "result", i);
    if (status) weir_scope_fail(body, status);
    if (root->status) break;
    rets[i] = weir_scope_add(body, "_Retval", "ret", WEIR_EDGES(value),
                             WEIR_ATTRS(weir_attr_int("index", i)));
  }
  return rets;
}

// What |fn| builds on |body|, the root scope of a new graph, goes to the library of |scope|.
static weir_defined_t define(weir_scope_t* scope, weir_scope_t* body, const char* name,
                             weir_spec_t args, weir_function_fn_t fn, void* user, int count) {
  weir_scope_root_t* root = body->root;
  weir_edge_t* inputs = weir_scope_alloc(body, (size_t)args.types.count + 1, sizeof(*inputs));
  weir_edge_t* results = weir_scope_alloc(body, (size_t)count + 1, sizeof(*results));
  if (!inputs || !results) return (weir_defined_t){0};
  add_declared(body, args, inputs);
  // What the user gets is not the root: it cannot be finished.
  weir_scope_t* inner = weir_scope_lift(body);
  if (!root->status) fn(inner, inputs, results, user);
  weir_node_t** rets = root->status ? NULL : add_results(inner, results, count);
  if (root->status || scope->root->status) return (weir_defined_t){0};
  weir_function_scope_t* f = root->function;
  weir_function_body_t whole = {.graph = root->graph,
                                .args = f->args,
                                .arg_count = (int)f->arg_count,
                                .rets = rets,
                                .ret_count = count};
  weir_defined_t defined = add_to_library(scope, name, &whole);
  weir_edge_t* captured = weir_scope_alloc(scope, f->captured_count + 1, sizeof(*captured));
  if (!defined.name || !captured) return (weir_defined_t){0};
  if (f->captured_count) memcpy(captured, f->captured, f->captured_count * sizeof(*captured));
  defined.captured = captured;
  defined.captured_count = (int)f->captured_count;
  return defined;
}

static bool is_spec(weir_scope_t* scope, weir_spec_t spec, const char* function) {
  if (!weir_scope_has_count(scope, spec.types.count, function, "args.types.count")) return false;
  if (spec.types.count > 0 &&
      !weir_scope_has_argument(scope, spec.types.items, function, "args.types.items"))
    return false;
  if (spec.shapes.count <= 0) return true;
  return weir_scope_has_argument(scope, spec.shapes.items, function, "args.shapes.items");
}

weir_defined_t weir_define_function(weir_scope_t* scope, const char* name, weir_spec_t args,
                                    weir_function_fn_t fn, void* user, int result_count) {
  WEIR_ASSERT_ARG(scope);
  weir_defined_t none = {0};
  if (scope->root->status || !is_spec(scope, args, __func__)) return none;
  if (!weir_scope_has_argument(scope, fn ? scope : NULL, __func__, "fn")) return none;
  if (!weir_scope_has_count(scope, result_count, __func__, "result_count")) return none;
  weir_graph_t* graph = new_body(scope);
  weir_scope_t* body = graph ? weir_scope_create(graph) : NULL;
  weir_graph_unref(graph);
  if (!body) {
    weir_scope_fail(scope, weir_out_of_memory());
    return none;
  }
  weir_function_scope_t f = {.outer = scope};
  body->root->function = &f;
  body->root->seed = scope->root->seed;
  weir_defined_t defined = define(scope, body, name, args, fn, user, result_count);
  weir_free(f.args);
  weir_free(f.captured);
  weir_status_t* status = weir_scope_finish(body);
  if (!status) return defined;
  weir_scope_fail(scope, weir_status_prefix(status, "function '%s': ", name ? name : ""));
  return none;
}

// ---- copies ----

// Whether a copy of |node| computes the same wherever it is.
static weir_status_t* check_copied(const weir_node_t* node) {
  weir_role_t role = weir_node_role(node);
  bool is_fed = role == WEIR_ROLE_PLACEHOLDER || role == WEIR_ROLE_ARG;
  bool is_state = role == WEIR_ROLE_VARIABLE;
  for (int i = 0; i < node->def.output_count; ++i) {
    weir_dtype_t type = node->def.output_types[i];
    is_state |= type == WEIR_DTYPE_RESOURCE || weir_dtype_is_ref(type);
  }
  bool is_known = node->def.op &&
                  (role == WEIR_ROLE_NONE || role == WEIR_ROLE_CONST || role == WEIR_ROLE_NO_OP);
  if (is_known && !is_state) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "'%s' (%s) %s: a function cannot have a copy of it",
                     node->def.name, node->def.op_name,
                     is_fed     ? "must be fed"
                     : is_state ? "holds state that others share"
                                : "belongs to a loop or branch, or is unknown");
}

static weir_status_t* copy_graph(const weir_graph_t* graph, const weir_edge_t* results, int count,
                                 weir_arena_t* arena, weir_function_body_t* body) {
  weir_reach_t reach;
  weir_node_t** map = NULL;
  WEIR_TRY(weir_reach_init(&reach, graph, arena));
  for (int i = 0; i < count; ++i) weir_reach_add(&reach, results[i].node);
  weir_reach_sources(&reach);
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (reach.is_reached[i]) WEIR_TRY(check_copied(graph->nodes[i]));
  }
  WEIR_TRY(weir_graph_copy(graph, reach.is_reached, arena, &body->graph, &map));
  for (int i = 0; i < count; ++i) {
    weir_edge_t value = {.node = map[results[i].node->id], .index = results[i].index};
    weir_node_params_t params = {.op = "_Retval",
                                 .name = "ret",
                                 .unique_name = true,
                                 .inputs = WEIR_EDGES(value),
                                 .attrs = WEIR_ATTRS(weir_attr_int("index", i))};
    WEIR_TRY(weir_graph_add(body->graph, &params, &body->rets[i]));
  }
  return NULL;
}

weir_defined_t weir_define_copy(weir_scope_t* scope, const char* name, const weir_edge_t* results,
                                int result_count) {
  WEIR_ASSERT_ARG(scope);
  weir_defined_t defined = {0};
  weir_scope_root_t* root = scope->root;
  if (root->status || !weir_scope_has_count(scope, result_count, __func__, "result_count"))
    return defined;
  if (result_count > 0 && !WEIR_HAS_ARG(scope, results)) return defined;
  weir_arena_t arena = {0};
  weir_function_body_t body = {.ret_count = result_count};
  body.rets = weir_scope_alloc(scope, (size_t)result_count + 1, sizeof(weir_node_t*));
  weir_status_t* status = body.rets ? NULL : weir_out_of_memory();
  weir_mutex_lock(&root->graph->mu);
  for (int i = 0; i < result_count && !status; ++i)
    status = weir_graph_check_edge(root->graph, results[i], "result", i);
  if (!status) status = copy_graph(root->graph, results, result_count, &arena, &body);
  weir_mutex_unlock(&root->graph->mu);
  if (status) weir_scope_fail(scope, weir_status_prefix(status, "%s: ", __func__));
  else defined = add_to_library(scope, name, &body);
  weir_graph_unref(body.graph);
  weir_arena_free(&arena);
  return defined;
}
