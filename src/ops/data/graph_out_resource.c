// graph_out_resource.c — Variables and tables that functions of a dataset captured, as nodes that
// make the like of them: TensorFlow's datasets take their state along by value.
#include "base/thread.h"
#include "ops/data/graph_out.h"
#include "ops/table/table.h"

// Of a variable that nobody else can name.
#define ANONYMOUS_NAME "cd2c89b7-88b7-44c8-ad83-06c2a9158347"

// Where the resource lives: on another device than the kernel's, maybe.
static weir_resources_t* manager_of(const weir_kernel_ctx_t* ctx, const weir_handle_t* handle) {
  const weir_step_t* step = ctx->step;
  for (int i = 0; i < step->device_count; ++i)
    if (strcmp(handle->device, step->devices[i]->name) == 0)
      return weir_resources_of(step->session_resources, i);
  return weir_kernel_resources(ctx);
}

static weir_status_t* find(weir_graph_out_t* out, const weir_handle_t* handle,
                           const weir_resource_type_t* type, weir_resource_t** out_resource) {
  weir_resource_t* carried = handle->object;
  if (carried && carried->type == type) {
    *out_resource = weir_resource_retain(carried);
    return NULL;
  }
  return weir_resources_find(manager_of(out->ctx, handle), weir_view_of(handle->container),
                             weir_view_of(handle->name), type, out_resource);
}

// |resource| once |filler| has run.
static weir_status_t* write_after(weir_graph_out_t* out, const char* resource, const char* filler,
                                  const char** out_name) {
  weir_node_out_t node = {.op = "Identity",
                          .inputs = &resource,
                          .input_count = 1,
                          .control = filler,
                          .attrs = WEIR_ATTRS(weir_attr_type("T", WEIR_DTYPE_RESOURCE))};
  return weir_graph_out_node(out, &node, out_name);
}

// ---- variables ----

static weir_status_t* write_value(weir_graph_out_t* out, weir_tensor_t* value,
                                  const char** out_name) {
  const weir_shape_t* shape = weir_shape_make(&out->arena, value->rank, value->dims);
  if (!shape) return weir_out_of_memory();
  weir_dtype_t type = weir_tensor_type(value);
  const char* inputs[2] = {NULL, NULL};
  const char* assigned = NULL;
  weir_node_out_t variable = {
      .op = "VarHandleOp",
      .attrs = WEIR_ATTRS(weir_attr_type("dtype", type), weir_attr_shape("shape", shape),
                          weir_attr_string("shared_name", ANONYMOUS_NAME))};
  WEIR_TRY(weir_graph_out_node(out, &variable, &inputs[0]));
  WEIR_TRY(weir_graph_out_tensor(out, value, &inputs[1]));
  weir_node_out_t assign = {
      .op = "AssignVariableOp",
      .inputs = inputs,
      .input_count = 2,
      .attrs = WEIR_ATTRS(weir_attr_type("dtype", type), weir_attr_bool("validate_shape", false))};
  WEIR_TRY(weir_graph_out_node(out, &assign, &assigned));
  return write_after(out, inputs[0], assigned, out_name);
}

static weir_status_t* write_variable(weir_graph_out_t* out, const weir_handle_t* handle,
                                     const char** out_name) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(find(out, handle, &weir_variable_type, &resource));
  weir_tensor_t* value = NULL;
  weir_status_t* copied = weir_variable_snapshot((weir_variable_t*)resource, &value);
  weir_resource_release(resource);
  if (copied) return copied;
  if (!value)
    return WEIR_STATUS(FAILED_PRECONDITION, "variable '%s' is not initialized", handle->name);
  weir_status_t* status = write_value(out, value, out_name);
  weir_tensor_release(value);
  return status;
}

// ---- tables ----

// A name that no other table has: the node's name is the table's.
static const char* table_name(weir_graph_out_t* out, const char* prefix) {
  static atomic_llong next_id;
  uint64_t id = (uint64_t)atomic_fetch_add(&next_id, 1);
  uint64_t chance = weir_hash_mix((uint64_t)weir_clock_ns() ^ (uint64_t)(uintptr_t)out);
  return weir_arena_printf(&out->arena, "%s/%llu/%llu", prefix, (unsigned long long)id,
                           (unsigned long long)chance);
}

// Attributes "key_dtype", "value_dtype" and, of tensors, "value_shape".
static weir_status_t* write_empty(weir_graph_out_t* out, const weir_lookup_table_config_t* config,
                                  const char** out_name) {
  bool has_shape = config->is_mutable && config->value_rank > 0;
  const weir_shape_t* shape = weir_shape_make(&out->arena, config->value_rank, config->value_dims);
  weir_named_attr_t attrs[] = {
      weir_attr_bool("use_node_name_sharing", true), weir_attr_type("key_dtype", config->key_dtype),
      weir_attr_type("value_dtype", config->value_dtype), weir_attr_shape("value_shape", shape)};
  weir_node_out_t node = {.op = "HashTableV2",
                          .name = table_name(out, "HashTableFromGraphDef"),
                          .attrs = {.items = attrs, .count = 3}};
  if (config->is_mutable) {
    node.op = has_shape ? "MutableHashTableOfTensorsV2" : "MutableHashTableV2";
    node.name =
        table_name(out, has_shape ? "MutableHashTableOfTensors" : "MutableHashTableFromGraphDef");
    if (has_shape) node.attrs.count = 4;
  }
  if (!shape || !node.name) return weir_out_of_memory();
  return weir_graph_out_node(out, &node, out_name);
}

static weir_status_t* write_entries(weir_graph_out_t* out, const char* table, weir_tensor_t* keys,
                                    weir_tensor_t* values, const char** out_name) {
  const char *inputs[3] = {table, NULL, NULL}, *imported = NULL;
  WEIR_TRY(weir_graph_out_tensor(out, keys, &inputs[1]));
  WEIR_TRY(weir_graph_out_tensor(out, values, &inputs[2]));
  weir_node_out_t node = {.op = "LookupTableImportV2",
                          .inputs = inputs,
                          .input_count = 3,
                          .attrs = WEIR_ATTRS(weir_attr_type("Tin", weir_tensor_type(keys)),
                                              weir_attr_type("Tout", weir_tensor_type(values)))};
  WEIR_TRY(weir_graph_out_node(out, &node, &imported));
  return write_after(out, table, imported, out_name);
}

static weir_status_t* write_filled(weir_graph_out_t* out, weir_lookup_table_t* table,
                                   const char** out_name) {
  weir_tensor_t *keys = NULL, *values = NULL;
  const char* empty = NULL;
  WEIR_TRY(weir_lookup_table_export(table, &keys, &values));
  weir_status_t* status = write_empty(out, weir_lookup_table_config(table), &empty);
  if (!status) status = write_entries(out, empty, keys, values, out_name);
  weir_tensor_release(keys);
  weir_tensor_release(values);
  return status;
}

// TensorFlow writes a dense table as the handle that it is.
static weir_status_t* write_table(weir_graph_out_t* out, const weir_handle_t* handle,
                                  const char** out_name) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(find(out, handle, &weir_lookup_table_type, &resource));
  weir_lookup_table_t* table = (weir_lookup_table_t*)resource;
  weir_status_t* status =
      weir_lookup_table_is_dense(table) ? NULL : write_filled(out, table, out_name);
  weir_resource_release(resource);
  return status;
}

weir_status_t* weir_graph_out_resource(weir_graph_out_t* out, weir_tensor_t* tensor,
                                       const char** out_name) {
  const weir_handle_t* handle = weir_tensor_handle(tensor);
  if (tensor->rank != 0) return NULL;
  if (strcmp(handle->type_name, "N10tensorflow3VarE") == 0)
    return write_variable(out, handle, out_name);
  if (strcmp(handle->type_name, WEIR_LOOKUP_TABLE_TYPE_NAME) == 0)
    return write_table(out, handle, out_name);
  return NULL;
}
