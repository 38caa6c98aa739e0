// tight_device.c — A device that runs out of memory, so that this can be tested without a GPU.
//
// Its memory is the process's, but counted, and of a space of its own: the runtime copies to and
// from it as to a GPU. Its work runs on threads, its kernels are the CPU's. It is also the template
// for other devices (docs/adding-a-device.md).
#include "device/device.h"
#include "device/thread_stream.h"
#include "tight_memory.h"

static const double kDefaultMemory = 64 << 20, kMostMemory = (double)((int64_t)1 << 53);

typedef struct tight_device_t {
  weir_device_t base;  // first
  tight_memory_t* memory;
  thread_stream_t* streams[WEIR_STREAMS];
  double bandwidth;  // of copies, in bytes a second; 0: as it is
} tight_device_t;

// ---- work ----

static thread_stream_t* stream_of(weir_device_t* device, weir_stream_t stream) {
  return ((tight_device_t*)device)->streams[stream];
}

static void run_work(void* arg, weir_work_t* work) {
  (void)arg;  // its memory is always in reach
  work->run(work);
}

static void tight_submit(weir_device_t* device, weir_stream_t stream, weir_work_t* work) {
  weir_thread_stream_submit(stream_of(device, stream), work);
}

static weir_status_t* tight_record(weir_device_t* device, weir_stream_t stream,
                                   weir_event_t** out_event) {
  return weir_thread_stream_record(stream_of(device, stream), out_event);
}

static weir_status_t* tight_wait(weir_device_t* device, weir_stream_t stream, weir_event_t* event) {
  return weir_thread_stream_wait(stream_of(device, stream), event);
}

static void tight_copy(weir_device_t* device, weir_stream_t stream, const weir_tensor_t* src,
                       weir_tensor_t* dst, weir_copy_done_fn_t done, void* arg) {
  double bandwidth = ((tight_device_t*)device)->bandwidth;
  weir_thread_stream_copy(stream_of(device, stream), bandwidth, src, dst, done, arg);
}

// ---- the device ----

static void tight_destroy(weir_device_t* base) {
  tight_device_t* device = (tight_device_t*)base;
  // Copies may wait for kernels, never the other way round.
  for (int i = WEIR_STREAMS; i-- > 0;) weir_thread_stream_destroy(device->streams[i]);
  weir_tight_memory_release(device->memory);
  weir_free(device->base.name);
  weir_free(device);
}

static const weir_device_vtable_t tight_vtable = {
    .destroy = tight_destroy,
    .submit = tight_submit,
    .record = tight_record,
    .wait = tight_wait,
    .copy = tight_copy,
};

static weir_status_t* init(tight_device_t* device, const weir_device_params_t* params) {
  weir_device_t* base = &device->base;
  double limit = params->memory > 0 ? params->memory : kDefaultMemory;
  if (limit > kMostMemory) limit = kMostMemory;
  base->kernel_type = "CPU";
  base->preference = -1;  // only what asks for it
  base->memory_limit = (int64_t)limit;
  device->bandwidth = params->bandwidth;
  WEIR_TRY(weir_tight_memory_create(&base->space, base->name, (size_t)limit, &device->memory));
  base->space.device = base;
  base->allocators[WEIR_MEMORY_DEVICE] = weir_tight_memory_allocator(device->memory);
  base->allocators[WEIR_MEMORY_HOST] = weir_host_allocator();
  base->allocators[WEIR_MEMORY_PINNED] = weir_host_allocator();
  for (int i = 0; i < WEIR_STREAMS; ++i)
    WEIR_TRY(weir_thread_stream_create(run_work, NULL, &device->streams[i]));
  return NULL;
}

static weir_status_t* tight_create(const weir_device_params_t* params, weir_device_t** out_device) {
  tight_device_t* device = weir_calloc(1, sizeof(*device));
  if (!device) return weir_out_of_memory();
  weir_status_t* status = weir_device_init(&device->base, "TIGHT", params);
  if (status) {
    weir_free(device);
    return status;
  }
  device->base.vtable = &tight_vtable;
  status = init(device, params);
  if (status) weir_device_release(&device->base);
  else *out_device = &device->base;
  return status;
}

const weir_device_kind_t weir_tight_kind = {.name = "tight",
                                            .type = "TIGHT",
                                            .kernel_type = "CPU",
                                            .has_queue = true,
                                            .create = tight_create};
