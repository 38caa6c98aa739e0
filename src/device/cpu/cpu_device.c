// cpu_device.c — The CPU: host memory, kernels that run where they are called.
#include <unistd.h>

#include "device/device.h"

static void cpu_destroy(weir_device_t* device) {
  weir_free(device->name);
  weir_free(device);
}

static const weir_device_vtable_t cpu_vtable = {.destroy = cpu_destroy};

static int64_t physical_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES);
  long page_size = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_size > 0 ? (int64_t)pages * page_size : 0;
}

static weir_status_t* cpu_create(const weir_device_params_t* params, weir_device_t** out_device) {
  weir_device_t* device = weir_calloc(1, sizeof(*device));
  if (!device) return weir_out_of_memory();
  weir_status_t* status = weir_device_init(device, "CPU", params);
  if (status) {
    weir_free(device);
    return status;
  }
  device->vtable = &cpu_vtable;
  device->memory_limit = physical_memory();
  for (int kind = 0; kind < WEIR_MEMORY_KINDS; ++kind)
    device->allocators[kind] = weir_host_allocator();
  *out_device = device;
  return NULL;
}

const weir_device_kind_t weir_cpu_kind = {
    .name = "cpu", .type = "CPU", .kernel_type = "CPU", .create = cpu_create};
