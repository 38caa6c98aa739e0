// cuda_compiler.h — CUDA C++ to machine code of a GPU, by NVRTC, kept on disk. Thread-safe.
#ifndef WEIR_DEVICE_CUDA_COMPILER_H_
#define WEIR_DEVICE_CUDA_COMPILER_H_

#include "base/base.h"

// Machine code (a cubin) of |source| for |architecture| (90: sm_90). It comes from the cache, where
// the same source was compiled before: $WEIR_CACHE_DIR, $XDG_CACHE_HOME/weir or ~/.cache/weir; what
// is damaged there is made anew, and where it cannot be written nothing is kept. |name| is what
// messages call the source. The caller frees |out_code| by weir_free. UNAVAILABLE without NVRTC;
// INTERNAL with its words where the source is wrong.
WEIR_MUST_USE weir_status_t* weir_cuda_compile(const char* name, const char* source,
                                               int architecture, char** out_code, size_t* out_size);

// Compiles with |own| from now on; NULL: with NVRTC and the cache. Tests only.
typedef weir_status_t* (*weir_cuda_compile_fn_t)(const char* name, const char* source,
                                                 int architecture, char** out_code,
                                                 size_t* out_size);
void weir_cuda_compiler_replace(weir_cuda_compile_fn_t own);

#endif  // WEIR_DEVICE_CUDA_COMPILER_H_
