// find_variable.c — The variable behind a handle, made where it is not there.
#include "ops/state/find_variable.h"

static weir_status_t* create_variable(void* arg, weir_resource_t** out_resource) {
  const weir_dtype_t* dtype = arg;
  weir_variable_t* variable = NULL;
  WEIR_TRY(weir_variable_create(*dtype, NULL, &variable));
  *out_resource = &variable->base;
  return NULL;
}

weir_status_t* weir_state_find_or_create(weir_kernel_ctx_t* ctx, weir_dtype_t dtype,
                                         weir_variable_t** out_variable) {
  const weir_handle_t* handle = weir_tensor_handle(weir_kernel_input(ctx, 0));
  if (!handle) return WEIR_STATUS(INVALID_ARGUMENT, "%s needs a resource handle", ctx->node->name);
  if (handle->object) return weir_kernel_variable(ctx, 0, out_variable);
  weir_resource_t* resource = NULL;
  weir_resources_t* manager = NULL;
  WEIR_TRY(weir_kernel_manager(ctx, handle, &manager));
  WEIR_TRY(weir_resources_find_or_create(manager, weir_view_of(handle->container),
                                         weir_view_of(handle->name), &weir_variable_type,
                                         create_variable, &dtype, &resource));
  *out_variable = (weir_variable_t*)resource;
  return NULL;
}
