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

void weir_device_memory_leave(device_memory_t* memory) {
  if (!memory) return;
  memory->space.device = NULL;
  weir_device_memory_release(memory);
}
