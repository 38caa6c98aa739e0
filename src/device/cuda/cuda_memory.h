// cuda_memory.h — Memory of a GPU, in the order of its compute stream, and host memory pinned for
// it. Thread-safe.
#ifndef WEIR_DEVICE_CUDA_MEMORY_H_
#define WEIR_DEVICE_CUDA_MEMORY_H_

#include "device/cuda/cuda_core.h"
#include "device/device_memory.h"

typedef struct cuda_memory_t cuda_memory_t;

// Of |device|; NULL: pinned host memory. At most |limit| bytes are taken from the driver, as they
// are needed. |name| is what errors call it.
WEIR_MUST_USE weir_status_t* weir_cuda_memory_create(cuda_core_t* core,
                                                     struct weir_device_t* device, const char* name,
                                                     size_t limit, cuda_memory_t** out_memory);
device_memory_t* weir_cuda_memory_base(cuda_memory_t* memory);
// Gives back to the driver what is not in use. Returns how many bytes that was.
size_t weir_cuda_memory_trim(cuda_memory_t* memory);

#endif  // WEIR_DEVICE_CUDA_MEMORY_H_
