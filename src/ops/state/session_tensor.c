// session_tensor.c — GetSessionHandle, GetSessionHandleV2, GetSessionTensor, DeleteSessionTensor:
// tensors that a session keeps between steps, under names that it makes.
#include <stdatomic.h>
#include <stdio.h>

#include "base/alloc.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "tensor/handle.h"

#define CONTAINER "__session_tensors__"
#define TYPE_NAME "TensorHandle"

typedef struct kept_t {
  weir_resource_t base;
  weir_tensor_t* tensor;
} kept_t;

static void kept_destroy(weir_resource_t* resource) {
  kept_t* kept = (kept_t*)resource;
  weir_tensor_release(kept->tensor);
  weir_free(kept);
}

static const weir_resource_type_t kept_type = {.name = TYPE_NAME, .destroy = kept_destroy};

// Keeps input 0 under "node;number;device".
static weir_status_t* keep(weir_kernel_ctx_t* ctx, char* name, size_t size) {
  static atomic_llong next = 0;
  snprintf(name, size, "%.200s;%lld;%.200s", ctx->node->name, (long long)atomic_fetch_add(&next, 1),
           ctx->device->name);
  weir_tensor_t* value = weir_kernel_take_input(ctx, 0);
  weir_status_t* status = weir_tensor_freeze(&value);
  kept_t* kept = status ? NULL : weir_calloc(1, sizeof(*kept));
  if (!kept) {
    weir_tensor_release(value);
    return status ? status : weir_out_of_memory();
  }
  weir_resource_init(&kept->base, &kept_type);
  kept->tensor = value;
  return weir_resources_add(weir_kernel_resources(ctx), weir_view_of(CONTAINER), weir_view_of(name),
                            &kept->base);
}

static weir_status_t* handle_cpu(weir_kernel_ctx_t* ctx) {
  char name[480];
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 0, NULL, &out));
  WEIR_TRY(keep(ctx, name, sizeof(name)));
  return weir_string_set(out->data, name, strlen(name));
}

static weir_status_t* handle_v2_cpu(weir_kernel_ctx_t* ctx) {
  char name[480];
  weir_handle_t* handle = NULL;
  weir_tensor_t* out = NULL;
  WEIR_TRY(keep(ctx, name, sizeof(name)));
  WEIR_TRY(weir_handle_create(ctx->device->name, CONTAINER, name, TYPE_NAME, &handle));
  weir_status_t* status = weir_tensor_create_handle(handle, &out);
  weir_handle_release(handle);
  if (!status) weir_kernel_set(ctx, 0, out);
  return status;
}

static weir_status_t* read_name(const weir_kernel_ctx_t* ctx, weir_view_t* out_name) {
  const weir_tensor_t* handle = weir_kernel_input(ctx, 0);
  if (handle->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "The handle must be a scalar");
  }
  *out_name = weir_string_view(handle->data);
  return NULL;
}

static weir_status_t* unknown(weir_status_t* take_status, weir_view_t name) {
  if (weir_status_code(take_status) != WEIR_NOT_FOUND) return take_status;
  weir_status_destroy(take_status);
  return WEIR_STATUS(INVALID_ARGUMENT, "The tensor with handle '%.*s' is not in the session store.",
                     WEIR_VIEW_ARG(name));
}

static weir_status_t* tensor_cpu(weir_kernel_ctx_t* ctx) {
  const weir_dtype_t wanted = weir_attrs_type(weir_kernel_attrs(ctx), "dtype");
  weir_resource_t* resource = NULL;
  weir_view_t name;
  WEIR_TRY(read_name(ctx, &name));
  weir_status_t* status = weir_resources_find(weir_kernel_resources(ctx), weir_view_of(CONTAINER),
                                              name, &kept_type, &resource);
  if (status) return unknown(status, name);
  weir_tensor_t* tensor = ((kept_t*)resource)->tensor;
  if (weir_tensor_type(tensor) == wanted) {
    weir_kernel_set(ctx, 0, weir_tensor_retain(tensor));
  } else {
    status = WEIR_STATUS(INTERNAL, "Output 0 of type %s does not match declared output type %s",
                         weir_dtype_name(weir_tensor_type(tensor)), weir_dtype_name(wanted));
  }
  weir_resource_release(resource);
  return status;
}

static weir_status_t* delete_cpu(weir_kernel_ctx_t* ctx) {
  weir_view_t name;
  WEIR_TRY(read_name(ctx, &name));
  return unknown(
      weir_resources_remove(weir_kernel_resources(ctx), weir_view_of(CONTAINER), name, &kept_type),
      name);
}

static weir_status_t* tensor_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL);
}

const weir_op_module_t weir_ops_state_session_tensor = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "GetSessionHandle",
                                    .attrs = "T: type",
                                    .inputs = "value: T",
                                    .outputs = "handle: string",
                                    .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
                                    .summary = "Keeps a tensor in the session, under a name",
                                    .infer_shape = weir_shape_fn_scalar,
                                    .kernels = WEIR_CPU_KERNEL(.compute = handle_cpu)},
                                   {.name = "GetSessionHandleV2",
                                    .attrs = "T: type",
                                    .inputs = "value: T",
                                    .outputs = "handle: resource",
                                    .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
                                    .summary = "Keeps a tensor in the session, under a handle",
                                    .infer_shape = weir_shape_fn_scalar,
                                    .kernels = WEIR_CPU_KERNEL(.compute = handle_v2_cpu)},
                                   {.name = "GetSessionTensor",
                                    .attrs = "dtype: type",
                                    .inputs = "handle: string",
                                    .outputs = "value: dtype",
                                    .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
                                    .summary = "A tensor that the session keeps",
                                    .infer_shape = tensor_shape,
                                    .kernels = WEIR_CPU_KERNEL(.compute = tensor_cpu)},
                                   {.name = "DeleteSessionTensor",
                                    .inputs = "handle: string",
                                    .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
                                    .summary = "Drops a tensor that the session keeps",
                                    .infer_shape = tensor_shape,
                                    .kernels = WEIR_CPU_KERNEL(.compute = delete_cpu)},
                                   {0}}};
