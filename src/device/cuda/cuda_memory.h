// cuda_memory.h — Memory of a GPU, in the order of its compute stream, and host memory pinned for
// it. Thread-safe.
#ifndef WEIR_DEVICE_CUDA_MEMORY_H_
#define WEIR_DEVICE_CUDA_MEMORY_H_

#include "device/cuda/cuda_core.h"
#include "device/device_memory.h"

typedef struct cuda_memory_t cuda_memory_t;
typedef struct cuda_pool_t cuda_pool_t;

// Of |device|; NULL: pinned host memory. At most |limit| bytes are taken from the driver, as they
// are needed. |name| is what errors call it.
WEIR_MUST_USE weir_status_t* weir_cuda_memory_create(cuda_core_t* core,
                                                     struct weir_device_t* device, const char* name,
                                                     size_t limit, cuda_memory_t** out_memory);
device_memory_t* weir_cuda_memory_base(cuda_memory_t* memory);
// Gives back to the driver what is not in use. Returns how many bytes that was.
size_t weir_cuda_memory_trim(cuda_memory_t* memory);

// Whether little is left of what may be taken.
bool weir_cuda_memory_is_tight(cuda_memory_t* memory);

// ---- the pool: segments for recordings only ----
// It lasts as long as anyone holds it; then all that it has is everybody's.
cuda_pool_t* weir_cuda_pool_retain(cuda_memory_t* memory);
void weir_cuda_pool_release(cuda_pool_t* pool);  // NULL-safe
// What this thread takes of |pool|'s memory comes from |pool|; NULL: from what is everybody's.
// Returns what was said before.
cuda_pool_t* weir_cuda_pool_enter(cuda_pool_t* pool);
// How often this thread, within a pool, freed memory that was not the pool's.
int64_t weir_cuda_pool_foreign_frees(void);

#endif  // WEIR_DEVICE_CUDA_MEMORY_H_
