// env.h — Files, clocks, threads and libraries, for kernels that want no other way to them.
#ifndef TENSORFLOW_C_ENV_H_
#define TENSORFLOW_C_ENV_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_file_statistics.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_WritableFileHandle TF_WritableFileHandle;
typedef struct TF_StringStream TF_StringStream;
typedef struct TF_Thread TF_Thread;

// ---- files. NOT_FOUND where there is none. ----
// One level; ALREADY_EXISTS where it is there.
TF_CAPI_EXPORT extern void TF_CreateDir(const char* dirname, TF_Status* status);
// FAILED_PRECONDITION where it is not empty.
TF_CAPI_EXPORT extern void TF_DeleteDir(const char* dirname, TF_Status* status);
// With all that is in it, as far as that can be deleted: the counts are of what could not.
TF_CAPI_EXPORT extern void TF_DeleteRecursively(const char* dirname, int64_t* undeleted_file_count,
                                                int64_t* undeleted_dir_count, TF_Status* status);
TF_CAPI_EXPORT extern void TF_FileStat(const char* filename, TF_FileStatistics* stats,
                                       TF_Status* status);
TF_CAPI_EXPORT extern void TF_DeleteFile(const char* filename, TF_Status* status);

// Creates the file, or empties it.
TF_CAPI_EXPORT extern void TF_NewWritableFile(const char* filename, TF_WritableFileHandle** handle,
                                              TF_Status* status);
// Frees the handle as well.
TF_CAPI_EXPORT extern void TF_CloseWritableFile(TF_WritableFileHandle* handle, TF_Status* status);
// Waits for the disk.
TF_CAPI_EXPORT extern void TF_SyncWritableFile(TF_WritableFileHandle* handle, TF_Status* status);
// Hands what was appended to the system.
TF_CAPI_EXPORT extern void TF_FlushWritableFile(TF_WritableFileHandle* handle, TF_Status* status);
TF_CAPI_EXPORT extern void TF_AppendWritableFile(TF_WritableFileHandle* handle, const char* data,
                                                 size_t length, TF_Status* status);

// The names within a directory. NULL after an error.
TF_CAPI_EXPORT extern TF_StringStream* TF_GetChildren(const char* filename, TF_Status* status);
// Where files can be put that nobody will miss; NULL when there is no memory.
TF_CAPI_EXPORT extern TF_StringStream* TF_GetLocalTempDirectories(void);
// The next string, which lives as long as the stream; false and NULL at the end.
TF_CAPI_EXPORT extern bool TF_StringStreamNext(TF_StringStream* list, const char** result);
TF_CAPI_EXPORT extern void TF_StringStreamDone(TF_StringStream* list);
// A name that no file has, with that at its end; to be freed by free(). NULL: there is none.
TF_CAPI_EXPORT extern char* TF_GetTempFileName(const char* extension);

// ---- clocks: since 1970 ----
TF_CAPI_EXPORT extern uint64_t TF_NowNanos(void);
TF_CAPI_EXPORT extern uint64_t TF_NowMicros(void);
TF_CAPI_EXPORT extern uint64_t TF_NowSeconds(void);

// ---- threads ----
typedef struct TF_ThreadOptions {
  size_t stack_size;  // bytes; 0: as the system has it, here and below
  size_t guard_size;
  int numa_node;  // -1: any. Others are not minded
} TF_ThreadOptions;
TF_CAPI_EXPORT extern void TF_DefaultThreadOptions(TF_ThreadOptions* options);
// NULL when there cannot be another.
TF_CAPI_EXPORT extern TF_Thread* TF_StartThread(const TF_ThreadOptions* options,
                                                const char* thread_name, void (*work_func)(void*),
                                                void* param);
// Waits for its end and frees it.
TF_CAPI_EXPORT extern void TF_JoinThread(TF_Thread* thread);

// ---- libraries: opened for good ----
TF_CAPI_EXPORT extern void* TF_LoadSharedLibrary(const char* library_filename, TF_Status* status);
TF_CAPI_EXPORT extern void* TF_GetSymbolFromLibrary(void* handle, const char* symbol_name,
                                                    TF_Status* status);

#ifdef __cplusplus
}
#endif
#endif  // TENSORFLOW_C_ENV_H_
