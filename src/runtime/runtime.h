// runtime.h — What a process computes with: its devices, the threads that serve them, and the state
// that its programs share.
//
// A local session has a runtime of its own, the sessions of a task share the task's. Immutable
// after create, reference-counted, thread-safe.
#ifndef WEIR_RUNTIME_RUNTIME_H_
#define WEIR_RUNTIME_RUNTIME_H_

#include "device/device.h"
#include "op/resource.h"

typedef struct weir_runtime_t {
  weir_ref_t ref;
  weir_pool_t* pool;  // kernels, and nodes side by side
  bool owns_pool;
  weir_device_t** devices;  // at least one; the first is a CPU
  int device_count;
  weir_resources_t* resources;  // variables, queues, tables: of all programs but isolated ones
  bool owns_resources;
  struct weir_hub_t* hub;  // where the collectives of its programs meet
} weir_runtime_t;

typedef struct weir_runtime_options_t {
  const char* task;             // "/job:localhost/replica:0/task:0": what device names begin with
  weir_pool_t* pool;            // borrowed, must outlive the runtime; NULL: one of its own
  int threads;                  // of its own pool; 0: one a CPU
  const char* devices;          // as weir_devices_create reads it; NULL: one CPU
  weir_resources_t* resources;  // borrowed like |pool|; NULL: its own
  const char* container;        // where its own resources are unless they say where
} weir_runtime_options_t;

// Bytes that were in use at most, of all devices with memory of their own.
int64_t weir_runtime_device_peak_bytes(const weir_runtime_t* runtime);
// How busy those of its devices were, on average, that tell; negative: none does.
double weir_runtime_device_busy(const weir_runtime_t* runtime);

WEIR_MUST_USE weir_status_t* weir_runtime_create(const weir_runtime_options_t* options,
                                                 weir_runtime_t** out_runtime);
weir_runtime_t* weir_runtime_retain(weir_runtime_t* runtime);
void weir_runtime_release(weir_runtime_t* runtime);  // NULL-safe
// The ordinal of the first device with the type and number that |name| gives; -1: none. What it
// says of the task does not count: others may call this process something else than it does itself.
int weir_runtime_find(const weir_runtime_t* runtime, const weir_device_name_t* name);
// "GUARD:0" of "/job:localhost/replica:0/task:0/device:GUARD:0"; a part of it.
const char* weir_device_short_name(const char* name);

#endif  // WEIR_RUNTIME_RUNTIME_H_
