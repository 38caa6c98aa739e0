// shared_handle.c — Names and handles of shared resources.
#include "op/shared_handle.h"

#include "op/shape_ctx.h"

#define DEFAULT_CONTAINER "localhost"

static weir_view_t string_attr(const weir_node_def_t* node, const char* name) {
  const weir_attr_t* attr = weir_attrs_find(node->attrs, name);
  return attr && attr->kind == WEIR_ATTR_STRING ? attr->u.s : weir_view("", 0);
}

static weir_status_t* init_names(const weir_node_def_t* node, weir_shared_handle_t* handle) {
  weir_view_t container = string_attr(node, "container");
  weir_view_t name = string_attr(node, "shared_name");
  if (container.size == 0) container = weir_view_of(DEFAULT_CONTAINER);
  // Names with '_' are the runtime's own; variables are free of this rule.
  bool is_variable = node->op && node->op->role == WEIR_ROLE_VARIABLE;
  if (!is_variable && name.size > 0 && name.data[0] == '_') {
    return WEIR_STATUS(INVALID_ARGUMENT, "shared_name cannot start with '_':%.*s",
                       WEIR_VIEW_ARG(name));
  }
  if (name.size == 0) name = weir_view_of(node->name);
  handle->container = weir_strndup(container.data, container.size);
  handle->name = weir_strndup(name.data, name.size);
  return handle->container && handle->name ? NULL : weir_out_of_memory();
}

static weir_status_t* init_ref(weir_shared_handle_t* handle) {
  weir_tensor_t* strings = NULL;
  WEIR_TRY(weir_variable_create(WEIR_DTYPE_STRING, NULL, &handle->ref));
  WEIR_TRY(weir_tensor_create_strings(1, (const int64_t[]){2},
                                      (const char* const[]){handle->container, handle->name}, NULL,
                                      &strings));
  return weir_variable_assign(handle->ref, strings);
}

static weir_status_t* init_resource(const weir_kernel_init_t* init, const char* type_name,
                                    weir_shared_handle_t* handle) {
  weir_handle_t* resource = NULL;
  WEIR_TRY(weir_handle_create(init->device->name, handle->container, handle->name, type_name,
                              &resource));
  const weir_attr_t* shape = weir_attrs_find(init->node->attrs, "shape");
  const weir_attr_t* dtype = weir_attrs_find(init->node->attrs, "dtype");
  weir_status_t* status = NULL;
  if (dtype && dtype->kind == WEIR_ATTR_TYPE) resource->dtype = dtype->u.type;
  if (shape && shape->kind == WEIR_ATTR_SHAPE) {
    resource->shape = weir_shape_clone(shape->u.shape);
    if (!resource->shape) status = weir_out_of_memory();
  }
  if (!status) status = weir_tensor_create_handle(resource, &handle->tensor);
  weir_handle_release(resource);
  return status;
}

weir_status_t* weir_shared_handle_init_names(const weir_kernel_init_t* init,
                                             weir_shared_handle_t* handle) {
  return init_names(init->node, handle);
}

weir_status_t* weir_shared_handle_init(const weir_kernel_init_t* init, const char* type_name,
                                       weir_shared_handle_t* handle) {
  WEIR_TRY(init_names(init->node, handle));
  if (weir_dtype_is_ref(init->node->output_types[0])) return init_ref(handle);
  return init_resource(init, type_name, handle);
}

void weir_shared_handle_deinit(weir_shared_handle_t* handle) {
  weir_tensor_release(handle->tensor);
  if (handle->ref) weir_resource_release(&handle->ref->base);
  weir_free(handle->container);
  weir_free(handle->name);
}

void weir_shared_handle_set(weir_kernel_ctx_t* ctx, const weir_shared_handle_t* handle) {
  if (handle->ref) {
    weir_kernel_set_ref(ctx, 0, handle->ref);
  } else {
    weir_kernel_set(ctx, 0, weir_tensor_retain_inline(handle->tensor));
  }
}

weir_status_t* weir_shared_handle_create(weir_kernel_ctx_t* ctx, const weir_shared_handle_t* handle,
                                         const weir_resource_type_t* type,
                                         weir_resource_create_fn_t create, void* arg,
                                         weir_resource_t** out_resource) {
  return weir_resources_find_or_create(weir_kernel_resources(ctx), weir_view_of(handle->container),
                                       weir_view_of(handle->name), type, create, arg, out_resource);
}

weir_status_t* weir_shared_handle_resource(weir_kernel_ctx_t* ctx, int i,
                                           const weir_resource_type_t* type,
                                           weir_resource_t** out_resource) {
  weir_variable_t* ref = weir_kernel_input_ref(ctx, i);
  if (!ref) return weir_kernel_resource(ctx, i, type, out_resource);
  weir_tensor_t* strings = weir_variable_read(ref);
  weir_status_t* status = NULL;
  if (!strings || strings->dtype != WEIR_DTYPE_STRING || strings->count != 2) {
    status = WEIR_STATUS(INVALID_ARGUMENT,
                         "Resource handle must be a vector of 2 strings: [container, name]");
  } else {
    const weir_string_t* parts = WEIR_TENSOR_DATA(strings, weir_string_t);
    status = weir_resources_find(weir_kernel_resources(ctx), weir_string_view(&parts[0]),
                                 weir_string_view(&parts[1]), type, out_resource);
  }
  weir_tensor_release(strings);
  return status;
}

weir_status_t* weir_shared_handle_shape(weir_shape_ctx_t* ctx) {
  if (weir_dtype_is_ref(ctx->node->output_types[0])) return weir_shape_set_vector(ctx, 0, 2);
  return weir_shape_set_scalar(ctx, 0);
}
