// tight_memory.h — Memory of which there is so much and no more. Thread-safe.
#ifndef WEIR_DEVICE_TIGHT_MEMORY_H_
#define WEIR_DEVICE_TIGHT_MEMORY_H_

#include "base/alloc.h"
#include "base/base.h"

typedef struct tight_memory_t tight_memory_t;

// |space| and |name| are what its allocator says of the memory; |name| is copied. Tensors use both
// after the device is gone, but of |space| only the address.
WEIR_MUST_USE weir_status_t* weir_tight_memory_create(const weir_space_t* space, const char* name,
                                                      size_t limit, tight_memory_t** out_memory);
// Blocks that are still in use stay, and are freed as ever.
void weir_tight_memory_release(tight_memory_t* memory);  // NULL-safe
weir_allocator_t* weir_tight_memory_allocator(tight_memory_t* memory);

#endif  // WEIR_DEVICE_TIGHT_MEMORY_H_
