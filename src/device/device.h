// device.h — The device interface: memory, order of work, copies. Nothing above this folder knows
// what a device is made of.
//
// A device either runs kernels where they are called (a CPU), or has streams: what is in one runs
// one after the other, in its own time, and only that touches the device's memory. Kernels are in
// the first stream; the others copy, beside them. Streams are independent of each other but for
// events: one records how far it is, another waits for that. Kernels get into their stream in one
// of two ways: they are submitted to it, as code of the host (kernels that a device borrows), or,
// where |submit| is NULL, they are called on the host and launch what is to run there (a GPU's).
//
// Memory belongs to the order of the compute stream: it may be freed, and given to others, as soon
// as the last work that uses it is in that stream. A copy, which runs in another, keeps both its
// ends until it is done.
//
// Threading: devices are thread-safe.
#ifndef WEIR_DEVICE_DEVICE_H_
#define WEIR_DEVICE_DEVICE_H_

#include "base/alloc.h"
#include "base/thread.h"
#include "tensor/tensor.h"

typedef struct weir_device_t weir_device_t;
typedef struct weir_staging_t weir_staging_t;  // device/staging.h

typedef enum weir_memory_t {
  WEIR_MEMORY_DEVICE,  // where kernels compute
  WEIR_MEMORY_HOST,    // readable by the CPU; what host_inputs and host_outputs of kernels use
  WEIR_MEMORY_PINNED,  // host memory that the device copies from and to by itself
  WEIR_MEMORY_KINDS,
} weir_memory_t;

typedef enum weir_stream_t {
  WEIR_STREAM_COMPUTE,
  WEIR_STREAM_UPLOAD,    // from host memory
  WEIR_STREAM_DOWNLOAD,  // to host memory
  WEIR_STREAMS,
} weir_stream_t;

// A piece of work in a device's stream, within a struct of whoever submits it.
typedef struct weir_work_t {
  void (*run)(struct weir_work_t* self);   // in the stream's order, the device's memory in reach
  void (*done)(struct weir_work_t* self);  // afterwards, on any thread, out of reach; may free it
  struct weir_work_t* next;                // the device's
} weir_work_t;

// A point in a stream's order, reached when all that was submitted before it is through.
// Thread-safe. It belongs to whoever holds a reference, not to the stream: it may outlive the
// device, and is reached by then.
typedef struct weir_event_t weir_event_t;
// What is called when an event is reached, within a struct of whoever wants to know.
typedef struct weir_notice_t {
  void (*call)(struct weir_notice_t* self);  // on any thread, must not wait; may free it
  struct weir_notice_t* next;                // the event's
} weir_notice_t;
typedef struct weir_event_vtable_t {
  void (*destroy)(weir_event_t* event);  // required
  // Required. Calls |notice| once, when the event is reached; at once where it was already.
  void (*notify)(weir_event_t* event, weir_notice_t* notice);
} weir_event_vtable_t;
struct weir_event_t {
  const weir_event_vtable_t* vtable;  // says also whose kind it is
  weir_ref_t ref;
};

typedef void (*weir_copy_done_fn_t)(void* arg, weir_status_t* take_status);

typedef struct weir_device_vtable_t {
  void (*destroy)(weir_device_t* device);  // required; all that was submitted is through then
  // Streams: |record|, |wait| and one of |submit| and |settle|; none where kernels run where they
  // are called.
  void (*submit)(weir_device_t* device, weir_stream_t stream, weir_work_t* work);
  // Calls |done| when all that was launched is through, with what went wrong since the last call.
  void (*settle)(weir_device_t* device, weir_copy_done_fn_t done, void* arg);
  // Of a device with |settle|: waits for the same in the calling thread, and puts copies in host
  // memory in place of those |tensors| (each may be NULL) that are in the device's. After an error
  // each is as it was, or a copy.
  WEIR_MUST_USE weir_status_t* (*collect)(weir_device_t* device, weir_tensor_t** tensors,
                                          int count);
  weir_status_t* (*record)(weir_device_t* device, weir_stream_t stream, weir_event_t** out_event);
  // What is submitted to |stream| from now on runs after |event|, which is of any device's stream,
  // of any kind: what the device does not know, |notify| tells. Holds it as long as needed.
  weir_status_t* (*wait)(weir_device_t* device, weir_stream_t stream, weir_event_t* event);
  // Required of those with memory of their own. Copies |size| bytes, at least one, from host memory
  // to this device's, in the order of WEIR_STREAM_UPLOAD, or the other way, in that of
  // WEIR_STREAM_DOWNLOAD; then calls |done|. With |staging|, the host's end is in pinned memory.
  void (*copy)(weir_device_t* device, weir_stream_t stream, const void* src, void* dst, size_t size,
               weir_copy_done_fn_t done, void* arg);
  // Optional, default: through the host. Likewise from the memory of |from|, another device with
  // this vtable, to this device's, in the order of WEIR_STREAM_UPLOAD.
  void (*copy_peer)(weir_device_t* device, weir_device_t* from, const void* src, void* dst,
                    size_t size, weir_copy_done_fn_t done, void* arg);
  // Optional: streams tell when they were where (device/span.h).
  const struct weir_timer_vtable_t* timer;
  // Optional. The share of the last moments in which the device was at work for anyone, 0 to 1;
  // negative: not known.
  double (*busy)(weir_device_t* device);
} weir_device_vtable_t;

// ---- recordings: what a thread launched once, to be launched again as a whole ----
// Optional, of a device whose kernels launch. Addresses of memory and numbers that the host
// computed are part of a recording: whoever repeats it answers for their being the same.
// Thread-compatible; the device outlives it.
typedef struct weir_recorder_t weir_recorder_t;
typedef struct weir_recording_t {
  const weir_recorder_t* recorder;
} weir_recording_t;
struct weir_recorder_t {
  // From now on what this thread launches on |device| is recorded and does not run, and memory of
  // the device that it takes is for recordings: nobody else gets it, in use or freed, as long as
  // there are any. Each may find there what another left: nothing in it lasts.
  weir_status_t* (*begin)(weir_device_t* device, weir_recording_t** out_recording);
  // The thread launches as ever again. After an error nothing of the recording can run.
  weir_status_t* (*end)(weir_recording_t* recording);
  void (*destroy)(weir_recording_t* recording);  // also before its end
  // Makes a tensor in memory that nothing recorded is given: for what is copied to the device
  // before the recording runs.
  weir_status_t* (*keep)(weir_recording_t* recording, weir_dtype_t dtype, int rank,
                         const int64_t* dims, weir_tensor_t** out_tensor);
  // Copies from pinned host memory, which must live, in the order of the compute stream.
  weir_status_t* (*upload)(weir_recording_t* recording, void* dst, const void* src, size_t size);
  // Runs all that was recorded, in the order of the compute stream.
  weir_status_t* (*launch)(weir_recording_t* recording);
  // Whether all memory that was freed while it was made is its own.
  bool (*is_whole)(weir_recording_t* recording);
};

struct weir_device_t {
  const weir_device_vtable_t* vtable;
  weir_ref_t ref;
  const char* type;         // "CPU": as names and messages have it
  const char* kernel_type;  // what kernels are registered for: |type|, or whose it borrows
  char* name;               // "/job:localhost/replica:0/task:0/device:CPU:0"; owned
  char* description;        // "device: 0, name: NVIDIA H200, …" for people; owned; NULL: none
  int ordinal;              // among the devices of its runtime
  int preference;           // nodes that nobody placed go where it is highest
  double speed;             // of a simulated device, against its kernels; 0: not simulated
  uint64_t incarnation;     // changes when the device restarts
  int64_t memory_limit;     // bytes; 0: not known
  weir_pool_t* pool;        // intra-op threads on the host; borrowed
  weir_allocator_t* allocators[WEIR_MEMORY_KINDS];  // required; they outlive the device
  weir_staging_t* staging;  // of a device that copies pinned host memory only; owned. NULL: all
  const weir_recorder_t* recorder;  // NULL: it records nothing
};

weir_device_t* weir_device_retain(weir_device_t* device);
void weir_device_release(weir_device_t* device);
WEIR_INLINE weir_allocator_t* weir_device_allocator(const weir_device_t* device,
                                                    weir_memory_t memory) {
  return device->allocators[memory];
}
// Whether kernels compute in host memory.
WEIR_INLINE bool weir_device_is_host(const weir_device_t* device) {
  return weir_allocator_is_host(device->allocators[WEIR_MEMORY_DEVICE]);
}
// Whether kernels are through later than their call.
WEIR_INLINE bool weir_device_has_streams(const weir_device_t* device) {
  return device->vtable->record != NULL;
}
weir_event_t* weir_event_retain(weir_event_t* event);
void weir_event_release(weir_event_t* event);  // NULL-safe; what waits for it already still does
// Returns when it is reached. For threads that have nothing better to do.
void weir_event_await(weir_event_t* event);
// Whether |device| copies from the memory of |from|.
bool weir_device_is_peer(const weir_device_t* device, const weir_device_t* from);
// Copies the elements of |src| to |dst|, one of them in |device|'s memory and the other in host
// memory, or |src| in that of a peer, after all kernels that were submitted before to the devices
// of both; calls |done| when they have arrived. Both must live until then. INVALID_ARGUMENT where
// types or counts differ, or no memory but the host's holds such elements.
void weir_device_copy(weir_device_t* device, const weir_tensor_t* src, weir_tensor_t* dst,
                      weir_copy_done_fn_t done, void* arg);
// Makes a tensor in host memory that |device| will copy to: pinned where that matters and there is
// some left.
WEIR_MUST_USE weir_status_t* weir_device_host_tensor(weir_device_t* device, weir_dtype_t dtype,
                                                     int rank, const int64_t* dims,
                                                     weir_tensor_t** out_tensor);
// Copies |src| into fresh memory of |device|, of the kind given, and waits. For what is not in a
// hurry.
WEIR_MUST_USE weir_status_t* weir_device_fetch(weir_device_t* device, weir_memory_t memory,
                                               const weir_tensor_t* src,
                                               weir_tensor_t** out_tensor);

// ---- kinds of devices ----
typedef struct weir_device_params_t {
  const char* task;  // what names begin with; NULL: that of a process by itself
  int index;
  weir_pool_t* pool;      // borrowed, must outlive the device
  double speed;           // of a simulated device: 1 is as fast as its kernels are
  double bandwidth;       // likewise: bytes a second, to and from it; 0: as fast as it goes
  double memory;          // bytes of its own; 0: as much as the kind has
  bool is_staged;         // of a guard: it copies pinned host memory only
  bool is_ieee;           // of a GPU: products of floats are not rounded to TF32
  bool is_deterministic;  // of a GPU: sums have an order, so that results repeat to the bit
} weir_device_params_t;
typedef struct weir_device_kind_t {
  const char* name;         // "cpu": as --devices and people spell it
  const char* type;         // "CPU": weir_device_t.type, of all its devices
  const char* kernel_type;  // likewise
  bool has_queue;           // likewise: whether they have streams
  int preference;           // likewise
  weir_status_t* (*create)(const weir_device_params_t* params, weir_device_t** out_device);
} weir_device_kind_t;
extern const weir_device_kind_t weir_cpu_kind;
// The one that is always there.
WEIR_INLINE weir_status_t* weir_cpu_device_create(const char* task, int index, weir_pool_t* pool,
                                                  weir_device_t** out_device) {
  weir_device_params_t params = {.task = task, .index = index, .pool = pool};
  return weir_cpu_kind.create(&params, out_device);
}
extern const weir_device_kind_t weir_guard_kind;
extern const weir_device_kind_t weir_tight_kind;
extern const weir_device_kind_t weir_cuda_kind;
// The kind whose devices have |type|, as other processes tell it; NULL: none that is known here.
const weir_device_kind_t* weir_device_kind_find(weir_view_t type);

// Makes the devices that |spec| lists: "cpu:2,guard:2@speed=0.5@bandwidth=1e9,tight@memory=1e6" are
// two CPUs, two guards and a tight one; "cpu" is "cpu:1". NULL or "": one CPU. A CPU is always the
// first. INVALID_ARGUMENT quotes what is wrong.
WEIR_MUST_USE weir_status_t* weir_devices_create(const char* spec, const char* task,
                                                 weir_pool_t* pool, weir_device_t*** out_devices,
                                                 int* out_count);
void weir_devices_release(weir_device_t** devices, int count);
// For those who write a device: name and number, references, incarnation.
WEIR_MUST_USE weir_status_t* weir_device_init(weir_device_t* device, const char* type,
                                              const weir_device_params_t* params);

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
