// cuda_fake.h — A GPU that is not there: a driver whose memory only copies may touch, and only from
// and to pinned memory, whose streams do everything at once, and whose kernels are loaded but
// compute nothing. For tests of all that is around kernels, and of their compilation.
#ifndef WEIR_TESTING_CUDA_FAKE_H_
#define WEIR_TESTING_CUDA_FAKE_H_

#include <stdatomic.h>

#include "device/cuda/cuda_driver.h"

// Its three devices say that they are sm_80, sm_90 and sm_100.
extern size_t cuda_fake_memory;        // bytes each has
extern atomic_int cuda_fake_launches;  // so far
extern const cuda_driver_t cuda_fake_driver;
// Where the memory at an address of a device can be touched; NULL: it is no device's.
char* cuda_fake_at(const void* address);

#endif  // WEIR_TESTING_CUDA_FAKE_H_
