// dlpack.h — Tensors to and from other frameworks by DLPack, without a copy.
//
// What is handed over is a DLManagedTensor*, of DLPack before version 1. In C++ the functions are
// in the namespace tensorflow, too, where TensorFlow has them.
#ifndef TENSORFLOW_C_EAGER_DLPACK_H_
#define TENSORFLOW_C_EAGER_DLPACK_H_

#include "tensorflow/c/eager/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// A DLDevice*: where the elements are. As long as the program. NULL after an error.
TF_CAPI_EXPORT extern void* TFE_GetDLDevice(TFE_TensorHandle* h, TF_Status* status);
// A DLManagedTensor* on the memory of |h|, which must not be written to; whoever takes it calls its
// deleter. INVALID_ARGUMENT for types that DLPack does not know and for devices but CPUs and GPUs.
TF_CAPI_EXPORT extern void* TFE_HandleToDLPack(TFE_TensorHandle* h, TF_Status* status);
// Takes |dlm| over: its deleter is called when the elements are not needed any more. After an error
// it stays the caller's. INVALID_ARGUMENT unless it is in host memory, row by row without gaps.
TF_CAPI_EXPORT extern TFE_TensorHandle* TFE_HandleFromDLPack(void* dlm, TF_Status* status,
                                                             TFE_Context* ctx);
// Calls the deleter, where there is one.
TF_CAPI_EXPORT extern void TFE_CallDLManagedTensorDeleter(void* dlm_ptr);

#ifdef __cplusplus
}
namespace tensorflow {
const char* const kDlTensorCapsuleName = "dltensor";  // of Python's capsules
using ::TFE_CallDLManagedTensorDeleter;
using ::TFE_GetDLDevice;
using ::TFE_HandleFromDLPack;
using ::TFE_HandleToDLPack;
}  // namespace tensorflow
#endif
#endif  // TENSORFLOW_C_EAGER_DLPACK_H_
