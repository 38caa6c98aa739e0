// basics.c — Statuses, buffers, tensors and strings.
#include "check.h"

static void show_payload(const char* key, const char* value, void* capture) {
  (void)capture;
  printf("payload %s=%s\n", key, value);
}

static void statuses(void) {
  TF_Status* s = TF_NewStatus();
  say("fresh", s, 1);
  TF_SetStatus(s, TF_ABORTED, "stopped");
  TF_SetPayload(s, "key", "one");
  TF_SetPayload(s, "key", "two");
  TF_ForEachPayload(s, show_payload, NULL);
  say("set", s, 1);
  TF_SetStatus(s, TF_OK, "is lost");
  TF_SetPayload(s, "key", "is lost");
  TF_ForEachPayload(s, show_payload, NULL);
  say("ok", s, 1);
  const int errors[] = {2, 13, 17, 22, 28, 110, 39, 4};
  for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); ++i) {
    TF_SetStatusFromIOError(s, errors[i], "file");
    say("errno", s, 1);
  }
  TF_DeleteStatus(s);
  TF_DeleteStatus(NULL);
}

static int freed;
static void note_free(void* data, size_t size, void* arg) {
  (void)data;
  ++freed;
  printf("freed %zu bytes, arg %s\n", size, (const char*)arg);
}

static void tensors(void) {
  static _Alignas(64) float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const int64_t dims[] = {2, 3};
  TF_Tensor* t = TF_NewTensor(TF_FLOAT, dims, 2, data, 24, note_free, (void*)"aligned");
  printf("shares %d, freed %d, bytes %zu, rank %d, dim %lld, aligned %d\n",
         TF_TensorData(t) == data, freed, TF_TensorByteSize(t), TF_NumDims(t),
         (long long)TF_Dim(t, 1), TF_TensorIsAligned(t));
  const int64_t flat[] = {6};
  TF_SetShape(t, flat, 1);
  printf("rank %d count %lld\n", TF_NumDims(t), (long long)TF_TensorElementCount(t));
  TF_DeleteTensor(t);
  t = TF_NewTensor(TF_FLOAT, flat, 1, (char*)data + 4, 24, note_free, (void*)"odd");
  printf("shares %d, freed %d, first %g\n", (char*)TF_TensorData(t) == (char*)data + 4, freed,
         *(float*)TF_TensorData(t));
  TF_DeleteTensor(t);
  t = TF_NewTensor(TF_FLOAT, dims, 2, data, 20, note_free, (void*)"short");
  printf("too short: %d, freed %d\n", t == NULL, freed);
  t = TF_AllocateTensor(TF_INT64, dims, 2, 48);
  printf("aligned %d, default %zu, type %d\n", TF_TensorIsAligned(t), TF_TensorDefaultAlignment(),
         TF_TensorType(t));
  TF_Tensor* moved = TF_TensorMaybeMove(t);
  printf("moved %d\n", moved != NULL);
  TF_Status* s = TF_NewStatus();
  TF_Tensor* view = TF_AllocateTensor(TF_FLOAT, flat, 1, 24);
  const int64_t as_int32[] = {2, 3, 2};
  TF_TensorBitcastFrom(moved, TF_INT32, view, as_int32, 3, s);
  say("bitcast", s, 0);
  printf("rank %d type %d same %d\n", TF_NumDims(view), TF_TensorType(view),
         TF_TensorData(view) == TF_TensorData(moved));
  TF_TensorBitcastFrom(moved, TF_INT32, view, dims, 2, s);
  say("bitcast of another size", s, 0);
  TF_DeleteTensor(view);
  TF_DeleteTensor(moved);
  TF_DeleteStatus(s);
  TF_DeleteTensor(NULL);
  for (int type = 1; type <= 23; ++type) printf("%zu ", TF_DataTypeSize((TF_DataType)type));
  printf("\n");
}

static void strings(void) {
  TF_TString s;
  TF_StringInit(&s);
  const char* texts[] = {"", "short", "exactly twenty-two byt", "one byte more than fits in"};
  for (int i = 0; i < 4; ++i) {
    TF_StringCopy(&s, texts[i], strlen(texts[i]));
    printf("%d %zu %zu '%.*s'\n", TF_StringGetType(&s), TF_StringGetSize(&s),
           TF_StringGetCapacity(&s), (int)TF_StringGetSize(&s), TF_StringGetDataPointer(&s));
  }
  TF_TString_AppendN(&s, " ....................................", 37);
  printf("%zu cap %zu\n", TF_StringGetSize(&s), TF_StringGetCapacity(&s));
  TF_TString_Resize(&s, 5, 'x');
  printf("%d '%s'\n", TF_StringGetType(&s), TF_StringGetDataPointer(&s));
  TF_StringAssignView(&s, texts[3], 8);
  printf("%d %zu '%.*s'\n", TF_StringGetType(&s), TF_StringGetSize(&s), 8,
         TF_StringGetDataPointer(&s));
  printf("'%s'\n", TF_TString_GetMutableDataPointer(&s));
  TF_StringDealloc(&s);
  printf("size of an element %zu\n", sizeof(TF_TString));
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("%s\n", TF_Version());
  statuses();
  tensors();
  strings();
  TF_Buffer* buffer = TF_NewBufferFromString("abc", 3);
  printf("%zu %.3s\n", TF_GetBuffer(buffer).length, (const char*)buffer->data);
  TF_DeleteBuffer(buffer);
  TF_DeleteBuffer(NULL);
  return 0;
}
