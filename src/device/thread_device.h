// thread_device.h — What devices have in common whose work is done by threads of the host, with
// kernels borrowed from the CPU: streams, events, copies. A part of theirs, the first.
#ifndef WEIR_DEVICE_THREAD_DEVICE_H_
#define WEIR_DEVICE_THREAD_DEVICE_H_

#include "device/device.h"
#include "device/device_memory.h"
#include "device/thread_stream.h"

typedef struct thread_device_t {
  weir_device_t base;       // first
  device_memory_t* memory;  // owned; NULL before it is started
  device_memory_t* pinned;  // owned; NULL: it copies all host memory
  thread_stream_t* streams[WEIR_STREAMS];
  double bandwidth;  // of copies, in bytes a second; 0: as it is
} thread_device_t;

// Fills all that does not depend on memory. Once it returned NULL the device is released as every
// other.
WEIR_MUST_USE weir_status_t* weir_thread_device_init(thread_device_t* device, const char* type,
                                                     const weir_device_vtable_t* vtable,
                                                     const weir_device_params_t* params);
// Gives it its memory and streams. |run_kernel| and |run_copy| do a piece of work of the compute
// stream, and of the others; they get the device.
WEIR_MUST_USE weir_status_t* weir_thread_device_start(
    thread_device_t* device, device_memory_t* take_memory,
    void (*run_kernel)(void* device, weir_work_t* work),
    void (*run_copy)(void* device, weir_work_t* work));
// From now on it copies host memory only of |take_pinned|.
WEIR_MUST_USE weir_status_t* weir_thread_device_stage(thread_device_t* device,
                                                      device_memory_t* take_pinned);

// ---- for the vtable ----
void weir_thread_device_destroy(weir_device_t* device);
void weir_thread_device_submit(weir_device_t* device, weir_stream_t stream, weir_work_t* work);
weir_status_t* weir_thread_device_record(weir_device_t* device, weir_stream_t stream,
                                         weir_event_t** out_event);
weir_status_t* weir_thread_device_wait(weir_device_t* device, weir_stream_t stream,
                                       weir_event_t* event);
void weir_thread_device_copy(weir_device_t* device, weir_stream_t stream, const void* src,
                             void* dst, size_t size, weir_copy_done_fn_t done, void* arg);

#endif  // WEIR_DEVICE_THREAD_DEVICE_H_
