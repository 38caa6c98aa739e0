// resources.c — Handles that carry their resource.
#include "ops/data/resources.h"

#include <stdio.h>

static void release_resource(void* object) { weir_resource_release(object); }

static weir_status_t* create_handle(weir_kernel_ctx_t* ctx, weir_resource_t* take_resource,
                                    const char* prefix, const char* type_name,
                                    weir_tensor_t** out_tensor) {
  static atomic_llong next_id;
  char name[96];
  weir_handle_t* handle = NULL;
  snprintf(name, sizeof(name), "%s%lld", prefix, (long long)atomic_fetch_add(&next_id, 1));
  weir_status_t* status =
      weir_handle_create(ctx->device->name, "localhost", name, type_name, &handle);
  if (status) {
    if (take_resource) weir_resource_release(take_resource);
    return status;
  }
  handle->object = take_resource;
  handle->release_object = take_resource ? release_resource : NULL;
  status = weir_tensor_create_handle(handle, out_tensor);
  weir_handle_release(handle);
  return status;
}

weir_status_t* weir_data_output_handle(weir_kernel_ctx_t* ctx, weir_resource_t* take_resource,
                                       const char* prefix, const char* type_name) {
  weir_tensor_t* handle = NULL;
  WEIR_TRY(create_handle(ctx, take_resource, prefix, type_name, &handle));
  weir_kernel_set(ctx, 0, handle);
  if (ctx->output_count == 1) return NULL;
  weir_tensor_t* deleter = NULL;
  return weir_kernel_output(ctx, 1, 0, NULL, &deleter);
}

weir_status_t* weir_data_delete_handle(weir_kernel_ctx_t* ctx) {
  (void)ctx;
  return NULL;
}
