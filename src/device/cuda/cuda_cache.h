// cuda_cache.h — What costs time to find out about a GPU and stays true, kept in files: compiled
// kernels, and which algorithm of a library is the fastest. Thread-safe.
//
// A cache that is damaged, or that cannot be written, costs time and nothing else.
#ifndef WEIR_DEVICE_CUDA_CACHE_H_
#define WEIR_DEVICE_CUDA_CACHE_H_

#include "base/string.h"

// The name of the file for |key|, which is all that its content depends on; |kind| is its ending.
WEIR_MUST_USE weir_status_t* weir_cuda_cache_name(weir_view_t key, const char* kind,
                                                  weir_strbuf_t* out_name);
// False: it is not there, or not whole. The caller owns |out_data|.
bool weir_cuda_cache_load(const char* name, char** out_data, size_t* out_size);
void weir_cuda_cache_store(const char* name, const void* data, size_t size);

// The same for records of |size| bytes by key, where the name is of no interest.
bool weir_cuda_cache_recall(weir_view_t key, const char* kind, void* out_record, size_t size);
void weir_cuda_cache_remember(weir_view_t key, const char* kind, const void* record, size_t size);

#endif  // WEIR_DEVICE_CUDA_CACHE_H_
