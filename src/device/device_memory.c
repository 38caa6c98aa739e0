// device_memory.c — Beginning and end of a device's memory.
#include "device_memory.h"

void weir_device_memory_init(device_memory_t* memory, const weir_allocator_vtable_t* vtable,
                             struct weir_device_t* device, void (*destroy)(device_memory_t*)) {
  memory->space.device = device;
  memory->allocator =
      (weir_allocator_t){.vtable = vtable, .space = device ? &memory->space : &weir_host_space};
  memory->destroy = destroy;
  weir_ref_init(&memory->ref);
}

static void release(device_memory_t* memory) {
  if (weir_ref_dec(&memory->ref)) memory->destroy(memory);
}

void* weir_device_memory_give(device_memory_t* memory, void* block, size_t size) {
  if (!block) return NULL;
  weir_ref_inc(&memory->ref, 1);
  weir_alloc_meter_note(memory->allocator.space, (int64_t)size);
  return block;
}

void weir_device_memory_take(device_memory_t* memory, size_t size) {
  weir_alloc_meter_note(memory->allocator.space, -(int64_t)size);
  release(memory);
}

void weir_device_memory_leave(device_memory_t* memory) {
  if (!memory) return;
  memory->space.device = NULL;
  release(memory);
}
