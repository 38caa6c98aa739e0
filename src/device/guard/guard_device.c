// guard_device.c — A device that shows on any machine what would go wrong on a GPU.
//
// Its memory has no access rights except while its own work runs, so whatever touches it from the
// host dies there and then. Its work runs later, on threads of its own, in the order it was
// submitted, so whoever reads a result too early finds it missing. Its kernels are the CPU's.
#include "device/device.h"
#include "device/thread_stream.h"
#include "guard_memory.h"

typedef struct guard_device_t {
  weir_device_t base;  // first
  guard_memory_t* memory;
  thread_stream_t* streams[WEIR_STREAMS];
  double slowness;   // how much longer work takes than its kernels, as a share of their time
  double bandwidth;  // bytes a second; 0: as it is
} guard_device_t;

static thread_stream_t* stream_of(weir_device_t* device, weir_stream_t stream) {
  return ((guard_device_t*)device)->streams[stream];
}

// ---- work ----

static void run_in_reach(guard_device_t* device, weir_work_t* work) {
  weir_guard_memory_open(device->memory);
  work->run(work);
  weir_guard_memory_close(device->memory);
}

static void run_kernel(void* arg, weir_work_t* work) {
  guard_device_t* device = arg;
  int64_t start = weir_clock_ns();
  run_in_reach(device, work);
  weir_thread_sleep((double)(weir_clock_ns() - start) * device->slowness);
}

static void run_copy(void* arg, weir_work_t* work) { run_in_reach(arg, work); }

static void guard_submit(weir_device_t* device, weir_stream_t stream, weir_work_t* work) {
  weir_thread_stream_submit(stream_of(device, stream), work);
}

static weir_status_t* guard_record(weir_device_t* device, weir_stream_t stream,
                                   weir_event_t** out_event) {
  return weir_thread_stream_record(stream_of(device, stream), out_event);
}

static weir_status_t* guard_wait(weir_device_t* device, weir_stream_t stream, weir_event_t* event) {
  return weir_thread_stream_wait(stream_of(device, stream), event);
}

static void guard_copy(weir_device_t* device, weir_stream_t stream, const weir_tensor_t* src,
                       weir_tensor_t* dst, weir_copy_done_fn_t done, void* arg) {
  double bandwidth = ((guard_device_t*)device)->bandwidth;
  weir_thread_stream_copy(stream_of(device, stream), bandwidth, src, dst, done, arg);
}

// ---- the device ----

static void guard_destroy(weir_device_t* base) {
  guard_device_t* device = (guard_device_t*)base;
  // Copies may wait for kernels, never the other way round.
  for (int i = WEIR_STREAMS; i-- > 0;) weir_thread_stream_destroy(device->streams[i]);
  weir_guard_memory_release(device->memory);
  weir_free(device->base.name);
  weir_free(device);
}

static const weir_device_vtable_t guard_vtable = {
    .destroy = guard_destroy,
    .submit = guard_submit,
    .record = guard_record,
    .wait = guard_wait,
    .copy = guard_copy,
};

static weir_status_t* init(guard_device_t* device, const weir_device_params_t* params) {
  weir_device_t* base = &device->base;
  base->kernel_type = "CPU";
  base->preference = -1;  // only what asks for it
  base->speed = params->speed;
  device->bandwidth = params->bandwidth;
  device->slowness = params->speed > 0 ? 1 / params->speed - 1 : 0;
  WEIR_TRY(weir_guard_memory_create(&base->space, &device->memory));
  base->space.device = base;
  base->memory_limit = (int64_t)weir_guard_memory_size(device->memory);
  base->allocators[WEIR_MEMORY_DEVICE] = weir_guard_memory_allocator(device->memory);
  base->allocators[WEIR_MEMORY_HOST] = weir_host_allocator();
  base->allocators[WEIR_MEMORY_PINNED] = weir_host_allocator();
  for (int i = 0; i < WEIR_STREAMS; ++i)
    WEIR_TRY(weir_thread_stream_create(i == WEIR_STREAM_COMPUTE ? run_kernel : run_copy, device,
                                       &device->streams[i]));
  return NULL;
}

static weir_status_t* guard_create(const weir_device_params_t* params, weir_device_t** out_device) {
  guard_device_t* device = weir_calloc(1, sizeof(*device));
  if (!device) return weir_out_of_memory();
  weir_status_t* status = weir_device_init(&device->base, "GUARD", params);
  if (status) {
    weir_free(device);
    return status;
  }
  device->base.vtable = &guard_vtable;
  status = init(device, params);
  if (status) weir_device_release(&device->base);
  else *out_device = &device->base;
  return status;
}

const weir_device_kind_t weir_guard_kind = {.name = "guard",
                                            .type = "GUARD",
                                            .kernel_type = "CPU",
                                            .has_queue = true,
                                            .create = guard_create};
