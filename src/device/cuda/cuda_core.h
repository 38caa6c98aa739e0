// cuda_core.h — What of a GPU outlives its device: the context, without which neither memory nor
// events can go. Thread-safe.
#ifndef WEIR_DEVICE_CUDA_CORE_H_
#define WEIR_DEVICE_CUDA_CORE_H_

#include "base/thread.h"
#include "device/cuda/cuda_driver.h"

typedef struct cuda_core_t {
  weir_ref_t ref;
  const cuda_driver_t* driver;
  int device;  // the driver's handle of it
  cu_context_t context;
  char name[128];    // "NVIDIA H200"
  char bus[32];      // "0000:1a:00.0": as other libraries find it
  int architecture;  // 90: sm_90
  int multiprocessors;
  int shared_bytes;  // that a block can have
  size_t memory;     // bytes it has
  weir_mutex_t mu;
  cu_event_t* events;  // to be used again; guarded by mu
  size_t event_count, event_capacity;
  uint64_t asked;  // bit i: GPU i was asked for its memory, see weir_cuda_core_reach; guarded by mu
} cuda_core_t;

// Of the |number|-th GPU. UNAVAILABLE where there are fewer.
WEIR_MUST_USE weir_status_t* weir_cuda_core_create(int number, cuda_core_t** out_core);
cuda_core_t* weir_cuda_core_retain(cuda_core_t* core);
void weir_cuda_core_release(cuda_core_t* core);  // NULL-safe
// Calls of the driver that follow on this thread are for this GPU.
void weir_cuda_core_enter(cuda_core_t* core);
// A library may have made another GPU the calling thread's: the next weir_cuda_core_enter tells the
// driver in any case.
void weir_cuda_core_forget(void);
// Brings the memory of |peer| in reach of this GPU, if the machine can do that: copies from there
// then go directly. Those from others the driver takes through pinned memory of its own.
void weir_cuda_core_reach(cuda_core_t* core, const cuda_core_t* peer);
// Events are taken from, and put back to, those that were used before.
WEIR_MUST_USE weir_status_t* weir_cuda_core_record(cuda_core_t* core, cu_stream_t stream,
                                                   cu_event_t* out_event);
void weir_cuda_core_recycle(cuda_core_t* core, cu_event_t event);

#endif  // WEIR_DEVICE_CUDA_CORE_H_
