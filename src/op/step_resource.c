// step_resource.c — Resources that die with the step.
#include "op/step_resource.h"

static void release_object(void* object) { weir_resource_release(object); }

static weir_status_t* set_handle(weir_kernel_ctx_t* ctx, int i, weir_resource_t* resource,
                                 const char* name, const char* type_name) {
  weir_handle_t* handle = NULL;
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_handle_create(ctx->device->name, WEIR_STEP_CONTAINER, name, type_name, &handle));
  handle->object = weir_resource_retain(resource);
  handle->release_object = release_object;
  weir_status_t* status = weir_tensor_create_handle(handle, &tensor);
  weir_handle_release(handle);
  if (!status) weir_kernel_set(ctx, i, tensor);
  return status;
}

static weir_status_t* set_strings(weir_kernel_ctx_t* ctx, int i, const char* name) {
  weir_variable_t* variable = NULL;
  weir_tensor_t* strings = NULL;
  WEIR_TRY(weir_tensor_create_strings(
      1, (const int64_t[]){2}, (const char* const[]){WEIR_STEP_CONTAINER, name}, NULL, &strings));
  if (!weir_dtype_is_ref(ctx->node->output_types[i])) {
    weir_kernel_set(ctx, i, strings);
    return NULL;
  }
  weir_status_t* status = weir_variable_create(WEIR_DTYPE_STRING, NULL, &variable);
  if (status) {
    weir_tensor_release(strings);
    return status;
  }
  status = weir_variable_assign(variable, strings);
  if (!status) weir_kernel_set_ref(ctx, i, variable);
  weir_resource_release(&variable->base);
  return status;
}

weir_status_t* weir_step_resource_publish(weir_kernel_ctx_t* ctx, int i,
                                          weir_resource_t* take_resource, const char* name,
                                          const char* type_name) {
  weir_status_t* status = NULL;
  if (ctx->node->output_types[i] == WEIR_DTYPE_RESOURCE) {
    status = set_handle(ctx, i, take_resource, name, type_name);
  } else {
    status = set_strings(ctx, i, name);
  }
  weir_resources_t* manager = NULL;
  if (!status) status = weir_kernel_step_resources(ctx, &manager);
  if (status) {
    weir_resource_release(take_resource);
    return status;
  }
  return weir_resources_add(manager, weir_view_of(WEIR_STEP_CONTAINER), weir_view_of(name),
                            take_resource);
}

// Consumes |take_strings|.
static weir_status_t* find_by_strings(weir_kernel_ctx_t* ctx, weir_tensor_t* take_strings,
                                      const weir_resource_type_t* type,
                                      weir_resource_t** out_resource) {
  weir_tensor_t* strings = take_strings;
  weir_status_t* status = NULL;
  if (!strings || strings->dtype != WEIR_DTYPE_STRING || strings->count != 2) {
    status =
        WEIR_STATUS(INVALID_ARGUMENT, "Resource handle must have two elements: [container, name]");
  } else {
    const weir_string_t* parts = WEIR_TENSOR_DATA(strings, weir_string_t);
    weir_resources_t* manager = NULL;
    status = weir_kernel_step_resources(ctx, &manager);
    if (!status)
      status = weir_resources_find(manager, weir_string_view(&parts[0]),
                                   weir_string_view(&parts[1]), type, out_resource);
  }
  weir_tensor_release(strings);
  return status;
}

weir_status_t* weir_step_resource_get(weir_kernel_ctx_t* ctx, int i,
                                      const weir_resource_type_t* type,
                                      weir_resource_t** out_resource) {
  const weir_tensor_t* tensor = ctx->inputs[i].tensor;
  const weir_handle_t* handle = tensor ? weir_tensor_handle(tensor) : NULL;
  weir_resource_t* resource = handle ? handle->object : NULL;
  if (WEIR_LIKELY(resource && resource->type == type)) {  // kept alive by the input
    *out_resource = resource;
    return NULL;
  }
  weir_variable_t* ref = ctx->inputs[i].ref;
  if (ref) {
    WEIR_TRY(find_by_strings(ctx, weir_variable_read(ref), type, &resource));
  } else if (tensor && tensor->dtype == WEIR_DTYPE_STRING) {
    weir_tensor_t* strings = weir_tensor_retain(ctx->inputs[i].tensor);
    WEIR_TRY(find_by_strings(ctx, strings, type, &resource));
  } else {
    WEIR_TRY(weir_kernel_resource(ctx, i, type, &resource));
  }
  weir_resource_release(
      resource);  // the step's manager, which never removes, keeps it until the step ends
  *out_resource = resource;
  return NULL;
}
