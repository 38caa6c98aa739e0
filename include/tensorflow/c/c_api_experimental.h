// c_api_experimental.h — The part of TensorFlow's C API that its authors may still change: of that,
// checkpoints read without a graph, questions about ops, texts of graphs.
#ifndef TENSORFLOW_C_C_API_EXPERIMENTAL_H_
#define TENSORFLOW_C_C_API_EXPERIMENTAL_H_

#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/eager/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_CheckpointReader TF_CheckpointReader;
// Of the checkpoint with the prefix |filename|.
TF_CAPI_EXPORT extern TF_CheckpointReader* TF_NewCheckpointReader(const char* filename,
                                                                  TF_Status* status);
TF_CAPI_EXPORT extern void TF_DeleteCheckpointReader(TF_CheckpointReader* reader);
TF_CAPI_EXPORT extern int TF_CheckpointReaderHasTensor(TF_CheckpointReader* reader,
                                                       const char* name);
// Names by number, below the size; lent.
TF_CAPI_EXPORT extern const char* TF_CheckpointReaderGetVariable(TF_CheckpointReader* reader,
                                                                 int index);
TF_CAPI_EXPORT extern int TF_CheckpointReaderSize(TF_CheckpointReader* reader);
// 0, and -1, where there is none of that name.
TF_CAPI_EXPORT extern TF_DataType TF_CheckpointReaderGetVariableDataType(
    TF_CheckpointReader* reader, const char* name);
TF_CAPI_EXPORT extern void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader* reader,
                                                               const char* name, int64_t* dims,
                                                               int num_dims, TF_Status* status);
TF_CAPI_EXPORT extern int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader* reader,
                                                                const char* name);
TF_CAPI_EXPORT extern TF_Tensor* TF_CheckpointReaderGetTensor(TF_CheckpointReader* reader,
                                                              const char* name, TF_Status* status);

// ---- questions about ops. NOT_FOUND, 0 and NULL where there is no such op. ----
TF_CAPI_EXPORT extern int TF_OpIsStateful(const char* op_type, TF_Status* status);
// The attribute that says how long the list is which input |input_index|, counted by arguments, is;
// borrowed for good. NULL where it is no list of one type.
TF_CAPI_EXPORT extern const char* TF_GetNumberAttrForOpListInput(const char* op_name,
                                                                 int input_index,
                                                                 TF_Status* status);

// ---- texts for people to read, to be freed by free(); NULL when there is no memory ----
TF_CAPI_EXPORT extern const char* TF_GraphDebugString(TF_Graph* graph, size_t* len);
TF_CAPI_EXPORT extern char* TF_FunctionDebugString(TF_Function* func, size_t* len);

// ---- and ----
// A RunOptions message, which asks for a full trace or for none.
TF_CAPI_EXPORT extern TF_Buffer* TF_CreateRunOptions(unsigned char enable_full_trace);
TF_CAPI_EXPORT extern void TF_MakeInternalErrorStatus(TF_Status* status, const char* errMsg);
// A tensor without dimensions, of a copy of the bytes.
TF_CAPI_EXPORT extern TFE_TensorHandle* TFE_NewTensorHandleFromScalar(TF_DataType data_type,
                                                                      void* data, size_t len,
                                                                      TF_Status* status);
// Does nothing: no platform here needs it.
TF_CAPI_EXPORT void TF_InitMain(const char* usage, int* argc, char*** argv);
// A port of this host that was free when it was asked for; the program ends where there is none.
TF_CAPI_EXPORT int TF_PickUnusedPortOrDie(void);

#ifdef __cplusplus
}
#endif
#endif  // TENSORFLOW_C_C_API_EXPERIMENTAL_H_
