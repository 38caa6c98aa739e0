// constants.c — Constants and variables on a scope.
#include "api/control.h"
#include "api/part.h"
#include "api/scope.h"
#include "eager/frame.h"

weir_edge_t weir_const(weir_scope_t* scope, weir_tensor_t* tensor) {
  WEIR_ASSERT_ARG(scope);
  if (scope->root->status || !WEIR_HAS_ARG(scope, tensor)) return WEIR_NO_EDGE;
  weir_named_attr_t attrs[] = {weir_attr_tensor("value", tensor),
                               weir_attr_type("dtype", weir_tensor_dtype(tensor))};
  return weir_scope_first(
      weir_scope_add(scope, "Const", NULL, WEIR_NO_EDGES,
                     (weir_attrs_t){.items = attrs, .count = WEIR_COUNT_OF(attrs)}));
}

static weir_edge_t const_of(weir_scope_t* scope, weir_dtype_t dtype, int rank, const int64_t* dims,
                            const void* data) {
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = weir_tensor_create_from(dtype, rank, dims, data, &tensor);
  if (status) weir_scope_fail(scope, status);
  weir_edge_t edge = weir_const(scope, tensor);
  weir_tensor_release(tensor);
  return edge;
}

weir_edge_t weir_const_float(weir_scope_t* scope, float value) {
  WEIR_ASSERT_ARG(scope);
  return const_of(scope, WEIR_DTYPE_FLOAT, 0, NULL, &value);
}

weir_edge_t weir_const_int(weir_scope_t* scope, int value) {
  WEIR_ASSERT_ARG(scope);
  return const_of(scope, WEIR_DTYPE_INT32, 0, NULL, &value);
}

weir_edge_t weir_const_bool(weir_scope_t* scope, bool value) {
  WEIR_ASSERT_ARG(scope);
  return const_of(scope, WEIR_DTYPE_BOOL, 0, NULL, &value);
}

weir_edge_t weir_const_ints(weir_scope_t* scope, const int* values, int count) {
  WEIR_ASSERT_ARG(scope);
  int64_t size = count;
  if (count > 0 && !WEIR_HAS_ARG(scope, values)) return WEIR_NO_EDGE;
  return const_of(scope, WEIR_DTYPE_INT32, 1, &size, values);
}

weir_edge_t weir_const_floats(weir_scope_t* scope, int rank, const int64_t* dims,
                              const float* values) {
  WEIR_ASSERT_ARG(scope);
  return const_of(scope, WEIR_DTYPE_FLOAT, rank, dims, values);
}

static weir_edge_t const_of_strings(weir_scope_t* scope, int rank, const int64_t* dims,
                                    const char* const* values) {
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = weir_tensor_create_strings(rank, dims, values, NULL, &tensor);
  if (status) weir_scope_fail(scope, status);
  weir_edge_t edge = weir_const(scope, tensor);
  weir_tensor_release(tensor);
  return edge;
}

weir_edge_t weir_const_string(weir_scope_t* scope, const char* value) {
  WEIR_ASSERT_ARG(scope);
  if (!WEIR_HAS_ARG(scope, value)) return WEIR_NO_EDGE;
  return const_of_strings(scope, 0, NULL, &value);
}

weir_edge_t weir_const_strings(weir_scope_t* scope, const char* const* values, int count) {
  WEIR_ASSERT_ARG(scope);
  const int64_t size = count;
  if (!weir_scope_has_count(scope, count, __func__, "count")) return WEIR_NO_EDGE;
  if (count > 0 && !WEIR_HAS_ARG(scope, values)) return WEIR_NO_EDGE;
  for (int i = 0; i < count; ++i) {
    if (!WEIR_HAS_ARG(scope, values[i])) return WEIR_NO_EDGE;
  }
  return const_of_strings(scope, 1, &size, values);
}

// ---- variables ----

// TensorFlow's runtime knows a variable by its shared name alone: it must not stay empty. What the
// node is called shows only once it is there.
static void share_name(weir_node_t* handle) {
  weir_mutex_lock(&handle->graph->mu);
  weir_attr_t* shared = (weir_attr_t*)weir_attrs_find(handle->def.attrs, "shared_name");
  shared->u.s = weir_view_of(handle->def.name);
  weir_mutex_unlock(&handle->graph->mu);
}

weir_node_t* weir_scope_add_handle(weir_scope_t* scope, const char* name, const char* device,
                                   weir_attrs_t attrs) {
  weir_scope_t named = *scope;
  named.device = device;
  if (scope->control) {  // variables are outside of loops and branches
    named.control = NULL;
    named.control_count = 0;
  }
  weir_node_t* handle = weir_scope_add(&named, "VarHandleOp", name, WEIR_NO_EDGES, attrs);
  if (handle) share_name(handle);
  return handle;
}

static weir_node_t* add_handle(weir_scope_t* scope, const char* name, const char* device,
                               weir_edge_t initial, const weir_variable_part_t* part) {
  weir_named_attr_t attrs[] = {weir_attr_type("dtype", weir_dtype_base(weir_edge_dtype(initial))),
                               weir_attr_shape("shape", weir_edge_shape(initial)),
                               weir_attr_string("shared_name", ""),
                               weir_attr_string(WEIR_PART_NAME, part ? part->name : ""),
                               weir_attr_string(WEIR_PART_SLICE, part ? part->slice : "")};
  const size_t count = WEIR_COUNT_OF(attrs) - (part ? 0 : 2);
  return weir_scope_add_handle(scope, name, device, (weir_attrs_t){.items = attrs, .count = count});
}

static weir_status_t* check_variable(weir_scope_t* scope, const char* name, weir_edge_t initial) {
  weir_scope_root_t* root = scope->root;
  if (!name || weir_edge_is_none(initial))
    return WEIR_STATUS(INVALID_ARGUMENT, "variable '%s' has no %s", name ? name : "",
                       name ? "initial value" : "name");
  if (root->function)
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "variable '%s' is made inside a function: make it outside, and use its value", name);
  weir_status_t* status = weir_graph_check_edge(root->graph, initial, "initial value", 0);
  return weir_status_prefix(status, "variable '%s': ", name);
}

void weir_scope_remember(weir_scope_t* scope, const weir_variable_info_t* variable) {
  weir_scope_root_t* root = scope->root;
  if (root->status) return;
  if (WEIR_GROW(root->variables, root->variable_capacity, root->variable_count + 1))
    root->variables[root->variable_count++] = *variable;
  else weir_scope_fail(scope, weir_out_of_memory());
}

static void add_assign_and_read(weir_scope_t* scope, weir_variable_info_t* v) {
  const char* device = v->handle.node->def.device;
  weir_scope_t bare = {
      .root = scope->root, .prefix = v->handle.node->def.name, .device = *device ? device : NULL};
  weir_dtype_t dtype = weir_dtype_base(weir_edge_dtype(v->initial));
  v->initializer = weir_scope_add(&bare, "AssignVariableOp", "Assign",
                                  WEIR_EDGES(v->handle, v->initial), WEIR_NO_ATTRS);
  v->value = weir_scope_first(weir_scope_add(&bare, "ReadVariableOp", "Read", WEIR_EDGES(v->handle),
                                             WEIR_ATTRS(weir_attr_type("dtype", dtype))));
}

// On an eager scope: a variable that is there already stays as it is.
static void find_or_assign(weir_scope_t* scope, weir_variable_info_t* v) {
  weir_status_t* status =
      weir_eager_variable(scope->root->graph, v->handle, v->initial, &v->value, &v->initializer);
  if (status) weir_scope_fail(scope, status);
  else if (!v->initializer)
    v->initializer = weir_scope_add(scope, "NoOp", NULL, WEIR_NO_EDGES, WEIR_NO_ATTRS);
}

weir_edge_t weir_scope_add_variable(weir_scope_t* scope, const char* name, weir_edge_t initial,
                                    const weir_variable_part_t* part, bool is_trainable) {
  weir_scope_root_t* root = scope->root;
  if (root->status) return WEIR_NO_EDGE;
  initial = weir_scope_local(scope, initial);
  weir_status_t* status = check_variable(scope, name, initial);
  if (status) {
    weir_scope_fail(scope, status);
    return WEIR_NO_EDGE;
  }
  weir_variable_info_t variable = {.is_trainable = is_trainable};
  variable.initial = weir_control_lift(scope, initial);
  if (root->status) return WEIR_NO_EDGE;
  const char* device = scope->variable_device
                           ? scope->variable_device(scope->variable_device_arg, variable.initial)
                           : scope->device;
  variable.handle = weir_scope_first(add_handle(scope, name, device, variable.initial, part));
  if (root->status || !variable.handle.node) return WEIR_NO_EDGE;
  if (weir_eager_of(root->graph)) find_or_assign(scope, &variable);
  else add_assign_and_read(scope, &variable);
  weir_scope_remember(scope, &variable);
  return root->status ? WEIR_NO_EDGE : variable.value;
}

weir_edge_t weir_variable(weir_scope_t* scope, const char* name, weir_edge_t initial) {
  WEIR_ASSERT_ARG(scope);
  return weir_scope_add_variable(scope, name, initial, NULL, true);
}

weir_edge_t weir_state_variable(weir_scope_t* scope, const char* name, weir_edge_t initial) {
  WEIR_ASSERT_ARG(scope);
  return weir_scope_add_variable(scope, name, initial, NULL, false);
}

int weir_scope_variable_count(const weir_scope_t* scope) {
  WEIR_ASSERT_ARG(scope);
  return (int)scope->root->variable_count;
}

weir_variable_info_t weir_scope_variable_at(const weir_scope_t* scope, int index) {
  WEIR_ASSERT_ARG(scope);
  if (index < 0 || (size_t)index >= scope->root->variable_count) return (weir_variable_info_t){0};
  return scope->root->variables[index];
}

weir_edge_t weir_variable_handle(weir_edge_t value) {
  return value.node && value.node->def.input_count > 0 ? value.node->inputs[0] : WEIR_NO_EDGE;
}

weir_node_t* weir_group(weir_scope_t* scope, const char* name, weir_node_t* const* nodes,
                        int count) {
  WEIR_ASSERT_ARG(scope);
  weir_scope_t* after = weir_scope_after(scope, nodes, count);
  return weir_scope_add(after, "NoOp", name, WEIR_NO_EDGES, WEIR_NO_ATTRS);
}

weir_node_t* weir_initializer(weir_scope_t* scope) {
  WEIR_ASSERT_ARG(scope);
  weir_scope_root_t* root = scope->root;
  weir_node_t** nodes = weir_arena_array(&root->arena, root->variable_count, sizeof(*nodes));
  if (!nodes) {
    weir_scope_fail(scope, weir_out_of_memory());
    return NULL;
  }
  for (size_t i = 0; i < root->variable_count; ++i) nodes[i] = root->variables[i].initializer;
  return weir_group(scope, "init", nodes, (int)root->variable_count);
}
