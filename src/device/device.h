// device.h — The device interface: memory, order of work, copies. Nothing above this folder knows
// what a device is made of.
//
// Threading: devices are thread-safe; a stream is thread-confined to the step that uses it.
#ifndef WEIR_DEVICE_DEVICE_H_
#define WEIR_DEVICE_DEVICE_H_

#include "base/alloc.h"
#include "base/thread.h"
#include "tensor/tensor.h"

typedef struct weir_device_t weir_device_t;
typedef struct weir_stream_t
    weir_stream_t;  // an order of work on a device; NULL on devices that work synchronously

typedef enum weir_memory_t {
  WEIR_MEMORY_DEVICE,  // where kernels compute
  WEIR_MEMORY_HOST,    // readable by the CPU; what host_inputs and host_outputs of kernels use
  WEIR_MEMORY_PINNED,  // host memory that the device copies from and to without staging
  WEIR_MEMORY_KINDS,
} weir_memory_t;

typedef void (*weir_copy_done_fn_t)(void* arg, weir_status_t* take_status);

typedef struct weir_device_vtable_t {
  void (*destroy)(weir_device_t* device);  // required
  // Required. Copies the elements of |src| to |dst|, same type and count, one of them in this
  // device's memory and the other in host memory or in the memory of a device of the same kind; in
  // the order of |stream|; calls |done| when complete.
  void (*copy)(weir_device_t* device, weir_stream_t* stream, const weir_tensor_t* src,
               weir_tensor_t* dst, weir_copy_done_fn_t done, void* arg);
  weir_status_t* (*create_stream)(
      weir_device_t* device, weir_stream_t** out_stream);  // optional, default NULL: synchronous
  void (*destroy_stream)(weir_device_t* device,
                         weir_stream_t* stream);  // optional, with create_stream
  weir_status_t* (*synchronize)(weir_device_t* device,
                                weir_stream_t* stream);  // optional, default: nothing to wait for
} weir_device_vtable_t;

struct weir_device_t {
  const weir_device_vtable_t* vtable;
  weir_ref_t ref;
  const char* type;      // "CPU": what kernels are registered for
  char* name;            // "/job:localhost/replica:0/task:0/device:CPU:0"; owned
  uint64_t incarnation;  // changes when the device restarts
  int64_t memory_limit;  // bytes; 0: not known
  weir_pool_t* pool;     // intra-op threads on the host; borrowed
  weir_allocator_t* allocators[WEIR_MEMORY_KINDS];  // required; they outlive the device
};

// The CPU device of a task. |pool| is borrowed and must outlive it.
WEIR_MUST_USE weir_status_t* weir_cpu_device_create(const char* task, int index, weir_pool_t* pool,
                                                    weir_device_t** out_device);
// The template for new devices: memory of its own, copies that copy, no kernels
// (docs/adding-a-device.md).
WEIR_MUST_USE weir_status_t* weir_null_device_create(const char* task, int index,
                                                     weir_device_t** out_device);

weir_device_t* weir_device_retain(weir_device_t* device);
void weir_device_release(weir_device_t* device);
WEIR_INLINE weir_allocator_t* weir_device_allocator(const weir_device_t* device,
                                                    weir_memory_t memory) {
  return device->allocators[memory];
}

// ---- device names: "/job:ps/replica:0/task:1/device:CPU:0", "/cpu:0", "/device:GPU:*", "" ----
typedef struct weir_device_name_t {
  char job[64];  // "" when not given
  int replica;   // -1 when not given, as the numbers below
  int task;
  char type[32];  // upper case; "" when not given
  int index;
} weir_device_name_t;
// INVALID_ARGUMENT quoting |text| when it is not a device name.
WEIR_MUST_USE weir_status_t* weir_device_name_parse(weir_view_t text, weir_device_name_t* out_name);
// Whether every part that |constraint| gives agrees with |name|.
bool weir_device_name_matches(const weir_device_name_t* constraint, const weir_device_name_t* name);

#endif  // WEIR_DEVICE_DEVICE_H_
