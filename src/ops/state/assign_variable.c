// assign_variable.c — AssignVariableOp, AssignAddVariableOp, AssignSubVariableOp: writes to
// resource variables.
#include "kernel/elementwise/update_op.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/state/find_variable.h"

#define NUMBER_TYPES                                                                         \
  "dtype: complex128, complex64, double, float, bfloat16, half, int32, int8, uint8, int16, " \
  "uint16, uint32, int64, uint64"

// int32 is the type of shapes and counters, which stay on the host.
#define GPU_TYPES \
  "dtype: double, float, bfloat16, half, int8, uint8, int16, uint16, uint32, int64, uint64"
#define UPDATE_KERNELS(fn)                                                                         \
  ((const weir_kernel_def_t[]){                                                                    \
      {WEIR_DEVICE_CPU, .types = NUMBER_TYPES, .compute = assign_##fn, .host_inputs = "resource"}, \
      {WEIR_DEVICE_GPU, .types = GPU_TYPES, .compute = assign_##fn,                                \
       .init = weir_update_##fn##_gpu, .state_size = sizeof(weir_cuda_elementwise_t),              \
       .host_inputs = "resource"},                                                                 \
      {0}})

// ---- AssignVariableOp ----

static weir_status_t* check_assigned_shape(weir_kernel_ctx_t* ctx, weir_variable_t* variable) {
  weir_tensor_t* old = weir_variable_read(variable);
  const weir_tensor_t* value = weir_kernel_input(ctx, 1);
  char expected[WEIR_SHAPE_TEXT_SIZE], got[WEIR_SHAPE_TEXT_SIZE];
  weir_status_t* status = NULL;
  if (old && !weir_tensor_same_shape(old, value)) {
    status =
        WEIR_STATUS(INVALID_ARGUMENT,
                    "Trying to assign to variable with tensor with wrong shape. Expected %s got %s",
                    weir_tensor_shape_text(old, expected), weir_tensor_shape_text(value, got));
  }
  weir_tensor_release(old);
  return status;
}

static weir_status_t* assign_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* value = weir_kernel_input(ctx, 1);
  weir_dtype_t dtype = weir_attrs_type(weir_kernel_attrs(ctx), "dtype");
  weir_variable_t* variable = NULL;
  if (weir_tensor_type(value) != dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Variable and value dtypes don't match; respectively, %s and %s",
                       weir_dtype_name(dtype), weir_dtype_name(weir_tensor_type(value)));
  }
  WEIR_TRY(weir_state_find_or_create(ctx, dtype, &variable));
  weir_status_t* status = NULL;
  if (variable->dtype != dtype) {
    status = WEIR_STATUS(INVALID_ARGUMENT,
                         "Trying to assign variable with wrong dtype. Expected %s got %s",
                         weir_dtype_name(variable->dtype), weir_dtype_name(dtype));
  } else if (weir_attrs_bool(weir_kernel_attrs(ctx), "validate_shape")) {
    status = check_assigned_shape(ctx, variable);
  }
  // The tensor itself becomes the value: whoever writes next copies it if others still hold it.
  if (!status) status = weir_variable_assign(variable, weir_kernel_take_input(ctx, 1));
  weir_resource_release(&variable->base);
  return status;
}

static weir_status_t* assign_shape(weir_shape_ctx_t* ctx) {
  const weir_handle_info_t* info = ctx->input_handles[0];
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  if (!info) return NULL;
  weir_dtype_t dtype = weir_attrs_type(weir_shape_attrs(ctx), "dtype");
  if (info->dtype != WEIR_DTYPE_INVALID && info->dtype != dtype) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Trying to initialize handle for variable with wrong dtype. Expected %s got %s",
        weir_dtype_name(info->dtype), weir_dtype_name(dtype));
  }
  const weir_shape_t* joined = NULL;
  return info->shape ? weir_shape_join(ctx, info->shape, weir_shape_input(ctx, 1), &joined) : NULL;
}

// ---- AssignAddVariableOp, AssignSubVariableOp ----
static weir_status_t* update_locked(weir_kernel_ctx_t* ctx, weir_variable_t* variable,
                                    weir_update_op_t update) {
  const weir_tensor_t* value = weir_kernel_input(ctx, 1);
  const weir_handle_t* handle = weir_tensor_handle(weir_kernel_input(ctx, 0));
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (!variable->tensor) {
    return WEIR_STATUS(NOT_FOUND, "Resource %s/%s is not initialized",
                       handle ? handle->container : "", handle ? handle->name : "");
  }
  if (variable->tensor->dtype != value->dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Trying to update variable with wrong dtype. Expected %s got %s",
                       weir_dtype_name(weir_tensor_type(variable->tensor)),
                       weir_dtype_name(weir_tensor_type(value)));
  }
  if (!weir_tensor_same_shape(variable->tensor, value)) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Cannot update variable with shape %s using a Tensor with shape %s, shapes must "
        "be equal.",
        weir_tensor_shape_text(variable->tensor, a), weir_tensor_shape_text(value, b));
  }
  WEIR_TRY(weir_variable_make_sole_locked(variable, handle ? handle->name : ctx->node->name));
  return weir_kernel_update(ctx, update, variable->tensor, value);
}

static weir_status_t* update_variable(weir_kernel_ctx_t* ctx, weir_update_op_t update) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_kernel_resource(ctx, 0, &weir_variable_type,
                                &resource));  // NOT_FOUND, as TensorFlow says here
  weir_variable_t* variable = (weir_variable_t*)resource;
  weir_mutex_lock(&variable->mu);
  weir_status_t* status = update_locked(ctx, variable, update);
  weir_mutex_unlock(&variable->mu);
  weir_resource_release(&variable->base);
  return status;
}

static weir_status_t* assign_add(weir_kernel_ctx_t* ctx) {
  return update_variable(ctx, WEIR_UPDATE_ADD);
}
static weir_status_t* assign_sub(weir_kernel_ctx_t* ctx) {
  return update_variable(ctx, WEIR_UPDATE_SUB);
}

const weir_op_module_t weir_ops_state_assign_variable = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "AssignVariableOp",
         .attrs = "dtype: type; validate_shape: bool = false",
         .inputs = "resource: resource; value: dtype",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .summary = "Replaces the value of a variable",
         .infer_shape = assign_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = assign_cpu, .has_device_int32 = true,
                                         .host_inputs = "resource")},
        {.name = "AssignAddVariableOp",
         .summary = "Adds to a variable",
         .attrs = "dtype: type",
         .inputs = "resource: resource; value: dtype",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = assign_shape,
         .kernels = UPDATE_KERNELS(add)},
        {.name = "AssignSubVariableOp",
         .summary = "Subtracts from a variable",
         .attrs = "dtype: type",
         .inputs = "resource: resource; value: dtype",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = assign_shape,
         .kernels = UPDATE_KERNELS(sub)},
        {0}}};
