// tf_buffer.h — TF_Buffer: bytes, mostly a serialised message.
#ifndef TENSORFLOW_C_TF_BUFFER_H_
#define TENSORFLOW_C_TF_BUFFER_H_

#include <stddef.h>

#include "tensorflow/c/c_api_macros.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_Buffer {
  const void* data;
  size_t length;
  void (*data_deallocator)(void* data, size_t length);  // NULL: |data| is somebody else's
} TF_Buffer;

// A buffer with a copy of the bytes.
TF_CAPI_EXPORT extern TF_Buffer* TF_NewBufferFromString(const void* proto, size_t proto_len);
// An empty one, for a call to fill.
TF_CAPI_EXPORT extern TF_Buffer* TF_NewBuffer(void);
// NULL is fine.
TF_CAPI_EXPORT extern void TF_DeleteBuffer(TF_Buffer*);
// A copy of the struct, not of the bytes.
TF_CAPI_EXPORT extern TF_Buffer TF_GetBuffer(TF_Buffer* buffer);

#ifdef __cplusplus
}
#endif
#endif  // TENSORFLOW_C_TF_BUFFER_H_
