// thread_stream.h — A stream for devices without hardware of their own: work done one after the
// other by a thread, points in its order, and copies between memories that the thread can reach.
// They wait for events of any kind. Thread-safe.
#ifndef WEIR_DEVICE_THREAD_STREAM_H_
#define WEIR_DEVICE_THREAD_STREAM_H_

#include "device/device.h"

typedef struct thread_stream_t thread_stream_t;

// |run| does one piece of work, |arg| comes along.
WEIR_MUST_USE weir_status_t* weir_thread_stream_create(void (*run)(void* arg, weir_work_t* work),
                                                       void* arg, thread_stream_t** out_stream);
// After all that was submitted.
void weir_thread_stream_destroy(thread_stream_t* stream);  // NULL-safe
void weir_thread_stream_submit(thread_stream_t* stream, weir_work_t* work);
WEIR_MUST_USE weir_status_t* weir_thread_stream_record(thread_stream_t* stream,
                                                       weir_event_t** out_event);
WEIR_MUST_USE weir_status_t* weir_thread_stream_wait(thread_stream_t* stream, weir_event_t* event);
// Copies, then calls |done|: a device's copy. |bandwidth| in bytes a second, 0: as fast as it goes.
void weir_thread_stream_copy(thread_stream_t* stream, double bandwidth, const void* src, void* dst,
                             size_t size, weir_copy_done_fn_t done, void* arg);
// Pretends that work took so much longer.
void weir_thread_sleep(double ns);

#endif  // WEIR_DEVICE_THREAD_STREAM_H_
