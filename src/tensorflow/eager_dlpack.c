// eager_dlpack.c — DLPack: memory shared with other frameworks.
#include "tensorflow/c/eager/dlpack.h"
#include "tensorflow/eager_internal.h"

// ---- the structs of DLPack's ABI, before version 1 ----

enum { DL_CPU = 1, DL_CUDA = 2 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_COMPLEX = 5, DL_BOOL = 6 };

typedef struct dl_device_t {
  int32_t type;
  int32_t id;
} dl_device_t;

typedef struct dl_type_t {
  uint8_t code, bits;
  uint16_t lanes;
} dl_type_t;

typedef struct dl_tensor_t {
  void* data;
  dl_device_t device;
  int32_t ndim;
  dl_type_t dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; NULL: row by row without gaps
  uint64_t byte_offset;
} dl_tensor_t;

typedef struct dl_managed_t {
  dl_tensor_t dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct dl_managed_t* self);  // may be NULL
} dl_managed_t;

// ---- types ----

static const struct {
  weir_dtype_t dtype;
  uint8_t code, bits;
} types[] = {
    {WEIR_DTYPE_FLOAT, DL_FLOAT, 32},       {WEIR_DTYPE_DOUBLE, DL_FLOAT, 64},
    {WEIR_DTYPE_HALF, DL_FLOAT, 16},        {WEIR_DTYPE_BFLOAT16, DL_BFLOAT, 16},
    {WEIR_DTYPE_INT8, DL_INT, 8},           {WEIR_DTYPE_INT16, DL_INT, 16},
    {WEIR_DTYPE_INT32, DL_INT, 32},         {WEIR_DTYPE_INT64, DL_INT, 64},
    {WEIR_DTYPE_UINT8, DL_UINT, 8},         {WEIR_DTYPE_UINT16, DL_UINT, 16},
    {WEIR_DTYPE_UINT32, DL_UINT, 32},       {WEIR_DTYPE_UINT64, DL_UINT, 64},
    {WEIR_DTYPE_COMPLEX64, DL_COMPLEX, 64}, {WEIR_DTYPE_COMPLEX128, DL_COMPLEX, 128},
    {WEIR_DTYPE_BOOL, DL_BOOL, 8},
};

static weir_status_t* type_to(weir_dtype_t dtype, dl_type_t* out_type) {
  for (size_t i = 0; i < WEIR_COUNT_OF(types); ++i) {
    if (types[i].dtype != dtype) continue;
    *out_type = (dl_type_t){.code = types[i].code, .bits = types[i].bits, .lanes = 1};
    return NULL;
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "%s is not supported by dlpack", weir_dtype_name(dtype));
}

static weir_status_t* type_from(dl_type_t type, weir_dtype_t* out_dtype) {
  for (size_t i = 0; i < WEIR_COUNT_OF(types); ++i) {
    if (types[i].code != type.code || types[i].bits != type.bits || type.lanes != 1) continue;
    *out_dtype = types[i].dtype;
    return NULL;
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "DLPack type code %d with %d bits and %d lanes is unknown",
                     type.code, type.bits, type.lanes);
}

// ---- out ----

static weir_status_t* find_device(TFE_TensorHandle* h, dl_device_t* out_device) {
  const weir_space_t* space = weir_tensor_space(h->tensor);
  *out_device = (dl_device_t){.type = DL_CPU};
  if (space == &weir_host_space) return NULL;
  bool is_gpu = space->device && !strcmp(space->device->type, "GPU");
  if (!is_gpu)
    return WEIR_STATUS(INVALID_ARGUMENT, "Unsupported Device Type for dlpack: %s",
                       space->device ? space->device->type : "gone");
  const char* number = strrchr(space->device->name, ':');
  int64_t id = 0;
  if (number && !weir_parse_int64(weir_view_of(number + 1), &id)) id = 0;
  *out_device = (dl_device_t){.type = DL_CUDA, .id = (int32_t)id};
  return NULL;
}

void* TFE_GetDLDevice(TFE_TensorHandle* h, TF_Status* status) {
  static _Thread_local dl_device_t device;
  weir_status_t* result = TFE_REQUIRE(h, "handle");
  if (!result) result = find_device(h, &device);
  return tf_status_take(status, result) ? &device : NULL;
}

typedef struct export_t {
  dl_managed_t managed;  // first
  weir_tensor_t* tensor;
  weir_eager_t* eager;  // keeps the device; NULL: none
  int64_t dims[];       // then strides
} export_t;

static void delete_export(dl_managed_t* self) {
  export_t* out = (export_t*)self;
  weir_tensor_release(out->tensor);
  weir_eager_unref(out->eager);
  weir_free(out);
}

static weir_status_t* export_handle(TFE_TensorHandle* h, export_t** out_export) {
  weir_status_t* status = TFE_REQUIRE(h, "handle");
  if (status) return status;
  const weir_tensor_t* t = h->tensor;
  dl_tensor_t dl = {.data = t->data, .ndim = t->rank};
  WEIR_TRY(type_to(weir_tensor_type(t), &dl.dtype));
  WEIR_TRY(find_device(h, &dl.device));
  export_t* out = weir_calloc(1, sizeof(*out) + 2 * (size_t)t->rank * sizeof(int64_t));
  if (!out) return weir_out_of_memory();
  dl.shape = out->dims;
  dl.strides = out->dims + t->rank;
  int64_t stride = 1;
  for (int i = t->rank; i-- > 0; stride *= t->dims[i]) {
    dl.shape[i] = t->dims[i];
    dl.strides[i] = stride;
  }
  out->managed = (dl_managed_t){.dl_tensor = dl, .deleter = delete_export};
  out->tensor = weir_tensor_retain(h->tensor);
  out->eager = h->eager ? weir_eager_ref(h->eager) : NULL;
  *out_export = out;
  return NULL;
}

void* TFE_HandleToDLPack(TFE_TensorHandle* h, TF_Status* status) {
  export_t* out = NULL;
  tf_status_take(status, export_handle(h, &out));
  return out;
}

// ---- in ----

// Whether elements follow each other row by row. Dimensions of 1 have any stride.
static bool is_compact(const dl_tensor_t* dl) {
  int64_t stride = 1;
  for (int i = dl->ndim; dl->strides && i-- > 0; stride *= dl->shape[i]) {
    if (dl->shape[i] != 1 && dl->strides[i] != stride) return false;
  }
  return true;
}

static void release_import(void* data, size_t size, void* arg) {
  (void)data;
  (void)size;
  TFE_CallDLManagedTensorDeleter(arg);
}

static weir_status_t* import(const dl_managed_t* managed, weir_tensor_t** out_tensor) {
  const dl_tensor_t* dl = &managed->dl_tensor;
  weir_dtype_t dtype = WEIR_DTYPE_INVALID;
  int64_t count = 0;
  if (dl->ndim < 0 || dl->ndim > WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "a DLPack tensor of rank %d", dl->ndim);
  WEIR_TRY(type_from(dl->dtype, &dtype));
  if (dl->device.type != DL_CPU)
    return WEIR_STATUS(INVALID_ARGUMENT, "DLPack memory of device type %d cannot be taken over",
                       dl->device.type);
  WEIR_TRY(weir_shape_count(dtype, dl->ndim, dl->shape, &count));
  if (count > 0 && !is_compact(dl))
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid strides array from DLPack");
  void* data = dl->data ? (char*)dl->data + dl->byte_offset : NULL;
  return weir_tensor_wrap(dtype, dl->ndim, dl->shape, data, (size_t)count * weir_dtype_size(dtype),
                          release_import, (void*)(uintptr_t)managed, out_tensor);
}

TFE_TensorHandle* TFE_HandleFromDLPack(void* dlm, TF_Status* status, TFE_Context* ctx) {
  weir_tensor_t* tensor = NULL;
  TFE_TensorHandle* handle = NULL;
  weir_status_t* result = TFE_REQUIRE(dlm, "DLPack tensor");
  if (!result) result = import(dlm, &tensor);
  if (!result) result = tfe_handle_create(ctx ? ctx->eager : NULL, 0, tensor, &handle);
  tf_status_take(status, result);
  return handle;
}

void TFE_CallDLManagedTensorDeleter(void* dlm_ptr) {
  dl_managed_t* managed = dlm_ptr;
  if (managed && managed->deleter) managed->deleter(managed);
}
