// device_memory.h — What the memories of devices have in common: a space, and a life that ends with
// the last block, for tensors may outlive their device. Thread-safe.
#ifndef WEIR_DEVICE_DEVICE_MEMORY_H_
#define WEIR_DEVICE_DEVICE_MEMORY_H_

#include "base/alloc.h"
#include "base/thread.h"

typedef struct device_memory_t device_memory_t;
struct device_memory_t {
  weir_allocator_t allocator;  // first
  weir_space_t space;          // of its blocks, and lives as long as they do
  weir_ref_t ref;              // the device's and one of each block
  void (*destroy)(device_memory_t* memory);
};

// Of |device|'s own memory; NULL: of host memory. The caller has a reference, the device's.
void weir_device_memory_init(device_memory_t* memory, const weir_allocator_vtable_t* vtable,
                             struct weir_device_t* device, void (*destroy)(device_memory_t*));
// Counts |block|, which may be NULL, and returns it: what an allocator does at last.
void* weir_device_memory_give(device_memory_t* memory, void* block, size_t size);
// A block of |size| bytes came back: the last thing that an allocator's |free| does.
void weir_device_memory_take(device_memory_t* memory, size_t size);
// The device is gone. Blocks in use stay, and are freed as ever.
void weir_device_memory_leave(device_memory_t* memory);  // NULL-safe

#endif  // WEIR_DEVICE_DEVICE_MEMORY_H_
