// scope.c — Scopes: names, devices, control inputs and sticky errors for hand-written graphs.
#include "api/scope.h"

#include <stdio.h>

#include "api/control.h"
#include "api/function.h"

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
                               .name = join(scope, own),
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

// ---- attributes and inputs of the generated functions ----

void weir_attr_list_add(weir_attr_list_t* list, weir_named_attr_t attr) {
  WEIR_CHECK(list->count < WEIR_COUNT_OF(list->items));
  list->items[list->count++] = attr;
}

void weir_attr_list_add_string(weir_attr_list_t* list, const char* name, const char* value) {
  if (value) weir_attr_list_add(list, weir_attr_string(name, value));
}

void weir_attr_list_add_func(weir_attr_list_t* list, const char* name, const char* value) {
  if (!weir_scope_has_argument(list->scope, value, "attribute", name)) return;
  weir_func_t* func = weir_arena_alloc(&list->scope->root->arena, sizeof(*func));
  if (!func) {
    weir_scope_fail(list->scope, weir_out_of_memory());
    return;
  }
  func->name = weir_view_of(value);
  weir_attr_list_add(list, weir_attr_func(name, func));
}

static const weir_shape_t* make_shape(weir_attr_list_t* list, weir_dims_t value) {
  const weir_shape_t* shape = &weir_shape_unknown;
  if (value.rank >= 0) shape = weir_shape_make(&list->scope->root->arena, value.rank, value.dims);
  if (!shape) weir_scope_fail(list->scope, weir_out_of_memory());
  return shape;
}

void weir_attr_list_add_dims(weir_attr_list_t* list, const char* name, weir_dims_t value) {
  const weir_shape_t* shape = make_shape(list, value);
  if (shape) weir_attr_list_add(list, weir_attr_shape(name, shape));
}

void weir_attr_list_add_strings(weir_attr_list_t* list, const char* name, weir_strings_t value) {
  weir_view_t* views =
      weir_arena_array(&list->scope->root->arena, (size_t)value.count, sizeof(*views));
  if (!views) {
    weir_scope_fail(list->scope, weir_out_of_memory());
    return;
  }
  for (int i = 0; i < value.count; ++i) views[i] = weir_view_of(value.items[i]);
  weir_attr_list_add(list, weir_attr_strings(name, views, (size_t)value.count));
}

void weir_attr_list_add_shapes(weir_attr_list_t* list, const char* name, weir_shapes_t value) {
  const weir_shape_t** shapes =
      weir_arena_array(&list->scope->root->arena, (size_t)value.count, sizeof(*shapes));
  if (!shapes) {
    weir_scope_fail(list->scope, weir_out_of_memory());
    return;
  }
  for (int i = 0; i < value.count; ++i) {
    shapes[i] = make_shape(list, value.items[i]);
    if (!shapes[i]) return;
  }
  weir_attr_list_add(list, weir_attr_shapes(name, shapes, (size_t)value.count));
}

void weir_attr_list_add_types_of(weir_attr_list_t* list, const char* name, const weir_edge_t* edges,
                                 int count) {
  if (list->scope->root->status || count < 0) return;
  weir_dtype_t* types = weir_arena_array(&list->scope->root->arena, (size_t)count, sizeof(*types));
  if (!types) {
    weir_scope_fail(list->scope, weir_out_of_memory());
    return;
  }
  for (int i = 0; i < count; ++i) {
    if (!weir_control_is_edge(edges[i])) return;
    types[i] = weir_dtype_base(weir_edge_dtype(edges[i]));
  }
  weir_attr_list_add(list, weir_attr_types(name, types, (size_t)count));
}

void weir_edge_list_add(weir_edge_list_t* list, const weir_edge_t* edges, int count) {
  if (!weir_scope_has_count(list->scope, count, __func__, "count")) return;
  if (count > 0 && !WEIR_HAS_ARG(list->scope, edges)) return;
  if (list->count + count > list->capacity) {
    int capacity = WEIR_MAX(2 * list->capacity, list->count + count);
    weir_edge_t* grown =
        weir_arena_array(&list->scope->root->arena, (size_t)capacity, sizeof(*grown));
    if (!grown) {
      weir_scope_fail(list->scope, weir_out_of_memory());
      return;
    }
    if (list->count) memcpy(grown, list->items, sizeof(*grown) * (size_t)list->count);
    list->items = grown;
    list->capacity = capacity;
  }
  if (count) memcpy(list->items + list->count, edges, sizeof(*edges) * (size_t)count);
  list->count += count;
}
