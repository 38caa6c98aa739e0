// checkpoint.c — Saving and restoring all variables of a session without a graph of SaveV2 nodes.
#include "api/checkpoint.h"

#include "file/bundle.h"
#include "file/checkpoint_state.h"
#include "runtime/placing.h"
#include "session/session.h"
#include "weir/argument.h"
#include "weir/file.h"

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

// ---- save ----

// The value of a variable, the caller's, in host memory; NULL: it is not initialised.
static weir_status_t* value_of(weir_session_t* session, const weir_node_t* node,
                               weir_device_t* home, weir_tensor_t** out_value) {
  weir_resource_t* resource = NULL;
  weir_status_t* status =
      weir_resources_find(weir_resources_of(session->program->resources, home->ordinal),
                          container_of(node), name_of(node), &weir_variable_type, &resource);
  weir_status_destroy(status);
  if (!resource) return NULL;
  *out_value = weir_variable_read((weir_variable_t*)resource);
  weir_resource_release(resource);
  return *out_value ? move_to(home, WEIR_MEMORY_HOST, out_value) : NULL;
}

// A checkpoint that lacks variables would be the latest and could not be restored.
static weir_status_t* read_values(weir_session_t* session, weir_node_t* const* nodes, size_t count,
                                  weir_device_t* const* homes, weir_tensor_t** values) {
  enum { MAX_NAMED = 8 };
  size_t missing = 0;
  weir_strbuf_t names = {0};
  weir_status_t* status = NULL;
  for (size_t i = 0; i < count && !status; ++i) {
    status = value_of(session, nodes[i], homes[i], &values[i]);
    if (values[i] || status) continue;
    if (++missing <= MAX_NAMED)
      weir_strbuf_printf(&names, "%s'%s'", missing > 1 ? ", " : "", nodes[i]->def.name);
  }
  if (missing > MAX_NAMED) weir_strbuf_printf(&names, " and %zu more", missing - MAX_NAMED);
  if (missing && !status)
    status =
        WEIR_STATUS(FAILED_PRECONDITION, "checkpoint: %zu of %zu variables are not initialised: %s",
                    missing, count, names.data ? names.data : "?");
  weir_strbuf_free(&names);
  return status;
}

// Splits "dir/name" for the state file.
static weir_status_t* update_state(const char* prefix) {
  const char* slash = strrchr(prefix, '/');
  char* directory = slash ? weir_strndup(prefix, (size_t)(slash - prefix)) : weir_strdup(".");
  if (!directory) return weir_out_of_memory();
  const char* base = slash ? slash + 1 : prefix;
  weir_checkpoint_state_t state = {.latest = weir_strdup(base)};
  weir_status_t* status =
      state.latest ? weir_names_add(&state.all, weir_view_of(base)) : weir_out_of_memory();
  if (!status) status = weir_checkpoint_state_save(*directory ? directory : "/", &state);
  weir_checkpoint_state_free(&state);
  weir_free(directory);
  return status;
}

static weir_node_t** list_variables(weir_graph_t* graph, size_t* out_count) {
  weir_mutex_lock(&graph->mu);
  weir_node_t** nodes = weir_alloc_array(graph->node_count, sizeof(*nodes));
  *out_count = 0;
  for (size_t i = 0; nodes && i < graph->node_count; ++i) {
    if (is_variable(graph->nodes[i])) nodes[(*out_count)++] = graph->nodes[i];
  }
  weir_mutex_unlock(&graph->mu);
  return nodes;
}

static weir_status_t* check_local(const weir_session_t* session) {
  if (!session->remote) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED,
                     "the variables of a remote session are saved by a saver's nodes");
}

weir_status_t* weir_checkpoint_save(weir_session_t* session, const char* prefix) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(prefix);
  WEIR_TRY(check_local(session));
  weir_bundle_writer_t* writer = NULL;
  size_t count = 0;
  weir_node_t** nodes = list_variables(session->graph, &count);
  weir_tensor_t** values = weir_calloc(count, sizeof(*values));
  weir_device_t** homes = weir_calloc(count, sizeof(*homes));
  weir_status_t* status = nodes && values && homes ? NULL : weir_out_of_memory();
  if (!status && count == 0)
    status = WEIR_STATUS(INVALID_ARGUMENT, "checkpoint: no variables to save");
  if (!status) status = find_homes(session, nodes, count, homes);
  if (!status) status = read_values(session, nodes, count, homes, values);
  if (!status) status = weir_bundle_writer_create(prefix, 1, &writer);
  for (size_t i = 0; i < count && !status; ++i)
    status = weir_bundle_add(writer, weir_view_of(nodes[i]->def.name), values[i]);
  if (!status) status = weir_bundle_finish(writer);
  weir_bundle_writer_destroy(writer);
  for (size_t i = 0; values && i < count; ++i) weir_tensor_release(values[i]);
  weir_free(homes);
  weir_free(values);
  weir_free(nodes);
  return status ? status : update_state(prefix);
}

// ---- restore: all values are read and checked before the first variable changes ----

static weir_status_t* read_one(weir_value_source_fn_t read, void* source, const weir_node_t* node,
                               weir_tensor_t** out_value) {
  WEIR_TRY(read(source, node->def.name, out_value));
  weir_dtype_t dtype = weir_attrs_type(node->def.attrs, "dtype");
  const weir_shape_t* shape = weir_attrs_shape(node->def.attrs, "shape");
  if (weir_tensor_type(*out_value) != dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT, "variable '%s' is %s, but %s in the checkpoint",
                       node->def.name, weir_dtype_name(dtype),
                       weir_dtype_name(weir_tensor_type(*out_value)));
  }
  if (weir_shape_accepts(shape, (*out_value)->rank, (*out_value)->dims)) return NULL;
  char text[WEIR_SHAPE_TEXT_SIZE], own[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "variable '%s' has shape %s, and does not take shape %s of the checkpoint",
                     node->def.name, weir_shape_text(shape->rank, shape->dims, own),
                     weir_tensor_shape_text(*out_value, text));
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

weir_status_t* weir_checkpoint_assign_all(weir_session_t* session, weir_value_source_fn_t read,
                                          void* source) {
  WEIR_TRY(check_local(session));
  size_t count = 0;
  weir_node_t** nodes = list_variables(session->graph, &count);
  weir_tensor_t** values = weir_calloc(count, sizeof(*values));
  weir_device_t** homes = weir_calloc(count, sizeof(*homes));
  weir_status_t* status = nodes && values && homes ? NULL : weir_out_of_memory();
  if (!status) status = find_homes(session, nodes, count, homes);
  for (size_t i = 0; i < count && !status; ++i) {
    status = read_one(read, source, nodes[i], &values[i]);
    if (!status) status = move_to(homes[i], WEIR_MEMORY_DEVICE, &values[i]);
  }
  for (size_t i = 0; i < count && !status; ++i)
    status = assign_one(session, nodes[i], homes[i], &values[i]);
  for (size_t i = 0; values && i < count; ++i) weir_tensor_release(values[i]);
  weir_free(homes);
  weir_free(values);
  weir_free(nodes);
  return status;
}

static weir_status_t* read_bundle(void* source, const char* name, weir_tensor_t** out_value) {
  return weir_bundle_read(source, weir_view_of(name), out_value);
}

weir_status_t* weir_checkpoint_restore(weir_session_t* session, const char* prefix) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(prefix);
  weir_bundle_t* bundle = NULL;
  WEIR_TRY(check_local(session));
  WEIR_TRY(weir_bundle_open(prefix, &bundle));
  weir_status_t* status = weir_checkpoint_assign_all(session, read_bundle, bundle);
  weir_bundle_close(bundle);
  return status;
}
