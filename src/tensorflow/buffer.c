// buffer.c — TF_Buffer, and the strings of tensors one by one.
#include "tensorflow/internal.h"

static void free_bytes(void* data, size_t length) {
  (void)length;
  weir_free(data);
}

TF_Buffer* TF_NewBuffer(void) { return weir_calloc(1, sizeof(TF_Buffer)); }

TF_Buffer* TF_NewBufferFromString(const void* proto, size_t proto_len) {
  TF_Buffer* buffer = TF_NewBuffer();
  char* copy = weir_strndup(proto, proto_len);
  if (!buffer || !copy) {
    weir_free(buffer);
    weir_free(copy);
    return NULL;
  }
  *buffer = (TF_Buffer){.data = copy, .length = proto_len, .data_deallocator = free_bytes};
  return buffer;
}

void TF_DeleteBuffer(TF_Buffer* buffer) {
  if (!buffer) return;
  if (buffer->data_deallocator)
    buffer->data_deallocator((void*)(uintptr_t)buffer->data, buffer->length);
  weir_free(buffer);
}

TF_Buffer TF_GetBuffer(TF_Buffer* buffer) { return *buffer; }

weir_status_t* tf_buffer_take(TF_Buffer* out, weir_strbuf_t* take_bytes) {
  weir_status_t* status = weir_strbuf_finish(take_bytes);
  if (!status && out->data)
    status = WEIR_STATUS(INVALID_ARGUMENT, "Passing non-empty TF_Buffer is invalid.");
  if (!status && !take_bytes->data) weir_strbuf_append(take_bytes, "", 0);
  if (status) {
    weir_strbuf_free(take_bytes);
    return status;
  }
  *out = (TF_Buffer){
      .data = take_bytes->data, .length = take_bytes->size, .data_deallocator = free_bytes};
  *take_bytes = (weir_strbuf_t){0};
  return NULL;
}

TF_Buffer* tf_buffer_new(weir_strbuf_t* take_bytes) {
  TF_Buffer* buffer = TF_NewBuffer();
  weir_status_t* status = buffer ? tf_buffer_take(buffer, take_bytes) : weir_out_of_memory();
  if (!status) return buffer;
  weir_status_destroy(status);
  weir_strbuf_free(take_bytes);
  weir_free(buffer);
  return NULL;
}

// ---- strings ----

void TF_StringInit(TF_TString* t) { TF_TString_Init(t); }
void TF_StringCopy(TF_TString* dst, const char* src, size_t size) {
  TF_TString_Copy(dst, src, size);
}
void TF_StringAssignView(TF_TString* dst, const char* src, size_t size) {
  TF_TString_AssignView(dst, src, size);
}
const char* TF_StringGetDataPointer(const TF_TString* tstr) {
  return TF_TString_GetDataPointer(tstr);
}
TF_TString_Type TF_StringGetType(const TF_TString* str) { return TF_TString_GetType(str); }
size_t TF_StringGetSize(const TF_TString* tstr) { return TF_TString_GetSize(tstr); }
size_t TF_StringGetCapacity(const TF_TString* str) { return TF_TString_GetCapacity(str); }
void TF_StringDealloc(TF_TString* tstr) { TF_TString_Dealloc(tstr); }
