// staging.h — Copies between a device and host memory that the device does not reach by itself: in
// pieces, through buffers that it does reach.
//
// A GPU copies beside its kernels only from and to host memory that is pinned, of which there is
// little. So there are a few buffers of it, made once: while the device copies one piece, a thread
// moves the next between tensor and buffer. Copies that find no buffer free wait for one, in the
// order they came. Thread-safe.
#ifndef WEIR_DEVICE_STAGING_H_
#define WEIR_DEVICE_STAGING_H_

#include "device/device.h"

// The buffers are |allocator|'s: memory that |device|, which it serves, reaches.
WEIR_MUST_USE weir_status_t* weir_staging_create(weir_device_t* device, weir_allocator_t* allocator,
                                                 weir_staging_t** out_staging);
// When no copy is under way.
void weir_staging_destroy(weir_staging_t* staging);  // NULL-safe
// As |copy| of the device's vtable, with the host's end anywhere.
void weir_staging_copy(weir_staging_t* staging, weir_stream_t stream, const void* src, void* dst,
                       size_t size, weir_copy_done_fn_t done, void* arg);

#endif  // WEIR_DEVICE_STAGING_H_
