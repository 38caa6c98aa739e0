// dlpack.c — Tensors out by DLPack and in again share memory; what DLPack cannot say is refused.
// TensorFlow has these functions in C++ only, so the numbers here are what they must be.
#include "tensorflow/c/eager/dlpack.h"

#include "../check.h"

typedef struct managed_t {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
  void* manager_ctx;
  void (*deleter)(struct managed_t* self);
} managed_t;

static int deleted;
static void note(managed_t* self) {
  (void)self;
  ++deleted;
}

#define CHECK(condition)                             \
  do {                                               \
    if (!(condition)) {                              \
      printf("line %d: %s\n", __LINE__, #condition); \
      exit(1);                                       \
    }                                                \
  } while (0)

static void out_and_in(TFE_Context* ctx, TF_Status* s) {
  const int64_t dims[] = {2, 3};
  const float values[] = {1, 2, 3, 4, 5, 6};
  TF_Tensor* t = tensor_of(TF_FLOAT, dims, 2, values, sizeof(values));
  TFE_TensorHandle* h = TFE_NewTensorHandle(t, s);
  managed_t* m = TFE_HandleToDLPack(h, s);
  OK(s);
  CHECK(m->ndim == 2 && m->shape[1] == 3 && m->strides[0] == 3 && m->code == 2 && m->bits == 32);
  CHECK(m->device_type == 1 && m->lanes == 1 && m->data == TF_TensorData(t));
  CHECK(*(int32_t*)TFE_GetDLDevice(h, s) == 1);
  TFE_DeleteTensorHandle(h);
  TF_DeleteTensor(t);
  h = TFE_HandleFromDLPack(m, s, ctx);  // takes it over
  OK(s);
  t = TFE_TensorHandleResolve(h, s);
  CHECK(((const float*)TF_TensorData(t))[5] == 6 && TF_Dim(t, 0) == 2);
  TF_DeleteTensor(t);
  TFE_DeleteTensorHandle(h);
}

static void refused(TFE_Context* ctx, TF_Status* s) {
  float data[4] = {0};
  int64_t shape[] = {2, 2}, strides[] = {1, 2};
  managed_t m = {.data = data,
                 .device_type = 1,
                 .ndim = 2,
                 .code = 2,
                 .bits = 32,
                 .lanes = 1,
                 .shape = shape,
                 .strides = strides,
                 .deleter = note};
  CHECK(!TFE_HandleFromDLPack(&m, s, ctx) && TF_GetCode(s) == TF_INVALID_ARGUMENT);
  m.strides = NULL;
  m.bits = 24;
  CHECK(!TFE_HandleFromDLPack(&m, s, ctx) && TF_GetCode(s) == TF_INVALID_ARGUMENT);
  m.bits = 32;
  m.device_type = 7;
  CHECK(!TFE_HandleFromDLPack(&m, s, ctx) && TF_GetCode(s) == TF_INVALID_ARGUMENT);
  m.device_type = 1;
  m.ndim = -1;
  CHECK(!TFE_HandleFromDLPack(&m, s, ctx) && TF_GetCode(s) == TF_INVALID_ARGUMENT);
  CHECK(!TFE_HandleFromDLPack(NULL, s, ctx) && !TFE_HandleToDLPack(NULL, s) && deleted == 0);
  m.ndim = 2;
  TFE_TensorHandle* h = TFE_HandleFromDLPack(&m, s, ctx);
  OK(s);
  CHECK(deleted == 0);
  TFE_DeleteTensorHandle(h);
  CHECK(deleted == 1);
  TFE_CallDLManagedTensorDeleter(&m);
  TFE_CallDLManagedTensorDeleter(NULL);
  CHECK(deleted == 2);
  TF_Tensor* text = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof(TF_TString));
  h = TFE_NewTensorHandle(text, s);
  CHECK(!TFE_HandleToDLPack(h, s) && TF_GetCode(s) == TF_INVALID_ARGUMENT);
  TFE_DeleteTensorHandle(h);
  TF_DeleteTensor(text);
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_Context* ctx = TFE_NewContext(options, s);
  OK(s);
  TFE_DeleteContextOptions(options);
  out_and_in(ctx, s);
  refused(ctx, s);
  TFE_DeleteContext(ctx);
  TF_DeleteStatus(s);
  printf("fine\n");
  return 0;
}
