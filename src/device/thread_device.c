// thread_device.c — A device whose streams are threads.
#include "thread_device.h"

#include "device/staging.h"

static thread_stream_t* stream_of(weir_device_t* device, weir_stream_t stream) {
  return ((thread_device_t*)device)->streams[stream];
}

// ---- for the vtable ----

void weir_thread_device_destroy(weir_device_t* base) {
  thread_device_t* device = (thread_device_t*)base;
  // Copies may wait for kernels, never the other way round.
  for (int i = WEIR_STREAMS; i-- > 0;) weir_thread_stream_destroy(device->streams[i]);
  weir_staging_destroy(base->staging);
  weir_device_memory_leave(device->pinned);
  weir_device_memory_leave(device->memory);
  weir_free(base->name);
  weir_free(device);
}

void weir_thread_device_submit(weir_device_t* device, weir_stream_t stream, weir_work_t* work) {
  weir_thread_stream_submit(stream_of(device, stream), work);
}

weir_status_t* weir_thread_device_record(weir_device_t* device, weir_stream_t stream,
                                         weir_event_t** out_event) {
  return weir_thread_stream_record(stream_of(device, stream), out_event);
}

weir_status_t* weir_thread_device_wait(weir_device_t* device, weir_stream_t stream,
                                       weir_event_t* event) {
  return weir_thread_stream_wait(stream_of(device, stream), event);
}

void weir_thread_device_copy(weir_device_t* device, weir_stream_t stream, const void* src,
                             void* dst, size_t size, weir_copy_done_fn_t done, void* arg) {
  double bandwidth = ((thread_device_t*)device)->bandwidth;
  weir_thread_stream_copy(stream_of(device, stream), bandwidth, src, dst, size, done, arg);
}

// ---- the device ----

weir_status_t* weir_thread_device_init(thread_device_t* device, const char* type,
                                       const weir_device_vtable_t* vtable,
                                       const weir_device_params_t* params) {
  weir_device_t* base = &device->base;
  WEIR_TRY(weir_device_init(base, type, params));
  base->vtable = vtable;
  base->kernel_type = "CPU";
  base->preference = -1;  // only what asks for it
  base->allocators[WEIR_MEMORY_HOST] = weir_host_allocator();
  base->allocators[WEIR_MEMORY_PINNED] = weir_host_allocator();
  device->bandwidth = params->bandwidth;
  return NULL;
}

weir_status_t* weir_thread_device_start(thread_device_t* device, device_memory_t* take_memory,
                                        void (*run_kernel)(void* device, weir_work_t* work),
                                        void (*run_copy)(void* device, weir_work_t* work)) {
  device->memory = take_memory;
  device->base.allocators[WEIR_MEMORY_DEVICE] = &take_memory->allocator;
  for (int i = 0; i < WEIR_STREAMS; ++i)
    WEIR_TRY(weir_thread_stream_create(i == WEIR_STREAM_COMPUTE ? run_kernel : run_copy, device,
                                       &device->streams[i]));
  return NULL;
}

weir_status_t* weir_thread_device_stage(thread_device_t* device, device_memory_t* take_pinned) {
  device->pinned = take_pinned;
  device->base.allocators[WEIR_MEMORY_PINNED] = &take_pinned->allocator;
  return weir_staging_create(&device->base, &take_pinned->allocator, &device->base.staging);
}
