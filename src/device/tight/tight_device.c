// tight_device.c — A device that runs out of memory, so that this can be tested without a GPU.
//
// Its memory is the process's, but counted, and of a space of its own: the runtime copies to and
// from it as to a GPU. Its work runs on threads, its kernels are the CPU's. It is also the template
// for other devices (docs/adding-a-device.md).
#include "device/thread_device.h"
#include "tight_memory.h"

static const double kDefaultMemory = 64 << 20, kMostMemory = (double)((int64_t)1 << 53);

static void run_work(void* device, weir_work_t* work) {
  (void)device;  // its memory is always in reach
  work->run(work);
}

static const weir_device_vtable_t tight_vtable = {
    .destroy = weir_thread_device_destroy,
    .submit = weir_thread_device_submit,
    .record = weir_thread_device_record,
    .wait = weir_thread_device_wait,
    .copy = weir_thread_device_copy,
};

static weir_status_t* start(thread_device_t* device, const weir_device_params_t* params) {
  weir_device_t* base = &device->base;
  device_memory_t* memory = NULL;
  double limit = params->memory > 0 ? params->memory : kDefaultMemory;
  if (limit > kMostMemory) limit = kMostMemory;
  base->memory_limit = (int64_t)limit;
  WEIR_TRY(weir_tight_memory_create(base, base->name, (size_t)limit, &memory));
  return weir_thread_device_start(device, memory, run_work, run_work);
}

static weir_status_t* tight_create(const weir_device_params_t* params, weir_device_t** out_device) {
  thread_device_t* device = weir_calloc(1, sizeof(*device));
  if (!device) return weir_out_of_memory();
  weir_status_t* status = weir_thread_device_init(device, "TIGHT", &tight_vtable, params);
  if (status) {
    weir_free(device);
    return status;
  }
  status = start(device, params);
  if (status) weir_device_release(&device->base);
  else *out_device = &device->base;
  return status;
}

const weir_device_kind_t weir_tight_kind = {.name = "tight",
                                            .type = "TIGHT",
                                            .kernel_type = "CPU",
                                            .has_queue = true,
                                            .preference = -1,
                                            .create = tight_create};
