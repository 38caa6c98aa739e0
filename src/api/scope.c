// scope.c — Scopes: names, devices, control inputs and sticky errors for hand-written graphs.
#include "api/scope.h"

#include <stdio.h>

#include "api/control.h"
#include "api/function.h"
#include "eager/frame.h"

weir_scope_t* weir_scope_create(weir_graph_t* graph) {
  WEIR_ASSERT_ARG(graph);
  weir_scope_root_t* root = weir_calloc(1, sizeof(*root));
  if (!root) return NULL;
  weir_scope_t* scope = weir_arena_alloc(&root->arena, sizeof(*scope));
  if (!scope) {
    weir_free(root);
    return NULL;
  }
  root->graph = weir_graph_ref(graph);
  *scope = (weir_scope_t){.root = root, .prefix = ""};
  weir_live_add(&root->live, scope);
  return scope;
}

weir_status_t* weir_scope_finish(weir_scope_t* take_root) {
  if (!take_root) return weir_out_of_memory();
  if (!weir_live_remove(take_root))
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "weir_scope_finish: the scope is finished already, or is not a root scope");
  weir_scope_root_t* root = take_root->root;
  weir_status_t* status = root->status;
  weir_free(root->variables);
  weir_free(root->controls);
  for (weir_scope_collection_t* c = root->collections; c; c = c->next) weir_free(c->edges);
  weir_graph_unref(root->graph);
  weir_arena_free(&root->arena);
  weir_free(root);
  return status;
}

const weir_status_t* weir_scope_status(const weir_scope_t* scope) {
  WEIR_ASSERT_ARG(scope);
  return scope->root->status;
}
weir_graph_t* weir_scope_graph(const weir_scope_t* scope) {
  WEIR_ASSERT_ARG(scope);
  return scope->root->graph;
}

const char* weir_scope_prefix(const weir_scope_t* scope) {
  WEIR_ASSERT_ARG(scope);
  return scope->prefix;
}

weir_status_t* weir_scope_take_error(weir_scope_t* scope) {
  WEIR_ASSERT_ARG(scope);
  weir_status_t* status = scope->root->status;
  scope->root->status = NULL;
  return status;
}

void weir_scope_fail(weir_scope_t* scope, weir_status_t* take_status) {
  WEIR_ASSERT_ARG(scope);
  if (scope->root->status) weir_status_destroy(take_status);
  else scope->root->status = take_status;
}

bool weir_scope_has_argument(weir_scope_t* scope, const void* argument, const char* function,
                             const char* name) {
  if (argument) return true;
  weir_scope_fail(scope, WEIR_STATUS(INVALID_ARGUMENT, "%s: %s is NULL", function, name));
  return false;
}

bool weir_scope_has_count(weir_scope_t* scope, int count, const char* function, const char* name) {
  if (count >= 0) return true;
  weir_scope_fail(scope, WEIR_STATUS(INVALID_ARGUMENT, "%s: %s is %d", function, name, count));
  return false;
}

static weir_scope_t* derive(weir_scope_t* scope) {
  weir_scope_t* derived = weir_arena_alloc(&scope->root->arena, sizeof(*derived));
  if (!derived) {
    weir_scope_fail(scope, weir_out_of_memory());
    return scope;
  }
  *derived = *scope;
  return derived;
}

static const char* join(weir_scope_t* scope, const char* name) {
  const char* separator = *scope->prefix ? "/" : "";
  const char* joined =
      weir_arena_printf(&scope->root->arena, "%s%s%s", scope->prefix, separator, name);
  if (!joined) weir_scope_fail(scope, weir_out_of_memory());
  return joined ? joined : "";
}

// A prefix is taken when it was handed out before, or when a node bears the name.
static bool is_taken(weir_scope_root_t* root, const char* prefix) {
  weir_graph_t* graph = root->graph;
  weir_mutex_lock(&graph->mu);
  intptr_t count = (intptr_t)weir_map_find(&graph->name_counts, weir_view_of(prefix));
  bool is_node = weir_graph_find(graph, weir_view_of(prefix)) != NULL;
  if (!count && !is_node)
    weir_status_destroy(weir_map_put(&graph->name_counts, weir_view_of(prefix), (void*)1));
  weir_mutex_unlock(&graph->mu);
  return count || is_node;
}

weir_scope_t* weir_scope_in(weir_scope_t* scope, const char* name) {
  WEIR_ASSERT_ARG(scope);
  if (!WEIR_HAS_ARG(scope, name)) return scope;
  weir_scope_t* derived = derive(scope);
  const char* prefix = join(scope, name);
  for (int i = 1; *prefix && is_taken(scope->root, prefix); ++i) {
    const char* numbered = weir_arena_printf(&scope->root->arena, "%s_%d", name, i);
    if (!numbered) break;
    prefix = join(scope, numbered);
  }
  derived->prefix = prefix;
  derived->next_name = NULL;
  return derived;
}

weir_scope_t* weir_scope_on(weir_scope_t* scope, const char* device) {
  WEIR_ASSERT_ARG(scope);
  if (!WEIR_HAS_ARG(scope, device)) return scope;
  weir_scope_t* derived = derive(scope);
  derived->device = weir_arena_strndup(&scope->root->arena, device, strlen(device));
  derived->variable_device = NULL;
  return derived;
}

weir_scope_t* weir_scope_variables_on(weir_scope_t* scope, weir_variable_device_fn_t fn,
                                      void* arg) {
  WEIR_ASSERT_ARG(scope);
  weir_scope_t* derived = derive(scope);
  derived->variable_device = fn;
  derived->variable_device_arg = arg;
  return derived;
}

weir_scope_t* weir_scope_after(weir_scope_t* scope, weir_node_t* const* nodes, int count) {
  WEIR_ASSERT_ARG(scope);
  if (!weir_scope_has_count(scope, count, __func__, "count")) return scope;
  if (count > 0 && !WEIR_HAS_ARG(scope, nodes)) return scope;
  weir_scope_t* derived = derive(scope);
  size_t total = (size_t)(scope->control_count + count);
  weir_node_t** controls = weir_arena_array(&scope->root->arena, total, sizeof(*controls));
  if (!controls) {
    weir_scope_fail(scope, weir_out_of_memory());
    return scope;
  }
  int used = scope->control_count;
  if (used) memcpy(controls, scope->controls, sizeof(*controls) * (size_t)used);
  for (int i = 0; i < count; ++i) {
    if (WEIR_HAS_ARG(scope, nodes[i])) controls[used++] = nodes[i];
  }
  derived->controls = controls;
  derived->control_count = used;
  return derived;
}

weir_scope_t* weir_scope_name(weir_scope_t* scope, const char* name) {
  WEIR_ASSERT_ARG(scope);
  if (!WEIR_HAS_ARG(scope, name)) return scope;
  weir_scope_t* derived = derive(scope);
  derived->next_name = weir_arena_strndup(&scope->root->arena, name, strlen(name));
  return derived;
}

weir_scope_t* weir_scope_at(weir_scope_t* scope, const char* prefix) {
  WEIR_ASSERT_ARG(scope);
  if (!WEIR_HAS_ARG(scope, prefix)) return scope;
  weir_scope_t* derived = derive(scope);
  derived->prefix = weir_arena_strndup(&scope->root->arena, prefix, strlen(prefix));
  derived->next_name = NULL;
  return derived;
}

weir_scope_t* weir_scope_lift(weir_scope_t* scope) {
  WEIR_ASSERT_ARG(scope);
  weir_scope_t* derived = derive(scope);
  derived->controls = NULL;
  derived->control_count = 0;
  derived->control = NULL;
  return derived;
}

void weir_scope_seed(weir_scope_t* scope, int64_t seed) {
  WEIR_ASSERT_ARG(scope);
  scope->root->seed = seed;
}

int64_t weir_scope_get_seed(const weir_scope_t* scope) {
  WEIR_ASSERT_ARG(scope);
  return scope->root->seed;
}

void* weir_scope_alloc(weir_scope_t* scope, size_t count, size_t size) {
  WEIR_ASSERT_ARG(scope);
  void* memory = weir_arena_array(&scope->root->arena, count, size);
  if (!memory) weir_scope_fail(scope, weir_out_of_memory());
  else memset(memory, 0, count * size);
  return memory;
}

// ---- collections ----

static weir_scope_collection_t* find_collection(const weir_scope_t* scope, const char* key) {
  weir_scope_collection_t* found = scope->root->collections;
  while (found && strcmp(found->key, key)) found = found->next;
  return found;
}

static weir_scope_collection_t* add_collection(weir_scope_t* scope, const char* key) {
  weir_scope_collection_t* added = weir_scope_alloc(scope, 1, sizeof(*added));
  if (!added) return NULL;
  *added =
      (weir_scope_collection_t){.key = weir_arena_strndup(&scope->root->arena, key, strlen(key)),
                                .next = scope->root->collections};
  if (!added->key) {
    weir_scope_fail(scope, weir_out_of_memory());
    return NULL;
  }
  scope->root->collections = added;
  return added;
}

void weir_scope_collect(weir_scope_t* scope, const char* key, weir_edge_t edge) {
  WEIR_ASSERT_ARG(scope);
  if (scope->root->status) return;
  if (!WEIR_HAS_ARG(scope, key) || !WEIR_HAS_ARG(scope, edge.node)) return;
  if (edge.node->graph != scope->root->graph) {
    weir_scope_fail(scope, WEIR_STATUS(INVALID_ARGUMENT, "%s: '%s' is of another graph", __func__,
                                       edge.node->def.name));
    return;
  }
  weir_scope_collection_t* collection = find_collection(scope, key);
  if (!collection) collection = add_collection(scope, key);
  if (!collection) return;
  if (!WEIR_GROW(collection->edges, collection->capacity, collection->count + 1)) {
    weir_scope_fail(scope, weir_out_of_memory());
    return;
  }
  collection->edges[collection->count++] = edge;
}

int weir_scope_collected(const weir_scope_t* scope, const char* key,
                         const weir_edge_t** out_edges) {
  WEIR_ASSERT_ARG(scope);
  WEIR_ASSERT_ARG(key);
  WEIR_ASSERT_ARG(out_edges);
  const weir_scope_collection_t* collection = find_collection(scope, key);
  *out_edges = collection ? collection->edges : NULL;
  return collection ? (int)collection->count : 0;
}

// ---- nodes ----

bool weir_scope_is_eager(const weir_scope_t* scope) {
  WEIR_ASSERT_ARG(scope);
  return scope->root->graph->adder != NULL;
}

weir_edge_t weir_scope_local(weir_scope_t* scope, weir_edge_t edge) {
  if (!edge.node || !weir_scope_is_eager(scope) || scope->root->status) return edge;
  weir_edge_t local = WEIR_NO_EDGE;
  weir_status_t* status = weir_eager_local(scope->root->graph, edge, &local);
  if (status) weir_scope_fail(scope, status);
  return local;
}

weir_node_t* weir_scope_add(weir_scope_t* scope, const char* op, const char* name,
                            weir_edges_t inputs, weir_attrs_t attrs) {
  WEIR_ASSERT_ARG(scope);
  if (scope->root->status) return NULL;
  const char* own = scope->next_name ? scope->next_name : name ? name : op;
  scope->next_name = NULL;
  weir_control_inputs_t in = {
      .inputs = inputs, .controls = scope->controls, .control_count = scope->control_count};
  if (scope->root->function && !weir_function_capture(scope, &in.inputs)) return NULL;
  bool has_control = scope->control || scope->root->controls;
  if (has_control && !weir_control_place(scope, op, &in)) return NULL;
  weir_node_params_t params = {.op = op,
                               .prefix = scope->prefix,
                               .name = own,
                               .unique_name = true,
                               .device = scope->device,
                               .inputs = in.inputs,
                               .control_inputs = in.controls,
                               .control_count = in.control_count,
                               .attrs = attrs,
                               .refuse_attrs = true};
  weir_node_t* node = NULL;
  weir_mutex_lock(&scope->root->graph->mu);
  weir_status_t* status = weir_graph_add(scope->root->graph, &params, &node);
  weir_mutex_unlock(&scope->root->graph->mu);
  if (status) weir_scope_fail(scope, status);
  else if (scope->control && !weir_node_is_free_const(node))
    weir_control_note(scope->root, node, scope->control);
  return node;
}
