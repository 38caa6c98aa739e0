// handle.c — Handles of resources and objects of variants, and the scalar tensors that hold them.
#include "tensor/handle.h"

static void handle_destroy(weir_handle_t* handle) {
  if (handle->object && handle->release_object) handle->release_object(handle->object);
  weir_free(handle->device);
  weir_free(handle->container);
  weir_free(handle->name);
  weir_free(handle->type_name);
  weir_free(handle->shape);
  weir_free(handle);
}

weir_status_t* weir_handle_create(const char* device, const char* container, const char* name,
                                  const char* type_name, weir_handle_t** out_handle) {
  weir_handle_t* handle = weir_calloc(1, sizeof(*handle));
  if (!handle) return weir_out_of_memory();
  weir_ref_init(&handle->ref);
  handle->device = weir_strdup(device ? device : "");
  handle->container = weir_strdup(container ? container : "");
  handle->name = weir_strdup(name ? name : "");
  handle->type_name = weir_strdup(type_name ? type_name : "");
  if (!handle->device || !handle->container || !handle->name || !handle->type_name) {
    handle_destroy(handle);
    return weir_out_of_memory();
  }
  *out_handle = handle;
  return NULL;
}

weir_handle_t* weir_handle_retain(weir_handle_t* handle) {
  if (handle) weir_ref_inc(&handle->ref, 1);
  return handle;
}

void weir_handle_release(weir_handle_t* handle) {
  if (handle && weir_ref_dec(&handle->ref)) handle_destroy(handle);
}

weir_status_t* weir_tensor_create_handle(weir_handle_t* handle, weir_tensor_t** out_tensor) {
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_RESOURCE, 0, NULL, &tensor));
  WEIR_TENSOR_DATA(tensor, weir_handle_t*)[0] = weir_handle_retain(handle);
  *out_tensor = tensor;
  return NULL;
}

weir_variant_object_t* weir_variant_retain(weir_variant_object_t* object) {
  if (object) weir_ref_inc(&object->ref, 1);
  return object;
}

void weir_variant_release(weir_variant_object_t* object) {
  if (object && weir_ref_dec(&object->ref)) object->type->destroy(object);
}

weir_status_t* weir_tensor_create_variant(weir_variant_object_t* take_object,
                                          weir_tensor_t** out_tensor) {
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = weir_tensor_create(WEIR_DTYPE_VARIANT, 0, NULL, &tensor);
  if (status) {
    weir_variant_release(take_object);
    return status;
  }
  WEIR_TENSOR_DATA(tensor, weir_variant_t)[0].object = take_object;
  *out_tensor = tensor;
  return NULL;
}

weir_status_t* weir_variants_map(const weir_tensor_t* tensor, weir_tensor_map_t map,
                                 weir_tensor_t** out_tensor) {
  weir_tensor_t* copy = NULL;
  weir_status_t* status = NULL;
  WEIR_TRY(weir_tensor_copy(tensor, &copy));
  for (int64_t i = 0; i < copy->count && !status; ++i) {
    weir_variant_object_t** object = &WEIR_TENSOR_DATA(copy, weir_variant_t)[i].object;
    void* mapped = NULL;
    if (!*object || !(*object)->type->map) continue;
    status = (*object)->type->map(*object, map, &mapped);
    if (status) break;
    weir_variant_release(*object);
    *object = mapped;
  }
  if (status) weir_tensor_release(copy);
  else *out_tensor = copy;
  return status;
}
