// guard_stream.h — Work done one after the other by a thread of its own, and points in its order.
// Thread-safe.
#ifndef WEIR_DEVICE_GUARD_STREAM_H_
#define WEIR_DEVICE_GUARD_STREAM_H_

#include "device/device.h"

typedef struct guard_stream_t guard_stream_t;

// |run| does one piece of work, |arg| comes along.
WEIR_MUST_USE weir_status_t* weir_guard_stream_create(void (*run)(void* arg, weir_work_t* work),
                                                      void* arg, guard_stream_t** out_stream);
// After all that was submitted.
void weir_guard_stream_destroy(guard_stream_t* stream);  // NULL-safe
void weir_guard_stream_submit(guard_stream_t* stream, weir_work_t* work);
WEIR_MUST_USE weir_status_t* weir_guard_stream_record(guard_stream_t* stream,
                                                      weir_event_t** out_event);
WEIR_MUST_USE weir_status_t* weir_guard_stream_wait(guard_stream_t* stream, weir_event_t* event);

#endif  // WEIR_DEVICE_GUARD_STREAM_H_
