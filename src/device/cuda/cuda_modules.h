// cuda_modules.h — The CUDA sources that a device was asked for: compiled beside each other, loaded
// when they are needed. Thread-safe.
#ifndef WEIR_DEVICE_CUDA_MODULES_H_
#define WEIR_DEVICE_CUDA_MODULES_H_

#include "device/cuda/cuda_core.h"

typedef struct cuda_modules_t cuda_modules_t;
typedef struct cuda_function_t cuda_function_t;

// |pool| compiles; NULL: whoever needs a function does.
WEIR_MUST_USE weir_status_t* weir_cuda_modules_create(cuda_core_t* core, weir_pool_t* pool,
                                                      cuda_modules_t** out_modules);
// When no function is in use.
void weir_cuda_modules_destroy(cuda_modules_t* modules);  // NULL-safe
// The function |name| of |source|, which begins to be compiled the first time it is asked for. It
// is of weir_builds_add, and lives as long as |modules|.
WEIR_MUST_USE weir_status_t* weir_cuda_modules_find(cuda_modules_t* modules, const char* source,
                                                    const char* name,
                                                    cuda_function_t** out_function);
// The driver's handle, when it is compiled and loaded. An error is not kept: the next call tries
// again.
WEIR_MUST_USE weir_status_t* weir_cuda_function_get(cuda_function_t* function,
                                                    cu_function_t* out_function);

#endif  // WEIR_DEVICE_CUDA_MODULES_H_
