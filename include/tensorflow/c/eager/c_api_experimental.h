// c_api_experimental.h — The part of the eager C API that TensorFlow's authors may still change:
// cancellation, executors, attributes as a whole, memory of devices.
#ifndef TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_
#define TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_

#include <stdbool.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/eager/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes |op_to_reset| as it would be if it were new, so that it can be used again and again.
TF_CAPI_EXPORT extern void TFE_OpReset(TFE_Op* op_to_reset, const char* op_or_function_name,
                                       const char* raw_device_name, TF_Status* status);
TF_CAPI_EXPORT extern uint64_t TFE_GetContextId(TFE_Context* ctx);

// ---- cancellation: of all ops that were given the manager, from any thread ----
typedef struct TFE_CancellationManager TFE_CancellationManager;
typedef int64_t TFE_CancellationToken;
typedef struct TFE_CancelCallback {
  void (*callback)(void* context);
  void* context;
} TFE_CancelCallback;
TF_CAPI_EXPORT extern TFE_CancellationManager* TFE_NewCancellationManager(void);
TF_CAPI_EXPORT extern bool TFE_CancellationManagerIsCancelled(TFE_CancellationManager* manager);
TF_CAPI_EXPORT extern bool TFE_CancellationManagerIsCancelling(TFE_CancellationManager* manager);
TF_CAPI_EXPORT extern void TFE_CancellationManagerStartCancel(TFE_CancellationManager* manager);
TF_CAPI_EXPORT extern TFE_CancellationToken TFE_CancellationManagerGetToken(
    TFE_CancellationManager* manager);
// False, and the callback is not registered, when the manager is cancelled.
TF_CAPI_EXPORT extern bool TFE_CancellationManagerRegisterCallback(
    TFE_CancellationManager* manager, TFE_CancellationToken token,
    const TFE_CancelCallback* c_callback, const char* callback_name);
// True when it had not run and never will. The first waits while it is running.
TF_CAPI_EXPORT extern bool TFE_CancellationManagerDeregisterCallback(
    TFE_CancellationManager* manager, TFE_CancellationToken token);
TF_CAPI_EXPORT extern bool TFE_CancellationManagerTryDeregisterCallback(
    TFE_CancellationManager* manager, TFE_CancellationToken token);
TF_CAPI_EXPORT extern void TFE_DeleteCancellationManager(TFE_CancellationManager* manager);
// |cancellation_manager| must live while the op runs.
TF_CAPI_EXPORT extern void TFE_OpSetCancellationManager(
    TFE_Op* op, TFE_CancellationManager* cancellation_manager, TF_Status* status);

// ---- executors: what they are asked for is known, but ops run at once ----
typedef struct TFE_Executor TFE_Executor;
TF_CAPI_EXPORT extern TFE_Executor* TFE_NewExecutor(bool is_async, bool enable_streaming_enqueue,
                                                    int in_flight_nodes_limit);
TF_CAPI_EXPORT extern void TFE_DeleteExecutor(TFE_Executor* executor);
TF_CAPI_EXPORT extern bool TFE_ExecutorIsAsync(TFE_Executor* executor);
TF_CAPI_EXPORT extern void TFE_ExecutorWaitForAllPendingNodes(TFE_Executor* executor,
                                                              TF_Status* status);
TF_CAPI_EXPORT extern void TFE_ExecutorClearError(TFE_Executor* executor);
TF_CAPI_EXPORT extern void TFE_ContextAsyncWait(TFE_Context* ctx, TF_Status* status);

// ---- memory of devices ----
// Where the elements are, in the memory of the device: for its kernels only, where that is not the
// host's.
TF_CAPI_EXPORT extern void* TFE_TensorHandleDevicePointer(TFE_TensorHandle* h, TF_Status* status);
TF_CAPI_EXPORT extern size_t TFE_TensorHandleDeviceMemorySize(TFE_TensorHandle* h,
                                                              TF_Status* status);
// Memory of the host. UNIMPLEMENTED for other devices. |deallocator| is called when it is not
// needed any more, not after an error.
TF_CAPI_EXPORT extern TFE_TensorHandle* TFE_NewTensorHandleFromDeviceMemory(
    TFE_Context* ctx, const char* device_name, TF_DataType dtype, const int64_t* dims, int num_dims,
    void* data, size_t len, void (*deallocator)(void* data, size_t len, void* arg),
    void* deallocator_arg, TF_Status* status);
TF_CAPI_EXPORT extern TF_Tensor* TFE_AllocateHostTensor(TFE_Context* ctx, TF_DataType dtype,
                                                        const int64_t* dims, int num_dims,
                                                        TF_Status* status);
TF_CAPI_EXPORT extern TFE_TensorHandle* TFE_NewTensorHandleFromTensor(TFE_Context* ctx,
                                                                      TF_Tensor* t,
                                                                      TF_Status* status);
// "CPU" and 0 of ".../device:CPU:0".
TF_CAPI_EXPORT extern const char* TFE_TensorHandleDeviceType(TFE_TensorHandle* h,
                                                             TF_Status* status);
TF_CAPI_EXPORT extern int TFE_TensorHandleDeviceID(TFE_TensorHandle* h, TF_Status* status);
// OK: a handle is there when its tensor is.
TF_CAPI_EXPORT extern void TFE_TensorHandleGetStatus(TFE_TensorHandle* h, TF_Status* status);

// ---- attributes as a whole ----
typedef struct TFE_OpAttrs
    TFE_OpAttrs;  // those of an op: as long as it is neither reset nor deleted
TF_CAPI_EXPORT extern const TFE_OpAttrs* TFE_OpGetAttrs(const TFE_Op* op);
TF_CAPI_EXPORT extern void TFE_OpAddAttrs(TFE_Op* op, const TFE_OpAttrs* attrs);
// A NameAttrList: the op's name, and the attributes that were set.
TF_CAPI_EXPORT extern void TFE_OpAttrsSerialize(const TFE_OpAttrs* attrs, TF_Buffer* buf,
                                                TF_Status* status);
// An AttrValue.
TF_CAPI_EXPORT extern void TFE_OpSetAttrValueProto(const TFE_Op* op, const char* attr_name,
                                                   const void* proto, size_t proto_len,
                                                   TF_Status* status);

// ---- contexts ----
// NOT_FOUND for an unknown name.
TF_CAPI_EXPORT extern void TFE_ContextGetFunctionDef(TFE_Context* ctx, const char* function_name,
                                                     TF_Buffer* buf, TF_Status* status);
// Of ops that no op was made of before.
TF_CAPI_EXPORT extern void TFE_ContextSetSoftDevicePlacement(TFE_Context* ctx, unsigned char enable,
                                                             TF_Status* status);
// Nothing is logged.
TF_CAPI_EXPORT extern void TFE_ContextSetLogDevicePlacement(TFE_Context* ctx, unsigned char enable,
                                                            TF_Status* status);

#ifdef __cplusplus
}
#endif
#endif  // TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_
