// kernel.c — What kernels ask of their context: values of small inputs, outputs, scratch memory,
// resources.
#include "op/kernel.h"

#include <inttypes.h>
#include <stdio.h>

// ---- inputs ----

// The name of the argument that tensor |i| of the inputs belongs to, for messages.
static const char* input_name(const weir_kernel_ctx_t* ctx, int i) {
  const weir_op_t* op = ctx->node->op;
  for (int arg = 0; op && arg < op->input_count; ++arg) {
    int first = 0;
    int count = 0;
    weir_node_input_range(ctx->node, arg, &first, &count);
    if (i >= first && i < first + count) return op->inputs[arg].name;
  }
  return "input";
}

static weir_status_t* check_ints(const weir_kernel_ctx_t* ctx, int i, const weir_tensor_t* t) {
  if (t->dtype == WEIR_DTYPE_INT32 || t->dtype == WEIR_DTYPE_INT64) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be int32 or int64, not %s", input_name(ctx, i),
                     weir_dtype_name(weir_tensor_type(t)));
}

weir_status_t* weir_kernel_int(const weir_kernel_ctx_t* ctx, int i, int64_t* out_value) {
  const weir_tensor_t* t = ctx->inputs[i].tensor;
  WEIR_TRY(check_ints(ctx, i, t));
  if (t->count != 1) {
    char shape[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar, not shape %s", input_name(ctx, i),
                       weir_tensor_shape_text(t, shape));
  }
  *out_value = weir_tensor_int_at(t, 0);
  return NULL;
}

weir_status_t* weir_kernel_ints(const weir_kernel_ctx_t* ctx, int i, int64_t* values, int capacity,
                                int* out_count) {
  const weir_tensor_t* t = ctx->inputs[i].tensor;
  WEIR_TRY(check_ints(ctx, i, t));
  if (t->rank > 1) {
    char shape[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a vector, not shape %s", input_name(ctx, i),
                       weir_tensor_shape_text(t, shape));
  }
  if (t->count > capacity) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s has %" PRId64 " elements, at most %d are possible",
                       input_name(ctx, i), t->count, capacity);
  }
  for (int64_t k = 0; k < t->count; ++k) values[k] = weir_tensor_int_at(t, k);
  *out_count = (int)t->count;
  return NULL;
}

weir_status_t* weir_kernel_axis(int64_t axis, int rank, int* out_axis) {
  if (axis < -(int64_t)rank || axis >= rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected dimension in the range [%d, %d), but got %" PRId64, -rank, rank,
                       axis);
  }
  *out_axis = (int)(axis < 0 ? axis + rank : axis);
  return NULL;
}

// ---- outputs ----

WEIR_INLINE weir_dtype_t output_type(const weir_kernel_ctx_t* ctx, int i) {
  return weir_dtype_base(ctx->node->output_types[i]);
}

static weir_allocator_t* output_allocator(const weir_kernel_ctx_t* ctx, int i) {
  bool is_host = !weir_device_is_host(ctx->device) && weir_kernel_is_host_output(ctx, i);
  return weir_device_allocator(ctx->device, is_host ? WEIR_MEMORY_HOST : WEIR_MEMORY_DEVICE);
}

WEIR_INLINE void put_output(weir_kernel_ctx_t* ctx, int i, weir_tensor_t* take_tensor) {
  if (WEIR_UNLIKELY(ctx->outputs[i].tensor)) weir_tensor_release(ctx->outputs[i].tensor);
  ctx->outputs[i].tensor = take_tensor;
}

// What was promised, retained, where it is what the kernel asks for.
static weir_tensor_t* find_promised(const weir_kernel_ctx_t* ctx, int i, int rank,
                                    const int64_t* dims) {
  weir_tensor_t* said = ctx->promised[i].tensor;
  bool is_same = said->rank == rank;
  for (int k = 0; is_same && k < rank; ++k) is_same = said->dims[k] == dims[k];
  return is_same ? weir_tensor_retain_inline(said) : NULL;
}

// Out of the way of kernels on a CPU.
static __attribute__((noinline)) weir_status_t* make_apart(const weir_kernel_ctx_t* ctx, int i,
                                                           int rank, const int64_t* dims,
                                                           weir_tensor_t** out_tensor) {
  *out_tensor = ctx->promised ? find_promised(ctx, i, rank, dims) : NULL;
  if (*out_tensor) return NULL;
  return weir_tensor_create_in(output_allocator(ctx, i), output_type(ctx, i), rank, dims,
                               out_tensor);
}

weir_status_t* weir_kernel_output(weir_kernel_ctx_t* ctx, int i, int rank, const int64_t* dims,
                                  weir_tensor_t** out_tensor) {
  weir_tensor_t* tensor = NULL;
  weir_allocator_t* allocator = weir_device_allocator(ctx->device, WEIR_MEMORY_DEVICE);
  if (WEIR_LIKELY(!ctx->promised && allocator == weir_host_allocator()))
    WEIR_TRY(weir_tensor_create(output_type(ctx, i), rank, dims, &tensor));
  else WEIR_TRY(make_apart(ctx, i, rank, dims, &tensor));
  put_output(ctx, i, tensor);
  *out_tensor = tensor;
  return NULL;
}

static bool is_same_memory(const weir_kernel_ctx_t* ctx, int i, const weir_tensor_t* t) {
  return weir_device_is_host(ctx->device) ||
         output_allocator(ctx, i)->space == weir_tensor_space(t);
}

// The input's memory under another type or shape. The input keeps its place, so it can still be
// read.
static weir_status_t* forward_view(weir_kernel_ctx_t* ctx, int from, int i, int rank,
                                   const int64_t* dims, weir_tensor_t** out_tensor) {
  weir_tensor_t* t = ctx->inputs[from].tensor;
  weir_dtype_t dtype = output_type(ctx, i);
  int64_t count = 0;
  WEIR_TRY(weir_shape_count(dtype, rank, dims, &count));
  bool fits = count == t->count && weir_dtype_size(dtype) == weir_dtype_size(weir_tensor_type(t)) &&
              weir_dtype_is_plain(dtype) && weir_dtype_is_plain(weir_tensor_type(t));
  if (!fits) return weir_kernel_output(ctx, i, rank, dims, out_tensor);
  weir_tensor_t* view = NULL;
  WEIR_TRY(weir_tensor_view_as(t, dtype, rank, dims, &view));
  put_output(ctx, i, view);
  *out_tensor = view;
  return NULL;
}

weir_status_t* weir_kernel_forward(weir_kernel_ctx_t* ctx, int from, int i, int rank,
                                   const int64_t* dims, weir_tensor_t** out_tensor) {
  weir_tensor_t* t = ctx->inputs[from].tensor;
  // Where the output's memory is there already, taking the input's would only mean a copy.
  if (!t || !weir_tensor_is_sole(t) || ctx->promised || !is_same_memory(ctx, i, t)) {
    return weir_kernel_output(ctx, i, rank, dims, out_tensor);
  }
  bool is_same = t->dtype == output_type(ctx, i) && t->rank == rank;
  for (int k = 0; is_same && k < rank; ++k) is_same = t->dims[k] == dims[k];
  if (!is_same) return forward_view(ctx, from, i, rank, dims, out_tensor);
  ctx->inputs[from].tensor = NULL;
  put_output(ctx, i, t);
  *out_tensor = t;
  return NULL;
}

weir_status_t* weir_kernel_check_outputs(const weir_kernel_ctx_t* ctx) {
  for (int i = 0; i < ctx->output_count; ++i) {
    if (!ctx->outputs[i].tensor)
      return WEIR_STATUS(INTERNAL, "Missing %d-th output from {{node %s}}", i, ctx->node->name);
  }
  return NULL;
}

weir_status_t* weir_kernel_output_int(weir_kernel_ctx_t* ctx, int i, int64_t value) {
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_kernel_output(ctx, i, 0, NULL, &tensor));
  if (tensor->dtype == WEIR_DTYPE_INT32) {
    if (value != (int32_t)value) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%" PRId64 " does not fit an int32 output", value);
    }
    *WEIR_TENSOR_DATA(tensor, int32_t) = (int32_t)value;
  } else {
    *WEIR_TENSOR_DATA(tensor, int64_t) = value;
  }
  return NULL;
}

weir_status_t* weir_kernel_output_bool(weir_kernel_ctx_t* ctx, int i, bool value) {
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_kernel_output(ctx, i, 0, NULL, &tensor));
  *WEIR_TENSOR_DATA(tensor, bool) = value;
  return NULL;
}

void weir_kernel_set_ref(weir_kernel_ctx_t* ctx, int i, weir_variable_t* variable) {
  weir_resource_retain(&variable->base);
  ctx->outputs[i].ref = variable;
}

weir_status_t* weir_kernel_scratch(weir_kernel_ctx_t* ctx, weir_dtype_t dtype, int64_t count,
                                   weir_tensor_t** out_tensor) {
  weir_memory_t memory = weir_dtype_is_plain(dtype) ? WEIR_MEMORY_DEVICE : WEIR_MEMORY_HOST;
  return weir_tensor_create_in(weir_device_allocator(ctx->device, memory), dtype, 1, &count,
                               out_tensor);
}

// ---- resources ----

weir_status_t* weir_kernel_step_resources(const weir_kernel_ctx_t* ctx,
                                          weir_resources_t** out_manager) {
  weir_step_t* step = ctx->step;
  if (!step->resources) WEIR_TRY(weir_resources_create(WEIR_STEP_CONTAINER, &step->resources));
  *out_manager = step->resources;
  return NULL;
}

// A function may be handed what belongs to another device than its own: that will do where both
// compute in the same memory.
weir_status_t* weir_kernel_manager(const weir_kernel_ctx_t* ctx, const weir_handle_t* handle,
                                   weir_resources_t** out_manager) {
  const weir_step_t* step = ctx->step;
  if (strcmp(handle->container, WEIR_STEP_CONTAINER) == 0)
    return weir_kernel_step_resources(ctx, out_manager);
  *out_manager = weir_kernel_resources(ctx);
  if (step->device_count < 2) return NULL;
  for (int i = 0; i < step->device_count; ++i) {
    const weir_device_t* device = step->devices[i];
    if (device == ctx->device || strcmp(handle->device, device->name)) continue;
    if (!weir_device_is_host(device) || !weir_device_is_host(ctx->device))
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Trying to access resource %s located in device %s from device %s",
                         handle->name, device->name, ctx->device->name);
    *out_manager = weir_resources_of(step->session_resources, i);
  }
  return NULL;
}

static weir_status_t* input_handle(const weir_kernel_ctx_t* ctx, int i, weir_handle_t** out) {
  const weir_tensor_t* t = ctx->inputs[i].tensor;
  weir_handle_t* handle = t ? weir_tensor_handle(t) : NULL;
  if (!handle) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s of node '%s' is not a resource handle",
                       input_name(ctx, i), ctx->node->name);
  }
  *out = handle;
  return NULL;
}

static weir_status_t* resource_of(const weir_kernel_ctx_t* ctx, weir_handle_t* handle,
                                  const weir_resource_type_t* type, weir_resource_t** out) {
  if (!handle->object) {
    weir_resources_t* manager = NULL;
    WEIR_TRY(weir_kernel_manager(ctx, handle, &manager));
    return weir_resources_find(manager, weir_view_of(handle->container), weir_view_of(handle->name),
                               type, out);
  }
  weir_resource_t* resource = handle->object;
  if (resource->type != type) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Trying to access a handle's resource using the wrong type. The handle "
                       "points to a resource (name '%s') of type '%s' but you are trying to access "
                       "the resource as type '%s'",
                       handle->name, resource->type->name, type->name);
  }
  *out = weir_resource_retain(resource);
  return NULL;
}

weir_status_t* weir_kernel_resource(weir_kernel_ctx_t* ctx, int i, const weir_resource_type_t* type,
                                    weir_resource_t** out_resource) {
  weir_handle_t* handle = NULL;
  WEIR_TRY(input_handle(ctx, i, &handle));
  return resource_of(ctx, handle, type, out_resource);
}

weir_status_t* weir_kernel_variable(weir_kernel_ctx_t* ctx, int i, weir_variable_t** out_variable) {
  weir_variable_t* variable = ctx->inputs[i].ref;
  if (variable) {
    weir_resource_retain(&variable->base);
    *out_variable = variable;
    return NULL;
  }
  weir_handle_t* handle = NULL;
  WEIR_TRY(input_handle(ctx, i, &handle));
  weir_resource_t* resource = NULL;
  weir_status_t* status = resource_of(ctx, handle, &weir_variable_type, &resource);
  if (!status) {
    *out_variable = (weir_variable_t*)resource;
    return NULL;
  }
  if (weir_status_code(status) != WEIR_NOT_FOUND) return status;
  weir_status_t* error = WEIR_STATUS(
      FAILED_PRECONDITION,
      "Could not find variable %s. This could mean that the variable has been deleted. In TF1, it "
      "can also mean the variable is uninitialized. Debug info: container=%s, status error "
      "message=%s",
      handle->name, handle->container, weir_status_message(status));
  weir_status_destroy(status);
  return error;
}

weir_status_t* weir_kernel_live_variable(weir_kernel_ctx_t* ctx, int i,
                                         weir_variable_t** out_variable) {
  if (weir_kernel_input_ref(ctx, i)) return weir_kernel_variable(ctx, i, out_variable);
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_kernel_resource(ctx, i, &weir_variable_type, &resource));
  weir_variable_t* variable = (weir_variable_t*)resource;
  weir_mutex_lock(&variable->mu);
  bool is_initialized = variable->tensor != NULL;
  weir_mutex_unlock(&variable->mu);
  if (is_initialized) {
    *out_variable = variable;
    return NULL;
  }
  weir_resource_release(resource);
  return WEIR_STATUS(NOT_FOUND, "Could not find resource: the variable of %s is uninitialized",
                     ctx->node->name);
}

weir_status_t* weir_kernel_update_variable(weir_kernel_ctx_t* ctx, weir_variable_t* take_variable,
                                           weir_variable_fn_t fn, int mode) {
  weir_mutex_lock(&take_variable->mu);
  weir_status_t* status = fn(ctx, take_variable, mode);
  weir_mutex_unlock(&take_variable->mu);
  if (!status && ctx->output_count > 0) weir_kernel_set_ref(ctx, 0, take_variable);
  weir_resource_release(&take_variable->base);
  return status;
}

weir_status_t* weir_kernel_unique_name(weir_kernel_ctx_t* ctx, const char* prefix, char* buffer,
                                       size_t size) {
  // Relaxed: only distinctness matters, nothing is published by the number.
  long long id = atomic_fetch_add_explicit(&ctx->step->next_id, 1, memory_order_relaxed);
  int length = snprintf(buffer, size, "%s_%lld", prefix, id);
  if (length < 0 || (size_t)length >= size) {
    return WEIR_STATUS(INVALID_ARGUMENT, "the name '%s' is too long", prefix);
  }
  return NULL;
}
