// tight_memory.h — Memory of which there is so much and no more. Thread-safe.
#ifndef WEIR_DEVICE_TIGHT_MEMORY_H_
#define WEIR_DEVICE_TIGHT_MEMORY_H_

#include "device/device_memory.h"

// |name| is what its allocator says of the memory; it is copied, for tensors outlive the device.
WEIR_MUST_USE weir_status_t* weir_tight_memory_create(struct weir_device_t* device,
                                                      const char* name, size_t limit,
                                                      device_memory_t** out_memory);

#endif  // WEIR_DEVICE_TIGHT_MEMORY_H_
