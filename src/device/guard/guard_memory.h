// guard_memory.h — Memory without access rights, but for the time it is opened. Thread-safe.
#ifndef WEIR_DEVICE_GUARD_MEMORY_H_
#define WEIR_DEVICE_GUARD_MEMORY_H_

#include "device/device_memory.h"

typedef struct guard_memory_t guard_memory_t;

// Of |device|, NULL: of the host. Has |most| bytes, a power of two, or as many addresses as there
// are. |name| is what errors call it.
WEIR_MUST_USE weir_status_t* weir_guard_memory_create(struct weir_device_t* device,
                                                      const char* name, size_t most,
                                                      guard_memory_t** out_memory);
device_memory_t* weir_guard_memory_base(guard_memory_t* memory);
size_t weir_guard_memory_size(const guard_memory_t* memory);  // bytes there are in all
bool weir_guard_memory_holds(const guard_memory_t* memory, const void* data, size_t size);
// Between open and close any thread may read and write it. Several may have it open.
void weir_guard_memory_open(guard_memory_t* memory);
void weir_guard_memory_close(guard_memory_t* memory);

#endif  // WEIR_DEVICE_GUARD_MEMORY_H_
