// guard_memory.h — Memory without access rights, but for the time it is opened. Thread-safe.
#ifndef WEIR_DEVICE_GUARD_MEMORY_H_
#define WEIR_DEVICE_GUARD_MEMORY_H_

#include "base/alloc.h"
#include "base/base.h"

typedef struct guard_memory_t guard_memory_t;

// |space| is what its allocator says of the memory.
WEIR_MUST_USE weir_status_t* weir_guard_memory_create(const weir_space_t* space,
                                                      guard_memory_t** out_memory);
// Blocks that are still in use stay, and are freed as ever.
void weir_guard_memory_release(guard_memory_t* memory);
weir_allocator_t* weir_guard_memory_allocator(guard_memory_t* memory);
size_t weir_guard_memory_size(const guard_memory_t* memory);  // bytes there are in all
// Between open and close any thread may read and write it. Several may have it open.
void weir_guard_memory_open(guard_memory_t* memory);
void weir_guard_memory_close(guard_memory_t* memory);

#endif  // WEIR_DEVICE_GUARD_MEMORY_H_
