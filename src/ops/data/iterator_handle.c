// iterator_handle.c — IteratorToStringHandle, IteratorFromStringHandle, V2, IteratorGetDevice:
// handles that a client feeds.
#include "ops/data/iterator_handle.h"

#include "ops/data/resources.h"
#include "tensor/tensor_proto.h"

static weir_status_t* output_text(weir_kernel_ctx_t* ctx, weir_view_t text) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 0, NULL, &out));
  return weir_tensor_set_string(out, 0, text.data, text.size);
}

weir_status_t* weir_iterator_handle_to_string(weir_kernel_ctx_t* ctx,
                                              const weir_resource_type_t* type) {
  weir_resource_t* resource = NULL;
  weir_strbuf_t text = {0};
  WEIR_TRY(weir_kernel_resource(ctx, 0, type, &resource));
  weir_resource_release(resource);
  weir_handle_write(weir_tensor_handle(weir_kernel_input(ctx, 0)), &text);
  weir_status_t* status = weir_strbuf_finish(&text);
  if (!status) status = output_text(ctx, weir_strbuf_view(&text));
  weir_strbuf_free(&text);
  return status;
}

// Whether the handle is of a device of this process.
static bool is_here(const weir_kernel_ctx_t* ctx, const weir_handle_t* handle) {
  for (int i = 0; i < ctx->step->device_count; ++i) {
    if (!strcmp(handle->device, ctx->step->devices[i]->name)) return true;
  }
  return !strcmp(handle->device, ctx->device->name);
}

// The iterator of that name: one that its handle carries, or one of the manager. |handle| carries
// the former from now on.
static weir_status_t* find(weir_kernel_ctx_t* ctx, const weir_resource_type_t* type,
                           weir_handle_t* handle, weir_resource_t** out_resource) {
  weir_resources_t* manager = NULL;
  *out_resource = weir_data_find_named(weir_view_of(handle->name), type);
  if (*out_resource) {
    weir_data_carry(handle, weir_resource_retain(*out_resource));
    return NULL;
  }
  WEIR_TRY(weir_kernel_manager(ctx, handle, &manager));
  return weir_resources_find(manager, weir_view_of(handle->container), weir_view_of(handle->name),
                             type, out_resource);
}

// It must be here, with the components that the node declares, if it does.
static weir_status_t* check_handle(weir_kernel_ctx_t* ctx, const weir_resource_type_t* type,
                                   weir_iterator_match_fn_t match, weir_handle_t* handle) {
  weir_element_spec_t spec;
  weir_resource_t* resource = NULL;
  if (!is_here(ctx, handle))
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Attempted create an iterator on device \"%s\" from handle defined on "
                       "device \"%s\"",
                       ctx->device->name, handle->device);
  WEIR_TRY(weir_element_spec_of(weir_kernel_attrs(ctx), &spec));
  WEIR_TRY(find(ctx, type, handle, &resource));
  weir_status_t* status = spec.count ? match(resource, &spec) : NULL;
  weir_resource_release(resource);
  return status;
}

weir_status_t* weir_iterator_handle_from_string(weir_kernel_ctx_t* ctx,
                                                const weir_resource_type_t* type,
                                                weir_iterator_match_fn_t match) {
  const weir_tensor_t* text = weir_kernel_input(ctx, 0);
  if (text->rank != 0) return WEIR_STATUS(INVALID_ARGUMENT, "string_handle must be a scalar");
  weir_handle_t* handle = NULL;
  weir_tensor_t* out = NULL;
  weir_status_t* status = weir_handle_parse(weir_string_view(text->data), &handle);
  if (weir_status_code(status) == WEIR_INVALID_ARGUMENT) {
    weir_status_destroy(status);
    return WEIR_STATUS(INVALID_ARGUMENT, "Could not parse string_handle as a valid ResourceHandle");
  }
  if (status) return status;
  status = check_handle(ctx, type, match, handle);
  if (!status) status = weir_tensor_create_handle(handle, &out);
  weir_handle_release(handle);
  if (!status) weir_kernel_set(ctx, 0, out);
  return status;
}

weir_status_t* weir_iterator_handle_delete(weir_kernel_ctx_t* ctx,
                                           const weir_resource_type_t* type) {
  const weir_handle_t* handle = weir_tensor_handle(weir_kernel_input(ctx, 0));
  if (!handle) return WEIR_STATUS(INVALID_ARGUMENT, "handle is not a resource handle");
  if (handle->object) return NULL;  // goes with its handles
  weir_resources_t* manager = NULL;
  WEIR_TRY(weir_kernel_manager(ctx, handle, &manager));
  return weir_resources_remove(manager, weir_view_of(handle->container), weir_view_of(handle->name),
                               type);
}

weir_status_t* weir_iterator_handle_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  return weir_shape_set_scalar(ctx, 0);
}

// ---- ops ----

static weir_status_t* to_string_cpu(weir_kernel_ctx_t* ctx) {
  return weir_iterator_handle_to_string(ctx, &weir_iterator_resource_type);
}

static weir_status_t* matches(weir_resource_t* resource, const weir_element_spec_t* spec) {
  return weir_iterator_resource_matches((weir_iterator_resource_t*)resource, spec);
}

static weir_status_t* from_string_cpu(weir_kernel_ctx_t* ctx) {
  return weir_iterator_handle_from_string(ctx, &weir_iterator_resource_type, matches);
}

static weir_status_t* device_cpu(weir_kernel_ctx_t* ctx) {
  const weir_handle_t* handle = weir_tensor_handle(weir_kernel_input(ctx, 0));
  if (!handle) return WEIR_STATUS(INVALID_ARGUMENT, "resource is not a resource handle");
  return output_text(ctx, weir_view_of(handle->device));
}

#define FROM_STRING(op)                                                                       \
  {                                                                                           \
    .name = op, .attrs = WEIR_ITERATOR_MAYBE_SPEC, .inputs = "string_handle: string",         \
    .outputs = "resource_handle: resource",                                                   \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,                      \
    .summary = "The iterator that a string names", .infer_shape = weir_iterator_handle_shape, \
    .kernels = WEIR_CPU_KERNEL(.compute = from_string_cpu)                                    \
  }

const weir_op_module_t weir_ops_data_iterator_handle = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "IteratorToStringHandle",
         .inputs = "resource_handle: resource",
         .outputs = "string_handle: string",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "An iterator's handle as a string",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = to_string_cpu)},
        FROM_STRING("IteratorFromStringHandle"),
        FROM_STRING("IteratorFromStringHandleV2"),
        {.name = "IteratorGetDevice",
         .inputs = "resource: resource",
         .outputs = "device: string",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The device that an iterator is on",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = device_cpu)},
        {0}}};
