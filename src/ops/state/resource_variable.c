// resource_variable.c — VarHandleOp and what reads, asks about or destroys the variable behind a
// handle.
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"
#include "op/shared_handle.h"

#define VAR_TYPE_NAME "N10tensorflow3VarE"
// A shared_name of this value asks for a variable nobody else can name: it lives as long as its
// handle.
#define ANONYMOUS_NAME "cd2c89b7-88b7-44c8-ad83-06c2a9158347"

// ---- VarHandleOp ----
typedef struct var_handle_state_t {
  weir_shared_handle_t handle;
  bool is_anonymous;
} var_handle_state_t;

static weir_status_t* var_handle_init(const weir_kernel_init_t* init, void* state) {
  var_handle_state_t* s = state;
  WEIR_TRY(weir_shared_handle_init(init, VAR_TYPE_NAME, &s->handle));
  s->is_anonymous = strcmp(s->handle.name, ANONYMOUS_NAME) == 0;
  return NULL;
}

static void var_handle_deinit(void* state) {
  weir_shared_handle_deinit(&((var_handle_state_t*)state)->handle);
}

static void release_variable(void* object) { weir_resource_release(object); }

static weir_status_t* set_anonymous(weir_kernel_ctx_t* ctx, const var_handle_state_t* s) {
  const weir_handle_t* like = weir_tensor_handle(s->handle.tensor);
  weir_handle_t* handle = NULL;
  weir_variable_t* variable = NULL;
  weir_tensor_t* tensor = NULL;
  weir_status_t* status =
      weir_handle_create(like->device, like->container, like->name, like->type_name, &handle);
  if (status) goto done;
  handle->dtype = like->dtype;
  handle->shape = weir_shape_clone(like->shape);
  if (!handle->shape) status = weir_out_of_memory();
  if (!status) status = weir_variable_create(like->dtype, like->shape, &variable);
  if (status) goto done;
  handle->object = variable;
  handle->release_object = release_variable;
  status = weir_tensor_create_handle(handle, &tensor);
  if (!status) weir_kernel_set(ctx, 0, tensor);
done:
  weir_handle_release(handle);
  return status;
}

static weir_status_t* var_handle_cpu(weir_kernel_ctx_t* ctx) {
  const var_handle_state_t* s = ctx->state;
  if (WEIR_UNLIKELY(s->is_anonymous)) return set_anonymous(ctx, s);
  weir_shared_handle_set(ctx, &s->handle);
  return NULL;
}

static weir_status_t* var_handle_shape(weir_shape_ctx_t* ctx) {
  weir_attrs_t attrs = weir_shape_attrs(ctx);
  WEIR_TRY(weir_shape_set_scalar(ctx, 0));
  return weir_shape_set_handle(ctx, 0, weir_attrs_type(attrs, "dtype"),
                               weir_attrs_shape(attrs, "shape"));
}

// ---- ReadVariableOp ----
static weir_status_t* read_cpu(weir_kernel_ctx_t* ctx) {
  weir_variable_t* variable = NULL;
  WEIR_TRY(weir_kernel_variable(ctx, 0, &variable));
  weir_tensor_t* value = NULL;
  weir_dtype_t dtype = ctx->node->output_types[0];
  weir_status_t* status = weir_variable_snapshot(variable, &value);
  if (status) {
    weir_resource_release(&variable->base);
    return status;
  }
  if (!value) {
    const weir_handle_t* handle = weir_tensor_handle(weir_kernel_input(ctx, 0));
    status = WEIR_STATUS(
        FAILED_PRECONDITION,
        "Error while reading resource variable %s from Container: %s. This could mean that the "
        "variable was uninitialized.",
        handle ? handle->name : "", handle ? handle->container : "");
  } else if (weir_tensor_type(value) != dtype) {
    status = WEIR_STATUS(INVALID_ARGUMENT,
                         "Trying to read variable with wrong dtype. Expected %s got %s",
                         weir_dtype_name(dtype), weir_dtype_name(weir_tensor_type(value)));
    weir_tensor_release(value);
  } else {
    weir_kernel_set(ctx, 0, value);
  }
  weir_resource_release(&variable->base);
  return status;
}

static weir_status_t* read_shape(weir_shape_ctx_t* ctx) {
  const weir_handle_info_t* info = ctx->input_handles[0];
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  if (!info) return NULL;
  weir_dtype_t dtype = weir_attrs_type(weir_shape_attrs(ctx), "dtype");
  if (info->dtype != WEIR_DTYPE_INVALID && info->dtype != dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Trying to read variable with wrong dtype. Expected %s got %s",
                       weir_dtype_name(info->dtype), weir_dtype_name(dtype));
  }
  return info->shape ? weir_shape_set(ctx, 0, info->shape) : NULL;
}

static weir_status_t* read_grad(weir_grad_ctx_t* g) {  // slices stay slices
  return weir_grad_set_value(g, 0, weir_grad_dy_value(g, 0));
}

// ---- VarIsInitializedOp ----
static weir_status_t* is_initialized_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* resource = NULL;
  weir_status_t* status = weir_kernel_resource(ctx, 0, &weir_variable_type, &resource);
  bool is_initialized = false;
  if (status) {
    if (weir_status_code(status) != WEIR_NOT_FOUND) return status;
    weir_status_destroy(status);
  } else {
    weir_tensor_t* value = weir_variable_read((weir_variable_t*)resource);
    is_initialized = value != NULL;
    weir_tensor_release(value);
    weir_resource_release(resource);
  }
  return weir_kernel_output_bool(ctx, 0, is_initialized);
}

// ---- VariableShape ----
static weir_status_t* variable_shape_cpu(weir_kernel_ctx_t* ctx) {
  weir_variable_t* variable = NULL;
  weir_status_t* status = weir_kernel_variable(ctx, 0, &variable);
  if (status && weir_status_code(status) == WEIR_FAILED_PRECONDITION) {
    // Here alone a variable that does not exist is NOT_FOUND.
    weir_status_t* missing = WEIR_STATUS(NOT_FOUND, "%s", weir_status_message(status));
    weir_status_destroy(status);
    return missing;
  }
  if (status) return status;
  weir_tensor_t* value = weir_variable_read(variable);
  weir_tensor_t* out = NULL;
  if (!value) {
    status = WEIR_STATUS(FAILED_PRECONDITION, "Shape of an uninitialized variable asked for by %s",
                         ctx->node->name);
    goto done;
  }
  status = weir_kernel_output(ctx, 0, 1, (const int64_t[]){value->rank}, &out);
  if (status) goto done;
  for (int i = 0; i < value->rank; ++i) {
    if (out->dtype == WEIR_DTYPE_INT64) {
      WEIR_TENSOR_DATA(out, int64_t)[i] = value->dims[i];
    } else if (value->dims[i] <= INT32_MAX) {
      WEIR_TENSOR_DATA(out, int32_t)[i] = (int32_t)value->dims[i];
    } else {
      status =
          WEIR_STATUS(INVALID_ARGUMENT, "Dimension %d of the variable does not fit into int32", i);
      goto done;
    }
  }
done:
  weir_tensor_release(value);
  weir_resource_release(&variable->base);
  return status;
}

static weir_status_t* variable_shape_shape(weir_shape_ctx_t* ctx) {
  const weir_handle_info_t* info = ctx->input_handles[0];
  if (!info || !info->shape || info->shape->rank < 0) return weir_shape_set_vector(ctx, 0, -1);
  ctx->output_values_as_shape[0] = info->shape;
  return weir_shape_set_vector(ctx, 0, info->shape->rank);
}

// ---- DestroyResourceOp ----
static weir_status_t* destroy_cpu(weir_kernel_ctx_t* ctx) {
  const weir_handle_t* handle = weir_tensor_handle(weir_kernel_input(ctx, 0));
  if (!handle) return WEIR_STATUS(INVALID_ARGUMENT, "%s needs a resource handle", ctx->node->name);
  if (handle->object) return NULL;  // lives as long as its handles
  weir_resources_t* manager = NULL;
  WEIR_TRY(weir_kernel_manager(ctx, handle, &manager));
  const weir_resource_type_t type = {.name = handle->type_name};  // the manager goes by the name
  weir_status_t* status = weir_resources_remove(manager, weir_view_of(handle->container),
                                                weir_view_of(handle->name), &type);
  if (status && weir_status_code(status) == WEIR_NOT_FOUND &&
      weir_attrs_bool(weir_kernel_attrs(ctx), "ignore_lookup_error")) {
    weir_status_destroy(status);
    status = NULL;
  }
  return status;
}

// Reads never copy here, so there is nothing to disable.
static weir_status_t* disable_copy_cpu(weir_kernel_ctx_t* ctx) {
  weir_variable_t* variable = NULL;
  WEIR_TRY(weir_kernel_variable(ctx, 0, &variable));
  weir_resource_release(&variable->base);
  return NULL;
}

const weir_op_module_t weir_ops_state_resource_variable = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "VarHandleOp",
         .attrs = "container: string = ''; shared_name: string = ''; debug_name: string = ''; "
                  "dtype: type; shape: shape; "
                  "allowed_devices: list(string) = []",
         .outputs = "resource: resource",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .role = WEIR_ROLE_VARIABLE,
         .summary = "Names a variable",
         .infer_shape = var_handle_shape,
         .kernels = (const weir_kernel_def_t[])WEIR_VARIABLE_KERNELS(
                 .compute = var_handle_cpu, .state_size = sizeof(var_handle_state_t),
                 .init = var_handle_init, .deinit = var_handle_deinit, .host_outputs = "resource")},
        {.name = "ReadVariableOp",
         .attrs = "dtype: type",
         .inputs = "resource: resource",
         .outputs = "value: dtype",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP | WEIR_OP_SNAPSHOT | WEIR_OP_READ_ONLY,
         .summary = "The value of a variable, as a snapshot",
         .infer_shape = read_shape,
         .build_grad = read_grad,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = read_cpu, .has_device_int32 = true,
                                         .host_inputs = "resource")},
        {.name = "VarIsInitializedOp",
         .summary = "Whether a variable has a value",
         .inputs = "resource: resource",
         .outputs = "is_initialized: bool",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP | WEIR_OP_READ_ONLY,
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = is_initialized_cpu, .host_inputs = "resource",
                                         .host_outputs = "is_initialized")},
        {.name = "VariableShape",
         .summary = "The shape of a variable as it is now",
         .attrs = "out_type: {int32, int64} = DT_INT32",
         .inputs = "input: resource",
         .outputs = "output: out_type",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP | WEIR_OP_NO_GRADIENT | WEIR_OP_READ_ONLY,
         .infer_shape = variable_shape_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = variable_shape_cpu, .host_inputs = "input",
                                         .host_outputs = "output")},
        {.name = "DestroyResourceOp",
         .summary = "Ends a resource: its name can be given to another",
         .attrs = "ignore_lookup_error: bool = true",
         .inputs = "resource: resource",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = destroy_cpu, .host_inputs = "resource")},
        {.name = "DisableCopyOnRead",
         .summary = "Nothing: reads of a variable copy where they must",
         .inputs = "resource: resource",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute = disable_copy_cpu, .host_inputs = "resource")},
        {0}}};
