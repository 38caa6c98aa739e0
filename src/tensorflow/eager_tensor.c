// eager_tensor.c — TFE_TensorHandle: a tensor and the device that it is on.
#include <stdio.h>

#include "tensorflow/eager_internal.h"

#define FIRST_CPU "/job:localhost/replica:0/task:0/device:CPU:0"

// ---- handles ----

weir_status_t* tfe_handle_create(weir_eager_t* eager, int device, weir_tensor_t* take_tensor,
                                 TFE_TensorHandle** out_handle) {
  TFE_TensorHandle* handle = weir_calloc(1, sizeof(*handle));
  if (!handle) {
    weir_tensor_release(take_tensor);
    return weir_out_of_memory();
  }
  weir_ref_init(&handle->ref);
  handle->tensor = take_tensor;
  handle->eager = eager ? weir_eager_ref(eager) : NULL;
  handle->device = device;
  *out_handle = handle;
  return NULL;
}

TFE_TensorHandle* tfe_handle_ref(TFE_TensorHandle* handle) {
  weir_ref_inc(&handle->ref, 1);
  return handle;
}

void TFE_DeleteTensorHandle(TFE_TensorHandle* h) {
  if (!h || !weir_ref_dec(&h->ref)) return;
  weir_tensor_release(h->tensor);
  weir_eager_unref(h->eager);
  weir_free(h);
}

TFE_TensorHandle* TFE_NewTensorHandle(const TF_Tensor* t, TF_Status* status) {
  weir_tensor_t* tensor = NULL;
  TFE_TensorHandle* handle = NULL;
  weir_status_t* result = tf_tensor_in(t, &tensor);
  if (!result) result = tfe_handle_create(NULL, 0, tensor, &handle);
  tf_status_take(status, result);
  return handle;
}

TFE_TensorHandle* TFE_NewTensorHandleFromTensor(TFE_Context* ctx, TF_Tensor* t, TF_Status* status) {
  (void)ctx;
  return TFE_NewTensorHandle(t, status);
}

TFE_TensorHandle* TFE_TensorHandleCopySharingTensor(TFE_TensorHandle* h, TF_Status* status) {
  TFE_TensorHandle* copy = NULL;
  weir_status_t* result = TFE_REQUIRE(h, "handle");
  if (!result)
    result = tfe_handle_create(h->eager, h->device, weir_tensor_retain(h->tensor), &copy);
  tf_status_take(status, result);
  return copy;
}

// ---- looking ----

TF_DataType TFE_TensorHandleDataType(TFE_TensorHandle* h) {
  return (TF_DataType)weir_tensor_type(h->tensor);
}

static bool check(TFE_TensorHandle* h, TF_Status* status) {
  return tf_status_take(status, TFE_REQUIRE(h, "handle"));
}

int TFE_TensorHandleNumDims(TFE_TensorHandle* h, TF_Status* status) {
  return check(h, status) ? h->tensor->rank : -1;
}

int64_t TFE_TensorHandleNumElements(TFE_TensorHandle* h, TF_Status* status) {
  return check(h, status) ? h->tensor->count : -1;
}

int64_t TFE_TensorHandleDim(TFE_TensorHandle* h, int dim_index, TF_Status* status) {
  if (!check(h, status)) return -1;
  if (dim_index >= 0 && dim_index < h->tensor->rank) return h->tensor->dims[dim_index];
  tf_status_take(status, WEIR_STATUS(INVALID_ARGUMENT, "dimension %d of a tensor of rank %d",
                                     dim_index, h->tensor->rank));
  return -1;
}

static const weir_device_t* device_of(const TFE_TensorHandle* h) {
  return h->eager ? h->eager->runtime->devices[h->device] : NULL;
}

const char* TFE_TensorHandleDeviceName(TFE_TensorHandle* h, TF_Status* status) {
  if (!check(h, status)) return NULL;
  const weir_device_t* device = device_of(h);
  return device ? device->name : FIRST_CPU;
}

const char* TFE_TensorHandleBackingDeviceName(TFE_TensorHandle* h, TF_Status* status) {
  if (!check(h, status)) return NULL;
  const weir_space_t* space = weir_tensor_space(h->tensor);
  bool is_own = space != &weir_host_space && space->device;
  if (is_own) return space->device->name;
  return h->eager ? h->eager->runtime->devices[0]->name : FIRST_CPU;
}

const char* TFE_TensorHandleDeviceType(TFE_TensorHandle* h, TF_Status* status) {
  if (!check(h, status)) return NULL;
  const weir_device_t* device = device_of(h);
  return device ? device->type : WEIR_DEVICE_CPU;
}

int TFE_TensorHandleDeviceID(TFE_TensorHandle* h, TF_Status* status) {
  const char* name = TFE_TensorHandleDeviceName(h, status);
  const char* number = name ? strrchr(name, ':') : NULL;
  int64_t id = -1;
  bool is_there = number && weir_parse_int64(weir_view_of(number + 1), &id);
  return is_there ? (int)id : -1;
}

void TFE_TensorHandleGetStatus(TFE_TensorHandle* h, TF_Status* status) { check(h, status); }

void* TFE_TensorHandleDevicePointer(TFE_TensorHandle* h, TF_Status* status) {
  return check(h, status) ? h->tensor->data : NULL;
}

size_t TFE_TensorHandleDeviceMemorySize(TFE_TensorHandle* h, TF_Status* status) {
  return check(h, status) ? weir_tensor_byte_size(h->tensor) : 0;
}

// ---- to and from devices ----

TF_Tensor* TFE_TensorHandleResolve(TFE_TensorHandle* h, TF_Status* status) {
  weir_tensor_t* host = NULL;
  TF_Tensor* tensor = NULL;
  weir_status_t* result = TFE_REQUIRE(h, "handle");
  if (!result && h->eager)
    result = weir_eager_move(h->eager, h->tensor, h->device, WEIR_EAGER_HOST, &host);
  else if (!result) host = weir_tensor_retain(h->tensor);
  if (!result) result = tf_tensor_out(host, &tensor);
  tf_status_take(status, result);
  return tensor;
}

weir_status_t* tfe_device_parse(const char* text, weir_device_name_t* out_name) {
  char whole[128];
  bool is_short = *text && *text != '/';
  if (is_short) snprintf(whole, sizeof(whole), "/device:%s", text);
  return weir_device_name_parse(weir_view_of(is_short ? whole : text), out_name);
}

static weir_status_t* find_device(const TFE_Context* ctx, const char* text, int* out_device) {
  weir_device_name_t name;
  WEIR_TRY(tfe_device_parse(text, &name));
  *out_device = weir_runtime_find(ctx->eager->runtime, &name);
  if (*out_device >= 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s unknown device.", text);
}

TFE_TensorHandle* TFE_TensorHandleCopyToDevice(TFE_TensorHandle* h, TFE_Context* ctx,
                                               const char* device_name, TF_Status* status) {
  weir_tensor_t* moved = NULL;
  TFE_TensorHandle* copy = NULL;
  int to = 0;
  weir_status_t* result = TFE_REQUIRE(h, "handle");
  if (!result) result = find_device(ctx, device_name, &to);
  if (!result) result = weir_eager_move(ctx->eager, h->tensor, h->device, to, &moved);
  if (!result) result = tfe_handle_create(ctx->eager, to, moved, &copy);
  tf_status_take(status, result);
  return copy;
}

// The memory stays the caller's where it could not be wrapped.
static weir_status_t* wrap_host(weir_dtype_t dtype, const int64_t* dims, int rank, void* data,
                                size_t size, weir_deallocator_fn_t deallocator, void* arg,
                                weir_tensor_t** out_tensor) {
  int64_t count = 0;
  if (!weir_dtype_is_plain(dtype))
    return WEIR_STATUS(INVALID_ARGUMENT, "%s has no memory of its own", weir_dtype_name(dtype));
  WEIR_TRY(weir_shape_count(dtype, rank, dims, &count));
  if (size < (size_t)count * weir_dtype_size(dtype))
    return WEIR_STATUS(INVALID_ARGUMENT, "%zu bytes are too few for %lld elements of %s", size,
                       (long long)count, weir_dtype_name(dtype));
  return weir_tensor_wrap(dtype, rank, dims, data, size, deallocator, arg, out_tensor);
}

TFE_TensorHandle* TFE_NewTensorHandleFromDeviceMemory(
    TFE_Context* ctx, const char* device_name, TF_DataType dtype, const int64_t* dims, int num_dims,
    void* data, size_t len, void (*deallocator)(void* data, size_t len, void* arg),
    void* deallocator_arg, TF_Status* status) {
  weir_tensor_t* tensor = NULL;
  TFE_TensorHandle* handle = NULL;
  int device = 0;
  weir_status_t* result = find_device(ctx, device_name, &device);
  if (!result && !weir_device_is_host(ctx->eager->runtime->devices[device]))
    result = WEIR_STATUS(UNIMPLEMENTED, "memory of %s cannot be handed in", device_name);
  if (!result)
    result = wrap_host((weir_dtype_t)dtype, dims, num_dims, data, len, deallocator, deallocator_arg,
                       &tensor);
  if (!result) result = tfe_handle_create(ctx->eager, device, tensor, &handle);
  tf_status_take(status, result);
  return handle;
}

TF_Tensor* TFE_AllocateHostTensor(TFE_Context* ctx, TF_DataType dtype, const int64_t* dims,
                                  int num_dims, TF_Status* status) {
  (void)ctx;
  weir_tensor_t* tensor = NULL;
  TF_Tensor* handle = NULL;
  weir_status_t* result = weir_tensor_create((weir_dtype_t)dtype, num_dims, dims, &tensor);
  if (!result) result = tf_tensor_out(tensor, &handle);
  tf_status_take(status, result);
  return handle;
}

// ---- debug information ----

struct TFE_TensorDebugInfo {
  int rank;
  int64_t dims[];
};

TFE_TensorDebugInfo* TFE_TensorHandleTensorDebugInfo(TFE_TensorHandle* h, TF_Status* status) {
  if (!check(h, status)) return NULL;
  size_t rank = h->tensor->rank;
  TFE_TensorDebugInfo* info = weir_malloc(sizeof(*info) + rank * sizeof(int64_t));
  if (!tf_status_take(status, info ? NULL : weir_out_of_memory()) || !info) return NULL;
  info->rank = (int)rank;
  if (rank) memcpy(info->dims, h->tensor->dims, rank * sizeof(int64_t));
  return info;
}

void TFE_DeleteTensorDebugInfo(TFE_TensorDebugInfo* debug_info) { weir_free(debug_info); }
int TFE_TensorDebugInfoOnDeviceNumDims(TFE_TensorDebugInfo* debug_info) { return debug_info->rank; }

int64_t TFE_TensorDebugInfoOnDeviceDim(TFE_TensorDebugInfo* debug_info, int dim_index) {
  return debug_info->dims[dim_index];
}
