// variables.c — The variables of a session, found where its steps have them, read and set without
// running one.
#include "api/variables.h"

#include "base/suggest.h"
#include "runtime/placing.h"
#include "session/session.h"
#include "weir/argument.h"
#include "weir/variables.h"

static bool is_variable(const weir_node_t* node) {
  return weir_node_role(node) == WEIR_ROLE_VARIABLE;
}

// Where the variable of a node lives; named after its node unless it is shared under a name.
static weir_view_t container_of(const weir_node_t* node) {
  return weir_attrs_string(node->def.attrs, "container");
}
static weir_view_t name_of(const weir_node_t* node) {
  weir_view_t shared = weir_attrs_string(node->def.attrs, "shared_name");
  return shared.size ? shared : weir_view_of(node->def.name);
}

// ---- devices ----

static weir_device_t* find_device(const weir_runtime_t* runtime, const char* name) {
  for (int i = 0; i < runtime->device_count; ++i) {
    if (!strcmp(runtime->devices[i]->name, name)) return runtime->devices[i];
  }
  return runtime->devices[0];
}

// Where the steps of the session have each variable: |homes| is as long as |nodes|.
static weir_status_t* find_homes(weir_session_t* session, weir_node_t* const* nodes, size_t count,
                                 weir_device_t** homes) {
  const weir_runtime_t* runtime = session->program->runtime;
  weir_arena_t arena = {0};
  weir_graph_t* whole = NULL;
  weir_status_t* status = NULL;
  for (size_t i = 0; i < count; ++i) homes[i] = runtime->devices[0];
  if (runtime->device_count == 1) return NULL;
  weir_mutex_lock(&session->graph->mu);
  status = weir_graph_copy(session->graph, NULL, &arena, &whole, NULL);
  weir_mutex_unlock(&session->graph->mu);
  weir_source_t source = {.graph = whole};
  if (!status) status = weir_program_place(session->program, &source, &arena);
  for (size_t i = 0; i < count && !status; ++i) {
    const weir_node_t* placed = weir_graph_find(whole, weir_view_of(nodes[i]->def.name));
    if (placed) homes[i] = find_device(runtime, placed->def.device);
  }
  weir_graph_unref(whole);
  weir_arena_free(&arena);
  return status;
}

// Replaces |*tensor| by a copy in memory of that kind, unless it is there.
static weir_status_t* move_to(weir_device_t* device, weir_memory_t memory, weir_tensor_t** tensor) {
  bool is_plain = weir_dtype_is_plain(weir_tensor_type(*tensor));
  if (!is_plain || weir_tensor_space(*tensor) == weir_device_allocator(device, memory)->space)
    return NULL;
  weir_tensor_t* moved = NULL;
  WEIR_TRY(weir_device_fetch(device, memory, *tensor, &moved));
  weir_tensor_release(*tensor);
  *tensor = moved;
  return NULL;
}

// ---- which there are ----

static weir_status_t* list_nodes(weir_graph_t* graph, weir_variables_t* variables) {
  weir_mutex_lock(&graph->mu);
  variables->nodes = weir_alloc_array(graph->node_count, sizeof(*variables->nodes));
  for (size_t i = 0; variables->nodes && i < graph->node_count; ++i) {
    if (is_variable(graph->nodes[i])) variables->nodes[variables->count++] = graph->nodes[i];
  }
  weir_mutex_unlock(&graph->mu);
  return variables->nodes ? NULL : weir_out_of_memory();
}

weir_status_t* weir_variables_list(weir_session_t* session, weir_variables_t* out_variables) {
  if (session->remote)
    return WEIR_STATUS(UNIMPLEMENTED,
                       "the variables of a remote session are reached by its steps only: those of "
                       "a saver's nodes save and restore them");
  weir_variables_t variables = {.session = session};
  weir_status_t* status = list_nodes(session->graph, &variables);
  if (!status) {
    variables.homes = weir_calloc(variables.count, sizeof(*variables.homes));
    if (!variables.homes) status = weir_out_of_memory();
  }
  if (!status) status = find_homes(session, variables.nodes, variables.count, variables.homes);
  if (status) weir_variables_free(&variables);
  else *out_variables = variables;
  return status;
}

void weir_variables_free(weir_variables_t* variables) {
  weir_free(variables->homes);
  weir_free(variables->nodes);
  *variables = (weir_variables_t){.session = NULL};
}

weir_status_t* weir_variables_find(const weir_variables_t* variables, const char* name,
                                   size_t* out_index) {
  weir_suggestion_t suggestion = weir_suggestion(weir_view_of(name));
  for (size_t i = 0; i < variables->count; ++i) {
    const char* at = variables->nodes[i]->def.name;
    weir_suggestion_offer(&suggestion, weir_view_of(at));
    if (strcmp(at, name) != 0) continue;
    *out_index = i;
    return NULL;
  }
  return weir_suggestion_add(&suggestion,
                             WEIR_STATUS(NOT_FOUND, "there is no variable '%s'", name));
}

// ---- values ----

weir_status_t* weir_variables_read(const weir_variables_t* variables, size_t index,
                                   weir_tensor_t** out_value) {
  const weir_node_t* node = variables->nodes[index];
  weir_device_t* home = variables->homes[index];
  weir_resource_t* resource = NULL;
  *out_value = NULL;
  weir_status_t* status =
      weir_resources_find(weir_resources_of(variables->session->program->resources, home->ordinal),
                          container_of(node), name_of(node), &weir_variable_type, &resource);
  weir_status_destroy(status);
  if (!resource) return NULL;
  status = weir_variable_snapshot((weir_variable_t*)resource, out_value);
  weir_resource_release(resource);
  if (status) return status;
  return *out_value ? move_to(home, WEIR_MEMORY_HOST, out_value) : NULL;
}

weir_status_t* weir_variables_check(const weir_variables_t* variables, size_t index,
                                    const weir_tensor_t* value) {
  const weir_node_t* node = variables->nodes[index];
  weir_dtype_t dtype = weir_attrs_type(node->def.attrs, "dtype");
  const weir_shape_t* shape = weir_attrs_shape(node->def.attrs, "shape");
  if (weir_tensor_type(value) != dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT, "variable '%s' is %s, and does not take %s",
                       node->def.name, weir_dtype_name(dtype),
                       weir_dtype_name(weir_tensor_type(value)));
  }
  if (weir_shape_accepts(shape, value->rank, value->dims)) return NULL;
  char text[WEIR_SHAPE_TEXT_SIZE], own[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "variable '%s' has shape %s, and does not take shape %s",
                     node->def.name, weir_shape_text(shape->rank, shape->dims, own),
                     weir_tensor_shape_text(value, text));
}

static weir_status_t* create_variable(void* arg, weir_resource_t** out_resource) {
  const weir_node_t* node = arg;
  weir_variable_t* variable = NULL;
  bool is_ref = weir_dtype_is_ref(node->def.output_types[0]);
  WEIR_TRY((is_ref ? weir_variable_create_ref : weir_variable_create)(
      weir_attrs_type(node->def.attrs, "dtype"), weir_attrs_shape(node->def.attrs, "shape"),
      &variable));
  *out_resource = &variable->base;
  return NULL;
}

static weir_status_t* assign_one(weir_session_t* session, weir_node_t* node, weir_device_t* home,
                                 weir_tensor_t** take_value) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_resources_find_or_create(
      weir_resources_of(session->program->resources, home->ordinal), container_of(node),
      name_of(node), &weir_variable_type, create_variable, node, &resource));
  weir_status_t* status = weir_variable_assign((weir_variable_t*)resource, *take_value);
  *take_value = NULL;
  weir_resource_release(resource);
  return status;
}

weir_status_t* weir_variables_assign(const weir_variables_t* variables, weir_tensor_t** values) {
  weir_status_t* status = NULL;
  for (size_t i = 0; i < variables->count && !status; ++i) {
    if (values[i]) status = move_to(variables->homes[i], WEIR_MEMORY_DEVICE, &values[i]);
  }
  for (size_t i = 0; i < variables->count && !status; ++i) {
    if (values[i])
      status = assign_one(variables->session, variables->nodes[i], variables->homes[i], &values[i]);
  }
  return status;
}

// ---- the public functions ----

static weir_status_t* read_named(const weir_variables_t* variables, const char* name,
                                 weir_tensor_t** out_tensor) {
  size_t index = 0;
  weir_tensor_t* value = NULL;
  WEIR_TRY(weir_variables_find(variables, name, &index));
  WEIR_TRY(weir_variables_read(variables, index, &value));
  if (!value) return WEIR_STATUS(FAILED_PRECONDITION, "variable '%s' is not initialised", name);
  *out_tensor = value;
  return NULL;
}

weir_status_t* weir_session_read_variable(weir_session_t* session, const char* name,
                                          weir_tensor_t** out_tensor) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(name);
  WEIR_REQUIRE_ARG(out_tensor);
  weir_variables_t variables = {.session = NULL};
  WEIR_TRY(weir_variables_list(session, &variables));
  weir_status_t* status = read_named(&variables, name, out_tensor);
  weir_variables_free(&variables);
  return status;
}

static weir_status_t* take_named(const weir_variables_t* variables, const char* name,
                                 weir_tensor_t* tensor, weir_tensor_t** values) {
  size_t index = 0;
  if (!name || !tensor)
    return WEIR_STATUS(INVALID_ARGUMENT, "a variable to set has no name or no tensor");
  WEIR_TRY(weir_variables_find(variables, name, &index));
  if (values[index])
    return WEIR_STATUS(INVALID_ARGUMENT, "variable '%s' is given two values", name);
  WEIR_TRY(weir_variables_check(variables, index, tensor));
  values[index] = weir_tensor_retain(tensor);
  return NULL;
}

weir_status_t* weir_session_set_variables(weir_session_t* session, const char* const* names,
                                          weir_tensor_t* const* tensors, int count) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_COUNT(count);
  if (count > 0) WEIR_REQUIRE_ARG(names);
  if (count > 0) WEIR_REQUIRE_ARG(tensors);
  weir_variables_t variables = {.session = NULL};
  WEIR_TRY(weir_variables_list(session, &variables));
  weir_tensor_t** values = weir_calloc(variables.count, sizeof(*values));
  weir_status_t* status = values ? NULL : weir_out_of_memory();
  for (int i = 0; i < count && !status; ++i)
    status = take_named(&variables, names[i], tensors[i], values);
  if (!status) status = weir_variables_assign(&variables, values);
  for (size_t i = 0; values && i < variables.count; ++i) weir_tensor_release(values[i]);
  weir_free(values);
  weir_variables_free(&variables);
  return status;
}
